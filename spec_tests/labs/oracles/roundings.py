"""Whether a disagreement follows from the rounding of a sum to float16 before something is added to it."""

from itertools import product

import numpy as np

from spec_tests.labs.oracles.graphs import Given, apart
from spec_tests.support.random_graphs.program import ROUNDS, Program
from webnn_py.core.operators.registry import OPERATORS

ADDED = {"conv2d": ("bias", None), "gemm": ("c", "beta")}
"""By method: the option that is added to the sum, and that of its factor."""

HALF_UNIT = 2.0**-11
"""The most that rounding to float16 changes, as a share of the number."""


def roundings(program, item):
    """Return the listed calls of a program that round a sum before they add to it, if the result may follow from them.

    It may unless an operator that is not among the readers computes with what they round.

    Args:
        program: ends with the call whose result differs.
        item: the listed difference.
    """
    found, behind = [], set()
    for call in program.calls:
        name = OPERATORS[call.method].spec_name
        if behind.intersection(operand.name for operand in call.operands):
            if name not in item.readers:
                return []
        elif name in item.operators and item.features <= data_types(call) and most_added(call):
            found.append(call)
        else:
            continue
        behind.update(value.name for value in call.results)
    return found if program.outputs[0].name in behind else []


def data_types(call):
    """Return the data types of the operands and results of a call."""
    return {value.data_type for value in (*call.operands, *call.results)}


def most_added(call):
    """Return the greatest magnitude that is added to the sum of a call; 0 where nothing is."""
    operand, factor = ADDED[call.method]
    added = call.options.get(operand)
    return 0 if added is None else added.known.most * abs(call.options.get(factor, 1))


async def are_the_cause(places, one, calls):
    """Return whether each place is as far from numpy as the roundings of calls explain, element by element.

    The calls' results are moved up and down by one rounding of the sum and one of the result. What numpy computes of
    these, widened by the value's own bound, must enclose what the other places compute.

    Args:
        places: where the program is computed.
        one: the disagreement.
        calls: those of its program whose results are moved.
    """
    program, rounded = one.program, tuple(call.results[0] for call in calls)
    exact = await _of_numpy(places, Program.of(program.sources, program.calls, rounded))
    others = tuple(call for call in program.calls if call not in calls)
    corners = []
    for signs in product((-1, 0, 1), repeat=len(calls)):
        given = tuple(
            Given(value, tuple(_moved(call, rounds[number], sign) for rounds in exact))
            for number, (value, call, sign) in enumerate(zip(rounded, calls, signs, strict=True))
        )
        corners.append(await _given_away(places, program, given, others))
    results = await places.results(program, ("numpy", *one.odd))
    return all(
        is_enclosed(program.outputs[0], results[name][at][0], [corner[at] for corner in corners])
        for name in one.odd
        for at in range(ROUNDS)
    )


async def _of_numpy(places, program):
    (rounds,) = (await places.results(program, ("numpy",))).values()
    return [[np.asarray(array) for array in arrays] for arrays in rounds]


async def _given_away(places, program, given, others):
    """Return the output of each round, where the results of some calls are given."""
    direct = next((item for item in given if item.value.name == program.outputs[0].name), None)
    if direct is not None:
        return list(direct.arrays)
    rounds = await _of_numpy(places, Program.of((*program.sources, *given), others, program.outputs))
    return [arrays[0] for arrays in rounds]


def _moved(call, array, sign):
    """Return a result, moved up or down by a rounding of the sum and one of the result."""
    exact = array.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        move = HALF_UNIT * (np.abs(exact) + most_added(call)) + np.abs(np.spacing(array))
        return (exact + sign * move).astype(array.dtype)


def is_enclosed(value, array, corners):
    """Return whether no element is outside of the corners by more than the value's bound, or NaN on one side only."""
    nearest = np.maximum(np.minimum.reduce(corners), np.fmin(np.maximum.reduce(corners), array))
    return not apart(value, array, nearest.astype(array.dtype)).any()
