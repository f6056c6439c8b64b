"""The proposed tests in a browser: each file on a page of its own, with a checkout's testharness.js or our own."""

import contextlib
import http.server
import json
import re
import threading
import time
from pathlib import Path

from spec_tests.support.chromium import Chromium
from spec_tests.support.scripts import FILES

FLAG = "--enable-features=WebMachineLearningNeuralNetwork,ExperimentalWebMachineLearningNeuralNetwork"
FOLDER = Path(__file__).parent
SECONDS = 60
"""How long a file may take."""

HARNESS = "resources/testharness.js"
_SCRIPT = re.compile(r"^// META: script=(\S+)", re.MULTILINE)
_TYPES = {".js": "text/javascript", ".json": "application/json", ".html": "text/html"}
_WATCH = """
  if (typeof setup === 'function') setup({output: false});
  globalThis.proposedResults = {tests: {}, status: null};
  const statuses = ['PASS', 'FAIL', 'TIMEOUT', 'NOTRUN', 'PRECONDITION_FAILED'];
  add_result_callback((test) => {
    proposedResults.tests[test.name] = [statuses[test.status], test.message ?? null];
  });
  add_completion_callback((_tests, {status, message}) => {
    proposedResults.message = message ?? null;
    proposedResults.status = status;
  });
"""


class CrashedError(Exception):
    """The page is gone."""


class WebNNChromium(Chromium):
    """Chromium whose pages may crash."""

    def _next(self):
        message = super()._next()
        if message.get("method") == "Inspector.targetCrashed":
            raise CrashedError
        return message


def page_of(path):
    """Return the page that runs a test file, given from the root."""
    text = (FOLDER / path).read_text(encoding="utf-8")
    scripts = [HARNESS, *((Path("/") / path).parent.joinpath(one).as_posix() for one in _SCRIPT.findall(text))]
    tags = "".join(f'<script src="/{one.lstrip("/")}"></script>\n' for one in scripts)
    harness, _, rest = tags.partition("\n")
    return f'<!doctype html>\n{harness}\n<script>{_WATCH}</script>\n{rest}<script src="/{path}"></script>\n'.encode()


class Server:
    """Serves the proposed tests, and what they need of a checkout.

    Args:
        checkout: of web-platform-tests; None for the harness of our own.
    """

    def __init__(self, checkout=None):
        roots = [FOLDER, FILES if checkout is None else checkout]

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.partition("?")[0].lstrip("/")
                if path.startswith("run/"):
                    self._send(page_of(path.removeprefix("run/")), "text/html")
                    return
                for root in roots:
                    if (root / path).is_file():
                        self._send((root / path).read_bytes(), _TYPES.get(Path(path).suffix, "text/plain"))
                        return
                self.send_error(404)

            def _send(self, body, kind):
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments):
                """Nothing is logged."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.address = f"http://localhost:{self._server.server_address[1]}"

    def close(self):
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def results_of(browser, checkout=None, paths=()):
    """Run test files, and return what the browser calls itself, and by file and sub-test the status and message."""
    server = Server(checkout)
    found = {}
    try:
        for path in paths:
            chromium = WebNNChromium(str(browser), (FLAG,))
            try:
                chromium.ask("Inspector.enable")
                version = chromium.ask("Browser.getVersion")["product"]
                found[path] = _results(chromium, f"{server.address}/run/{path}?cpu")
            finally:
                chromium.close()
    finally:
        server.close()
    return version, found


def _results(chromium, address):
    chromium.ask("Page.navigate", url=address)
    end = time.monotonic() + SECONDS
    results = {"tests": {}, "status": None}
    try:
        while results["status"] is None and time.monotonic() < end:
            time.sleep(0.1)
            with contextlib.suppress(AssertionError):  # while one page gives way to another
                results = json.loads(chromium.run("JSON.stringify(globalThis.proposedResults)") or "null") or results
    except CrashedError:
        results["tests"]["the page"] = ["CRASH", "the page has ended"]
    if results["status"] is None and "the page" not in results["tests"]:
        results["tests"]["the page"] = ["TIMEOUT", f"not complete after {SECONDS} s"]
    return results["tests"]
