"""Copies of values of any layout into dense buffers: by vec4s if possible, by 4 × 4 blocks for transpositions.

They move bits: 16-bit elements need no device feature, and NaN payloads are kept.
"""

from __future__ import annotations

import math

import attrs

from webnn_py.core.descriptors import BYTES_PER_ELEMENT, MLOperandDataType, MLOperandDescriptor
from webnn_py.devices.wgpu.codegen.entry_point import (
    WORKGROUP,
    Dispatch,
    grid,
    power_of_two,
    vec4_entry_point,
    vec4_indices,
)
from webnn_py.devices.wgpu.codegen.module import bound_kernel
from webnn_py.devices.wgpu.records.buffer import Buffer, Place
from webnn_py.devices.wgpu.records.element import WIDTH, Element, element
from webnn_py.devices.wgpu.records.kernel import Kernel
from webnn_py.devices.wgpu.records.layout import Layout, dense_strides
from webnn_py.devices.wgpu.records.variants import KernelVariant

LEAST_TRANSPOSED = 4096
"""The fewest elements for which transposing by blocks is worth it."""

LARGE = 65536
"""The fewest elements for which a copy costs less than it saves the kernels that read it."""

MOST_ROWS = 8
"""The most adjacent blocks along the source in a workgroup; its other invocations extend along the target."""


class RawHalves(Element):
    """16-bit elements as unsigned integers, two to a word."""

    def unpack(self, vec4: str) -> list[str]:
        return [half for word in "xy" for half in (f"({vec4}.{word} & 0xffffu)", f"({vec4}.{word} >> 16u)")]

    def pack(self, values: list[str]) -> str:
        low, high = (f"({first}) | (({second}) << 16u)" for first, second in (values[:2], values[2:]))
        return f"vec2<u32>({low}, {high})"

    def load(self, buffer: str, index: str) -> str:
        return f"(({buffer}[({index}) >> 1u] >> (16u * (({index}) & 1u))) & 0xffffu)"


def bits_of(data_type: MLOperandDataType) -> Element:
    """Return the unsigned integer of the size of a data type, by which its elements are moved."""
    size = BYTES_PER_ELEMENT[data_type]
    if size == 2:
        return RawHalves("float16", "u32", "vec2<u32>", "u32", 2)
    unsigned: dict[int, MLOperandDataType] = {1: "uint8", 4: "uint32", 8: "uint64"}
    return element(unsigned[size], shader_f16=False)


