"""The facts at operators' declarations: each is true of what operators compute, and no operator lacks one."""

from itertools import product

import numpy as np

from spec_tests.operators.minimal import computed, minimal, operand_rows, tensors_of
from webnn_py.core.operators.registry import OPERATORS

ROUNDING = 1e-5

OPTIONS = {
    "average_pool2d": ({"window_dimensions": [2, 2], "padding": [1, 1, 1, 1]},),
    "clamp": ({"min_value": 5.0}, {"min_value": -1.0, "max_value": 1.0}),
    "cumulative_sum": ({"exclusive": True},),
    "elu": ({"alpha": 3.0},),
    "gemm": ({"alpha": 3.0, "a_transpose": True},),
    "hard_sigmoid": ({"alpha": 3.0},),
    "leaky_relu": ({"alpha": 3.0}, {"alpha": -0.5}),
    "linear": ({"alpha": 3.0, "beta": 1.0},),
    "max_pool2d": ({"window_dimensions": [2, 2], "padding": [1, 1, 1, 1]},),
    "pad": ({"value": 50.0},),
    "resample2d": ({"mode": "linear", "scales": [2.0, 2.0]}, {"sizes": [1, 1]}),
    "triangular": ({"upper": False, "diagonal": 1},),
}
"""Further options to call operators with: facts hold for all."""

DRAWS = {
    "small": lambda rng, size: rng.normal(size=size) / 10,
    "usual": lambda rng, size: rng.normal(size=size),
    "large": lambda rng, size: rng.normal(size=size) * 30,
    "positive": lambda rng, size: rng.uniform(2, 4, size),
    "few": lambda rng, size: rng.choice([0.5, -0.5, 3.5, -2.5, 1, -1], size),
    "special": lambda rng, size: rng.choice([0.0, -0.0, 1e-40, 1e15, -1e15], size),
    "negative": lambda rng, size: -rng.uniform(0.1, 0.4, size),
    "zeros": lambda _rng, size: np.zeros(size),
    "ones": lambda _rng, size: np.ones(size),
}
"""Elements of operands of floats."""

NETWORKS = ("gru", "gru_cell", "lstm", "lstm_cell")
LACKING = {
    "boolean": {"arg_max": "of two elements", "arg_min": "of two elements"},
    "no_larger": {
        "cast": "the nearest integer of another data type may be another one",
        **dict.fromkeys(NETWORKS, "not of more steps"),
    },
    "averages": dict.fromkeys(NETWORKS, "not of more steps"),
    "result_range": {"quantize_linear": "to int8 it is below 0", **dict.fromkeys(("arg_max", "arg_min"), "of an axis")},
    "propagates_nan": {
        "conv_transpose2d": "padding cuts elements off",
        "cumulative_sum": "exclusive sums lack the last element",
        "average_pool2d": "strides may pass over elements",
        "l2_pool2d": "strides may pass over elements",
        "max_pool2d": "strides may pass over elements",
        "scatter_nd": "the last of several updates of one place counts",
        "resample2d": "a smaller image lacks elements",
        **dict.fromkeys(NETWORKS, "devices compute them by other functions"),
    },
}
"""Operators that look as if they had a fact in these calls, and do not have it, with the reason."""


def calls(name):
    """The arguments of some calls of an operator, most of them on matrices."""
    of_matrices = {key: 2 for key, row in operand_rows(OPERATORS[name]).items() if row.ranks.min <= 2 <= row.ranks.max}
    usual = minimal(name) if name in ("gather_nd", "scatter_nd") else minimal(name, rank=of_matrices)
    return [usual | further for further in ({}, *OPTIONS.get(name, ()))]


def feeds_of(arguments, draw, rng):
    """Arrays for the operands; indices are clamped to the axis."""
    with np.errstate(under="ignore"):
        return {
            key: (
                draw(rng, item.shape) if item.data_type.startswith("float") else rng.integers(0, 4, item.shape)
            ).astype(item.data_type)
            for key, item in tensors_of(arguments)
        }


async def run(context, name, arguments, feeds):
    results = await computed(context, name, arguments, feeds)
    return np.concatenate([result.reshape(-1).astype(np.float64) for result in results.values()])


def elements(feeds, names=None):
    """The elements of the operands of these names, of all without any."""
    return np.concatenate(
        [
            array.reshape(-1).astype(np.float64)
            for key, array in feeds.items()
            if names is None or key.partition("[")[0] in names
        ]
    )


def selects(operator, feeds, result):
    return bool(np.isin(result, elements(feeds, operator.selected_operands or None)).all())


def averages(operator, feeds, result):
    given = elements(feeds, operator.selected_operands or None)
    margin = ROUNDING * np.abs(given).max()
    return bool((result >= given.min() - margin).all() and (result <= given.max() + margin).all())


def no_larger(_operator, feeds, result):
    return bool((np.abs(result) <= np.abs(elements(feeds)).max() * (1 + ROUNDING)).all())


