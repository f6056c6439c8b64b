"""What the text says of an operator in terms of others agrees with the operator itself, for all options.

The inputs and options are those of the operators' cases, but for values so large, or so far from numbers, that the
steps on the way overflow.
"""

from typing import Any

import numpy as np
import pytest

from spec_tests.operators.cases import Case, decode, load_all
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder
from webnn_py.operators import decompositions
from webnn_py.operators.decompositions import DECOMPOSITIONS
from webnn_py.operators.registry import OPERATORS

CASES = {file.operator: file.cases for file in load_all()}
LARGEST = {"float32": 1e4, "float16": 30.0}
"""Beyond it no decomposition is held to anything."""
ROUNDING = {"float32": 1e-5, "float16": 1e-2}
"""How far the two may be apart, in parts of the largest value."""


def is_moderate(case: Case) -> bool:
    """Whether all its numbers are finite and not too large."""
    inputs = [decode(tensor) for given in case.inputs.values() for tensor in _listed(given)]
    return all(_is_moderate(array) for array in [*inputs, *case.expected])


def _is_moderate(array: np.ndarray) -> bool:
    if array.dtype.kind != "f":
        return bool(np.abs(array.astype(np.float64)).max() <= 2**20)
    return bool(np.isfinite(array).all() and np.abs(array.astype(np.float64)).max() <= LARGEST[array.dtype.name])


def _listed(given: Any) -> list[dict[str, Any]]:
    return given if isinstance(given, list) else [given]


@pytest.mark.parametrize("name", DECOMPOSITIONS)
async def test_a_decomposition_agrees_with_its_operator(context, name):
    cases = [case for case in CASES[name] if is_moderate(case)]
    assert len(cases) >= 5, "too few cases"
    for case in cases:
        builder = MLGraphBuilder(context)
        inputs: dict[str, np.ndarray] = {}
        operands: dict[str, Any] = {}
        for key, given in case.inputs.items():
            for index, tensor in enumerate(_listed(given)):
                inputs[f"{key}{index}"] = decode(tensor)
            drawn = [
                builder.input(f"{key}{index}", data_type=tensor["data_type"], shape=tensor["shape"])
                for index, tensor in enumerate(_listed(given))
            ]
            operands[key] = drawn if isinstance(given, list) else drawn[0]
        itself = getattr(builder, name)(**operands, **case.options)
        said = DECOMPOSITIONS[name](builder, **operands, **case.options)
        assert isinstance(said, list) == isinstance(itself, list)
        pairs = list(zip(itself, said, strict=True)) if isinstance(itself, list) else [(itself, said)]
        pairs = [(a, builder.identity(b) if b in operands.values() else b) for a, b in pairs]
        outputs = {f"itself{i}": a for i, (a, _) in enumerate(pairs)} | {
            f"said{i}": b for i, (_, b) in enumerate(pairs)
        }
        arrays = await compute(context, builder, inputs, outputs)
        for index in range(len(pairs)):
            _assert_near(arrays[f"said{index}"], arrays[f"itself{index}"], f"{name}, {case.name}, output {index}")


def _assert_near(said: np.ndarray, itself: np.ndarray, where: str) -> None:
    assert (said.dtype, said.shape) == (itself.dtype, itself.shape), where
    wide, other = said.astype(np.float64), itself.astype(np.float64)
    allowed = ROUNDING.get(itself.dtype.name, 0) * max(1.0, float(np.abs(other).max()))
    assert np.abs(wide - other).max() <= allowed, f"{where}: {said.tolist()} instead of {itself.tolist()}"


def test_every_decomposition_is_that_of_an_operator():
    assert set(DECOMPOSITIONS) <= set(OPERATORS)
    for name, function in DECOMPOSITIONS.items():
        declared = [key for key in OPERATORS[name].parameters if key != "label"]
        code = function.__code__
        assert list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]) == declared


SHAPED = {
    "squeeze": ([2, 1, 3, 1], {}, [2, 3]),
    "squeeze of chosen axes": ([2, 1, 3, 1], {"axes": [3]}, [2, 1, 3]),
    "unsqueeze": ([2, 3], {"axes": [0, 2]}, [1, 2, 1, 3]),
    "flatten": ([2, 3, 4], {}, [2, 12]),
    "flatten before the first axis": ([2, 3, 4], {"axis": 0}, [1, 24]),
    "flatten after the last axis": ([2, 3, 4], {"axis": 3}, [24, 1]),
    "flatten of an axis that is not there": ([2, 3], {"axis": 3}, [2, 3]),
}


@pytest.mark.parametrize("title", SHAPED)
async def test_utilities_that_reshape_give_the_shapes_that_the_text_says(context, title):
    shape, options, expected = SHAPED[title]
    builder = MLGraphBuilder(context)
    operand = builder.input("x", data_type="float32", shape=shape)
    utility = getattr(decompositions, title.split()[0])
    assert list(utility(builder, operand, **options).shape) == expected


async def test_blockwise_expand_repeats_every_element_as_a_block(context, rng):
    builder, values = MLGraphBuilder(context), rng.standard_normal((2, 1, 3)).astype(np.float32)
    x = builder.input("x", data_type="float32", shape=values.shape)
    y = decompositions.blockwise_expand(builder, x, [4, 5, 3])
    got = await compute(context, builder, {"x": values}, {"y": y})
    np.testing.assert_array_equal(got["y"], values.repeat(2, axis=0).repeat(5, axis=1))
