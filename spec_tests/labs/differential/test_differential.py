"""The differential tests without a browser: what is generated, what is compared, what Node says."""

import json
from collections import Counter

import numpy as np
import pytest

from spec_tests.labs.differential import comparison, kinds, players, verdicts
from spec_tests.labs.differential.program import Program, Step, number_text
from spec_tests.support.random_graphs.bounds import Known
from webnn_py.extensions.browser_limits import NAMES, find

SEED = 5
FEW = 20
LISTED = comparison.load()


def output(array):
    return {"dataType": str(array.dtype), "shape": list(array.shape), "bytes": array.tobytes().hex()}


def outputs(**arrays):
    return {"outputs": {name: output(array) for name, array in arrays.items()}}


@pytest.fixture(scope="module")
def programs():
    return list(kinds.programs(FEW, SEED, find(NAMES[0])))


@pytest.fixture(scope="module")
def results(programs):
    return players.play_all(programs, "numpy", NAMES[0])


def test_a_seed_gives_the_same_programs_again_and_another_one_others(programs):
    again, other = (list(kinds.programs(FEW, seed, find(NAMES[0]))) for seed in (SEED, SEED + 1))
    assert [program.source for program in again] == [program.source for program in programs]
    assert not {program.source for program in programs} & {program.source for program in other}


def test_every_kind_has_its_share(programs):
    assert Counter(program.kind for program in programs) == {"graphs": 8, "calls": 6, "edges": 4, "events": 2}


def test_graphs_compute_and_give_all_their_outputs(programs, results):
    computed = [
        (program, result)
        for program, result in zip(programs, results, strict=True)
        if program.kind in {"graphs", "edges"} and "error" not in result
    ]
    assert len(computed) >= FEW // 3
    for program, result in computed:
        assert result["outputs"].keys() <= program.steps.keys(), program.name
        assert all(item["bytes"] for item in result["outputs"].values()), program.name


def test_a_smaller_program_computes_one_of_the_outputs(programs):
    graph = next(program for program in programs if program.kind == "graphs" and len(program.steps) > 2)
    smaller = list(kinds.smaller(graph, SEED, find(NAMES[0])))
    assert [len(one.source) for one in smaller] == sorted(len(one.source) for one in smaller)
    assert all(name in one.source for name, one in zip(graph.steps, smaller, strict=True))
    (result,) = players.play_all(smaller[:1], "numpy", NAMES[0])
    assert list(result["outputs"]) == [next(iter(graph.steps))]


def one_step(operator="abs", kind="graphs", known=None, given=(), **steps):
    features = frozenset(["float32"])
    return Program(kind, 0, "", {"r": Step(operator, features, (), known, tuple(given)), **steps})


def test_a_planted_difference_of_values_is_found_and_what_follows_from_it_is_not_told():
    program = one_step(known=Known(-8, 8, 0, 1e-5), after=Step("neg", frozenset(["float32"]), ("r",)))
    array = np.array([1, 2, 3], np.float32)
    near, far = array + np.float32(1e-6), array + np.float32([0, 1e-3, 0])
    assert comparison.differences(program, outputs(r=array, after=-array), outputs(r=near, after=-array)) == []
    (found,) = comparison.differences(program, outputs(r=array, after=-array), outputs(r=far, after=-far))
    assert (found.place, found.operator, found.pair) == ("r", "abs", ("number", "near"))
    assert "r[1]: 2.0 here, 2.001 there (1 of 3)" in found.text
    assert comparison.explained(found, LISTED) is None


def test_numbers_at_the_edges_are_told_by_what_they_read():
    given = np.array([np.nan, 1, -np.inf], np.float32)
    program = one_step("exp", "edges", given=[given])
    here, there = np.array([np.nan, np.e, 0], np.float32), np.array([0, np.e, 0], np.float32)
    (found,) = comparison.differences(program, outputs(r=here), outputs(r=there))
    assert found.features == {"float32", "in NaN"}
    assert found.pair == ("NaN", "0")
    assert comparison.explained(found, LISTED).name == "exp-of-nan"
    (other,) = comparison.differences(program, outputs(r=here), outputs(r=np.array([0, 3, 0], np.float32)))[1:]
    assert comparison.explained(other, LISTED) is None


def test_a_zero_of_another_sign_differs_at_the_edges_only():
    zeros = outputs(r=np.array([0.0], np.float32)), outputs(r=np.array([-0.0], np.float32))
    assert comparison.differences(one_step(known=Known(0, 1)), *zeros) == []
    assert len(comparison.differences(one_step(kind="edges"), *zeros)) == 1


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        ({"outputs": {}}, ["nothing"]),
        (outputs(r=np.array([[1.0]], np.float32)), ["float32 [1, 1]"]),
        ({"stage": "build", "error": "NotSupportedError", "message": ""}, ["build NotSupportedError"]),
    ],
)
def test_another_shape_an_error_and_nothing_at_all_differ(there, expected):
    here = outputs(r=np.array([1.0], np.float32))
    assert [one.pair[1] for one in comparison.differences(one_step(), here, there)] == expected


