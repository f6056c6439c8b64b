"""Make the cases of the gather and scatter families.

onnxruntime gathers and scatters, with indices that Python has counted from the start and clamped.
"""

from collections.abc import Sequence
from itertools import cycle, product

import numpy as np
import onnxruntime

from spec_tests.operators.oracle import (
    ALL_TYPES,
    SHAPES,
    Cases,
    by_onnxruntime,
    case,
    extremes,
    generator,
    spread,
    unique,
    write,
)

ORACLE = f"onnxruntime {onnxruntime.__version__}, CPU; indices counted from the start and clamped by Python"
INDEX_TYPES = ("int32", "uint32", "int64")


def mixed(data_type: str, shape: Sequence[int], *key: object) -> np.ndarray:
    """Random values, with extreme ones at some places."""
    rng = generator("indexing", data_type, shape, *key)
    chosen = np.asarray(rng.choice(extremes(data_type), shape))
    return np.asarray(np.where(rng.integers(0, 3, shape) == 0, chosen, spread(rng, data_type, shape, -99, 99)))


def positions(indices: np.ndarray, sizes: int | Sequence[int]) -> np.ndarray:
    """Indices into axes of these sizes, which broadcast to them, as positions: one after the other."""
    sizes = np.broadcast_to(sizes, indices.shape).ravel().tolist()
    pairs = zip(indices.ravel().tolist(), sizes, strict=True)
    counted = [min(max(index + size if index < 0 else index, 0), size - 1) for index, size in pairs]
    return np.array(counted, np.int64).reshape(indices.shape)


def places(index_type: str, shape: Sequence[int], sizes: int | Sequence[int], *key: object) -> np.ndarray:
    """Random indices, from the start and, if signed, from the end; one in ten is out of range."""
    rng = generator("places", index_type, shape, sizes, *key)
    sizes = np.broadcast_to(sizes, shape)
    low = np.zeros_like(sizes) if index_type == "uint32" else -sizes
    beyond = np.where(rng.integers(0, 10, shape) == 0, 2, 0)
    low = low if index_type == "uint32" else low - beyond
    return np.asarray(rng.integers(low, sizes + beyond)).astype(index_type)


def far_places(index_type: str) -> np.ndarray:
    """Indices around the ends of an axis of size 4, and the limits of the data type."""
    limits = np.iinfo(index_type)
    candidates = [limits.min, -6, -5, -4, -3, -1, 0, 1, 3, 4, 5, limits.max]
    return np.array([index for index in candidates if index >= limits.min], index_type)


class AlongAxis:
    """Collects the cases of an operator whose indices count along an axis."""

    def __init__(self, operator: str, of_onnx: str, *, updated: bool = False) -> None:
        self.operator = operator
        self.of_onnx = of_onnx
        self.updated = updated
        self.cases: Cases = []

    def add(
        self, name: str, input: np.ndarray, indices: np.ndarray, axis: int | None = None, constants: str = ""
    ) -> None:
        """Compute and keep a case."""
        arrays = {"input": input, "indices": indices}
        if self.updated:
            arrays["updates"] = mixed(input.dtype.name, indices.shape, name)
        counted = {"indices": positions(indices, input.shape[axis or 0])}
        (expected,) = by_onnxruntime(self.of_onnx, arrays | counted, axis=axis or 0)
        options = {} if axis is None else {"axis": axis}
        self.cases.append(case(name, arrays, expected, options=options, constants=constants))


def gather_cases() -> Cases:
    collected = AlongAxis("gather", "Gather")
    types, index_types = cycle(ALL_TYPES), cycle(INDEX_TYPES)
    for shape in SHAPES[1:]:
        for axis in range(len(shape)):
            for of_indices in [(), (3,), (2, 2), (2, 1, 2), (1, 2, 1, 2), (1, 2, 1, 1, 2)]:
                if len(shape) + len(of_indices) - 1 <= 8 and (axis + len(of_indices)) % 2 == 0:
                    data_type, index_type = next(types), next(index_types)
                    indices = places(index_type, of_indices, shape[axis])
                    name = f"{data_type}, {list(shape)} at {index_type} {list(of_indices)} along axis {axis}"
                    collected.add(name, mixed(data_type, shape), indices, axis)
    small_gather_cases(collected)
    return unique(collected.cases)


def small_gather_cases(collected: AlongAxis) -> None:
    """Every data type with every other, and indices out of range."""
    for data_type in ALL_TYPES:
        for index_type in INDEX_TYPES:
            indices = places(index_type, (4,), 3, data_type)
            collected.add(f"{data_type} at {index_type}", mixed(data_type, (3, 2)), indices)
    for index_type in INDEX_TYPES:
        for axis in (0, 1):
            name = f"{index_type} far out of range along axis {axis}"
            collected.add(name, mixed("float32", (4, 4)), far_places(index_type), axis)
    for index_type in INDEX_TYPES:
        collected.add(f"a vector at one {index_type}", mixed("int32", (5,)), np.array(3, index_type))
    for constants in ("input", "indices", "input indices"):
        indices = places("int32", (2,), 3, constants)
        collected.add(f"constant {constants}", mixed("float32", (3, 2)), indices, 0, constants)


