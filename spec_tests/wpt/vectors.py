"""The cases of web-platform-tests as data: reading them, and drawing them with the public API.

The folder that ``--wpt-vectors`` or ``WEBNN_WPT_VECTORS`` names holds one JSON file for each file of WPT's
``webnn/conformance_tests`` (a list of cases: inputs, operators, expected outputs, a tolerance), and in
``validation/`` the data of ``webnn/validation_tests``. They are a snapshot of March 2025; :data:`RENAMES`,
:data:`DEFAULTS` and :func:`to_rank` are all that is adapted.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from webnn_py import MLGraphBuilder, MLOperand
from webnn_py.core.operators.declaration import python_name_of
from webnn_py.core.operators.registry import BY_SPEC_NAME

RENAMES = {
    ("averagePool2d", "roundingType"): ("outputShapeRounding", "renamed since the snapshot"),
    ("l2Pool2d", "roundingType"): ("outputShapeRounding", "renamed since the snapshot"),
    ("maxPool2d", "roundingType"): ("outputShapeRounding", "renamed since the snapshot"),
    ("cast", "type"): ("dataType", "positional; the data have the snapshot's name of it"),
    ("logicalNot", "input"): ("a", "positional; the data have another name for it"),
    ("gru", "restAfter"): (None, "a slip of the data: an unknown member, which JavaScript ignores"),
    ("gruCell", "restAfter"): (None, "a slip of the data: an unknown member, which JavaScript ignores"),
}
"""(operator, name in the snapshot) → the specification's name, or None for none, and why."""

DEFAULTS = {
    ("softmax", "axis"): (1, "the snapshot still has the older form for two dimensions, without an axis"),
}
"""(operator, argument) → its value where the snapshot leaves it out, and why."""

LOWER_RANK = ("scale", "zeroPoint")
"""Operands of the quantization operators that the snapshot lets have a lower rank than the input."""

COMPARED = 1000
"""How many elements are compared where all are expected to have one value."""


@attrs.frozen
class Vector:
    """One case of a file."""

    file: str
    raw: dict[str, Any] = attrs.field(repr=False)

    @property
    def id(self) -> str:
        return f"{self.file}/{self.raw.get('testName', self.raw['name'])}"


@cache
def read(folder: Path) -> list[Vector]:
    """All conformance cases, in the order of the files' names."""
    return [
        Vector(path.name.partition(".")[0], raw)
        for path in sorted(folder.glob("*.any.json"))
        for raw in json.loads(path.read_text(encoding="utf-8"))
    ]


@cache
def read_validation(folder: Path) -> list[Vector]:
    """All validation cases that are data."""
    return [
        Vector(path.name.partition(".")[0], raw)
        for path in sorted((folder / "validation").glob("*.any.json"))
        for listed in json.loads(path.read_text(encoding="utf-8")).get("data", {}).values()
        for raw in listed
    ]


def number(value: Any) -> Any:
    """A number, a list of numbers or another literal, from the markers that stand for what JSON has not."""
    if isinstance(value, list):
        return [number(item) for item in value]
    if isinstance(value, str) and value.startswith("bigint:"):
        return int(value[len("bigint:") :])
    if isinstance(value, str) and value.startswith("float:"):
        return float(value[len("float:") :])
    return value


def array(tensor: Mapping[str, Any]) -> np.ndarray:
    """The array of a tensor; a single number fills it."""
    data_type = tensor["dataType"]
    # The builder refuses what was int4.
    read_as = "float64" if data_type.startswith("float") else data_type.replace("int4", "int8")
    given = np.array(number(tensor["data"]), read_as)
    if data_type.startswith("float"):
        with np.errstate(all="ignore"):
            given = given.astype(data_type)
    return given.reshape(tensor["shape"]) if given.ndim else np.full(tensor["shape"], given)


def expected(tensor: Mapping[str, Any]) -> np.ndarray:
    """Return the expected elements of an output: only the first ones where all are one number."""
    if isinstance(tensor["data"], list):
        return array(tensor)
    return array({**tensor, "shape": [min(COMPARED, math.prod(tensor["shape"]))]})


def draw(builder: MLGraphBuilder, raw: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, MLOperand]]:
    """Draw a conformance case: what to give its inputs, and its operands by their names."""
    inputs: dict[str, np.ndarray] = {}
    operands: dict[str, MLOperand] = {}
    for name, tensor in raw["inputs"].items():
        values = array(tensor)
        if tensor.get("constant"):
            operands[name] = builder.constant(values, data_type=tensor["dataType"], shape=tensor["shape"])
        else:
            operands[name] = builder.input(name, data_type=tensor["dataType"], shape=tensor["shape"])
            inputs[name] = values
    for step in raw["operators"]:
        arguments: dict[str, Any] = {}
        for argument in step["arguments"]:
            for key, value in argument.items():
                arguments |= value if key == "options" else {key: value}
        drawn = call(builder, step["name"], arguments, operands)
        names = step["outputs"] if isinstance(step["outputs"], list) else [step["outputs"]]
        operands |= zip(names, drawn if isinstance(drawn, list) else [drawn], strict=True)
    return inputs, operands


def call(
    builder: MLGraphBuilder, name: str, arguments: Mapping[str, Any], operands: Mapping[str, MLOperand]
) -> MLOperand | list[MLOperand]:
    """Call one operator's method with the snapshot's arguments, in which operands have names."""
    operator = BY_SPEC_NAME[name]
    given: dict[str, Any] = {argument: value for (of, argument), (value, _) in DEFAULTS.items() if of == name}
    for written, value in arguments.items():
        key, _ = RENAMES.get((name, written), (written, None))
        if key is None:
            continue
        python = python_name_of(key)
        parameter = operator.parameters.get(python)
        if parameter is None or not parameter.is_operand:
            given[python] = number(value)
        elif isinstance(value, list):
            given[python] = [operands[item] for item in value]
        else:
            given[python] = operands[value]
        if name in {"dequantizeLinear", "quantizeLinear"} and key in LOWER_RANK:
            given[python] = to_rank(builder, given[python], given["input"].rank)
    return getattr(builder, operator.name)(**given)


def to_rank(builder: MLGraphBuilder, operand: MLOperand, rank: int) -> MLOperand:
    """The operand with as many dimensions as the input, where the snapshot aligned them at the end itself."""
    if operand.rank >= rank:
        return operand
    return builder.reshape(operand, [1] * (rank - operand.rank) + list(operand.shape))
