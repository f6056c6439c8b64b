"""The page of a graph as a browser shows it: by pointer, fingers and keys, small and large, with hostile names."""

import numpy as np
import pytest

from spec_tests.pictures.drawings import draw_relu, draw_residual_block
from spec_tests.support.backends import needs_adapter
from webnn_py import MLGraphBuilder, pictures

HOSTILE = '</script><script>document.title="broken in"</script><img src=x onerror="document.title=1">'
DETAILS = "document.getElementById('details').innerText"
LIVE = "document.getElementById('live').textContent"
SELECTED = "graphPage.state.selected && (graphPage.state.selected.title ?? graphPage.state.selected.type)"
FOUND = "document.getElementById('found').textContent"


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a picture's page; afterwards nothing has been complained of or asked for, whatever was done with it."""
    browser.size(1280, 800)
    browser.prefer("light")
    path = tmp_path / "graph.html"

    def opened(picture, title=None):
        path.write_text(picture.to_html(title), encoding="utf-8")
        return browser.open(path)

    yield opened
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]


def middle_of(browser, box):
    return browser.run(f"""(() => {{
        const box = {box}, {{view}} = graphPage, corner = document.getElementById('canvas').getBoundingClientRect();
        return [corner.left + (box.x + box.width - 6 - view.x) * view.scale,
                corner.top + (box.y + 6 - view.y) * view.scale];
    }})()""")


def box(operator, label=""):
    return f"graphPage.boxes.find((box) => box.title === {f'{operator} [{label}]' if label else operator!r})"


async def test_a_click_on_an_operator_shows_attributes_weights_and_neighbours(browser, open_page, numpy_context):
    open_page(await draw_residual_block(numpy_context).built_picture())
    browser.click(*middle_of(browser, box("conv2d", "first")))
    details = browser.run(DETAILS)
    for words in (
        "conv2d [first]",
        "padding\n[1, 1, 1, 1]",
        "weight filter",
        "float32 [4, 4, 3, 3]",
        "min\n1",
        "zeros\n0 (0 %)",
    ):
        assert words in details, details
    assert browser.run(LIVE).startswith("conv2d [first], float32 [1, 4, 8, 8], kernel ")
    assert browser.run("graphPage.state.lit.size") > 1
    browser.run(
        "[...document.querySelectorAll('#details button')].find((item) => item.innerText === 'input x').click()"
    )
    assert browser.run(SELECTED) == "x"


@needs_adapter
async def test_what_one_kernel_computes_together_is_told(browser, open_page, ml):
    context = await ml.create_context(backend="wgpu")
    open_page(await draw_residual_block(context).built_picture())
    browser.run(f"graphPage.select({box('relu')})")
    details = browser.run(DETAILS)
    assert "computed together with\nconv2d [first]\nadd" in details, details
    frame = browser.run("""(() => {
        const [frame] = graphPage.frames, {view} = graphPage;
        const corner = document.getElementById('canvas').getBoundingClientRect();
        return [corner.left + (frame.x + 3 - view.x) * view.scale, corner.top + (frame.y + 12 - view.y) * view.scale];
    })()""")
    browser.click(*frame)
    assert browser.run(SELECTED) == "kernel"
    assert "it computes together\nconv2d [first]\nadd\nrelu" in browser.run(DETAILS)


async def test_keys_lead_along_the_wires(browser, open_page, numpy_context):
    open_page(await draw_residual_block(numpy_context).built_picture())
    browser.run("document.getElementById('canvas').focus()")
    browser.press("Enter")
    assert browser.run("graphPage.state.selected.type") == "box"
    browser.run(f"graphPage.select({box('conv2d', 'first')})")
    browser.press("ArrowDown")
    assert browser.run(SELECTED) == "add"
    browser.press("ArrowUp")
    assert browser.run(SELECTED) == "conv2d [first]"
    browser.press("ArrowUp")
    assert browser.run(SELECTED) == "x"
    browser.press("ArrowRight")
    assert browser.run(SELECTED) != "x"
    browser.press("Escape")
    assert browser.run(SELECTED) is None
    before = browser.run("graphPage.view.scale")
    browser.press("+")
    assert browser.run("graphPage.view.scale") > before
    browser.press("0")
    assert browser.run("graphPage.view.scale") == pytest.approx(before, rel=0.6)
    browser.press("Tab")
    assert browser.run("document.activeElement.id") != "canvas", "the keyboard is not held in the picture"
    browser.press("?")
    assert browser.run("document.getElementById('keys').open")


