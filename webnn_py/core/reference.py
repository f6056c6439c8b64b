"""The reference device: one numpy function for each primitive; every other operator is expanded into these.

It is the oracle of the other devices and the smallest complete example of one (``docs/adding_a_device.md``).
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np

from webnn_py.core.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.core.device.backend import BackendInfo, Capabilities, HostArray, Storage
from webnn_py.core.device.registry import DeviceRecord, Suitability
from webnn_py.core.graph import Constant, Graph, Node, Value

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Array]
"""Takes the node and its operands' arrays, and returns the array of the output."""

KERNELS: Final[dict[str, Kernel]] = {}
"""The kernel of each primitive, by the operator's name."""


def kernel(function: Kernel) -> Kernel:
    """Enter the kernel of the operator of the function's name."""
    KERNELS[function.__name__.rstrip("_")] = function
    return function


# --- kernels -------------------------------------------------------------------------------------------------------

for name, function in {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "equal": np.equal,
    "greater": np.greater,
    "lesser": np.less,
    "abs": np.abs,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "log": np.log,
    "round_even": np.rint,
    "sin": np.sin,
    "sqrt": np.sqrt,
}.items():
    KERNELS[name] = lambda _node, *operands, function=function: function(*operands)


@kernel
def div(_node: Node, a: Array, b: Array) -> Array:
    """Integers truncate toward zero, and give 0 when divided by it."""
    if a.dtype.kind == "f":
        return a / b
    divisor = np.where(b == 0, b.dtype.type(1), b)
    quotient = a // divisor
    is_below = (a - quotient * divisor != 0) & ((a < 0) != (divisor < 0))
    return np.where(b == 0, 0, quotient + is_below)


@kernel
def pow_(_node: Node, a: Array, b: Array) -> Array:
    """Integers with a negative exponent truncate: ±1 have powers other than 0."""
    if a.dtype.kind != "i":
        return np.power(a, b)
    inverse = np.where(np.abs(a) == 1, np.where(b % 2 == 0, a * a, a), 0)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


@kernel
def erf(_node: Node, x: Array) -> Array:
    return np.array([math.erf(number) for number in x.ravel()]).reshape(x.shape)


@kernel
def where(_node: Node, condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition != 0, a, b)


@kernel
def cast(node: Node, x: Array) -> Array:
    """Floats truncate and saturate, and NaN is 0; integers keep their low bits."""
    target = np.dtype(node.outputs[0].data_type)
    if x.dtype.kind != "f" or target.kind == "f":
        return x.astype(target)
    limits, wide = np.iinfo(target), x.astype(np.float64)
    fits = (wide > limits.min - 1.0) & (wide < limits.max + 1.0)
    beyond = np.where(wide > 0, np.array(limits.max, target), np.array(limits.min, target))
    inside = np.where(fits, wide, 0).astype(target)
    return np.where(fits, inside, np.where(np.isnan(wide), target.type(0), beyond))


@kernel
def matmul(_node: Node, a: Array, b: Array) -> Array:
    """float16 is summed in float32."""
    product: Array = np.matmul(a.astype(np.float32), b.astype(np.float32))
    return product


REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_sum": lambda x, **how: np.sum(x, dtype=x.dtype, **how),
    "reduce_product": lambda x, **how: np.prod(x, dtype=x.dtype, **how),
}


def reduce(node: Node, x: Array) -> Array:
    """float16 is reduced in float32."""
    axes = node.options["axes"]
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    all_axes = tuple(range(x.ndim)) if axes is None else tuple(axes)
    result: Array = REDUCTIONS[node.operator.name](wide, axis=all_axes, keepdims=node.options["keep_dimensions"])
    return result


KERNELS.update(dict.fromkeys(REDUCTIONS, reduce))


@kernel
def concat(node: Node, *inputs: Array) -> Array:
    return np.concatenate(inputs, node.options["axis"])


@kernel
def expand(node: Node, x: Array) -> Array:
    return np.broadcast_to(x, node.outputs[0].shape)


@kernel
def reshape(node: Node, x: Array) -> Array:
    return x.reshape(node.outputs[0].shape)


@kernel
def slice_(node: Node, x: Array) -> Array:
    starts, sizes = node.options["starts"], node.options["sizes"]
    strides = node.options["strides"] or (1,) * x.ndim
    return x[tuple(slice(at, at + size, step) for at, size, step in zip(starts, sizes, strides, strict=True))]


@kernel
def transpose(node: Node, x: Array) -> Array:
    return np.transpose(x, node.options["permutation"])


