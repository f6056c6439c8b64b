"""Each deliberate fault fits its seam in the package, and there are tests that concern it."""

import pytest

from spec_tests.labs.faults import running, seams
from spec_tests.labs.faults.faults import FAULTS
from spec_tests.labs.faults.records import Faults
from webnn_py.devices.onnxruntime.passes import int8_networks, integer_products

TIMELINE = "webnn_py.core.timelines.timeline"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_changes_what_stands_at_its_seam(fault, monkeypatch):
    monkeypatch.setattr(seams, "forget_cached", lambda: None)  # nothing is computed while the fault is there

    def there():
        owner, name, value = seams.resolve(fault.seam)
        function = seams.function_within(value)
        value = vars(owner)[name]
        return (dict(value) if isinstance(value, dict) else value) if function is None else function.__code__

    before = there()
    undo = fault.apply()
    changed = there()
    undo()
    assert changed != before
    assert there() == before
    assert running.tests_of(fault)


def made(seam, replacement, **more):
    faults = Faults()
    faults.at(seam, "spec_tests/labs/faults/test_faults.py", name="made", **more)(replacement)
    return faults["made"]


@pytest.mark.parametrize(
    ("seam", "replacement", "words"),
    [
        ("webnn_py.nowhere.function", lambda _original: None, "has no nowhere"),
        (f"{TIMELINE}.Timeline.overtake", lambda _original: None, "has no overtake"),
        (f"{TIMELINE}.Nothing.enqueue", lambda _original: None, "has no Nothing"),
        (f"{TIMELINE}.Timeline.enqueue", lambda _original: None, "too many positional arguments"),
        (f"{TIMELINE}.INLINE_SECONDS", lambda seconds: seconds, "leaves it as it is"),
    ],
)
def test_a_fault_without_its_seam_is_refused(seam, replacement, words):
    with pytest.raises(seams.SeamError, match=words):
        made(seam, replacement).apply()


def test_a_text_that_is_not_there_once_is_refused():
    for old in ("no such text", "const"):
        faults = Faults()
        faults.in_text("made", "webnn_py.javascript.node_files.own_source", ("calls.js",), old, "let", "spec_tests")
        with pytest.raises(seams.SeamError, match="not once"):
            faults["made"].apply()


def test_a_constant_is_changed_wherever_it_was_imported_to():
    before = integer_products.LARGEST
    undo = made(f"{integer_products.__name__}.LARGEST", lambda largest: largest + 1).apply()
    changed = integer_products.LARGEST, int8_networks.LARGEST
    undo()
    assert (*changed, integer_products.LARGEST, int8_networks.LARGEST) == (before + 1, before + 1, before, before)
