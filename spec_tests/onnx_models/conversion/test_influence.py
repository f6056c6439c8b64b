"""No rule ignores what a node gives: each input and attribute changes the result as in onnxruntime, or is refused."""

import functools
import operator as operators

import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.conversion.influence import (
    SINCE_1_32,
    WITHOUT_INFLUENCE,
    Oracle,
    attributes_of,
    changed_attributes,
    changed_inputs,
    conversion_of,
    declared,
    here,
    is_exempt,
    is_near,
    is_same,
)
from spec_tests.onnx_models.test_table import CATEGORIES, DEFINED, REGISTERED, cases_of
from webnn_py.onnx_models.rule_table.registry import RULES

ALWAYS_REFUSED = {
    ("com.microsoft.Attention", "past_sequence_length"): np.array(0, np.int32),
    ("com.microsoft.Attention", "do_rotary"): 1,
    ("com.microsoft.Attention", "past_present_share_buffer"): 1,
    ("com.microsoft.DynamicQuantizeLSTM", "activation_alpha"): [0.5],
    ("com.microsoft.DynamicQuantizeLSTM", "activation_beta"): [0.5],
    ("com.microsoft.GatherBlockQuantized", "gather_axis"): 1,
    ("com.microsoft.GroupQueryAttention", "k_quant_type"): "PER_TENSOR",
    ("com.microsoft.GroupQueryAttention", "kv_cache_bit_width"): 8,
    ("com.microsoft.GroupQueryAttention", "qk_output"): 1,
    ("com.microsoft.GroupQueryAttention", "sliding_window_cache"): 1,
    ("com.microsoft.GroupQueryAttention", "v_quant_type"): "PER_TENSOR",
    ("com.microsoft.MatMulNBits", "g_idx"): np.zeros(4, np.int32),
    ("com.microsoft.MatMulNBits", "weight_prepacked"): 1,
    ("com.microsoft.MultiHeadAttention", "past_sequence_length"): np.array(0, np.int32),
    ("com.microsoft.MultiHeadAttention", "cache_indirection"): np.zeros([1, 1, 1], np.int32),
    ("com.microsoft.QAttention", "do_rotary"): 1,
    ("com.microsoft.QAttention", "past_present_share_buffer"): 1,
    ("com.microsoft.RotaryEmbedding", "is_packed_batching"): 1,
    ("Dropout", "training_mode"): np.array(True),
    ("GroupNormalization", "stash_type"): 10,
    ("LayerNormalization", "stash_type"): 10,
    ("RMSNormalization", "stash_type"): 10,
    ("SimplifiedLayerNormalization", "stash_type"): 10,
    ("ai.onnx.ml.LinearClassifier", "classlabels_strings"): ["a", "b", "c"],
    ("ai.onnx.ml.TreeEnsembleClassifier", "classlabels_strings"): ["a", "b", "c"],
    ("ai.onnx.ml.ZipMap", "classlabels_strings"): ["a"],
}
"""Attributes that no node may have, or no more than its default, with a value that is refused."""


@pytest.fixture(scope="module")
def oracle():
    oracle = Oracle()
    yield oracle
    oracle.close()


@functools.cache
def cases_of_rules():
    """Return the cases of each operator by the function of their rule, None being no rule, whatever their version."""
    cases = {}
    for category in CATEGORIES:
        for case in cases_of(category):
            cases.setdefault((case.operator, conversion_of(case.operator, case.version)), []).append(case)
    return cases


def first_versions():
    """Return each rule, and each operator without one, once, by the operator and the first of its versions."""
    seen = {}
    for operator, version in sorted(REGISTERED | DEFINED):
        seen.setdefault((operator, conversion_of(operator, version)), (operator, version))
    return sorted(seen.values())


def toggled(case, index):
    """Return the case with a known input given when the graph runs, or the other way round."""
    return attrs.evolve(case, known=tuple(sorted({*case.known} ^ {index})))


async def compared(ml, case, base, theirs, changed):
    """Return the effect of a change of a case.

    Args:
        ml: where to run it.
        case: the case.
        base: the results of its oracle; None where the oracle is a list of results.
        theirs: the results of the oracle of the changed case.
        changed: the changed case.

    Returns:
        "used", "refused", "nothing" where the oracle's results stay the same, "refused without need", or "wrong: …".
    """
    mine = await here(ml, changed)
    if base is None:  # nobody says what comes out, only that it must be something else
        if mine is None:
            return "refused"
        return "nothing" if is_same(mine, await here(ml, case)) else "used"
    if mine is None:
        return "refused without need" if is_same(theirs, base) else "refused"
    if not is_near(changed, mine, theirs):
        return f"wrong: {changed}"
    return "nothing" if is_same(theirs, base) else "used"


