"""A device in a few pages: plain numpy, and no operator that can be said in terms of others.

``docs/adding_a_device.md`` explains it from top to bottom.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from webnn_py.descriptors import DATA_TYPES, MLOperandDataType, MLOperandDescriptor
from webnn_py.device.backend import Backend, BackendInfo, Capabilities, HostArray, Storage
from webnn_py.device.registry import DeviceRecord, OpenRequest, Suitability
from webnn_py.graph import Constant, Graph, Input, Node, Output, Value
from webnn_py.operators.declaration import Operator

Array = np.ndarray[Any, Any]
Kernel = Callable[..., Array]
"""Takes the node and its operands' arrays, and returns the array of the output."""

KERNELS: dict[str, Kernel] = {}


def kernel(function: Kernel) -> Kernel:
    """Enter the kernel of the operator of the function's name."""
    KERNELS[function.__name__.rstrip("_")] = function
    return function


def supports(operator: Operator[..., Any]) -> tuple[MLOperandDataType, ...]:
    """All data types of the operators that have a kernel; the others are expanded into these."""
    return DATA_TYPES if operator.name in KERNELS else ()


CAPABILITIES = Capabilities(supports)


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
    beyond = np.where(wide > 0, limits.max, limits.min)
    inside = np.where(fits, wide, 0).astype(target)
    return np.where(fits, inside, np.where(np.isnan(wide), 0, beyond).astype(target))


@kernel
def matmul(_node: Node, a: Array, b: Array) -> Array:
    """float16 is summed in float32."""
    return np.matmul(a.astype(np.float32), b.astype(np.float32))


def reduction(function: Callable[..., Array]) -> Kernel:
    def reduce(node: Node, x: Array) -> Array:
        axes = node.options["axes"]
        wide = x.astype(np.float32) if x.dtype == np.float16 else x
        all_axes = tuple(range(x.ndim)) if axes is None else tuple(axes)
        return function(wide, axis=all_axes, keepdims=node.options["keep_dimensions"])

    return reduce


for name, function in {
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_sum": lambda x, **how: np.sum(x, dtype=x.dtype, **how),
    "reduce_product": lambda x, **how: np.prod(x, dtype=x.dtype, **how),
}.items():
    KERNELS[name] = reduction(function)


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


# --- graphs --------------------------------------------------------------------------------------------------------


class SmallGraph:
    """A graph that is walked node by node at each dispatch."""

    byte_length = 0

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        # Constant buffers may be released once the graph is compiled: their arrays are kept.
        values = [value for node in graph.nodes for value in node.inputs]
        self.constants = {value: _contents(value) for value in values if isinstance(value, Constant)}

    def run(self, inputs: Mapping[str, Array]) -> Iterator[tuple[str, Array]]:
        """Compute every output."""
        arrays: dict[Value, Array] = dict(self.constants)
        arrays |= {value: inputs[name] for name, value in self.graph.inputs.items() if isinstance(value, Input)}
        for node in self.graph.nodes:
            operands = [arrays[value] for value in node.inputs]
            try:
                with np.errstate(all="ignore"):
                    result = KERNELS[node.operator.name](node, *operands)
                    # Kernels may compute in a wider data type: here it is rounded, once.
                    arrays[node.results[0]] = np.asarray(result).astype(node.outputs[0].data_type)
            except Exception as error:
                raise RuntimeError(f"{node}: {error}") from error
        for name, value in self.graph.outputs.items():
            assert isinstance(value, Output)
            yield name, arrays[value]


def _contents(value: Constant) -> Array:
    data = value.data
    return np.asarray(data.data if isinstance(data, Storage) else data)


class SmallBackend:
    """Buffers are arrays; everything runs at once, so that nothing is ever awaited."""

    capabilities = CAPABILITIES
    overlapping = False

    def __init__(self) -> None:
        self.info = BackendInfo("small", "this processor", f"numpy {np.__version__}")
        self.lost: Callable[[str], None] = lambda _message: None

    def allocate(self, descriptor: MLOperandDescriptor) -> Array:
        return np.zeros(descriptor.shape, descriptor.data_type)

    def write(self, storage: Storage, data: HostArray) -> None:
        np.copyto(storage.data, data)

    def read(self, storage: Storage) -> HostArray:
        return storage.data.copy()

    def free(self, data: Array) -> None:
        """The array goes with its last reference."""

    def compile(self, graph: Graph) -> SmallGraph:
        return SmallGraph(graph)

    def dispatch(self, compiled: SmallGraph, inputs: Mapping[str, Storage], outputs: Mapping[str, Storage]) -> None:
        for name, array in compiled.run({name: storage.data for name, storage in inputs.items()}):
            np.copyto(outputs[name].data, array)

    def release_graph(self, compiled: SmallGraph) -> None:
        """Likewise."""

    def finish(self) -> None:
        """Nothing goes on behind the device timeline."""

    def flush(self) -> None:
        """Nothing is collected."""

    def stop(self) -> None:
        """Nothing that runs takes long."""

    def close(self) -> None:
        """Nothing is left to close."""


def open_small(_request: OpenRequest) -> Backend:
    return SmallBackend()


RECORD = DeviceRecord(
    name="small",
    title="the small device",
    is_accelerated=False,
    probe=lambda _power_preference: Suitability.ON_REQUEST,
    open=open_small,
    adapters=lambda: [SmallBackend().info],
    capabilities=lambda: CAPABILITIES,
)