def boolean(_operator, _feeds, result):
    return bool(np.isin(result, (0, 1)).all())


CHECKS = {
    "selects": (selects, lambda operator: bool(operator.selected_operands)),
    "averages": (averages, lambda operator: operator.is_average),
    "no_larger": (no_larger, lambda operator: operator.is_no_larger),
    "boolean": (boolean, lambda operator: operator.is_boolean),
}
"""By fact: whether one call agrees with it, and whether an operator has it."""


def mistakes(fact, holds):
    """The operators that have a fact that is not true of them, and those of which it is true and that lack it."""
    _, has = CHECKS.get(fact, (None, lambda operator: bool(getattr(operator, fact))))
    found = []
    for name, is_true in holds.items():
        operator = OPERATORS[name]
        if has(operator) and not is_true:
            found.append(f"{name} has the fact {fact!r}, which is not true")
        elif is_true and not has(operator) and not operator.is_boolean and name not in LACKING.get(fact, {}):
            found.append(f"{name} lacks the fact {fact!r}")
    return found


async def test_facts_about_values_are_true_and_none_is_missing(numpy_context):
    found = []
    holds = {fact: dict.fromkeys(OPERATORS, True) for fact in CHECKS}
    lowest, highest = dict.fromkeys(OPERATORS, np.inf), dict.fromkeys(OPERATORS, -np.inf)
    for name, operator in OPERATORS.items():
        rng = np.random.default_rng([7, *name.encode()])  # whatever the order of operators
        for arguments in calls(name):
            for draw in DRAWS.values():
                feeds = feeds_of(arguments, draw, rng)
                result = await run(numpy_context, name, arguments, feeds)
                result = result[~np.isnan(result)]  # of roots and logarithms
                for fact, (agrees, _) in CHECKS.items():
                    holds[fact][name] &= agrees(operator, feeds, result)
                lowest[name] = min(lowest[name], result.min(initial=np.inf))
                highest[name] = max(highest[name], result.max(initial=-np.inf))
    found += [mistake for fact, of_operators in holds.items() for mistake in mistakes(fact, of_operators)]
    for name, operator in OPERATORS.items():
        low, high = operator.result_range or (-np.inf, np.inf)
        if not (low - ROUNDING <= lowest[name] and highest[name] <= high + ROUNDING):
            found.append(f"{name} gives {lowest[name]} to {highest[name]}, and has the range {low} to {high}")
        is_bounded = max(-lowest[name], highest[name]) <= 1
        if operator.result_range is None and is_bounded and name not in (*LACKING["result_range"], *NETWORKS):
            found.append(f"{name} gives {lowest[name]} to {highest[name]}, and has no range")
    assert not found, "\n".join(found)


async def test_operators_propagate_nan_as_they_declare(numpy_context):
    rng = np.random.default_rng(7)
    found = []
    for name, operator in OPERATORS.items():
        propagated = {}
        for arguments, draw in product(calls(name), [DRAWS[kind] for kind in ("positive", "usual", "zeros", "ones")]):
            feeds = feeds_of(arguments, draw, rng)
            floats = [(key, array) for key, array in feeds.items() if array.dtype.kind == "f"]
            for key, array in floats:
                for place in range(array.size):
                    changed = array.copy()
                    changed.reshape(-1)[place] = np.nan
                    result = await run(numpy_context, name, arguments, feeds | {key: changed})
                    operand = key.partition("[")[0]
                    propagated[operand] = propagated.get(operand, True) & bool(np.isnan(result).any())
        declared = set(operator.nan_operands) & propagated.keys()
        wrong = [operand for operand in declared if not propagated[operand]]
        missing = [operand for operand, is_true in propagated.items() if is_true and operand not in declared]
        if wrong:
            found.append(f"{name} does not propagate NaN of {', '.join(wrong)}")
        if missing and name not in LACKING["propagates_nan"]:
            found.append(f"{name} propagates NaN of {', '.join(missing)}, and does not declare it")
    assert not found, "\n".join(found)


async def test_operators_whose_operands_may_change_places_are_those_declared_commutative(numpy_context):
    rng = np.random.default_rng(7)
    found = []
    for name, operator in OPERATORS.items():
        operands = operand_rows(operator)
        if list(operands) != ["a", "b"]:
            assert not operator.is_commutative, name
            continue
        arguments = calls(name)[0]
        is_true = True
        for draw in (DRAWS["usual"], DRAWS["few"]):
            feeds = feeds_of(arguments, draw, rng)
            turned = {"a": feeds["b"], "b": feeds["a"]}
            first, second = [await run(numpy_context, name, arguments, given) for given in (feeds, turned)]
            is_true &= np.array_equal(first, second, equal_nan=True)
        if is_true != operator.is_commutative:
            found.append(f"{name}: declared {operator.is_commutative}, is {is_true}")
    assert not found, "\n".join(found)
