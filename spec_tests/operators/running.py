"""Running cases: a whole file in one context, each case as a graph of its own."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import trio

import webnn_py
from spec_tests.operators.cases import Case, CaseFile, decode, difference
from spec_tests.support.computing import compute
from webnn_py import MLContext, MLGraphBuilder, MLOperand

Results = dict[str, list[np.ndarray] | Exception]
"""What the cases of a file compute, by name."""

Drawer = Callable[[MLGraphBuilder, np.ndarray, str], tuple[MLOperand, np.ndarray | None]]
"""Draws an operand that has the values of an array: the operand, and what to give the input of that name, if any."""


def as_input(builder: MLGraphBuilder, array: np.ndarray, name: str) -> tuple[MLOperand, np.ndarray | None]:
    return builder.input(name, data_type=array.dtype.name, shape=array.shape), array


def as_constant(builder: MLGraphBuilder, array: np.ndarray, _name: str) -> tuple[MLOperand, np.ndarray | None]:
    return builder.constant(array), None


def as_view(builder: MLGraphBuilder, array: np.ndarray, name: str) -> tuple[MLOperand, np.ndarray | None]:
    """Every second element of an input, the axes turned around and each of them backwards."""
    rank, backwards = array.ndim, np.flip(array.T)
    stored = np.zeros([2 * size for size in backwards.shape], array.dtype)
    every_second = (slice(None, None, 2),) * rank
    stored[every_second] = backwards
    operand = builder.input(name, data_type=array.dtype.name, shape=stored.shape)
    sizes = [2 * size - 1 for size in backwards.shape]
    operand = builder.slice(operand, [0] * rank, sizes, strides=[2] * rank)
    return builder.transpose(builder.reverse(operand)), stored


def as_written(
    builder: MLGraphBuilder, array: np.ndarray, name: str, *, constant: bool
) -> tuple[MLOperand, np.ndarray | None]:
    return (as_constant if constant else as_input)(builder, array, name)


def run_file(backend: str, file: CaseFile, drawer: Drawer | None = None) -> Results:
    """Compute every case of a file; operands are inputs or constants as written, or all as ``drawer`` draws them."""
    return trio.run(_run_file, backend, file, drawer)


async def _run_file(backend: str, file: CaseFile, drawer: Drawer | None) -> Results:
    results: Results = {}
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend=backend)
        for case in file.cases:
            try:
                results[case.name] = await _run(context, case, drawer)
            except Exception as error:  # noqa: BLE001 - what is wrong with the case
                results[case.name] = error
    return results


async def _run(context: MLContext, case: Case, drawer: Drawer | None) -> list[np.ndarray]:
    """Draw, build, dispatch and read one case."""
    builder = MLGraphBuilder(context)
    inputs: dict[str, np.ndarray] = {}

    def draw(tensor: dict[str, Any], name: str) -> MLOperand:
        draw_operand = drawer or partial(as_written, constant=tensor.get("constant", False))
        operand, given = draw_operand(builder, decode(tensor), name)
        if given is not None:
            inputs[name] = given
        return operand

    operands: dict[str, Any] = {}
    for parameter, given in case.inputs.items():
        if isinstance(given, list):
            operands[parameter] = [draw(tensor, f"{parameter}[{index}]") for index, tensor in enumerate(given)]
        else:
            operands[parameter] = draw(given, parameter)
    drawn = getattr(builder, case.operator)(**operands, **case.options, label=case.name)
    outputs = {f"output{i}": operand for i, operand in enumerate(drawn if isinstance(drawn, list) else [drawn])}
    return list((await compute(context, builder, inputs, outputs)).values())


def what_is_wrong(result: list[np.ndarray] | Exception, case: Case, expected: list[np.ndarray] | None = None) -> str:
    """In words, what is wrong with a result; empty when nothing is."""
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {result}"
    expected = case.expected if expected is None else expected
    if len(result) != len(expected):
        return f"there are {len(result)} outputs, expected {len(expected)}"
    said = [difference(got, wanted, case.tolerance) for got, wanted in zip(result, expected, strict=True)]
    return "; ".join(f"output {index}: {words}" for index, words in enumerate(said) if words)
