"""Copies: a value of any layout into a dense buffer, in vec4s where they lie so, in blocks where axes are exchanged.

Copies move bits, whatever they mean: elements of 16 bits need no feature, and no NaN changes.
"""

from __future__ import annotations

import math

import attrs

from webnn_py.descriptors import BYTES_PER_ELEMENT, MLOperandDataType, MLOperandDescriptor
from webnn_py.device.on_wgpu.codegen.entry_point import WORKGROUP, grid, vec4_entry_point, vec4_indices
from webnn_py.device.on_wgpu.codegen.module import declare, module
from webnn_py.device.on_wgpu.records.buffer import Buffer, Place
from webnn_py.device.on_wgpu.records.element import WIDTH, Element, element
from webnn_py.device.on_wgpu.records.kernel import Kernel
from webnn_py.device.on_wgpu.records.layout import Layout, dense_strides
from webnn_py.device.on_wgpu.records.variants import Variant

LEAST_EXCHANGED = 4096
"""From so many elements on, exchanging axes block by block is worth it."""

LARGE = 65536
"""From so many elements on, a copy costs less than what it saves those that read it."""

MOST_ROWS = 8
"""So many blocks beside each other are read along the source; the rest of a workgroup lies along the target."""


class SixteenBits(Element):
    """Elements of 16 bits, as unsigned integers; two lie in a word."""

    def unpack(self, vec4: str) -> list[str]:
        return [half for word in "xy" for half in (f"({vec4}.{word} & 0xffffu)", f"({vec4}.{word} >> 16u)")]

    def pack(self, values: list[str]) -> str:
        low, high = (f"({first}) | ({second}) << 16u" for first, second in (values[:2], values[2:]))
        return f"vec2<u32>({low}, {high})"

    def load(self, buffer: str, index: str) -> str:
        return f"(({buffer}[({index}) >> 1u] >> (16u * (({index}) & 1u))) & 0xffffu)"


def bits_of(data_type: MLOperandDataType) -> Element:
    """How to move elements of a data type: as unsigned integers of their size."""
    size = BYTES_PER_ELEMENT[data_type]
    if size == 2:
        return SixteenBits("float16", "u32", "vec2<u32>", "u32", 2)
    unsigned: dict[int, MLOperandDataType] = {1: "uint8", 4: "uint32", 8: "uint64"}
    return element(unsigned[size], shader_f16=False)


