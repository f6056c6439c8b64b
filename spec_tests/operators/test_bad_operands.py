"""Arguments that a declaration forbids raise the right error, which names operator, label and argument.

The bad arguments are generated from the declarations; after all refusals the builder still builds a right graph.
"""

from collections.abc import Iterator
from typing import Any, get_args

import attrs
import numpy as np
import pytest

from spec_tests.operators.minimal import (
    Tensor,
    computed,
    draw_operands,
    filled,
    minimal,
    operand_rows,
    outputs_of,
    tensors_of,
)
from spec_tests.support.cells import cells
from spec_tests.support.computing import compute
from webnn_py import InvalidStateError, MLContext, MLGraphBuilder, MLOperand
from webnn_py.core.operators import idl
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.registry import OPERATORS

LABEL = "the operator that is tested"
EVERY_OPERATOR = cells("name", sorted(OPERATORS))

NO_INTEGERS = [-1, 2**32, 1.0, 0.5, "1", True, None, [1]]
NO_NUMBERS = ["1", True, None, [1.0], 1j]
NO_SEQUENCES = [3, 2.5, None, "ab", b"ab", {0: 1}]

BAD_VALUES: dict[object, list[object]] = {
    idl.operand: [1, "input", np.zeros(2, np.float32), [], object],
    idl.operands: [1, "inputs", None, [1], ["a"], [None]],
    idl.size_or_axis: NO_INTEGERS,
    idl.long: [-(2**31) - 1, 2**31, 1.0, "1", True, None],
    idl.unsigned_longs: [*NO_SEQUENCES, *[[value] for value in NO_INTEGERS]],
    idl.double: [*NO_NUMBERS, float("nan"), float("inf"), -float("inf")],
    idl.ml_number: NO_NUMBERS,
    idl.floats: [*NO_SEQUENCES, ["1"], [True], [None], [float("nan")], [float("inf")], [1e39]],
    idl.boolean: [0, 1, "True", None, np.zeros(1)],
    idl.usv_string: [0, None, b"label", ["label"]],
}
"""Values that are of no IDL type, by its converter; None is left out where the argument may be absent."""

NO_ENUMERATION = ["nonsense", "", 0, True, None]


def bad_values(operator: Operator[..., Any], name: str) -> list[object]:
    """Values of no right type for one parameter."""
    parameter = operator.parameters[name]
    values = BAD_VALUES.get(parameter.convert)
    if values is None and parameter.convert is idl.converter(int | idl.Sequence[int])[0]:
        values = [*NO_INTEGERS[:-1], "ab", *[[value] for value in NO_INTEGERS]]
    if values is None:
        sequence = any("Sequence" in str(item) for item in (operator.hints[name], *get_args(operator.hints[name])))
        values = [*NO_SEQUENCES, *[[value] for value in NO_ENUMERATION]] if sequence else NO_ENUMERATION
    if parameter.required or not parameter.optional:
        return values
    return [value for value in values if value is not None]


class Bench:
    """A builder on which one operator is called wrongly again and again, and rightly in the end."""

    def __init__(self, context: MLContext, name: str) -> None:
        self.builder = MLGraphBuilder(context)
        self.name = name
        self.right = draw_operands(self.builder, minimal(name))
        self.drawn = 0

    def draw(self, tensor: Tensor, builder: MLGraphBuilder | None = None) -> MLOperand:
        """Another operand, for a wrong call."""
        self.drawn += 1
        builder = builder or self.builder
        return builder.input(f"another {self.drawn}", data_type=tensor.data_type, shape=tensor.shape)

    def call(self, **changes: object) -> MLOperand | list[MLOperand]:
        """The right call, but for ``changes``."""
        return getattr(self.builder, self.name)(**(self.right | {"label": LABEL} | changes))

    def attempt(self, **changes: object) -> tuple[MLOperand | list[MLOperand] | None, str]:
        """Return the result of the call, or None and the text of the error."""
        try:
            return self.call(**changes), ""
        except TypeError as error:
            return None, str(error)

    def refuses(self, argument: str, error: type[Exception] = TypeError, **changes: object) -> None:
        """The call is refused; the message names the operator, the label and the argument."""
        before = len(self.builder._values)
        try:
            self.call(**changes)
        except error as caught:
            raised = caught
        else:
            pytest.fail(f"it is not refused: {changes}")
        assert type(raised) is error, changes
        said, label = str(raised), changes.get("label", LABEL)
        head = f"{self.name}() [{label}]: " if isinstance(label, str) else f"{self.name}(): "
        assert said.startswith(head), (changes, said)
        assert argument in said.removeprefix(head), (changes, said)
        assert len(self.builder._values) == before, "a refused call left something behind"

    async def still_builds(self, context: MLContext) -> None:
        """The right call builds, and computes what it computes on a builder that refused nothing."""
        arguments = minimal(self.name)
        inputs = filled(arguments, 1)
        got = await compute(context, self.builder, inputs, outputs_of(self.call()))
        expected = await computed(context, self.name, arguments, inputs)
        for output, array in expected.items():
            np.testing.assert_array_equal(got[output], array)