async def test_search_finds_operators_weights_and_kernels(browser, open_page, numpy_context):
    open_page(await draw_residual_block(numpy_context).built_picture())
    browser.press("/")
    browser.run(
        """(() => {
            const box = document.getElementById('search');
            box.value = 'conv2d';
            box.dispatchEvent(new Event('input'));
        })()"""
    )
    types = browser.run("graphPage.state.matches.map((item) => item.type)")
    assert types[0] == "box"
    assert "weight" in types
    assert "kernel" in types
    browser.press("Enter")
    assert browser.run(SELECTED) == "conv2d [first]"
    assert browser.run(FOUND) == f"1 of {len(types)}"
    browser.press("Escape")
    assert browser.run(FOUND) == ""
    browser.press("t")
    rows = browser.run("[...document.querySelectorAll('#table tbody tr')].map((row) => row.innerText)")
    assert len(rows) == 9
    assert any("conv2d [first]" in row and "float32 [1, 4, 8, 8]" in row for row in rows), rows


async def test_wheel_and_drag_zoom_and_move(browser, open_page, numpy_context):
    open_page(await draw_residual_block(numpy_context).built_picture())
    before = browser.run("[graphPage.view.x, graphPage.view.y, graphPage.view.scale]")
    browser.mouse("mouseWheel", 500, 400, deltaX=0, deltaY=-300)
    browser.frame()
    zoomed = browser.run("[graphPage.view.x, graphPage.view.y, graphPage.view.scale]")
    assert zoomed[2] > before[2] * 1.2
    browser.mouse("mousePressed", 500, 400, button="left", clickCount=1)
    browser.mouse("mouseMoved", 440, 360, button="left", buttons=1)
    browser.mouse("mouseReleased", 440, 360, button="left", clickCount=1)
    browser.frame()
    moved = browser.run("[graphPage.view.x, graphPage.view.y, graphPage.view.scale]")
    assert (moved[0] - zoomed[0]) * zoomed[2] == pytest.approx(60, abs=2)
    assert (moved[1] - zoomed[1]) * zoomed[2] == pytest.approx(40, abs=2)
    assert browser.run(SELECTED) is None, "a drag is no click"


async def test_a_graph_of_thousands_of_operators_draws_only_what_is_in_view(browser, open_page, numpy_context):
    b = MLGraphBuilder(numpy_context)
    value = b.input("x", data_type="float32", shape=[4])
    weights = b.constant(np.ones(4, np.float32))
    for number in range(1500):
        value = b.relu(b.add(value, weights, label=f"add {number}"))
    open_page(pictures.picture({"y": value}))
    assert browser.run("graphPage.boxes.length") == 3002
    assert 0 < browser.run("graphPage.state.drawn.boxes") < 60
    browser.run("(() => { graphPage.search('add 1234'); })()")
    browser.press("n")
    assert browser.run(SELECTED) == "add [add 1234]"
    browser.frame()
    assert 0 < browser.run("graphPage.state.drawn.boxes") < 60
    assert browser.run("graphPage.state.drawn.texts") > 0


@pytest.mark.parametrize("size", [(375, 720), (2560, 1440)])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_there_is_no_script_in_names_and_nothing_is_cut_off(browser, open_page, numpy_context, size, theme):
    browser.size(*size)
    browser.prefer(theme)
    open_page(draw_relu(numpy_context, HOSTILE, HOSTILE).picture(), HOSTILE)
    assert browser.run("document.title") == HOSTILE
    browser.run("graphPage.select(graphPage.boxes[1])")
    assert HOSTILE in browser.run(DETAILS)
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert browser.run("document.documentElement.scrollWidth") <= size[0]
    assert browser.run("document.documentElement.dataset.theme") == theme
