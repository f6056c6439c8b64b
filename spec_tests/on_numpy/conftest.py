"""Fixtures of tests of convolutions on numpy."""

import pytest

from webnn_py.devices.numpy import scratch
from webnn_py.devices.numpy.routines import conv_sizes


@pytest.fixture
def tighten(monkeypatch):
    """Limit the scratch of kernels to this many bytes, so that they split their work; None for the default."""

    def to_bytes(byte_length):
        if byte_length is not None:
            limits = (
                (scratch, "LEAST", byte_length),
                (scratch, "SHARE", 0),
                (conv_sizes, "LEAST_IN_FLOAT16", byte_length),
            )
            for module, name, limit in limits:
                monkeypatch.setattr(module, name, limit)

    return to_bytes


@pytest.fixture(params=[3000, None], ids="{} bytes".format)
def tight_context(request, tighten, numpy_context):
    """A context whose kernels cut, and one whose kernels do as usual."""
    tighten(request.param)
    return numpy_context
