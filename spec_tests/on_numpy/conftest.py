"""What tests of convolutions on numpy share."""

import pytest

from webnn_py.device.on_numpy import scratch
from webnn_py.device.on_numpy.routines import conv_sizes


@pytest.fixture(params=[3000, None], ids="{} bytes".format)
def tight_context(request, monkeypatch, numpy_context):
    """A context whose kernels have so many bytes of scratch, so that they cut; None for what they usually have."""
    if request.param is not None:
        monkeypatch.setattr(scratch, "LEAST", request.param)
        monkeypatch.setattr(scratch, "SHARE", 0)
        monkeypatch.setattr(conv_sizes, "LEAST_IN_FLOAT16", request.param)
        monkeypatch.setattr(conv_sizes, "MOST_IN_FLOAT16", request.param)
    return numpy_context