def in_place_of(right: dict[str, Any], shown: str, operand: object) -> dict[str, Any]:
    """The changes that put an operand where a message would show ``shown``."""
    key, _, rest = shown.partition("[")
    if not rest:
        return {key: operand}
    items = list(right[key])
    items[int(rest.rstrip("]"))] = operand
    return {key: items}


@EVERY_OPERATOR
async def test_wrong_types_are_refused_for_every_parameter(context, name):
    bench, operator = Bench(context, name), OPERATORS[name]
    for parameter in operator.parameters:
        for value in bad_values(operator, parameter):
            bench.refuses(parameter, **{parameter: value})
    await bench.still_builds(context)


@EVERY_OPERATOR
async def test_another_data_type_or_rank_than_that_of_the_operand_it_must_follow_is_refused(context, name):
    bench, operator, arguments = Bench(context, name), OPERATORS[name], minimal(name)
    rows = operand_rows(operator)
    for shown, tensor in tensors_of(arguments):
        row = rows[shown.partition("[")[0]]
        if row.type_of:
            for data_type in set(row.data_types) - {tensor.data_type}:
                other = bench.draw(attrs.evolve(tensor, data_type=data_type))
                bench.refuses(f"the data type of {shown}", **in_place_of(bench.right, shown, other))
        if row.rank_of:
            other = bench.draw(attrs.evolve(tensor, shape=(1, *tensor.shape)))
            bench.refuses(f"the rank of {shown}", **in_place_of(bench.right, shown, other))
    await bench.still_builds(context)


@EVERY_OPERATOR
async def test_an_operand_of_another_builder_is_refused_wherever_it_stands(context, name):
    bench = Bench(context, name)
    foreign = MLGraphBuilder(context)
    for shown, tensor in tensors_of(minimal(name)):
        other = bench.draw(tensor, foreign)
        bench.refuses(f"{shown} belongs to another builder", **in_place_of(bench.right, shown, other))
    await bench.still_builds(context)


@EVERY_OPERATOR
async def test_missing_unknown_and_repeated_arguments_are_refused(context, name):
    bench, operator = Bench(context, name), OPERATORS[name]
    bench.refuses("no_such_option", no_such_option=1)
    method, right = getattr(bench.builder, name), bench.right
    for parameter in operator.parameters.values():
        if parameter.spec_name != parameter.name:
            bench.refuses(parameter.spec_name, **{parameter.spec_name: right.get(parameter.name)})
        if parameter.required:
            rest = {key: value for key, value in right.items() if key != parameter.name}
            with pytest.raises(TypeError, match=f"{name}\\(\\) .*{LABEL}.*{parameter.name}"):
                method(**rest, label=LABEL)
    positional = [right[key] for key, parameter in operator.parameters.items() if parameter.required]
    with pytest.raises(TypeError, match=f"{name}\\(\\).*too many positional arguments"):
        method(*positional, 1)
    with pytest.raises(TypeError, match=f"{name}\\(\\).*multiple values"):
        method(*positional, **right)
    await bench.still_builds(context)


@EVERY_OPERATOR
async def test_a_builder_that_has_built_or_was_destroyed_draws_no_more(context, name):
    bench = Bench(context, name)
    graph = await bench.builder.build(outputs_of(bench.call()))
    with pytest.raises(InvalidStateError, match=f"{name}\\(\\)") as caught:
        bench.call()
    assert caught.type is InvalidStateError
    with pytest.raises(TypeError, match="no_such_option"):
        bench.call(no_such_option=1)
    graph.destroy()
    destroyed = Bench(context, name)
    destroyed.builder.destroy()
    with pytest.raises(InvalidStateError, match=f"{name}\\(\\)"):
        destroyed.call()


