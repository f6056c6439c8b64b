"""The page of a trace in a browser: its drawing, texts and requests, by pointer, fingers and keys."""

import json
import time

import pytest
import trio

from spec_tests.support import depth
from spec_tests.support.trace_documents import HOSTILE, destroyed_in_flight, many, with_everything
from webnn_py import MLGraphBuilder, open_ml, tracing
from webnn_py.tracing.page import page_of

SELECTED = "timeline.state.selected && timeline.state.selected.name"
VIEW = "[timeline.view.from, timeline.view.to]"
DETAILS = "document.getElementById('details').innerText"
LIVE = "document.getElementById('live').textContent"
WIDTHS = ((375, 720), (1280, 800), (2560, 1440))


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a document's page; afterwards nothing has been complained of or asked for, whatever was done with it."""
    browser.size(1280, 800)
    browser.prefer("light")
    path = tmp_path / "trace.html"

    def opened(document, title="a trace"):
        path.write_text(page_of(document, title), encoding="utf-8")
        return browser.open(path)

    yield opened
    if path.exists():
        assert browser.complaints() == []
        assert browser.requests() == [path.as_uri()]


def items(document, **wanted):
    """Return the expression of the first item of a trace with these properties."""
    tests = " && ".join(f"item.{name} === {json.dumps(value)}" for name, value in wanted.items())
    return f"timeline.state.trace.items.find((item) => {tests})"


def middle_of(browser, item):
    """Return the middle of an item, in pixels of the page."""
    return browser.run(f"""(() => {{
        const place = timeline.placeOf({item});
        const corner = document.getElementById('canvas').getBoundingClientRect();
        return [corner.left + place.x + place.width / 2, corner.top + place.y + place.height / 2];
    }})()""")


def test_every_event_has_its_lane(browser, open_page):
    open_page(with_everything())
    lanes = browser.run("""timeline.state.trace.groups.map((group) => [group.pid, group.lanes.map(
        (lane) => [lane.name, lane.rows.flatMap((row) => row.items.map((item) => item.name))])])""")
    assert lanes == [
        [0, [
            ["calls", ["write_buffer()", "dispatch()", "read_buffer()", "write_buffer()", "read_buffer()"]],
            ["script timeline", ["settle read_buffer()", "settle read_buffer()"]],
        ]],
        [1, [
            ["context lost", ["lost: out of memory"]],
            ["waiting", ["write_buffer", "dispatch", "write_buffer", "read_buffer"]],
            ["device timeline", ["write_buffer", "dispatch", "read_buffer", "write_buffer"]],
            ["kernels", ["conv2d + relu"]],
            ["buffers", [f"buffer 7 float32 [4] {HOSTILE}"]],
        ]],
        [2, [
            ["waiting", ["read_buffer"]],
            ["device timeline", ["read_buffer"]],
            ["buffers", ["buffer 8 int32 [2, 2] answers"]],
        ]],
    ]  # fmt: skip
    summary = browser.run("document.getElementById('summary').textContent")
    assert summary.endswith("1 kernel, 2 buffers, 1 rejected, 2 failed, 1 dropped, 1 lost")


def test_operations_have_their_calls_kernels_and_marks(browser, open_page):
    open_page(destroyed_in_flight())
    kinds = browser.run("""[4, 5, 6, 8].map((id) => {
        const parts = timeline.state.trace.operations.get(id);
        return ['call', 'operation', 'kernel', 'settlement', 'marks', 'caused'].map((kind) => parts[kind].length);
    })""")
    assert kinds == [[1, 1, 0, 0, 1, 0], [1, 1, 3, 0, 3, 0], [1, 1, 0, 2, 1, 0], [1, 1, 0, 0, 2, 1]]


def test_a_rejection_shows_its_reason_its_line_and_its_cause(browser, open_page):
    open_page(destroyed_in_flight())
    browser.click(*middle_of(browser, items(None, kind="rejection")))
    details = browser.run(DETAILS)
    for words in ("reject read_buffer()", "scores was destroyed by destroy()", "digits.py:19 in main", "settle read"):
        assert words in details
    assert "rejected by\ndestroy()" in details
    assert browser.run("document.getElementById('summary').textContent").endswith(", 1 rejected")
    browser.run(
        "[...document.querySelectorAll('#details .chain button')].find((b) => /^destroy/.test(b.innerText)).click()"
    )
    assert browser.run(SELECTED) == "destroy()"
    assert "what it rejected\nreject read_buffer()" in browser.run(DETAILS)


