"""The page of a saved graph as a browser shows it: with a stand-in for WebNN, without WebNN, and without a server."""

import functools
import http.server
import struct
import threading
import time

import numpy as np
import pytest
import trio

import webnn_py
from webnn_py import MLGraphBuilder
from webnn_py.web_export.folder import FILES

PATIENCE = 60
STATE = "document.getElementById('state').textContent"
STAND_IN = """
if (LACKS) Object.defineProperty(navigator, 'ml', {value: undefined});
else {
  // What is read is 0, 1, 2, ...; nothing is computed.
  const context = {
    createTensor: async (descriptor) => ({...descriptor, destroy() {}}),
    writeTensor(_tensor, array) { globalThis.written = array; },
    dispatch() {}, destroy() {},
    readTensor: async ({shape}) => Float32Array.from({length: shape.reduce((a, b) => a * b, 1)}, (_, i) => i).buffer,
  };
  const create = async () => { if (REFUSES) throw new DOMException('no device', 'NotSupportedError'); return context; };
  Object.defineProperty(navigator, 'ml', {value: {createContext: create}});
  globalThis.MLGraphBuilder = class {
    constructor() { return new Proxy(this, {get: (_, name) => () => name === 'build' ? {destroy() {}} : name}); }
  };
}
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        """Nothing is logged."""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a graph with a picture and scores as outputs."""
    folder = tmp_path_factory.mktemp("saved") / "network"

    async def main():
        async with webnn_py.open_ml() as ml:
            builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
            x = builder.input("pixels", data_type="float32", shape=[1, 3, 8, 8])
            scores = builder.reshape(builder.reduce_mean(x, axes=[2, 3]), [1, 3])
            scores = builder.concat([scores, scores, scores], 1)
            webnn_py.save_js({"scores": scores, "picture": builder.relu(x)}, folder, title="A network")

    trio.run(main)
    return folder


@pytest.fixture(scope="module")
def address(saved):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=saved))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def shown(browser, address):
    """Open the page, with a stand-in for WebNN or without it; the text of its state."""
    scripts = []

    def show(*, lacks=False, refuses=False):
        words = {"LACKS": lacks, "REFUSES": refuses}
        script = STAND_IN
        for name, value in words.items():
            script = script.replace(name, str(value).lower())
        added = browser.ask("Page.addScriptToEvaluateOnNewDocument", source=script)
        scripts.append(added["identifier"])
        browser.events.clear()
        browser.ask("Page.navigate", url=f"{address}index.html")
        wait_until(browser, "document.documentElement?.dataset.ready === 'yes'")
        return browser.run(STATE)

    yield show
    for identifier in scripts:
        browser.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)


def wait_until(browser, condition):
    end = time.monotonic() + PATIENCE
    while not browser.run(condition):
        assert time.monotonic() < end, condition


@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_shows_outputs_and_times_and_asks_for_its_own_files_alone(browser, shown, address, width):
    browser.size(width, 800)
    assert shown() == "Done."
    rows = browser.run("[...document.querySelectorAll('#outputs tr')].map((row) => row.cells[0].textContent)")
    assert rows == ["scores", "picture"]
    cells = browser.run("[...document.querySelector('#outputs tr').cells].slice(1).map((cell) => cell.textContent)")
    assert cells == ["float32 [1, 9]", "0", "8", "4", "0 1 2 3 …"]
    assert "8: 8, 7: 7, 6: 6, 5: 5, 4: 4" in browser.run("document.getElementById('more').textContent")
    assert browser.run("[document.querySelector('canvas').width, document.querySelector('canvas').height]") == [8, 8]
    assert "median of 10 further runs" in browser.run("document.getElementById('times').textContent")
    assert browser.run("document.documentElement.scrollWidth") == width
    assert browser.complaints() == []
    asked = {url.removeprefix(address) for url in browser.requests() if not url.startswith("data:")}
    assert asked <= {*FILES}


def bitmap(pixels):
    """A picture as a .bmp file: bytes of red, green and blue, rows from the top."""
    height, width, _ = pixels.shape
    header = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + pixels.size, 0, 0, 54, 40, width, -height, 1, 24, *[0] * 6)
    return header + pixels[:, :, ::-1].tobytes()


def test_a_picture_is_given_as_planes_of_red_green_and_blue(browser, shown, tmp_path):
    pixels = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    (tmp_path / "picture.bmp").write_bytes(bitmap(pixels))
    shown()
    browser.run("""(() => {
        const fill = document.querySelector('#inputs select');
        fill.value = 'picture, 0 to 255';
        fill.dispatchEvent(new Event('change'));
    })()""")
    field = browser.ask("Runtime.evaluate", expression="document.querySelector('#inputs input')")["result"]["objectId"]
    browser.ask("DOM.setFileInputFiles", files=[str(tmp_path / "picture.bmp")], objectId=field)
    browser.run("document.getElementById('run').click()")
    wait_until(browser, f"{STATE} === 'Done.'")
    assert browser.run("Array.from(globalThis.written)") == pixels.transpose(2, 0, 1).ravel().tolist()


def test_a_page_that_is_opened_as_a_file_names_the_server_that_it_needs(browser, saved):
    browser.ask("Page.navigate", url=(saved / "index.html").as_uri())
    wait_until(browser, "document.readyState === 'complete'")
    assert "python -m http.server" in browser.run(STATE)
