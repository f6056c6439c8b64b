"""Direct convolutions, for groups of few channels: each output element is summed over its window independently.

An invocation computes four adjacent elements, and shares loads among them if they are neighbours along the width, or
channels that have a filter each.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from webnn_py.core.operators.windows import Slide
from webnn_py.devices.wgpu.codegen.convolution.shape import ConvolutionShape
from webnn_py.devices.wgpu.codegen.entry_point import vec4_entry_point
from webnn_py.devices.wgpu.codegen.epilogue import Epilogue
from webnn_py.devices.wgpu.codegen.expressions import wrapping_literal
from webnn_py.devices.wgpu.records.buffer import Buffer
from webnn_py.devices.wgpu.records.element import COMPONENTS, WIDTH, Element
from webnn_py.devices.wgpu.records.graph_queries import is_finite
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering
from webnn_py.devices.wgpu.records.variants import KernelVariant

FEW_OUTPUTS = 2
"""The most output channels per group that are too few for a tile of a matrix product."""

LONG_WINDOW = 2**8
LONGER = 4
"""The least taps, absolute and per pixel of an image, for which most products are with padding."""

MOST_UNROLLED = 64
"""The most taps that are unrolled; larger windows are loops."""


def is_direct(conv: ConvolutionShape) -> bool:
    """Return whether groups are too small for matrix products."""
    is_direct = conv.groups > 1 and (conv.group_inputs == 1 or conv.group_outputs <= FEW_OUTPUTS)
    return is_direct and KernelVariant.DIRECT_CONVOLUTION.is_on


def has_long_windows(conv: ConvolutionShape) -> bool:
    """Return whether windows have far more taps than images have pixels, so that most taps meet padding."""
    taps = prod(slide.window for slide in conv.slides)
    return (
        taps >= max(LONG_WINDOW, LONGER * prod(slide.size for slide in conv.slides))
        and KernelVariant.LONG_WINDOWS.is_on
    )


def has_padding(conv: ConvolutionShape) -> bool:
    """Return whether windows have taps out of bounds."""
    return any(slide.begin > 0 or slide.end > 0 for slide in conv.slides)


def emit_direct(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> None:
    """Emit the kernel of a convolution for which :func:`is_direct` holds."""
    is_small = conv.slides[0].window * conv.slides[1].window <= MOST_UNROLLED
    if has_padding(conv) and is_finite(conv.filter) is False:  # padding makes NaN, but compilers fold 0 · x to 0
        emit_gather(lowering, conv, epilogue)
    elif (
        conv.nchw
        and is_small
        and (conv.output_sizes[1] % WIDTH == 0 or epilogue.stores_single_elements)
        and KernelVariant.DIRECT_STRIPS.is_on
    ):
        emit_strips(lowering, conv, epilogue)
    elif not conv.nchw and is_small and has_channels_in_vec4s(conv) and KernelVariant.DIRECT_CHANNELS.is_on:
        emit_channels(lowering, conv, epilogue)
    else:
        emit_gather(lowering, conv, epilogue)


# --- channels first: four elements along the width ---------------------------------------------------------------


def emit_strips(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> None:
    """Emit a kernel whose invocations compute four adjacent elements of a row."""
    height, width = conv.output_sizes
    vertical, horizontal = conv.slides
    strips = -(-width // WIDTH)
    whole = width % WIDTH == 0
    group = f"channel / {conv.group_outputs}u * {conv.group_inputs}u"
    lines = [
        *_coordinates("four", ("image", "channel", "row", "strip"), (conv.output_channels, height, strips)),
        f"let column = strip * {WIDTH}u;",
        f"let h0 = row * {vertical.stride}u + {wrapping_literal(-vertical.begin)};",
        f"let w0 = column * {horizontal.stride}u + {wrapping_literal(-horizontal.begin)};",
        "var totals = vec4<f32>();",
        f"for (var c = 0u; c < {conv.group_inputs}u; c++) {{",
        f"  let image_at = {_place(conv.image_layout, 'image', f'({group} + c)')};",
        f"  let filter_at = {_place(conv.filter_layout, 'channel', 'c')};",
        *(f"  {line}" for v in range(vertical.window) for line in _strip(conv, v)),
        "}",
    ]
    number = conv.address("image", "channel", "row", "column")
    if whole:
        lines.append(f"finish(({number}) / {WIDTH}u, totals);")
    else:
        for component, total in enumerate(COMPONENTS):
            lines.append(
                f"if (column + {component}u < {width}u) {{ finish_one({number} + {component}u, totals.{total}); }}"
            )
    count = conv.batch * conv.output_channels * height * strips * WIDTH
    _emit(lowering, conv, epilogue, lines, count, vec4s=whole)


def _strip(conv: ConvolutionShape, v: int) -> list[str]:
    """Return statements that accumulate row v of the windows in a channel."""
    vertical, horizontal = conv.slides
    _, _, height, width = conv.image_layout.strides
    taps = [u * horizontal.dilation for u in range(horizontal.window)]
    starts = [component * horizontal.stride for component in range(WIDTH)]
    lines = ["{", f"  let h = h0 + {v * vertical.dilation}u;"]
    for offset in sorted({start + tap for start in starts for tap in taps}):
        inside = f"in{offset}"
        at = f"image_at + h * {height}u + (w0 + {offset}u) * {width}u"
        lines.append(f"  let {inside} = h < {vertical.size}u && w0 + {offset}u < {horizontal.size}u;")
        lines.append(f"  let x{offset} = select(0.0, image_one(select(0u, {at}, {inside})), {inside});")
    for u, tap in enumerate(taps):
        values = ", ".join(f"x{start + tap}" for start in starts)
        weight = f"filter_one(filter_at + {v * conv.filter_layout.strides[2] + u * conv.filter_layout.strides[3]}u)"
        lines.append(f"  totals = fma(vec4<f32>({values}), vec4<f32>({weight}), totals);")
    return [*lines, "}"]


# --- channels last: four channels --------------------------------------------------------------------------------


def has_channels_in_vec4s(conv: ConvolutionShape) -> bool:
    """Return whether channels are aligned vec4s and each has a filter of its own (depthwise)."""
    batch, channel, *others = conv.image_layout.strides
    numbers = (batch, *others, conv.image_layout.offset, conv.output_channels)
    return conv.group_inputs == conv.group_outputs == channel == 1 and not any(number % WIDTH for number in numbers)


def emit_channels(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue) -> None:
    """Emit a kernel whose invocations compute four channels of a pixel; the filter is repacked to match."""
    permuted = conv.filter_layout.permute((2, 3, 1, 0))
    filter_ = lowering.repacked(conv.filter, permuted)
    height, width = conv.output_sizes
    vertical, horizontal = conv.slides
    vec4s = conv.output_channels // WIDTH
    lines = [
        *_coordinates("four", ("image", "row", "column", "channels"), (height, width, vec4s)),
        f"let h0 = row * {vertical.stride}u + {wrapping_literal(-vertical.begin)};",
        f"let w0 = column * {horizontal.stride}u + {wrapping_literal(-horizontal.begin)};",
        "var totals = vec4<f32>();",
    ]
    image, _, down, across = (stride // WIDTH for stride in conv.image_layout.strides)
    first = f"{conv.image_layout.offset // WIDTH}u + image * {image}u + channels"
    for v in range(vertical.window):
        for u in range(horizontal.window):
            tap = v * horizontal.window + u
            lines += [
                "{",
                f"  let h = h0 + {v * vertical.dilation}u;",
                f"  let w = w0 + {u * horizontal.dilation}u;",
                f"  let inside = h < {vertical.size}u && w < {horizontal.size}u;",
                f"  let x = image_four(select(0u, {first} + h * {down}u + w * {across}u, inside));",
                f"  let weights = filter_four({tap * vec4s}u + channels);",
                "  totals = fma(select(vec4<f32>(), x, inside), weights, totals);",
                "}",
            ]
    lines.append("finish(four, totals);")
    _emit(lowering, conv, epilogue, lines, epilogue.count, vec4s=True, read_vec4s=True, filter_buffer=filter_)


# --- any layout --------------------------------------------------------------------------------------------------


def emit_gather(lowering: Lowering, conv: ConvolutionShape, epilogue: Epilogue, *, transposed: bool = False) -> None:
    """Emit a kernel whose invocations compute four elements, one after the other."""
    height, width = conv.output_sizes
    if conv.nchw:
        lines = _coordinates("i", ("image", "channel", "row", "column"), (conv.output_channels, height, width))
    else:
        lines = _coordinates("i", ("image", "row", "column", "channel"), (height, width, conv.output_channels))
    of_filter = f"channel % {conv.group_outputs}u" if transposed else "channel"
    inputs = f"(channel / {conv.group_outputs}u * {conv.group_inputs}u + c)"
    loop = _transposed_loop if transposed else _forward_loop
    _, _, down, across = conv.image_layout.strides
    _, _, filter_down, filter_across = conv.filter_layout.strides
    adding = [
        f"let x = image_one(image_at + h * {down}u + w * {across}u);",
        f"total = fma(x, filter_one(filter_at + v * {filter_down}u + u * {filter_across}u), total);",
    ]
    if not transposed and has_padding(conv) and not is_finite(conv.filter):
        loop = _padded_loop
        inside = " && ".join(f"{name} < {slide.size}u" for name, slide in zip("hw", conv.slides, strict=True))
        adding = [
            f"let inside = {inside};",
            f"let x = image_one(select(0u, image_at + h * {down}u + w * {across}u, inside));",
            f"let weight = filter_one(filter_at + v * {filter_down}u + u * {filter_across}u);",
            "total = select(total + zero_times(weight), fma(x, weight, total), inside);",
        ]
    lines += [
        "var total = 0.0;",
        f"for (var c = 0u; c < {conv.group_inputs}u; c++) {{",
        f"  let image_at = {_place(conv.image_layout, 'image', inputs)};",
        f"  let filter_at = {_place(conv.filter_layout, of_filter, inputs if transposed else 'c')};",
        *(f"  {line}" for line in loop("h", "row", "v", conv.slides[0])),
        *(f"    {line}" for line in loop("w", "column", "u", conv.slides[1])),
        *(f"      {line}" for line in adding),
        "    }",
        "  }",
        "}",
        "return total;",
    ]
    body = "\n".join(f"  {line}" for line in lines)
    function = f"fn total_of(i: u32) -> f32 {{\n{body}\n}}"
    indices = [f"total_of(min(i + {component}u, {epilogue.count - 1}u))" for component in range(WIDTH)]
    call = f"finish(four, vec4<f32>({', '.join(indices)}));"
    _emit(lowering, conv, epilogue, [call], epilogue.count, vec4s=True, functions=[function])


def _padded_loop(place: str, output: str, tap: str, slide: Slide) -> list[str]:
    """Begin a loop over all taps of a window, with the position of each, which may be out of bounds."""
    return [
        f"for (var {tap} = 0u; {tap} < {slide.window}u; {tap}++) {{",
        f"  let {place} = {output} * {slide.stride}u + {tap} * {slide.dilation}u + {wrapping_literal(-slide.begin)};",
    ]


def _forward_loop(place: str, output: str, tap: str, slide: Slide) -> list[str]:
    """Begin a loop over the taps of a window that are in bounds: over taps, or over pixels if these are fewer.

    Negative positions wrap around and exceed every size.
    """
    if slide.window <= slide.size:
        loop = _padded_loop(place, output, tap, slide)
        return [*loop, f"  if ({place} >= {slide.size}u) {{ continue; }}"]
    return _pixel_loop(place, tap, slide, f"{place} + {slide.begin}u", f"{output} * {slide.stride}u")


def _transposed_loop(place: str, output: str, tap: str, slide: Slide) -> list[str]:
    """Begin a loop over the taps of a transposed convolution that contribute to an output element.

    Without dilation these are a stride apart; otherwise the loop tests all taps, or all pixels if these are fewer.
    """
    if slide.window > slide.size:
        return _pixel_loop(place, tap, slide, f"{output} + {slide.begin}u", f"{place} * {slide.stride}u")
    loop = f"for (var {tap} = 0u; {tap} < {slide.window}u; {tap}++) {{"
    if slide.dilation == 1:
        first = f"({output} + {slide.begin}u) % {slide.stride}u"
        step = min(slide.stride, 2**31)  # longer than any window, and the sum cannot overflow
        loop = f"for (var {tap} = {first}; {tap} < {slide.window}u; {tap} += {step}u) {{"
    spread, there = f"{tap} * {slide.dilation}u", f"{output} + {slide.begin}u"
    return [
        loop,
        f"  if ({there} < {spread} || ({there} - {spread}) % {slide.stride}u != 0u) {{ continue; }}",
        f"  let {place} = ({there} - {spread}) / {slide.stride}u;",
        f"  if ({place} >= {slide.size}u) {{ continue; }}",
    ]


def _pixel_loop(place: str, tap: str, slide: Slide, there: str, origin: str) -> list[str]:
    """Begin a loop over the pixels of an image, with the tap of each; ``there - origin`` is the dilated tap."""
    return [
        f"for (var {place} = 0u; {place} < {slide.size}u; {place}++) {{",
        f"  if ({there} < {origin} || ({there} - {origin}) % {slide.dilation}u != 0u) {{ continue; }}",
        f"  let {tap} = ({there} - {origin}) / {slide.dilation}u;",
        f"  if ({tap} >= {slide.window}u) {{ continue; }}",
    ]


# --- shared by all -----------------------------------------------------------------------------------------------


def _coordinates(number: str, names: Sequence[str], sizes: Sequence[int]) -> list[str]:
    """Return statements that name the coordinates of a row-major index; ``sizes`` omits the first axis."""
    lines = []
    below = 1
    for name, size in zip(reversed(names[1:]), reversed(sizes), strict=True):
        lines.append(f"let {name} = {number} / {below}u % {size}u;")
        below *= size
    return [*lines, f"let {names[0]} = {number} / {below}u;"]


def _place(layout: Layout, first: str, second: str) -> str:
    """Return the offset of the elements at two coordinates."""
    return f"{layout.offset}u + {first} * {layout.strides[0]}u + {second} * {layout.strides[1]}u"


def _readers(name: str, buffer: str, element: Element, *, vec4: bool) -> str:
    """Return the function ``name_one(i)`` or ``name_four(i)``, which loads as float32."""
    if vec4:
        values = ", ".join(element.unpack("four"))
        return f"fn {name}_four(i: u32) -> vec4<f32> {{ let four = {buffer}[i]; return vec4<f32>({values}); }}"
    return f"fn {name}_one(i: u32) -> f32 {{ return {element.load(buffer, 'i')}; }}"


def _emit(
    lowering: Lowering,
    conv: ConvolutionShape,
    epilogue: Epilogue,
    lines: Sequence[str],
    count: int,
    *,
    vec4s: bool,
    read_vec4s: bool = False,
    functions: Sequence[str] = (),
    filter_buffer: Buffer | None = None,
) -> None:
    """Emit the kernel that runs ``lines`` for every vec4 of ``count`` elements."""
    element = lowering.element(conv.images)
    main, workgroups = vec4_entry_point(count, lines)
    kind = element.vec4 if read_vec4s else element.one
    reads = [
        (lowering.place(conv.images).buffer, "images", kind),
        (filter_buffer or lowering.place(conv.filter).buffer, "weights", kind),
    ]
    parts = [
        _readers("image", "images", element, vec4=read_vec4s),
        _readers("filter", "weights", element, vec4=read_vec4s),
        *functions,
    ]
    finish = epilogue.write(vec4s=vec4s)
    lowering.emit(finish.kernel(epilogue.label, reads, parts, main, workgroups))