def refused_calls():
    """A recorded trace: a write to a destroyed buffer, a dispatch with it, and an operator, all refused."""

    async def main():
        async with open_ml() as ml:
            context = await ml.create_context(backend="numpy")
            builder = MLGraphBuilder(context)
            x = builder.input("x", data_type="float32", shape=[2])
            with tracing.trace(ml) as trace:
                buffer = await context.create_buffer(data_type="float32", shape=[2], writable=True, label=HOSTILE)
                buffer.destroy()
                with pytest.raises(TypeError):
                    context.write_buffer(buffer, bytes(8))
                with pytest.raises(TypeError):
                    context.dispatch(None, {"x": buffer}, {})
                with pytest.raises(TypeError):
                    builder.add(x, None, label="sum")
                await context.drain()
            return trace.document()

    return trio.run(main)


def test_a_refused_call_is_drawn_with_its_reason(browser, open_page):
    document = refused_calls()
    open_page(document)
    drawn = browser.run("""timeline.state.trace.items.filter((item) => item.bad).map(
        (item) => [item.name, item.kind, item.bad, item.lane.name, item.operation ?? null])""")
    assert drawn == [[f"{name}()", "call", "refused", "calls", None] for name in ("write_buffer", "dispatch", "add")]
    assert browser.run("document.getElementById('summary').textContent").endswith(", 3 refused")
    wanted = {
        "write_buffer()": ["DestroyedBufferError: write_buffer(): <MLBuffer ", "destroy() was called on the buffer"],
        "dispatch()": ["TypeError: dispatch(): graph is None; it must be an MLGraph"],
        "add()": ["TypeError: add() [sum]: b is None", "sum"],
    }
    for name, words in wanted.items():
        browser.run(f"timeline.select({items(None, name=name, bad='refused')})")
        details = browser.run(DETAILS)
        for part in ["outcome\nrefused", "test_page_in_chromium.py:", *words]:
            assert part in details, name
    browser.run("timeline.select(null)")
    item = items(None, name="dispatch()", bad="refused")
    browser.run(f"timeline.show(({item}).start - 1, ({item}).end + 1)")
    browser.frame()
    browser.click(*middle_of(browser, item))
    assert browser.run(SELECTED) == "dispatch()"
    assert HOSTILE in browser.run(DETAILS), "the label of the buffer, as text"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", [width for width, _ in WIDTHS])
def test_narrow_boxes_are_merged_and_counted(browser, open_page, width):
    browser.size(width, 800)
    open_page(many(4000))
    drawn, merged, marks = browser.run("[...['boxes', 'merged', 'marks'].map((name) => timeline.state.drawn[name])]")
    there, marked = browser.run("""[
        timeline.state.trace.groups.flatMap((group) => group.lanes).reduce((sum, lane) => sum + lane.items.length, 0),
        timeline.state.trace.items.filter((item) => item.kind === 'mark').length,
    ]""")
    assert (drawn + merged, marks) == (there, marked)
    assert merged > there / 2


def test_a_long_stretch_is_squeezed_so_that_short_events_show(browser, open_page):
    document = many(200)
    document["traceEvents"].append(
        {"ph": "X", "cat": "call", "name": "late()", "ts": 3e6, "dur": 5, "pid": 0, "tid": 1, "args": {}}
    )
    open_page(document)
    assert browser.run("document.getElementById('squeeze').getAttribute('aria-pressed')") == "true"
    squeezed = browser.run("timeline.state.drawn.boxes")
    assert browser.run("""timeline.state.trace.items.every((item, index, all) => item.start <= item.end
        && (index === 0 || all[index - 1].start <= item.start))""")
    browser.run(f"timeline.select({items(document, name='late()')})")
    words = browser.run(DETAILS)
    assert "3 s" in words
    browser.press("e")
    assert browser.run(
        "timeline.state.trace.items.every((item) => item.start === item.began && item.end === item.ended)"
    )
    assert browser.run("timeline.state.drawn.boxes") < squeezed / 4
    assert browser.run(DETAILS) == words


