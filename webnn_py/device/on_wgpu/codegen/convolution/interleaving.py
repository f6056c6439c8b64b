"""Large transposed convolutions: products that lie phase by phase, and a kernel that interleaves the phases.

Stored where they belong, the neighbours that an invocation computes would lie a stride apart.
"""

from __future__ import annotations

from typing import Final

import attrs

from webnn_py.device.on_wgpu.codegen.convolution.shape import ConvolutionShape
from webnn_py.device.on_wgpu.codegen.entry_point import vec4_entry_point, vec4_indices
from webnn_py.device.on_wgpu.codegen.epilogue import Epilogue
from webnn_py.device.on_wgpu.codegen.gemm.im2col_loader import WindowAxis
from webnn_py.device.on_wgpu.codegen.gemm.problem import GemmProblem
from webnn_py.device.on_wgpu.codegen.gemm.tile_plan import TilePlan
from webnn_py.device.on_wgpu.codegen.gemm.tile_search import choose_tile
from webnn_py.device.on_wgpu.codegen.gemm.tiled import TiledGemmWriter
from webnn_py.device.on_wgpu.records.buffer import Buffer
from webnn_py.device.on_wgpu.records.element import WIDTH
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.on_wgpu.records.variants import Variant

LEAST_RESULTS: Final = 2**18
"""With fewer, a second kernel takes longer than it saves."""

MOST_BYTES: Final = 2**27
"""Of the sums between the kernels, which every adapter binds."""


def is_interleaved(conv: ConvolutionShape, product: GemmProblem, epilogue: Epilogue) -> bool:
    """Whether a transposed convolution, as the product is, had better be stored phase by phase."""
    several = product.batch > conv.groups and not product.vec4s
    fits = product.batch * product.left.outer * product.right.outer * 4 <= MOST_BYTES
    is_whole = conv.nchw and several and fits and product.right.outer % WIDTH == 0
    return is_whole and epilogue.count >= LEAST_RESULTS and Variant.TRANSPOSED_PHASES.is_on


def emit_interleaved(
    lowering: Lowering,
    conv: ConvolutionShape,
    epilogue: Epilogue,
    product: GemmProblem,
    axes: tuple[WindowAxis, WindowAxis],
) -> None:
    """The kernels of a transposed convolution of which :func:`is_interleaved` is true."""
    rows, columns = product.left.outer, product.right.outer
    count = product.batch * rows * columns
    sums = Buffer("block", count * 4)
    dense = attrs.evolve(
        product,
        address=lambda batch, row, column: f"({batch} * {rows}u + {row}) * {columns}u + {column}",
        vec4s=True,
        is_there=None,
    )
    tile = choose_tile(rows, columns, product.batch, lowering.features)
    writer = TiledGemmWriter(TilePlan(dense, tile, 1, "f32"), count, sums)
    lowering.emit(writer.kernel(f"{epilogue.label} (phases)"))
    vertical, horizontal = axes
    height, width = conv.output_sizes
    function = f"""
fn sum_at(i: u32) -> f32 {{
  let column = i % {width}u;
  let row = i / {width}u % {height}u;
  let channel = i / {width * height}u % {conv.output_channels}u;
  let image = i / {width * height * conv.output_channels}u;
  let group = channel / {conv.group_outputs}u;
  let phase = row % {vertical.phases}u * {horizontal.phases}u + column % {horizontal.phases}u;
  let batch = group * {vertical.phases * horizontal.phases}u + phase;
  let window = row / {vertical.phases}u * {horizontal.outputs}u + column / {horizontal.phases}u;
  let outer = image * {vertical.outputs * horizontal.outputs}u + window;
  return sums[(batch * {rows}u + channel % {conv.group_outputs}u) * {columns}u + outer];
}}"""
    loads = ", ".join(f"sum_at({index})" for index in vec4_indices(epilogue.count))
    main, workgroups = vec4_entry_point(epilogue.count, f"  finish(four, vec4<f32>({loads}));")
    code = epilogue.write(vec4s=True)
    lowering.emit(code.kernel(epilogue.label, [(sums, "sums", "f32")], [function], main, workgroups))