def in_range(indices: Array, size: int) -> Array:
    """Indices from 0: negative ones count from the end, those out of range are the nearest in range."""
    places = np.minimum(indices, np.uint64(size)).astype(np.int64) if indices.dtype.kind == "u" else indices
    places = places.astype(np.int64)
    return np.clip(np.where(places < 0, places + size, places), 0, size - 1)


@kernel
def gather(node: Node, x: Array, indices: Array) -> Array:
    axis = node.options["axis"]
    return np.take(x, in_range(indices, x.shape[axis]), axis)


@kernel
def scatter_nd(_node: Node, x: Array, indices: Array, updates: Array) -> Array:
    """Of updates to one place, the last one stays."""
    result = x.copy()
    for place in np.ndindex(indices.shape[:-1]):
        target = tuple(int(in_range(index, size)) for index, size in zip(indices[place], x.shape, strict=False))
        result[target] = updates[place]
    return result


# --- the device ----------------------------------------------------------------------------------------------------


class ReferenceGraph:
    """A graph that is walked node by node at each dispatch."""

    byte_length = 0

    def __init__(self, graph: Graph, kernels: Mapping[str, Kernel]) -> None:
        self._graph = graph
        self._kernels = kernels
        # Constant buffers may be released once the graph is compiled: their arrays are kept.
        self._constants: dict[Value, Array] = {value: _contents(value) for value in graph.constants}

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Return the array of every output, by name.

        Raises:
            RuntimeError: a kernel failed; the text names the node.
        """
        arrays = self._constants | {value: inputs[name] for name, value in self._graph.inputs.items()}
        for node in self._graph.nodes:
            try:
                with np.errstate(all="ignore"):
                    result = self._kernels[node.operator.name](node, *(arrays[value] for value in node.inputs))
                    # Kernels may compute in a wider data type: here it is rounded, once.
                    arrays[node.results[0]] = np.asarray(result).astype(node.outputs[0].data_type)
            except Exception as error:
                raise RuntimeError(f"{node}: {error}") from error
        return {name: arrays[value] for name, value in self._graph.outputs.items()}


def _contents(value: Constant) -> Array:
    data = value.data
    return np.asarray(data.data if isinstance(data, Storage) else data)


class ReferenceBackend:
    """Buffers are arrays; everything runs at once, so that nothing is ever awaited.

    Args:
        name: the device's name.
        kernels: the kernel of each operator that the device computes itself, by the operator's name; the others are
            expanded into these.
    """

    overlapping = False

    def __init__(self, name: str = "reference", kernels: Mapping[str, Kernel] = KERNELS) -> None:
        self.info = BackendInfo(name, platform.processor() or platform.machine(), f"numpy {np.__version__}")
        self.capabilities = capabilities(frozenset(kernels))
        self.lost: Callable[[str], None] = lambda _message: None
        self._kernels = kernels

    def allocate(self, descriptor: MLOperandDescriptor) -> Array:
        return np.zeros(descriptor.shape, descriptor.data_type)

    def write(self, storage: Storage, data: HostArray) -> None:
        np.copyto(storage.data, data)

    def read(self, storage: Storage) -> HostArray:
        array: Array = storage.data
        return array.copy()

    def free(self, data: Array) -> None:
        """The array goes with its last reference."""

    def compile(self, graph: Graph) -> ReferenceGraph:
        return ReferenceGraph(graph, self._kernels)

    def dispatch(self, compiled: ReferenceGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        for name, array in compiled.run({name: storage.data for name, storage in inputs.items()}).items():
            np.copyto(outputs[name].data, array)

    def release_graph(self, compiled: ReferenceGraph) -> None:
        """The constants go with the graph."""

    def finish(self) -> None:
        """Nothing goes on behind the device timeline."""

    def flush(self) -> None:
        """Nothing is collected."""

    def stop(self) -> None:
        """Nothing that runs takes long."""

    def close(self) -> None:
        """Nothing is left to close."""


@cache
def capabilities(names: frozenset[str]) -> Capabilities:
    """Return what a device with kernels of these operators can do: all data types of each.

    The same object for the same names: what is derived from it is kept with it.
    """
    return Capabilities(lambda operator: DATA_TYPES if operator.name in names else ())


RECORD: Final = DeviceRecord(
    name="reference",
    title="the reference device",
    is_accelerated=False,
    probe=lambda _power_preference: Suitability.ON_REQUEST,
    open=lambda _request: ReferenceBackend(),
    adapters=lambda: [ReferenceBackend().info],
    capabilities=lambda: capabilities(frozenset(KERNELS)),
)
