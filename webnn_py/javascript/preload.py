"""What every test file's process needs, imported once in the process that they are forked from."""

from contextlib import suppress

from webnn_py.device.on_numpy.backend import NumpyBackend
from webnn_py.javascript import worker  # noqa: F401 - imported for those who are forked
from webnn_py.operators.registry import OPERATORS
from webnn_py.script.limits import op_support_limits

with suppress(ImportError):
    from webnn_py.javascript import quickjs_engine  # noqa: F401
with suppress(ImportError):
    from webnn_py.javascript import node_engine  # noqa: F401

op_support_limits(NumpyBackend().capabilities)
for _operator in OPERATORS.values():
    _operator.parameters  # noqa: B018 - computed once and kept