def test_wheel_zooms_about_the_pointer_and_dragging_moves(browser, open_page):
    open_page(destroyed_in_flight())
    x, y = middle_of(browser, items(None, kind="kernel"))
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    browser.frame()
    first, last = browser.run(VIEW)
    assert last - first < 300
    assert middle_of(browser, items(None, kind="kernel"))[0] == pytest.approx(x, abs=2)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", x - 60, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x - 60, y, button="left", clickCount=1)
    assert middle_of(browser, items(None, kind="kernel"))[0] == pytest.approx(x - 60, abs=2)
    assert browser.run("timeline.state.selected") is None
    browser.press("0")
    assert browser.run("timeline.view.to - timeline.view.from") > 380


def test_keys_walk_through_events_and_a_live_region_reads_them(browser, open_page):
    open_page(destroyed_in_flight())
    browser.run("document.getElementById('canvas').focus()")
    browser.press("Enter")
    assert browser.run(SELECTED) == "graph 1 classifier"
    browser.press("Tab")
    assert browser.run(LIVE).startswith("create_buffer(), operation 1, script, calls, at 10 µs, took 12 µs")
    browser.press("Tab", shift=True)
    assert browser.run(SELECTED) == "graph 1 classifier"
    browser.run(f"timeline.select({items(None, name='dispatch()')})")
    browser.press("ArrowRight")
    assert browser.run(SELECTED) == "read_buffer()"
    browser.press("ArrowLeft")
    browser.press("ArrowDown")  # no settlement belongs to a dispatch: the nearest
    browser.press("ArrowDown")
    assert browser.run("timeline.state.selected.kind") == "operation"
    browser.press("Escape")
    assert browser.run("timeline.state.selected") is None
    browser.press("Tab")
    assert browser.run("document.activeElement.id") != "canvas"


SEARCHES = {
    "classify": 2,
    "hidden": 9,
    "digits.py:18": 8,
    "#6": 5,
    "rejected": 1,
    "softmax": 1,
    "Read_Buffer scores": 4,
    "nothing like it": 0,
}


def test_search_looks_at_names_labels_buffers_and_sources(browser, open_page):
    open_page(destroyed_in_flight())
    found = {}
    for query, number in SEARCHES.items():
        browser.press("Escape")
        browser.press("/")
        browser.ask("Input.insertText", text=query)
        found[query] = int(browser.run("document.getElementById('found').textContent").removesuffix(" found"))
        assert browser.run("document.getElementById('next').disabled") == (number == 0)
    assert found == SEARCHES


def test_the_table_lists_the_events_in_view(browser, open_page):
    open_page(destroyed_in_flight())
    browser.press("t")
    rows = browser.run("[...document.querySelectorAll('#table tbody tr')].map((row) => row.innerText)")
    assert len(rows) == browser.run("timeline.state.trace.items.length")
    assert any("dispatch classify" in row and "150 µs" in row and "done" in row for row in rows)
    browser.run("document.querySelector('#table tbody button').click()")
    assert browser.run(SELECTED) == "graph 1 classifier"


def test_texts_of_a_trace_are_not_read_as_html(browser, open_page):
    open_page(with_everything(), HOSTILE)
    browser.press("t")
    browser.run("for (const item of timeline.state.trace.items) timeline.select(item)")
    x, y = middle_of(browser, items(None, kind="buffer", pid=1))
    browser.mouse("mouseMoved", x, y)
    assert HOSTILE in browser.run("document.getElementById('tip').textContent")
    assert browser.run("document.title") == HOSTILE
    assert browser.run("document.querySelector('h1').textContent") == HOSTILE
    assert browser.run("document.querySelectorAll('img, body script ~ script ~ *').length") == 0


def test_a_hundred_thousand_events_are_drawn(browser, open_page, request, record_property):
    if not depth.is_full(request.config):
        pytest.skip("takes seconds: at full depth")
    seconds = open_page(many(100_000))
    assert browser.run("timeline.state.drawn.boxes + timeline.state.drawn.merged") > 60_000
    began = time.perf_counter()
    for key in "wwwwddaa0":
        browser.press(key)
    each = (time.perf_counter() - began) / 9
    record_property("seconds to open", seconds)
    print(f"100,000 events: {seconds:.2f} s to open, {each * 1000:.0f} ms a key")