def copy_kernel(place: Place, target: Buffer, descriptor: MLOperandDescriptor) -> Kernel:
    """The kernel that copies a value, whatever its layout, into a dense buffer."""
    bits = bits_of(descriptor.data_type)
    count = descriptor.element_count
    layout = place.layout
    vec4s = Layout.dense((-(-count // WIDTH),)) if layout.is_dense else layout.vec4s()
    exchange = BlockTranspose.of(layout, bits)
    if vec4s is not None:
        declared = declare([(place.buffer, "b", bits.vec4)], [(target, "o", bits.vec4)])
        main, workgroups = vec4_entry_point(count, f"  o[four] = b[{vec4s.index('four')}];")
    elif exchange is not None:
        declared = declare([(place.buffer, "b", exchange.source)], [(target, "o", exchange.target)])
        main, workgroups = exchange.main()
    else:
        declared = declare([(place.buffer, "b", bits.one)], [(target, "o", bits.vec4)])
        repeats = layout.repeats()
        if repeats is not None:
            main, workgroups = vec4_entry_point(
                count,
                f"  let one = {bits.load('b', repeats.index('four'))};\n  o[four] = {bits.pack(['one'] * WIDTH)};",
            )
        else:
            at = layout.spaced("four") or [layout.index(f"({index})") for index in vec4_indices(count)]
            loads = [bits.load("b", index) for index in at]
            main, workgroups = vec4_entry_point(count, f"  o[four] = {bits.pack(loads)};")
    label = f"{'copy' if exchange is None else 'transpose'} {descriptor.data_type}"
    return Kernel(label, module(declared, main), (place.buffer,), (target,), workgroups)


def is_exchanged(layout: Layout) -> bool:
    """Whether a large view is better copied, with its axes exchanged, than read element by element."""
    large = math.prod(layout.shape) >= LARGE
    return large and BlockTranspose.of(layout, element("uint32", shader_f16=False)) is not None


@attrs.frozen
class BlockTranspose:
    """A copy in which neighbours along the target's last axis lie far apart, and those along another axis side by side.

    Each invocation exchanges the axes of one block of 4 × 4 elements in registers: it reads a vec4 along the source in
    each of four columns, and writes a vec4 along the target in each of four rows. Eight invocations read beside each
    other, and up to thirty-two write: whole sectors of memory both ways, without a barrier.

    Attributes:
        bits: how to move elements.
        layout: of the source, merged.
        axis: the one along which the source is contiguous: "rows".
    """

    bits: Element
    layout: Layout
    axis: int

    @classmethod
    def of(cls, layout: Layout, bits: Element) -> BlockTranspose | None:
        """The exchange that copies from a layout, or None where that is done otherwise."""
        merged = layout.merged()
        if math.prod(merged.shape) < LEAST_EXCHANGED or len(merged.shape) < 2 or abs(merged.strides[-1]) <= 1:
            return None
        if 1 not in merged.strides:
            return None
        exchange = cls(bits, merged, merged.strides.index(1))
        narrow = min(exchange.rows, exchange.columns) < WIDTH
        is_possible = not narrow and (bits.per_one == 1 or exchange.whole_vec4s)
        return exchange if is_possible and Variant.BLOCK_TRANSPOSE.is_on else None

    @property
    def rows(self) -> int:
        return self.layout.shape[self.axis]

    @property
    def columns(self) -> int:
        return self.layout.shape[-1]

    @property
    def others(self) -> list[int]:
        """The axes that stay where they are."""
        return [axis for axis in range(len(self.layout.shape) - 1) if axis != self.axis]

    @property
    def whole_vec4s(self) -> bool:
        """Whether every vec4 is written whole and aligned."""
        return self.columns % WIDTH == 0

    @property
    def aligned(self) -> bool:
        """Whether the vec4s of the source are."""
        strides = [stride for axis, stride in enumerate(self.layout.strides) if axis != self.axis]
        return not any(number % WIDTH for number in (*strides, self.layout.offset))

    @property
    def source(self) -> str:
        return self.bits.vec4 if self.aligned else self.bits.one

    @property
    def target(self) -> str:
        return self.bits.vec4 if self.whole_vec4s else self.bits.one

    def main(self) -> tuple[str, tuple[int, int, int]]:
        """The entry point, and its workgroups: tiles of blocks, the next ones along the source first."""
        batches = math.prod(self.layout.shape[axis] for axis in self.others)
        row_blocks, column_blocks = (-(-size // WIDTH) for size in (self.rows, self.columns))
        tile_rows = min(MOST_ROWS, _power_of_two(row_blocks))
        tile_columns = min(WORKGROUP // tile_rows, _power_of_two(column_blocks))
        tile = tile_rows * tile_columns
        depth = min(WORKGROUP // tile, _power_of_two(batches))
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
        """Where the batch begins, seen with these strides."""
        shape = tuple(self.layout.shape[axis] for axis in self.others)
        return f"({Layout(shape, tuple(strides[axis] for axis in self.others), offset).index('batch')})"

    def _loads(self) -> str:
        """Statements that read ``s0`` to ``s3``, the four columns, or each one's elements ``s0_0`` to ``s0_3``."""
        lines = []
        stride = self.layout.strides[-1] % 2**32  # negative ones wrap around, as the sums do
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


def _power_of_two(number: int) -> int:
    """The lowest power of two that is not less."""
    return 1 << (number - 1).bit_length()