def elements_cases(collected: AlongAxis) -> Cases:
    """Cases of gather_elements and scatter_elements."""
    types, index_types = cycle(ALL_TYPES), cycle(INDEX_TYPES)
    for shape in [(5,), (3, 2), (2, 3, 2), (2, 3, 1, 2), (2, 2, 2, 1, 2)]:
        for axis in range(len(shape)):
            for count in (1, shape[axis], shape[axis] + 2):
                data_type, index_type = next(types), next(index_types)
                of_indices = (*shape[:axis], count, *shape[axis + 1 :])
                indices = places(index_type, of_indices, shape[axis])
                name = f"{data_type}, {list(shape)} at {index_type} {list(of_indices)} along axis {axis}"
                collected.add(name, mixed(data_type, shape), indices, axis)
    for data_type in ALL_TYPES:
        for index_type in INDEX_TYPES:
            indices = places(index_type, (2, 3), 4, data_type)
            collected.add(f"{data_type} at {index_type}", mixed(data_type, (4, 3)), indices)
    for index_type in INDEX_TYPES:
        far = far_places(index_type)
        collected.add(f"{index_type} far out of range along axis 0", mixed("float32", (4,)), far, 0)
        far = np.ascontiguousarray(np.stack([far, far[::-1]]))
        collected.add(f"{index_type} far out of range along axis 1", mixed("float32", (2, 4)), far, 1)
    for constants in ("input", "indices", "input indices updates"):
        indices = places("int32", (2, 2), 3, constants)
        collected.add(f"constant {constants}", mixed("float32", (3, 2)), indices, 0, constants)
    name = "all indices are one"
    collected.add(name, mixed("float32", (3, 2)), np.full((4, 2), 1, np.int32), 0)
    return unique(collected.cases)


class ByCoordinates:
    """Collects the cases of an operator whose indices are coordinates."""

    def __init__(self, of_onnx: str, *, updated: bool = False) -> None:
        self.of_onnx = of_onnx
        self.updated = updated
        self.cases: Cases = []

    def add(self, name: str, input: np.ndarray, indices: np.ndarray, constants: str = "") -> None:
        """Compute and keep a case."""
        length = indices.shape[-1]
        counted = positions(indices, input.shape[:length])
        arrays = {"input": input, "indices": indices}
        if self.updated:
            shape = (*indices.shape[:-1], *input.shape[length:])
            arrays["updates"] = mixed(input.dtype.name, shape, name)
        (expected,) = by_onnxruntime(self.of_onnx, arrays | {"indices": counted})
        self.cases.append(case(name, arrays, expected, constants=constants))


def coordinates_cases(collected: ByCoordinates) -> Cases:
    """Cases of gather_nd and scatter_nd."""
    types, index_types = cycle(ALL_TYPES), cycle(INDEX_TYPES)
    shapes = [(5,), (3, 2), (2, 3, 2), (2, 3, 1, 2), (2, 2, 2, 1, 2)]
    outers = [(), (3,), (2, 2), (2, 1, 2), (1, 2, 1, 2)]
    for shape, outer in product(shapes, outers):
        for length in range(1, len(shape) + 1):
            if (len(outer) + length) % 2 == 0 or len(shape) == 1 or not outer:
                data_type, index_type = next(types), next(index_types)
                indices = places(index_type, (*outer, length), shape[:length])
                name = f"{data_type}, {list(shape)} at {index_type} {[*outer, length]}"
                collected.add(name, mixed(data_type, shape), indices)
    for data_type, index_type in product(ALL_TYPES, INDEX_TYPES):
        indices = places(index_type, (2, 1), 4, data_type)
        collected.add(f"{data_type} at {index_type}", mixed(data_type, (4, 3)), indices)
    for index_type in INDEX_TYPES:
        far = far_places(index_type)
        collected.add(f"{index_type} far out of range, rows", mixed("float32", (4, 2)), far[:, np.newaxis])
        far = np.ascontiguousarray(np.stack([far, far[::-1]], 1))
        collected.add(f"{index_type} far out of range, elements", mixed("float32", (4, 4)), far)
    for constants in ("input", "indices", "input indices updates"):
        indices = places("int32", (2, 1), 3, constants)
        collected.add(f"constant {constants}", mixed("float32", (3, 2)), indices, constants)
    collected.add("all coordinates are one", mixed("float32", (3, 2)), np.full((4, 2), 1, np.int32))
    return collected.cases


def main() -> None:
    """Write the files of the category."""
    write(__file__, "gather", ORACLE, gather_cases())
    write(__file__, "gather_elements", ORACLE, elements_cases(AlongAxis("gather_elements", "GatherElements")))
    scatter = AlongAxis("scatter_elements", "ScatterElements", updated=True)
    write(__file__, "scatter_elements", ORACLE, elements_cases(scatter))
    write(__file__, "gather_nd", ORACLE, coordinates_cases(ByCoordinates("GatherND")))
    write(__file__, "scatter_nd", ORACLE, coordinates_cases(ByCoordinates("ScatterND", updated=True)))


if __name__ == "__main__":
    main()
