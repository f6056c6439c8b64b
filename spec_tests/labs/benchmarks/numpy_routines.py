"""The special routines of the numpy device, each of which can be left out of what is built."""

from contextlib import ExitStack, contextmanager
from functools import partial
from unittest.mock import patch

import attrs

from webnn_py.devices.numpy import executable
from webnn_py.devices.numpy.executable import Call
from webnn_py.devices.numpy.kernels import convolution
from webnn_py.devices.numpy.routines.conv_sizes import Convolution


def never(*_):
    return False


def no_views(_nodes):
    return {}


def bound_late(call, template):
    """Bind a kernel to its arrays, but let it look at them at each dispatch."""
    arrays = call.pick(template)
    is_known = all(array is not None for array in arrays)
    return attrs.evolve(call, run=partial(call.kernel, *arrays) if is_known else None)


of_node = Convolution.of


def upright(node):
    """Read a convolution whose images are not turned."""
    conv = of_node(node)
    if not conv.is_turned:
        return conv
    return attrs.evolve(conv, is_turned=False, slides=conv.slides[::-1], output_sizes=conv.output_sizes[::-1])


ROUTINES = {
    "views": (executable, "find_views", no_views),
    "prepared-kernels": (Call, "prepared", bound_late),
    "depthwise": (convolution, "has_overlapping_rows", never),
    "few-windows": (convolution, "has_few_windows", never),
    "turned-images": (Convolution, "of", staticmethod(upright)),
    "spread-windows": (Convolution, "is_spread", property(never)),
    "few-outputs": (Convolution, "has_few_outputs", property(never)),
}
"""The replacement of each: a module or class, its attribute, and the value that leaves the routine out."""


@contextmanager
def routines_left_out(*names):
    """Leave routines out of everything that is built meanwhile; other names are ignored."""
    with ExitStack() as stack:
        for name in names:
            if name in ROUTINES:
                stack.enter_context(patch.object(*ROUTINES[name]))
        yield