def test_calls_differ_by_stage_and_error_and_not_by_the_message():
    program = one_step(kind="calls")
    here = {"stage": "call", "error": "TypeError", "message": "one"}
    assert comparison.differences(program, here, {**here, "message": "other"}) == []
    (found,) = comparison.differences(program, here, {**here, "stage": "build"})
    assert found.pair == ("call TypeError", "build TypeError")


def test_events_differ_by_outcome_and_by_order():
    program = one_step("events", "events")
    here = {"outcomes": {"00read*": "[1,1]", "01build*": "resolves"}, "order": ["00read*", "01build*"]}
    (order,) = comparison.differences(program, here, {**here, "order": ["01build*", "00read*"]})
    assert comparison.explained(order, LISTED).name == "order-of-kinds"
    wrong = {**here, "outcomes": {"00read*": "[2,2]", "01build*": "resolves"}}
    (value,) = comparison.differences(program, here, wrong)
    assert value.pair == ("[1,1]", "[2,2]")
    assert comparison.explained(value, LISTED) is None


def test_an_end_explains_the_order_of_rejections_alone():
    program = Program("events", 0, "", {"events": Step("events", frozenset(["destroyTensor"]), ("00read*",))})
    names = ["00read*", "02read*", "03create*"]
    said = {"outcomes": dict.fromkeys(names, "resolves") | {"00read*": "rejects InvalidStateError"}, "order": names}
    (rejected,) = comparison.differences(program, said, {**said, "order": [names[1], names[0], names[2]]})
    assert rejected.pair == ("rejections", "rejections")
    assert comparison.explained(rejected, LISTED).name == "order-around-a-tensors-end"
    (fulfilled,) = comparison.differences(program, said, {**said, "order": [names[0], names[2], names[1]]})
    assert comparison.explained(fulfilled, LISTED).name == "order-of-kinds"
    outcomes = {**said["outcomes"], "00read*": "[1,1]"}, {**said["outcomes"], "02read*": "rejects InvalidStateError"}
    own, other = (comparison.differences(program, said, {**said, "outcomes": outcome})[0] for outcome in outcomes)
    assert comparison.explained(own, LISTED).name == "reads-of-destroyed-tensors-here"
    assert comparison.explained(other, LISTED) is None


def test_zeros_are_explained_by_an_operand_without_a_result_and_not_by_its_operator():
    zeros, ones = outputs(r=np.zeros(2, np.int32)), outputs(r=np.ones(2, np.int32))
    for feature, name in (("of a negative integer", "integer-pow"), ("int32", None)):
        program = one_step(beside=Step("pow", frozenset(["int32", feature])))
        (found,) = comparison.differences(program, ones, zeros)
        explanation = comparison.explained(found, LISTED)
        assert (None if explanation is None else explanation.name) == name, feature


def test_a_hidden_step_on_the_way_may_explain_what_comes_out():
    hidden = Step("averagePool2d", frozenset(["float32", "padded"]))
    program = Program("graphs", 1, "", {"v": hidden, "r": Step("prelu", frozenset(["float32"]), ("v",), Known(-8, 8))})
    one, other = np.array([1, 2], np.float32), np.array([0.5, 1], np.float32)
    (found,) = comparison.differences(program, outputs(r=one), outputs(r=other))
    assert comparison.explained(found, LISTED).name == "average-pool-padding"


def test_each_listed_difference_has_a_reason_and_says_who_is_right():
    for one in LISTED:
        assert one.right in {"here", "browser", "open"}, one.name
        assert len(one.reason) > 20, one.name
        assert set(one.kinds) <= kinds.SHARES.keys(), one.name


@pytest.mark.parametrize("value", [np.float32(0.1), np.float16(65504), np.float32(-0.0), np.int64(2**53 + 1), np.inf])
def test_numbers_are_written_so_that_their_type_holds_the_same(value):
    text = number_text(value).replace("Infinity", "1e999")
    assert type(value)(int(text) if isinstance(value, np.int64) else json.loads(text)) == value


def test_verdicts_agree_where_both_run_or_both_refuse():
    pairs = [("runs", "runs"), ("runs", "build UnknownError"), ("draw TypeError", "build TypeError"), ("a b", "a b")]
    assert verdicts.tally(pairs) == {"all": 4, "agree": 3, "same": 2, "run": 1}
    assert [verdicts.verdict(one) for one in ({"outputs": {}}, {"stage": "draw", "error": "TypeError"})] == [
        "runs",
        "draw TypeError",
    ]


def test_every_other_graph_is_free_of_the_profile():
    profile = find(NAMES[0])
    drawn = [program.source for program in verdicts.drawn(4, SEED, profile)]
    assert drawn[1::2] == [verdicts.graphs.generate(number, SEED, None).source for number in (1, 3)]
    assert drawn[::2] == [verdicts.graphs.generate(number, SEED, profile).source for number in (0, 2)]
