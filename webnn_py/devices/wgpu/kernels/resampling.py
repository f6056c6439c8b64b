"""Resampling in WGSL: each element of the one nearest, or of the four around it.

Which these are, and how near, is computed on the host for each row and column, exactly, whatever the sizes: the
kernels read it from small tables.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Node
from webnn_py.core.operators import resampling
from webnn_py.devices.wgpu.codegen.data_movement import MovementKernel
from webnn_py.devices.wgpu.codegen.map_kernel import MapKernel
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.table import kernels


@attrs.frozen
class ResampledAxis:
    """One of the two axes.

    Attributes:
        size: its length before.
        new_size: its length after.
    """

    size: int
    new_size: int

    def _places(self) -> tuple[NDArray[np.int64], int]:
        """Return the coordinates of new elements' middles between those of the old ones, and their unit."""
        unit = 2 * self.new_size
        places = (2 * np.arange(self.new_size, dtype=np.int64) + 1) * self.size - self.new_size
        return np.clip(places, 0, (self.size - 1) * unit), unit

    def nearest(self) -> Constant:
        """Return the nearest old element of each new one, the lower of two."""
        places, unit = self._places()
        return _table(-((self.new_size - places) // unit))

    def neighbors(self) -> Constant:
        """Return the old element below each new one; then those above; then the bits of their weights."""
        places, unit = self._places()
        below, rest = np.divmod(places, unit)
        # An element's own place is halfway between itself and itself: infinity times 0 would be NaN.
        weight = np.where(rest == 0, 0.5, rest / unit).astype(np.float32)
        return _table(np.concatenate([below, below + (rest > 0), weight.view(np.uint32)]))


def _table(numbers: NDArray[np.int64]) -> Constant:
    return Constant(MLOperandDescriptor("uint32", numbers.shape), numbers.astype(np.uint32))


@kernels(resampling.resample2d)
def resample2d(node: Node, lowering: Lowering) -> None:
    shape, new_shape = node.operand("input").shape, node.outputs[0].shape
    first, second = sorted(node.options["axes"] or (2, 3))
    rows, columns = ResampledAxis(shape[first], new_shape[first]), ResampledAxis(shape[second], new_shape[second])
    between, inner = math.prod(shape[first + 1 : second]), math.prod(shape[second + 1 :])
    geometry = Geometry(rows, columns, between, inner)
    if node.options["mode"] == "nearest-neighbor":
        nearest(node, lowering, geometry)
    else:
        linear(node, lowering, geometry)


@attrs.frozen
class Geometry:
    """The output as (outer, rows, between, columns, inner).

    Attributes:
        rows: the first axis to resample.
        columns: the second one.
        between: elements between them.
        inner: elements behind them.
    """

    rows: ResampledAxis
    columns: ResampledAxis
    between: int
    inner: int

    def coordinates(self) -> str:
        """Statements that take the number ``i`` of an element apart."""
        return f"""  let n = i % {self.inner}u;
  let column = i / {self.inner}u % {self.columns.new_size}u;
  let b = i / {self.columns.new_size * self.inner}u % {self.between}u;
  let row = i / {self.between * self.columns.new_size * self.inner}u % {self.rows.new_size}u;
  let outer = i / {self.rows.new_size * self.between * self.columns.new_size * self.inner}u;"""

    def source(self, row: str, column: str) -> str:
        """Return the number of the old element in this row and column."""
        at_row = f"(outer * {self.rows.size}u + {row}) * {self.between}u + b"
        return f"(({at_row}) * {self.columns.size}u + {column}) * {self.inner}u + n"


def nearest(node: Node, lowering: Lowering, geometry: Geometry) -> None:
    result = node.results[0]
    place = lowering.place(next(iter(node.inputs)))
    moving = MovementKernel(lowering, result, [place], geometry.inner)
    geometry = attrs.evolve(geometry, inner=geometry.inner // moving.width)
    row = moving.number(geometry.rows.nearest(), "row")
    column = moving.number(geometry.columns.nearest(), "column")
    statements = f"{geometry.coordinates()}\n  return {moving.load(place, geometry.source(row, column))};"
    moving.emit("resample2d", result.descriptor.element_count, lowering.target(result), statements)


def linear(node: Node, lowering: Lowering, geometry: Geometry) -> None:
    kernel = MapKernel(lowering, node)
    images = next(iter(node.inputs))
    lines = [geometry.coordinates()]

    for axis, at in ((geometry.rows, "row"), (geometry.columns, "column")):
        neighbors = axis.neighbors()
        for index, part in enumerate(("below", "above", "weight")):
            word = kernel.load(neighbors, f"{at} + {index * axis.new_size}u")
            lines.append(f"  let {at}_{part} = {f'bitcast<f32>({word})' if part == 'weight' else word};")
    for row in ("below", "above"):
        low, high = (
            f"f32({kernel.load(images, geometry.source(f'row_{row}', f'column_{side}'))})"
            for side in ("below", "above")
        )
        lines.append(f"  let {row} = {low} * (1.0 - column_weight) + {high} * column_weight;")
    mixed = "below * (1.0 - row_weight) + above * row_weight"
    output = kernel.output.compute
    lines.append(f"  return {mixed};" if output == "f32" else f"  return {output}(round({mixed}));")
    kernel.finish("\n".join(lines))
