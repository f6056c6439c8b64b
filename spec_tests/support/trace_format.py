"""A check that a document is valid in Chrome's trace-event format, as far as this package uses it."""

import json
from collections import defaultdict

PHASES = {"M", "X", "b", "n", "e", "s", "t", "f", "i"}
LITTLE = 0.0005
"""Half a nanosecond: what times in microseconds may be off by, as sums of floats."""


def check_document(document):
    """Assert that a document is valid: names, nesting, arrows with ends, lifetimes that begin."""
    document = json.loads(json.dumps(document, allow_nan=False))
    assert document["displayTimeUnit"] == "ms"
    events = document["traceEvents"]
    assert {event["ph"] for event in events} <= PHASES
    for event in events:
        assert event["ts"] >= 0
        assert isinstance(event["name"], str)
    _check_names(events)
    _check_nesting(events)
    _check_arrows(events)
    _check_lifetimes(events)
    return events


def of_phase(events, phase, category=None):
    return [event for event in events if event["ph"] == phase and category in {None, event.get("cat")}]


def _check_names(events):
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    lanes = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert {event["pid"] for event in events} <= processes
    assert {(event["pid"], event["tid"]) for event in events if event["ph"] in "Xistf"} <= lanes
    sorted_processes = {event["pid"] for event in events if event["name"] == "process_sort_index"}
    sorted_lanes = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_sort_index"}
    assert (sorted_processes, sorted_lanes) == (processes, lanes)


def _check_nesting(events):
    """Check that on each lane two spans are disjoint or nested."""
    lanes = defaultdict(list)
    for event in of_phase(events, "X"):
        assert event["dur"] >= 0
        lanes[event["pid"], event["tid"]].append((event["ts"], -event["dur"], event["name"]))
    for lane, spans in lanes.items():
        open_ends = []
        for begin, length, name in sorted(spans):
            end = begin - length
            while open_ends and open_ends[-1] <= begin + LITTLE:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1] + LITTLE, f"{name} at {begin} stands out on lane {lane}"
            open_ends.append(end)


def _check_arrows(events):
    arrows = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            arrows[event["id"]].append(event)
    spans = of_phase(events, "X")
    for number, points in arrows.items():
        phases = "".join(
            point["ph"] for point in sorted(points, key=lambda point: (point["ts"], "stf".index(point["ph"])))
        )
        assert phases in {"sf", "stf"}, (number, phases)
        for point in points:
            assert any(_is_on(point, span) for span in spans), f"an arrow's end hangs in the air: {point}"


def _is_on(point, span):
    is_there = (point["pid"], point["tid"]) == (span["pid"], span["tid"])
    return is_there and span["ts"] <= point["ts"] <= span["ts"] + span["dur"]


def _check_lifetimes(events):
    for category in ("buffer", "graph"):
        phases = defaultdict(list)
        for event in events:
            if event.get("cat") == category:
                phases[event["pid"], event["id"]].append((event["ts"], event["ph"]))
        for what, found in phases.items():
            letters = [phase for _, phase in found]
            assert letters.count("b") == 1, (category, what, letters)
            assert letters.count("e") <= 1
            begin = next(time for time, phase in found if phase == "b")
            end = next((time for time, phase in found if phase == "e"), float("inf"))
            assert all(begin <= time <= end for time, _ in found), (category, what, found)


def told(trace):
    """Return the events of operations, as "started dispatch"."""
    return [" ".join(filter(None, (event.what, event.kind))) for event in trace.events]


def first(trace, what, kind=""):
    return next(event for event in trace.events if event.what == what and kind in {"", event.kind})
