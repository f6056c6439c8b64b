"""Headless Chromium, where one is installed: pages opened from files, spoken to by its DevTools protocol over pipes."""

import base64
import contextlib
import importlib
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
"""Commands; the environment variable ``CHROMIUM`` names another."""
READ_FROM, WRITE_TO = 3, 4
"""Chromium's file descriptors of the pipes."""
PATIENCE = 120
"""Seconds for one answer."""
KEYS = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-extensions",
    "--disable-features=BackForwardCache,SpareRendererForSitePerProcess",  # pages that nobody goes back to
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def installed():
    """The path of Chromium, or None; it is spoken to in a way that Windows has not."""
    if os.name != "posix":
        return None
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("CHROMIUM"), *NAMES)))), None)


class Chromium:
    """A running browser with one page; ``close()`` ends it."""

    def __init__(self, path, flags=()):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._ours_out = _pipe()
        self._ours_in, theirs_out = _pipe()
        # Pipes may only have these two numbers, which a child is given by no other means.
        moves = [(os.POSIX_SPAWN_DUP2, theirs_in, READ_FROM), (os.POSIX_SPAWN_DUP2, theirs_out, WRITE_TO)]
        silence = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
        command = [path, *FLAGS, *flags, f"--user-data-dir={self._folder.name}", "about:blank"]
        # Its own group: the renderer and others go with it.
        self._process = os.posix_spawn(path, command, os.environ, file_actions=[*silence, *moves], setpgroup=0)
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        self._numbers = itertools.count(1)
        self.events = []
        self._session = None
        pages = [target for target in self.ask("Target.getTargets")["targetInfos"] if target["type"] == "page"]
        attached = self.ask("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._ours_in)
        os.close(self._ours_out)
        self._folder.cleanup()

    def ask(self, method, **params):
        """The result of one method of the protocol; events that come before it are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._ours_out, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            if not select.select([self._ours_in], [], [], PATIENCE)[0]:
                raise AssertionError(f"Chromium has not answered for {PATIENCE} s")
            part = os.read(self._ours_in, 2**16)
            if not part:
                raise AssertionError("Chromium has ended")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def size(self, width, height, *, ratio=1, touch=False):
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=touch
        )
        self.ask("Emulation.setTouchEmulationEnabled", enabled=touch)

    def prefer(self, scheme):
        """Light or dark."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, path):
        """Load a file, wait until its page says that it is ready, and give the seconds that this took."""
        self.events.clear()
        began = time.perf_counter()
        self.ask("Page.navigate", url=Path(path).as_uri())
        # The answer comes with the next frame, when what was drawn is there.
        ready = """new Promise((done) => {
            const look = () => document.documentElement?.dataset.ready ? requestAnimationFrame(() => done(true))
                : setTimeout(look, 5);
            look();
        })"""
        assert self.run(ready) is True
        return time.perf_counter() - began

    def run(self, script):
        """The value of an expression of JavaScript, awaited if it is a promise."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def frame(self):
        """Wait until all that has been asked for is drawn."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def press(self, key, *, shift=False):
        code = KEYS.get(key, ord(key[0].upper()))
        typed = {} if key in KEYS and key != "Enter" else {"text": "\r" if key == "Enter" else key}
        given = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.ask("Input.dispatchKeyEvent", type="keyDown", **given, **typed)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **given)
        self.frame()

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def touch(self, kind, *points):
        self.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])

    def picture(self):
        """The page as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def complaints(self):
        """Return the page's errors: exceptions, messages on the console, and entries of the log."""
        names = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [event["params"] for event in self.events if event.get("method") in names]

    def requests(self):
        """Addresses that were asked for."""
        sent = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]


def _pipe():
    """Two ends with numbers above those that Chromium wants to have."""
    fcntl = importlib.import_module("fcntl")  # which Windows has not
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 16) for end in ends)
    for end in ends:
        os.close(end)
    return moved
