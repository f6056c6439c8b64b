"""Every validation case of web-platform-tests that is data is refused with its label, or drawn with the right shape."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from spec_tests.wpt.exceptions import assert_known, expected_failures, judge_all
from spec_tests.wpt.option import needed_vectors
from spec_tests.wpt.vectors import BY_SPEC_NAME, Vector, call, read_validation
from webnn_py import MLGraphBuilder, MLOperand
from webnn_py.core.operators.declaration import python_name_of

LISTED = expected_failures("validation")
CASES = 641
LABEL = "the label of this case"
OF_FILES = {
    "argMinMax": ["argMin", "argMax"],
    "elementwise-binary": ["add", "sub", "mul", "div", "max", "min", "pow"],
    "pooling": ["averagePool2d", "l2Pool2d", "maxPool2d"],
    "reduction": [name for name in BY_SPEC_NAME if name.startswith("reduce")],
}
"""Files whose cases are for several operators."""
ARRAYS = {
    "Int8Array": "int8",
    "Uint8Array": "uint8",
    "Int16Array": "int16",
    "Uint16Array": "uint16",
    "Float16Array": "float16",
    "Int32Array": "int32",
    "Uint32Array": "uint32",
    "Float32Array": "float32",
    "BigInt64Array": "int64",
    "BigUint64Array": "uint64",
}
"""The data types of JavaScript's arrays."""


def identifier(vector: Vector, operator: str) -> str:
    return vector.id if operator == vector.file else f"{vector.id} ({operator})"


def all_cases(config: pytest.Config) -> list[tuple[Vector, str]]:
    """Every case with every operator that it is for."""
    vectors = read_validation(needed_vectors(config))
    return [(vector, operator) for vector in vectors for operator in OF_FILES.get(vector.file, [vector.file])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "operator" in metafunc.fixturenames:
        metafunc.parametrize("operator", dict.fromkeys(operator for _, operator in all_cases(metafunc.config)))


async def test_the_cases_of_an_operator_are_refused_or_drawn_as_they_say(numpy_context, pytestconfig, operator):
    named = pytestconfig.option.case or ""
    cases = {identifier(vector, of): vector for vector, of in all_cases(pytestconfig) if of == operator}
    verdicts = {
        name: wrong(MLGraphBuilder(numpy_context), vector.raw, operator)
        for name, vector in cases.items()
        if named in name
    }
    judge_all(verdicts, LISTED)


def wrong(builder: MLGraphBuilder, raw: Mapping[str, Any], operator: str) -> str | None:
    """Return the error in drawing a case, or None."""
    outputs = raw.get("outputs", raw.get("output"))
    try:
        drawn = draw(builder, raw, operator)
    except TypeError as error:
        if outputs is not None:
            return f"refused: {error}"
        if operator in BY_SPEC_NAME and f"[{raw.get('options', {}).get('label', LABEL)}]" not in str(error):
            return f"the label is missing in {str(error)!r}"
        return None
    if outputs is None:
        return f"drawn: {drawn}, but it must be refused"
    outputs = outputs if isinstance(outputs, list) else [outputs]
    drawn = drawn if isinstance(drawn, list) else [drawn]
    said = [(operand.data_type, list(operand.shape)) for operand in drawn]
    wanted = [
        (output.get("dataType", data_type), output["shape"])
        for output, (data_type, _) in zip(outputs, said, strict=True)
    ]
    return None if said == wanted else f"drawn as {said}, expected {wanted}"


def draw(builder: MLGraphBuilder, raw: Mapping[str, Any], operator: str) -> MLOperand | list[MLOperand]:
    """Do what the case describes."""
    if operator == "input":
        descriptor = raw["descriptor"]
        return builder.input(raw["name"], data_type=descriptor["dataType"], shape=descriptor["shape"])
    if operator == "constant":
        descriptor, buffer = raw["descriptor"], raw["buffer"]
        data_type = np.dtype(ARRAYS[buffer["type"].removeprefix("ctor:")])
        data = np.zeros(buffer["byteLength"] // data_type.itemsize, data_type)
        return builder.constant(data, data_type=descriptor["dataType"], shape=descriptor["shape"])
    parameters = BY_SPEC_NAME[operator].parameters
    operands: dict[str, MLOperand] = {}
    arguments: dict[str, Any] = {"label": LABEL}
    for key, value in flat(raw).items():
        parameter = parameters.get(python_name_of(key))
        if parameter is None or not parameter.is_operand:
            arguments[key] = value
            continue
        names = []
        for index, descriptor in enumerate(value if isinstance(value, list) else [value]):
            names.append(f"{key}[{index}]")
            operands[names[-1]] = builder.input(names[-1], data_type=descriptor["dataType"], shape=descriptor["shape"])
        arguments[key] = names if isinstance(value, list) else names[0]
    return call(builder, operator, arguments, operands)


def flat(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments and options of a case in one dictionary."""
    said = {key: value for key, value in raw.items() if key not in {"name", "output", "outputs", "options"}}
    operands = said.pop("inputs") if isinstance(said.get("inputs"), dict) else {}
    return said | operands | raw.get("options", {})


def test_all_cases_are_there(pytestconfig):
    identifiers = [identifier(*case) for case in all_cases(pytestconfig)]
    assert len(set(identifiers)) == len(identifiers) == CASES


def test_only_known_cases_are_expected_to_fail(pytestconfig):
    assert_known(LISTED, [identifier(*case) for case in all_cases(pytestconfig)])


async def test_the_runner_reports_what_is_not_as_a_case_says(numpy_context, pytestconfig):
    cases = [(vector.raw, operator) for vector, operator in all_cases(pytestconfig) if operator in BY_SPEC_NAME]
    accepted, of_accepted = next((raw, operator) for raw, operator in cases if "output" in raw)
    refused, of_refused = next((raw, operator) for raw, operator in cases if not raw.keys() & {"output", "outputs"})
    other = {"shape": [*accepted["output"]["shape"], 1]}

    def said(raw: Mapping[str, Any], operator: str) -> str | None:
        return wrong(MLGraphBuilder(numpy_context), raw, operator)

    assert said(accepted, of_accepted) is None
    assert said(refused, of_refused) is None
    assert said({**accepted, "output": other}, of_accepted).startswith("drawn as")
    assert said({key: accepted[key] for key in accepted if key != "output"}, of_accepted).startswith("drawn: ")
    assert said({**refused, "output": other}, of_refused).startswith("refused: ")
    assert "label" in wrong(Unlabelled(), refused, of_refused)


class Unlabelled:
    """A builder that refuses everything without saying where."""

    def __getattr__(self, name):
        raise TypeError("no")
