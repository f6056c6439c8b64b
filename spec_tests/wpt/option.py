"""The path of the WPT vectors, and the message when they are missing; hooks of ``spec_tests/conftest.py``."""

import os
from pathlib import Path

import pytest

OPTION = "--wpt-vectors"
VARIABLE = "WEBNN_WPT_VECTORS"
OF_VECTORS = ("test_exported_vectors.py", "test_four_bit_vectors.py", "test_validation_vectors.py", "test_vectors.py")
"""The files that are not collected without the vectors, unless named; ``test_vectors_are_there.py`` says so."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, metavar="PATH", help=f"the folder of the WPT vectors (else ${VARIABLE})")


def vectors_folder(config: pytest.Config) -> Path | None:
    """The folder of the vectors, if one is named and exists."""
    named = config.getoption(OPTION, None) or os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else None
    return folder if folder is not None and folder.is_dir() else None


def needed_vectors(config: pytest.Config) -> Path:
    """The folder, where tests are asked for that need it; without it they are skipped."""
    folder = vectors_folder(config)
    if folder is None:
        pytest.skip(why_not(config) or "")
    return folder


def why_not(config: pytest.Config) -> str | None:
    """Why the vectors are not run, in words; None when they are."""
    if vectors_folder(config) is not None:
        return None
    named = config.getoption(OPTION, None) or os.environ.get(VARIABLE)
    reason = f"{named} is no folder" if named else f"neither {OPTION} nor {VARIABLE} names their folder"
    return f"WPT vectors not run: {reason}"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    here = collection_path.parent == Path(__file__).parent
    return True if here and collection_path.name in OF_VECTORS and why_not(config) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    words = why_not(config)
    if words and any("test_vectors_are_there" in key for key in _reported(terminalreporter)):
        terminalreporter.write_sep("=", words, yellow=True)


def _reported(terminalreporter: pytest.TerminalReporter) -> list[str]:
    return [getattr(report, "nodeid", "") for reports in terminalreporter.stats.values() for report in reports]
