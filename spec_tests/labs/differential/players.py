"""The places that play programs: here, in Node on a device, or in a browser."""

import contextlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from spec_tests.support.chromium import Chromium
from spec_tests.support.node import path_with_own_node

FLAG = "--enable-features=WebMachineLearningNeuralNetwork,ExperimentalWebMachineLearningNeuralNetwork"
PAGE = b"<!DOCTYPE html><html><title>WebNN</title></html>"
PROGRAMS_A_PAGE = 40
"""How many programs a page of a browser plays before another one."""
PAGE_SECONDS = 20


def prelude():
    """The functions that programs call."""
    return Path(__file__).with_name("play.js").read_text(encoding="utf-8")


REPORTS = "process.on('unhandledRejection', () => {});  // of promises that a program drops"


def called(program):
    return f"play(async (open) => {{\n{program.source}\n}})"


def play_all(programs, backend, profile=None):
    """Play programs in one Node program of this package, on a device, and return their results."""
    calls = [f"console.log(await {called(program)});" for program in programs]
    options = ["--compatibility", "none"] if profile is None else ["--browser", profile]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "programs.mjs")
        path.write_text("\n".join([prelude(), REPORTS, *calls]), encoding="utf-8")
        ended = subprocess.run(
            [sys.executable, "-m", "webnn_py", "node", "--backend", backend, *options, str(path)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=os.environ | {"PATH": path_with_own_node()},
        )
    return [json.loads(line) for line in ended.stdout.splitlines()]


class CrashedError(Exception):
    """The page is gone."""


class WebNNChromium(Chromium):
    """Chromium with WebNN, whose pages come from a server of this process, and may crash."""

    def _next(self):
        message = super()._next()
        if message.get("method") == "Inspector.targetCrashed":
            raise CrashedError
        return message


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        """Serve one page, whatever is asked for."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_arguments):
        """Nothing is logged."""


class Browser:
    """A browser given by its path; it is started anew when it has crashed.

    Attributes:
        version: what it says it is.
        crashes: how many pages and browsers have ended by themselves.
    """

    def __init__(self, path):
        self._path = str(path)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self._chromium = None
        self._left = 0
        self.crashes = 0
        self.version = self._start().ask("Browser.getVersion")["product"]

    def _start(self):
        self._chromium = WebNNChromium(self._path, (FLAG,))
        self._chromium.ask("Inspector.enable")
        self._left = 0
        return self._chromium

    def close(self):
        self._chromium.close()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _open_page(self):
        address = f"http://localhost:{self._server.server_address[1]}/{time.monotonic_ns()}"
        self._chromium.events.clear()
        self._chromium.ask("Page.navigate", url=address)
        end = time.monotonic() + PAGE_SECONDS
        ready = f"location.href === '{address}' && document.readyState === 'complete' && !!navigator.ml"
        while not self._is(ready):
            if time.monotonic() > end:
                raise CrashedError
            time.sleep(0.01)
        self._chromium.run(f"{prelude()}\ntrue")
        self._left = PROGRAMS_A_PAGE

    def _is(self, expression):
        """Return whether an expression holds; not while one page gives way to another."""
        with contextlib.suppress(AssertionError):
            return self._chromium.run(expression)
        return False

    def _once(self, program):
        try:
            if self._left <= 0:
                self._open_page()
            self._left -= 1
            return json.loads(self._chromium.run(called(program)))
        except (CrashedError, AssertionError, OSError) as error:
            self.crashes += 1
            self._chromium.close()
            self._start()
            return {"stage": "any", "error": "crash", "message": str(error)}

    def play(self, program):
        """The result of a program; whatever ends it badly is tried once more, on a page of its own."""
        result = self._once(program)
        if result.get("error") in {"crash", "hangs"} or "lost" in result.get("message", ""):
            self._left = 0
            result = self._once(program)
            self._left = 0
        return result
