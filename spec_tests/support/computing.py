"""From a drawing to arrays: build, dispatch and read in one line."""

from webnn_py.testing.device_cases.drawing import compute

__all__ = ["compute"]