async def outcome(ml, oracle, case, changed, index=None):
    """Return the effect of a change of a case; an input ``index`` that is used is tried both known and unknown."""
    if isinstance(case.oracle, list):
        return await compared(ml, case, None, None, changed)
    base, theirs = oracle.results(case), oracle.results(changed)
    if base is None or theirs is None:
        return "unknown"
    found = await compared(ml, case, base, theirs, changed)
    if found == "used" and index is not None and changed.inputs[index] is not None:
        again = await compared(ml, case, base, theirs, toggled(changed, index))
        return found if again in ("refused", "used") else again
    return found


async def influence(ml, oracle, changes):
    """Return the effect of all changes of one parameter: the first that is wrong or used, or "refused", or "nothing".

    Args:
        ml: where to run them.
        oracle: gives the results to compare with.
        changes: cases, the same changed, and the index of the changed input or None.
    """
    seen = set()
    for case, changed, index in changes:
        found = await outcome(ml, oracle, case, changed, index)
        if found == "used" or found.startswith("wrong"):
            return found
        seen.add(found)
    if "refused" in seen or seen - {"unknown"} == {"refused without need"}:
        return "refused"
    return "nothing"


async def is_needed(ml, oracle, case, name):
    """Return whether the node is invalid or gives something else without an attribute of the case."""
    rest = {key: value for key, value in case.attributes.items() if key != name}
    changed = attrs.evolve(case, attributes=rest)
    if isinstance(case.oracle, list):
        return await outcome(ml, oracle, case, changed) != "nothing"
    base, theirs = oracle.results(case), oracle.results(changed)
    return base is not None and (theirs is None or not is_same(base, theirs))


def parameters_of(operator, version):
    """Yield the inputs and attributes that a rule takes and the operator has, without a rule all of the operator's.

    Each is a name, with an index or a type.
    """
    rule, schema = RULES.get(operator, {}).get(version), declared(operator, version)
    for index, name in enumerate(schema.inputs):
        if rule is None or index < len(rule.inputs) or rule.variadic is not None:
            yield name, index
    for name in attributes_of(operator, version):
        if name in schema.attributes:
            yield name, schema.attributes[name]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("operator", "version"), first_versions(), ids=operators.methodcaller("__str__"))
async def test_each_input_and_attribute_counts_or_is_refused(ml, operator, version, oracle):
    cases = cases_of_rules()[operator, conversion_of(operator, version)]
    wrong = []
    for name, kind in parameters_of(operator, version):
        if is_exempt(operator, name) or (operator, name) in ALWAYS_REFUSED:
            continue
        changes = changed_inputs(cases, kind) if isinstance(kind, int) else changed_attributes(cases, name, kind)
        found = await influence(ml, oracle, changes)
        if found == "nothing" and not isinstance(kind, int):
            given = [case for case in cases if name in case.attributes]
            found = "used" if any([await is_needed(ml, oracle, case, name) for case in given]) else found
        if found not in ("used", "refused"):
            wrong.append(f"{name}: {found}")
    assert not wrong, wrong


def lacking():
    """Yield each rule without all inputs of its operator: the operator, its version, and the indices of the others."""
    for operator, version in [item for item in first_versions() if item in REGISTERED]:
        rule, count = RULES[operator][version], len(declared(operator, version).inputs)
        if rule.variadic is None and len(rule.inputs) < count:
            yield operator, version, range(len(rule.inputs), count)


async def test_inputs_that_a_rule_lacks_are_refused(ml):
    assert {operator for operator, _, _ in lacking()} >= {"com.microsoft.GroupQueryAttention"}
    for operator, version, indices in lacking():
        case = cases_of_rules()[operator, RULES[operator][version].function][0]
        for index in indices:
            inputs = [*case.inputs, *[None] * (index + 1 - len(case.inputs))]
            inputs[index] = np.ones(1, np.float32)
            assert await here(ml, attrs.evolve(case, inputs=tuple(inputs))) is None, (operator, index)


@pytest.mark.parametrize(("operator", "name"), ALWAYS_REFUSED)
async def test_unsupported_inputs_and_attributes_are_refused(ml, operator, name):
    value = ALWAYS_REFUSED[operator, name]
    for case in [case for (item, _), cases in cases_of_rules().items() if item == operator for case in cases]:
        schema = declared(operator, case.version)
        if name in schema.attributes:
            changed = attrs.evolve(case, attributes={**case.attributes, name: value})
        elif name in schema.inputs:
            index = schema.inputs.index(name)
            inputs = [*case.inputs, *[None] * (index + 1 - len(case.inputs))]
            inputs[index] = value
            changed = attrs.evolve(case, inputs=tuple(inputs), known=(*{*case.known, index},))
        else:
            continue
        assert await here(ml, changed) is None, changed


def test_every_exception_is_of_a_rule():
    versions = REGISTERED | DEFINED
    names = {(operator, name) for operator, version in versions for name, _ in parameters_of(operator, version)}
    assert names >= ALWAYS_REFUSED.keys()
    assert {name if operator is None else (operator, name) for operator, name in WITHOUT_INFLUENCE} <= {
        *names,
        *SINCE_1_32,
        *(name for _, name in names),
    }
