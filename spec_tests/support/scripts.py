"""Files of web-platform-tests' kind, run as ``webnn-py wpt`` runs them."""

from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from webnn_py.javascript import checkout, descriptions, wpt_run
from webnn_py.javascript.compatibility import WPT_2026
from webnn_py.javascript.wpt_run import Settings

FILES = Path(__file__).parents[1] / "wpt" / "files"
"""Test files of our own, laid out like a checkout."""


def settings(**changes):
    """Settings for the files of our own, which a busy machine may give sixty times their time."""
    plain = Settings(FILES, descriptions.of_specification(), "", "numpy", WPT_2026, timeout_multiplier=60)
    return attrs.evolve(plain, **changes)


def test_file(name):
    """The one variant of a file of our own that is meant for the CPU."""
    (found,) = checkout.find(FILES, [name], "cpu")
    return found


test_file.__test__ = False


async def run(name, **changes):
    """Run a file of our own."""
    return await run_file(settings(**changes), test_file(name))


async def run_file(given, test):
    """Run a file in this process."""
    with TemporaryDirectory() as folder:
        return await wpt_run.run_file(given, test, Path(folder))


def statuses(result):
    """The status of every sub-test by its name."""
    return {test.name: test.status for test in result.subtests}