@EVERY_OPERATOR
async def test_a_lost_context_draws_no_more(ml, options, name):
    context = await ml.create_context(**options)
    bench = Bench(context, name)
    context.destroy()
    with pytest.raises(InvalidStateError, match=f"{name}\\(\\)"):
        bench.call()


SIZES = (1, 3, 7)
ODD_LISTS: list[list[int]] = [
    [], [0], [1], [7], [0, 0], [1, 0], [9, 9], [1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1], [9, 0, 9, 0], [2**32 - 1] * 2,
]  # fmt: skip
ODD_VALUES: dict[object, list[object]] = {
    idl.size_or_axis: [0, 1, 2, 7, 2**31 - 1, 2**32 - 1],
    idl.long: [-(2**31), -1, 0, 1, 2**31 - 1],
    idl.unsigned_longs: list(ODD_LISTS),
    idl.double: [0, -0.0, -1.0, 1e-320, 1e308, 10**300],
    idl.ml_number: [0, -1, 2**70, -(2**70), float("nan"), float("inf"), -float("inf"), 1e-320],
    idl.floats: [[], [0.0, 1.0], [-1.0, 1.0], [1e-30, 1e-30], [1e30, 1e30], [1.0, 1.0, 1.0], [0.5, 2]],
    idl.boolean: [True, False],
}
"""Values of the right type that may fit or not, by converter."""


def odd_changes(name: str, bench: Bench) -> Iterator[dict[str, Any]]:
    """Changes of one argument each that the shape rule accepts or refuses, but must understand."""
    operator = OPERATORS[name]
    for shown, tensor in tensors_of(minimal(name)):
        shapes = [(*tensor.shape, 1), (3, *tensor.shape), tensor.shape[1:]]
        shapes += [
            (*tensor.shape[:axis], size, *tensor.shape[axis + 1 :])
            for axis in range(len(tensor.shape))
            for size in SIZES
        ]
        for shape in shapes:
            other = bench.draw(attrs.evolve(tensor, shape=shape))
            yield in_place_of(bench.right, shown, other)
    for key, parameter in operator.parameters.items():
        values = ODD_VALUES.get(parameter.convert, [])
        if parameter.convert is idl.converter(int | idl.Sequence[int])[0]:
            values = [*ODD_VALUES[idl.size_or_axis], *ODD_LISTS]
        for value in values:
            yield {key: value}


@EVERY_OPERATOR
async def test_odd_shapes_and_values_are_drawn_or_refused_in_words(context, name):
    """Whatever does not fit is a TypeError with the label; whatever is drawn can be built and computed."""
    bench = Bench(context, name)
    accepted = 0
    for changes in odd_changes(name, bench):
        before = len(bench.builder._values)
        drawn, said = bench.attempt(**changes)
        if drawn is not None:
            accepted += 1
            await computes(context, name, changes, drawn)
        else:
            assert said.startswith(f"{name}() [{LABEL}]: "), changes
            assert " must " in said, (changes, said)
            assert len(bench.builder._values) == before, changes
    assert accepted, "nothing fits: the table of minimal calls is wrong"
    await bench.still_builds(context)


async def computes(context: MLContext, name: str, changes: dict[str, Any], drawn: MLOperand | list[MLOperand]) -> None:
    """The accepted call computes, on ones, arrays of the shapes that were drawn."""
    outputs = outputs_of(drawn)
    if sum(np.prod(operand.shape, dtype=object) for operand in outputs.values()) > 10**6:
        return
    arguments = minimal(name)
    for key, value in changes.items():
        if isinstance(value, MLOperand):
            arguments[key] = Tensor(value.data_type, value.shape)
        elif isinstance(value, list) and any(isinstance(item, MLOperand) for item in value):
            arguments[key] = [Tensor(item.data_type, item.shape) for item in value]
        else:
            arguments[key] = value
    arrays = await computed(context, name, arguments, filled(arguments, 1), label=LABEL)
    for output, array in arrays.items():
        assert (array.dtype.name, array.shape) == (outputs[output].data_type, outputs[output].shape), changes
