"""Scripts in tests: the engines, files of web-platform-tests' kind, and what a program prints."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

from webnn_py.javascript import checkout, descriptions
from webnn_py.javascript.compatibility import NONE, WPT_2026
from webnn_py.javascript.engine import ENGINES
from webnn_py.javascript.session import open_session
from webnn_py.javascript.wpt_run import Settings, run_file

FILES = Path(__file__).parents[1] / "wpt" / "files"
"""Test files of our own, laid out like a checkout."""

both_engines = pytest.mark.parametrize("engine", ENGINES)

needs_wasmtime = pytest.mark.skipif(find_spec("wasmtime") is None, reason="needs the extra wasm: wasmtime")

both_with_wasm = pytest.mark.parametrize("engine", ["node", pytest.param("quickjs", marks=needs_wasmtime)])


def settings(engine="quickjs", **changes):
    """Settings for the files of our own."""
    plain = Settings(FILES, descriptions.of_specification(), "", engine, "numpy", WPT_2026)
    return attrs.evolve(plain, **changes)


def test_file(name):
    """The one variant of a file of our own that is meant for the CPU."""
    (found,) = checkout.find(FILES, [name], "cpu")
    return found


test_file.__test__ = False


async def run(name, engine="quickjs", **changes):
    """Run a file of our own."""
    return await run_file(settings(engine, **changes), test_file(name))


def statuses(result):
    """The status of every sub-test by its name."""
    return {test.name: test.status for test in result.subtests}


class Notes:
    """A world that keeps what scripts say."""

    def __init__(self, files=None):
        self.lines = []
        self.uncaught = []
        self._files = files or {}

    def log(self, level, text):
        (self.uncaught if level in {"uncaught", "unhandled"} else self.lines).append(text)

    def fetch(self, url, most):
        return self._files.get(url)

    def module(self, specifier, referrer, most):
        raise TypeError(f"{specifier} in {referrer}")

    def serve(self, message):
        raise ValueError(message)


async def lines_of(source, engine="quickjs", **options):
    """Run a program to its end and return what it logged; nothing may be left uncaught."""
    return (await lines_of_each({"": source}, engine, **options))[""]


async def lines_of_each(programs, engine="quickjs", *, module=False, compatibility=NONE, files=None):
    """Run programs one after the other in one realm, and return what each logged by its name."""
    lines, description = {}, compatibility.adapted(descriptions.of_specification())
    world = Notes(files)
    async with open_session(engine, world, description, compatibility=compatibility, backend="numpy") as session:
        for name, source in programs.items():
            world.lines = lines[name] = []
            await session.run(partial(session.evaluate, source, "program.js", module=module))
    assert not world.uncaught
    return lines