def copy_kernel(place: Place, target: Buffer, descriptor: MLOperandDescriptor) -> Kernel:
    """Return the kernel that copies a value of any layout into a dense buffer."""
    bits = bits_of(descriptor.data_type)
    count = descriptor.element_count
    layout = place.layout
    vec4s = Layout.dense((-(-count // WIDTH),)) if layout.is_dense else layout.vec4s()
    transpose = BlockTranspose.between(layout, bits)
    source, stored = bits.one, bits.vec4
    repeats = layout.repeats()
    if vec4s is not None:
        source = bits.vec4
        main, workgroups = vec4_entry_point(count, [f"o[four] = b[{vec4s.index('four')}];"])
    elif transpose is not None:
        source, stored = transpose.source, transpose.target
        main, workgroups = transpose.main()
    elif repeats is not None:
        load = f"let one = {bits.load('b', repeats.index('four'))};"
        main, workgroups = vec4_entry_point(count, [load, f"o[four] = {bits.pack(['one'] * WIDTH)};"])
    else:
        at = layout.spaced("four") or [layout.index(f"({index})") for index in vec4_indices(count)]
        main, workgroups = vec4_entry_point(count, [f"o[four] = {bits.pack([bits.load('b', index) for index in at])};"])
    label = f"{'copy' if transpose is None else 'transpose'} {descriptor.data_type}"
    return bound_kernel(label, [(place.buffer, "b", source)], [(target, "o", stored)], [main], workgroups)


def is_exchanged(layout: Layout) -> bool:
    """Return whether a large view is better copied by a block transposition than read element by element."""
    large = math.prod(layout.shape) >= LARGE
    return large and BlockTranspose.between(layout, element("uint32", shader_f16=False)) is not None


@attrs.frozen
class BlockTranspose:
    """A copy whose source is contiguous along another axis than its target.

    Each invocation transposes a 4 × 4 block in registers: it loads a vec4 along the source in each of four columns, and
    stores a vec4 along the target in each of four rows. Up to eight adjacent invocations load, and up to thirty-two
    store, adjacent vec4s, so that both access whole sectors of memory without a barrier.

    Attributes:
        bits: the unsigned integer type of the elements.
        layout: the source's, merged.
        axis: the axis along which the source is contiguous, the "rows".
    """

    bits: Element
    layout: Layout
    axis: int

    @classmethod
    def between(cls, layout: Layout, bits: Element) -> BlockTranspose | None:
        """Return the transposition that copies from a layout; None if another copy is better."""
        merged = layout.merged()
        if math.prod(merged.shape) < LEAST_TRANSPOSED or len(merged.shape) < 2 or abs(merged.strides[-1]) <= 1:
            return None
        if 1 not in merged.strides:
            return None
        transpose = cls(bits, merged, merged.strides.index(1))
        narrow = min(transpose.rows, transpose.columns) < WIDTH
        is_possible = not narrow and (bits.per_one == 1 or transpose.whole_vec4s)
        return transpose if is_possible and KernelVariant.BLOCK_TRANSPOSE.is_on else None

    @property
    def rows(self) -> int:
        return self.layout.shape[self.axis]

    @property
    def columns(self) -> int:
        return self.layout.shape[-1]

    @property
    def others(self) -> list[int]:
        """The axes that are not transposed."""
        return [axis for axis in range(len(self.layout.shape) - 1) if axis != self.axis]

    @property
    def whole_vec4s(self) -> bool:
        """True if every vec4 of the target is whole and aligned."""
        return self.columns % WIDTH == 0

    @property
    def aligned(self) -> bool:
        """True if the vec4s of the source are aligned."""
        strides = [stride for axis, stride in enumerate(self.layout.strides) if axis != self.axis]
        return not any(number % WIDTH for number in (*strides, self.layout.offset))

    @property
    def source(self) -> str:
        return self.bits.vec4 if self.aligned else self.bits.one

    @property
    def target(self) -> str:
        return self.bits.vec4 if self.whole_vec4s else self.bits.one

    def main(self) -> tuple[str, Dispatch]:
        """Return the entry point and its dispatch: tiles of blocks, adjacent ones along the source first."""
        batches = math.prod(self.layout.shape[axis] for axis in self.others)
        row_blocks, column_blocks = (-(-size // WIDTH) for size in (self.rows, self.columns))
        tile_rows = min(MOST_ROWS, power_of_two(row_blocks))
        tile_columns = min(WORKGROUP // tile_rows, power_of_two(column_blocks))
        tile = tile_rows * tile_columns
        depth = min(WORKGROUP // tile, power_of_two(batches))
        across, down = -(-row_blocks // tile_rows), -(-column_blocks // tile_columns)
        workgroups = grid(across * down * -(-batches // depth))
        text = f"""
@compute @workgroup_size({tile * depth})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {{
  let tile = group.x + group.y * {workgroups[0]}u;
  let row = (tile % {across}u * {tile_rows}u + local % {tile_rows}u) * {WIDTH}u;
  let column = (tile / {across}u % {down}u * {tile_columns}u + local / {tile_rows}u % {tile_columns}u) * {WIDTH}u;
  let batch = tile / {across * down}u * {depth}u + local / {tile}u;
  if (row >= {self.rows}u || column >= {self.columns}u || batch >= {batches}u) {{ return; }}
  let origin = {self._part(self.layout.strides, self.layout.offset)};
  let goal = {self._part(dense_strides(self.layout.shape), 0)} + row * {self._row_stride}u + column;
{self._loads()}
{self._stores()}
}}
"""
        return text, workgroups

    @property
    def _row_stride(self) -> int:
        return dense_strides(self.layout.shape)[self.axis]

    def _part(self, strides: tuple[int, ...], offset: int) -> str:
        """Return the offset of a batch by these strides."""
        shape = tuple(self.layout.shape[axis] for axis in self.others)
        return f"({Layout(shape, tuple(strides[axis] for axis in self.others), offset).index('batch')})"

    def _loads(self) -> str:
        """Load the columns ``s0`` to ``s3`` of a block; unaligned ones by element, ``s0_0`` to ``s3_3``."""
        lines = []
        stride = self.layout.strides[-1] % 2**32  # negative strides wrap around
        for k in range(WIDTH):
            column = f"min(column + {k}u, {self.columns - 1}u)" if not self.whole_vec4s else f"(column + {k}u)"
            lines.append(f"  let at{k} = origin + {column} * {stride}u;")
            if self.aligned:
                lines.append(f"  let s{k} = b[(at{k} + row) / {WIDTH}u];")
                continue
            for j in range(WIDTH):
                row = f"min(row + {j}u, {self.rows - 1}u)"
                lines.append(f"  let s{k}_{j} = {self.bits.load('b', f'at{k} + {row}')};")
        return "\n".join(lines)

    def _stores(self) -> str:
        if self.aligned:
            columns = [self.bits.unpack(f"s{k}") for k in range(WIDTH)]
        else:
            columns = [[f"s{k}_{j}" for j in range(WIDTH)] for k in range(WIDTH)]
        lines = []
        for j in range(WIDTH):
            goal = f"goal + {j * self._row_stride}u"
            values = [column[j] for column in columns]
            if self.whole_vec4s:
                stores = [f"o[({goal}) / {WIDTH}u] = {self.bits.pack(values)};"]
            else:
                stores = [
                    f"if (column + {k}u < {self.columns}u) {{ o[{goal} + {k}u] = {value}; }}"
                    for k, value in enumerate(values)
                ]
            lines.append(f"  if (row + {j}u < {self.rows}u) {{ {' '.join(stores)} }}")
        return "\n".join(lines)
