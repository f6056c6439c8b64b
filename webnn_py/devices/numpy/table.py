"""The table of numpy kernels.

A kernel is made once per node, at build, from the node's options, data types and shapes. It is a function of arrays:
the operands in declaration order (those that are given, sequences flattened), then one array per output to fill.
Arrays have exactly the descriptors' data types and shapes. Operands may be views of any layout and must not be written;
outputs are C-contiguous, hold garbage at first, and never overlap an operand.

Kernels run under ``np.errstate(all="ignore")``, possibly in a worker thread, and keep no state between calls. They take
memory for their intermediates from ``scratch`` when they are made; at each call it holds garbage, too.

A kernel of many small steps is a ``PreparedKernel``: where its arrays are the same at each dispatch, their views are
made once.

The kernels of a category are imported when an operator of it is first looked up.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from webnn_py.core.device.backend import Storage
from webnn_py.core.graph import Node
from webnn_py.core.message_text import device_text
from webnn_py.core.operators.declaration import Operator

Array = npt.NDArray[Any]
Kernel = Callable[..., object]
"""Takes operand arrays, then output arrays, positionally; its return value is ignored."""

Run = Callable[[], object]
"""A kernel, or a part of it, with its arrays bound."""

View = Callable[[Array], Array]
"""Takes the first operand and returns the only output as a view of it, without copying and without reading elements.

Raises ``ValueError`` where the operand's strides do not allow it; the operator's kernel then copies.
"""

Work = Callable[[Node], float]
"""Returns the number of elementary operations (such as multiply-adds) of a node, to choose inline or thread."""


@attrs.frozen
class NumpyEntry:
    """The implementation of one operator: ``view`` where it has one and the strides allow it, else ``make``."""

    make: Callable[[Node], Kernel]
    view: Callable[[Node], View] | None
    work: Work


@attrs.frozen
class PreparedKernel:
    """A kernel in two parts: it prepares views of its arrays, and then computes any number of times.

    Attributes:
        prepare: takes the arrays, makes views of them, and returns the function that computes. It must not read or
            copy any elements: they are garbage when it is called.
    """

    prepare: Callable[..., Run]

    def __call__(self, *arrays: Array) -> None:
        """Compute once."""
        self.prepare(*arrays)()


def prepared(kernel: Kernel, *arrays: Array) -> Run:
    """Return a kernel with its arrays bound, to call once for each dispatch."""
    return kernel.prepare(*arrays) if isinstance(kernel, PreparedKernel) else partial(kernel, *arrays)


def in_order(runs: Sequence[Run]) -> Run:
    """Return a function that calls others in their order."""

    def run() -> None:
        for one in runs:
            one()

    return run


class DispatchError(RuntimeError):
    """A kernel raised; the text names operator, label and operands."""

    @classmethod
    def from_error(cls, node: Node | None, error: Exception) -> "DispatchError":
        """Return the error that reports ``error``, raised by the kernel of ``node``."""
        return cls(f"{node}: {device_text(error)}")


_TABLE: dict[Operator[..., Any], NumpyEntry] = {}

MODULES: Final[Mapping[str, str]] = {
    **{
        category: f"webnn_py.devices.numpy.kernels.{category}"
        for category in (
            "activation",
            "arithmetic",
            "conversion",
            "convolution",
            "indexing",
            "logical",
            "matrix",
            "movement",
            "normalization",
            "recurrent",
            "reduction",
            "unary",
        )
    },
    "cached_attention": "webnn_py.devices.numpy.composites.cached_attention",
    "dynamic_quantization": "webnn_py.devices.numpy.composites.dynamic_quantization",
}
"""The modules that have the kernels of a category of operators; all other operators are expanded into these."""


def elements(node: Node) -> float:
    """Return the number of elements that a node reads and writes: the work of an operator that touches each once."""
    read = sum(value.descriptor.element_count for value in node.inputs)
    return read + sum(descriptor.element_count for descriptor in node.outputs)


def kernel(
    operator: Operator[..., Any], *, work: Work = elements
) -> Callable[[Callable[[Node], Kernel]], Callable[[Node], Kernel]]:
    """Register the maker of an operator's kernel."""

    def register(make: Callable[[Node], Kernel]) -> Callable[[Node], Kernel]:
        _enter(operator, NumpyEntry(make, None, work))
        return make

    return register


def kernels(
    make: Callable[[Node, np.ufunc], Kernel], functions: Mapping[Operator[..., Any], Any], *, work: Work = elements
) -> None:
    """Register the kernels of several operators, whose maker takes a node and the operator's numpy function."""

    def enter(operator: Operator[..., Any], function: np.ufunc) -> None:
        _enter(operator, NumpyEntry(lambda node: make(node, function), None, work))

    for operator, function in functions.items():
        enter(operator, function)


def view(
    operator: Operator[..., Any], *, otherwise: Callable[[Node], Kernel] | None = None
) -> Callable[[Callable[[Node], View]], Callable[[Node], View]]:
    """Register the maker of a view: the operator's result is a view of its operand.

    ``otherwise`` makes the kernel that copies; without it, the view's elements are copied one by one.
    """

    def register(make: Callable[[Node], View]) -> Callable[[Node], View]:
        _enter(operator, NumpyEntry(otherwise or _copying(make), make, elements))
        return make

    return register


def _copying(make: Callable[[Node], View]) -> Callable[[Node], Kernel]:
    def make_copy(node: Node) -> Kernel:
        look = make(node)
        return lambda operand, output: np.copyto(output, look(operand))

    return make_copy


def _enter(operator: Operator[..., Any], entry: NumpyEntry) -> None:
    if operator in _TABLE:
        raise RuntimeError(f"{operator.spec_name} already has a numpy kernel")
    _TABLE[operator] = entry


def find(operator: Operator[..., Any]) -> NumpyEntry | None:
    """Return the operator's entry; None where this device has no kernel for it."""
    if operator not in _TABLE and operator.category in MODULES:
        import_module(MODULES[operator.category])
    return _TABLE.get(operator)


def entry_of(node: Node) -> NumpyEntry:
    """Return the entry of a node's operator.

    Raises:
        NotImplementedError: there is none; such operators are expanded before a graph is compiled.
    """
    entry = find(node.operator)
    if entry is None:
        raise NotImplementedError(f"{node} has no numpy kernel")
    return entry


def run_node(node: Node, operands: list[Array]) -> list[Array]:
    """Run one node by itself on arrays, allocating its outputs."""
    outputs = [np.empty(d.shape, d.data_type) for d in node.outputs]
    with np.errstate(all="ignore"):
        entry_of(node).make(node)(*operands, *outputs)
    return outputs


def constant_array(data: object) -> Array:
    """Return the array of a constant, or of a constant buffer."""
    array = data.data if isinstance(data, Storage) else data
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a constant of {type(array).__name__}")
    return array


def scalar(value: float, data_type: str) -> Array:
    """Return a number as a 0-d array of a data type, so that ufuncs need not convert it at each call."""
    return np.array(value, data_type)
