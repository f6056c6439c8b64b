import os

import pytest

from spec_tests.support.backends import HAS_ADAPTER, NO_ADAPTER


def test_there_is_an_adapter():
    """Elsewhere a machine may have none; where every change is tested, it must have one."""
    if not HAS_ADAPTER and not os.environ.get("CI"):
        pytest.skip(NO_ADAPTER)
    assert HAS_ADAPTER, NO_ADAPTER
