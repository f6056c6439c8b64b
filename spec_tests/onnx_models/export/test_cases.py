"""Every case of every category, written as ONNX: onnxruntime computes the same, and it is read back as it was."""

from collections import Counter

from spec_tests.onnx_models.export.exporting import (
    described,
    draw_cases,
    listed,
    operators_of,
    read_back,
    run,
    written_again,
)
from spec_tests.operators.cases import difference, flushed, load_all
from spec_tests.operators.exceptions import FLUSHED
from spec_tests.support.cells import cells
from spec_tests.support.depth import is_full, share
from webnn_py.onnx_models import to_model

FILES = load_all()
EVERY_FILE = cells("file", FILES, ids=[file.operator for file in FILES])
PARTS = 4
"""A quick run has one case in so many."""

LISTED = {(entry["operator"], name): entry["reason"] for entry in listed("cases") for name in entry["names"]}
LOOSER = {entry["operator"]: {"absolute": entry["absolute"]} for entry in listed("tolerances")}


def chosen(config, file):
    """The cases of this run's share; of casts all, since few reach the limits of a data type."""
    if is_full(config) or file.operator == "cast":
        return file.cases
    wanted = share(config, [case.name for case in file.cases], PARTS, least=1)
    return [case for case in file.cases if case.name in wanted]


def what_is_wrong(got, case, operator):
    """In words; empty when nothing is."""
    for array, expected in zip(got, case.expected, strict=True):
        got_or_flushed = flushed(array, expected) if ("onnxruntime", operator) in FLUSHED else array
        words = difference(got_or_flushed, expected, case.tolerance)
        if words and operator in LOOSER and array.dtype == "float32":
            words = difference(array, expected, LOOSER[operator])
        if words:
            return words
    return ""


@EVERY_FILE
async def test_onnxruntime_agrees_with_the_oracle(pytestconfig, context, file):
    cases = chosen(pytestconfig, file)
    _builder, feeds, outputs = draw_cases(context, file, cases, constants=True)
    model = to_model({name: item for of_case in outputs.values() for name, item in of_case.items()})
    results = run(model, feeds)
    for case in cases:
        wrong = what_is_wrong([results[name] for name in outputs[case.name]], case, file.operator)
        reason = LISTED.get((file.operator, case.name))
        if reason is None:
            assert not wrong, f"{file.operator}, {case.name}: {wrong}"
        else:
            assert wrong, f"{file.operator}, {case.name} passes, though it is listed: {reason}"


@EVERY_FILE
async def test_a_model_is_read_back_and_written_again_the_same(pytestconfig, context, file):
    _builder, _, outputs = draw_cases(context, file, chosen(pytestconfig, file), constants=True)
    written = to_model({name: item for of_case in outputs.values() for name, item in of_case.items()})
    first, second, _builder = written_again(context, written)
    third, fourth, _builder = written_again(context, second)
    assert first == third
    assert second == fourth


@EVERY_FILE
async def test_each_operator_is_read_back_as_itself(pytestconfig, context, file):
    """Or as none, where it changes nothing."""
    _builder, _, outputs = draw_cases(context, file, chosen(pytestconfig, file), constants=False)
    drawn = {name: item for of_case in outputs.values() for name, item in of_case.items()}
    before = Counter(operators_of(drawn))
    _other, again = read_back(context, to_model(drawn))
    after = Counter(operators_of(again))
    assert set(after - before) <= {"identity"}, after - before
    assert (after - before).total() == (before - after).total()
    assert len(described(again)) == len(described(drawn))


def test_only_known_cases_are_listed():
    known = {(file.operator, case.name) for file in FILES for case in file.cases}
    assert not set(LISTED) - known
    assert len(LISTED) <= 20
    assert set(LOOSER) <= {file.operator for file in FILES}
