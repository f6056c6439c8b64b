"""A picture within a page as a browser shows it: as wide as there is room, and by a click in its own size."""

import numpy as np

from webnn_py import MLGraphBuilder, pictures

PAGE = '<!doctype html><html lang="en"><meta charset="utf-8"><title>graph</title>'
SIZES = """(() => {
    const pane = document.querySelector('.pane'), svg = pane.firstElementChild.getBoundingClientRect();
    return {drawn: svg.width, room: pane.clientWidth, own: pane.firstElementChild.viewBox.baseVal.width,
            page: document.documentElement.scrollWidth, left: pane.scrollLeft, at: [svg.left, svg.top],
            box: getComputedStyle(document.querySelector('.size')).display};
})()"""


def wide(context, branches):
    """Draw this many branches side by side."""
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[1, 4])
    weights = builder.constant(np.ones((4, 4), np.float32))
    return pictures.picture({"y": builder.concat([builder.matmul(x, weights) for _ in range(branches)], 1)})


async def test_a_wide_picture_fits_and_a_click_shows_that_place_in_its_own_size(numpy_context, browser, tmp_path):
    path = tmp_path / "graph.html"
    ready = "<script>document.documentElement.dataset.ready = 'yes'</script>"
    narrow, broad = (wide(numpy_context, branches)._repr_html_() for branches in (2, 12))
    path.write_text(f"{PAGE}{broad}{ready}", encoding="utf-8")
    browser.size(375, 720)
    browser.open(path)
    fitted = browser.run(SIZES)
    assert fitted["own"] > 4 * 375
    assert fitted["drawn"] == fitted["room"] < fitted["page"] == 375, fitted
    assert fitted["box"] == "block"
    left, top = fitted["at"]
    browser.click(left + 0.75 * fitted["drawn"], top + 10)
    own = browser.run(SIZES)
    assert own["drawn"] == own["own"], own
    assert own["page"] == 375, "the page itself is not scrolled"
    assert abs(own["left"] + own["room"] / 2 - 0.75 * own["own"]) < 3, own
    browser.click(left + 100, top + 10)
    assert browser.run(SIZES)["drawn"] == fitted["drawn"]

    browser.size(2560, 1440)
    path.write_text(f"{PAGE}{narrow}{broad}{ready}", encoding="utf-8")
    browser.open(path)
    roomy = browser.run(SIZES)
    assert (roomy["drawn"], roomy["box"]) == (roomy["own"], "none"), "as it is, and nothing to tick"
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
