"""Resources that only some machines have: a checkout of web-platform-tests, the source of the specification."""

import os
from pathlib import Path

import pytest

CHECKOUT = "WEBNN_WPT_CHECKOUT"
SPECIFICATION = "WEBNN_SPECIFICATION"


def given(variable: str) -> Path:
    """The path that an environment variable names; the test is skipped, and says why, without one."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} is not set")
    path = Path(named)
    if not path.exists():
        pytest.fail(f"{variable} is {named}, which does not exist")
    return path
