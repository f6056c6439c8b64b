"""Imports that every test file's process needs, made once in the process that they are forked from."""

from webnn_py.core.api.limits import op_support_limits
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.devices.numpy.backend import NumpyBackend
from webnn_py.javascript import worker  # noqa: F401 - imported for those who are forked

op_support_limits(NumpyBackend().capabilities)
for _operator in OPERATORS.values():
    _operator.parameters  # noqa: B018 - computed once and kept
