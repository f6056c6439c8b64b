"""Packing of the filters of transposed convolutions by phase."""

from __future__ import annotations

from math import prod

from webnn_py.devices.wgpu.codegen.convolution.shape import ConvolutionShape
from webnn_py.devices.wgpu.codegen.entry_point import indented, vec4_entry_point
from webnn_py.devices.wgpu.codegen.expressions import lookup
from webnn_py.devices.wgpu.codegen.gemm.im2col_loader import WindowAxis
from webnn_py.devices.wgpu.codegen.gemm.matrix_loader import MatrixLoader
from webnn_py.devices.wgpu.codegen.module import bound_kernel
from webnn_py.devices.wgpu.records.element import WIDTH
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering


def pack_filter(
    lowering: Lowering,
    conv: ConvolutionShape,
    axes: tuple[WindowAxis, WindowAxis],
    firsts: tuple[tuple[int, ...], tuple[int, ...]],
    steps: tuple[int, int],
) -> MatrixLoader:
    """Emit a copy of the filter as a matrix per group and phase, zero-padded to the most elements of a phase.

    The copy of a constant is made when the graph is built.
    """
    element = lowering.element(conv.filter)
    place = lowering.place(conv.filter)
    phases = [axis.phases for axis in axes]
    taps = [axis.taps for axis in axes]
    shape = (conv.groups, *phases, *taps, conv.group_inputs, conv.group_outputs)
    count = prod(shape)
    buffer = lowering.derived(
        place.buffer, -(-count * conv.filter.descriptor.byte_length // prod(conv.filter_layout.shape))
    )
    matrix = Layout.dense(shape)
    inner = Layout(shape[3:6], matrix.strides[3:6])
    batches = Layout(shape[:3], matrix.strides[:3])
    calls = [f"packed(min(i + {component}u, {count - 1}u))" for component in range(WIDTH)]
    main, workgroups = vec4_entry_point(count, [f"o[four] = {element.pack(calls)};"])
    lines = ["var rest = i;"]
    for name, size in reversed(list(zip(("group", "row", "column", "v", "u", "input", "output"), shape, strict=True))):
        lines += [f"let {name} = rest % {size}u;", f"rest /= {size}u;"]
    outputs, inputs, height, width = conv.filter_layout.strides
    for name, tap, phase, axis in (("height", "v", "row", 0), ("width", "u", "column", 1)):
        lines.append(f"let {name} = {lookup(firsts[axis], phase)} + {tap} * {steps[axis]}u;")
        lines.append(f"if ({tap} >= {lookup(axes[axis].counts, phase)}) {{ return 0.0; }}")
    at = f"{conv.filter_layout.offset}u + output * {outputs}u + (group * {conv.group_inputs}u + input) * {inputs}u"
    lines.append(f"let at = {at} + height * {height}u + width * {width}u;")
    lines.append(f"return {element.load('b', 'at')};")
    parts = [f"fn packed(i: u32) -> f32 {{\n{indented(lines)}\n}}", main]
    label = f"convTranspose2d {element.data_type} (filter)"
    reads, writes = [(place.buffer, "b", element.one)], [(buffer, "o", element.vec4)]
    lowering.emit(bound_kernel(label, reads, writes, parts, workgroups))
    return MatrixLoader(buffer, element, batches, inner, conv.group_outputs, 1)
