"""Random calls of the categories that work on images: convolution, pooling, resampling."""

import math

import attrs

from spec_tests.support.random_graphs import bounds
from spec_tests.support.random_graphs.bounds import Known, is_float, rounded, total
from spec_tests.support.random_graphs.drawer import FLOATS
from spec_tests.support.random_graphs.sums import mean_of, norm
from webnn_py.core.operators.windows import Slide, image_shape


def image(drawer, types, layout):
    """An operand as images, and their batch, channels, height and width."""
    x = drawer.pick(types, rank=4, most=drawer.most_elements // 2)
    return x, image_shape(x.shape, layout)


def divisors(number):
    return [n for n in range(1, number + 1) if number % n == 0]


# --- convolution -------------------------------------------------------------------------------------------------


def convolution(drawer):
    return drawer.choose(conv2d, conv2d, conv_transpose2d)(drawer)


def window_on(drawer, size, *, covers=False):
    """Draw a window, dilation and padding along an axis such that the window fits.

    With ``covers`` every window has an element that lies in the image.
    """
    padding = [drawer.choose(0, 0, 1, 2) for _ in range(2)]
    room = size if covers else size + sum(padding)
    window, dilation = drawer.integer(1, min(4, room)), drawer.choose(1, 1, 2, 3)
    while (window - 1) * dilation >= room:
        dilation -= 1
    return window, dilation, [min(each, (window - 1) * dilation) for each in padding] if covers else padding


def slid(drawer, sizes, *, covers=False):
    """Window, and the options padding, strides, dilations, along height and width."""
    (height, down, above), (width, right, beside) = (window_on(drawer, size, covers=covers) for size in sizes)
    strides = [drawer.choose(1, 1, 2, 3) for _ in range(2)]
    return [height, width], {"padding": [*above, *beside], "strides": strides, "dilations": [down, right]}


def filter_shape(layout, **sizes):
    return [sizes[axis] for axis in layout]


def convolved(drawer, method, x, filter_, options, *, count, output_channels):
    if drawer.flag():
        options["bias"] = drawer.operand(x.data_type, [output_channels], Known(-2, 2, 2.0**-3))
    plus = options["bias"].known if "bias" in options else Known(0, 0, 1)
    terms = bounds.product(x.known, filter_.known)
    terms = attrs.evolve(terms, low=min(0, terms.low), high=max(0, terms.high))  # zeros outside of the image
    return drawer.call(method, x, filter_, known=total(x.data_type, count, terms, plus=plus), **options)


FILTER = Known(-2, 2, 2.0**-3)


def conv2d(drawer):
    layout, filter_layout = drawer.choose("nchw", "nhwc"), drawer.choose("oihw", "hwio", "ohwi", "ihwo")
    x, (batch, channels, *sizes) = image(drawer, FLOATS, layout)
    groups = drawer.choose(*divisors(channels)[:3], channels)
    window, options = slid(drawer, sizes)
    rows, columns = (size + 4 for size in sizes)
    most = drawer.most_elements // (batch * rows * columns)
    most = max(1, min(most // groups, drawer.most_elements // (channels * math.prod(window)), 9))
    each = drawer.integer(1, most)
    inner = channels // groups
    shape = filter_shape(filter_layout, o=groups * each, i=inner, h=window[0], w=window[1])
    filter_ = drawer.operand(x.data_type, shape, FILTER)
    options |= {"groups": groups, "input_layout": layout, "filter_layout": filter_layout}
    count = inner * math.prod(window)
    return convolved(drawer, "conv2d", x, filter_, options, count=count, output_channels=groups * each)


def conv_transpose2d(drawer):
    layout, filter_layout = drawer.choose("nchw", "nhwc"), drawer.choose("iohw", "hwoi", "ohwi")
    x, (batch, channels, *sizes) = image(drawer, FLOATS, layout)
    groups = drawer.choose(*divisors(channels)[:3])
    window = [drawer.integer(1, 4) for _ in range(2)]
    strides = [drawer.choose(1, 2, 3) for _ in range(2)]
    dilations = [drawer.choose(1, 1, 2) for _ in range(2)]
    slides = [Slide(*each) for each in zip(sizes, window, (0, 0), (0, 0), strides, dilations, strict=True)]
    # Cut less than there is.
    padding = [drawer.integer(0, min(2, (slide.transposed_size - 1) // 2)) for slide in slides for _ in range(2)]
    appended = [drawer.integer(0, stride - 1) for stride in strides]
    grown = math.prod(slide.transposed_size + 3 for slide in slides)
    each = drawer.integer(1, max(1, min(5, drawer.most_elements // (batch * grown * groups))))
    if not drawer.room(batch * grown * groups * each):
        return conv2d(drawer)
    shape = filter_shape(filter_layout, i=channels, o=each, h=window[0], w=window[1])
    filter_ = drawer.operand(x.data_type, shape, FILTER)
    options = {"padding": padding, "strides": strides, "dilations": dilations, "output_padding": appended}
    options |= {"groups": groups, "input_layout": layout, "filter_layout": filter_layout}
    count = channels // groups * math.prod(window)
    return convolved(drawer, "conv_transpose2d", x, filter_, options, count=count, output_channels=groups * each)


# --- pooling -----------------------------------------------------------------------------------------------------


def pooling(drawer):
    name, layout = drawer.choose("average_pool2d", "l2_pool2d", "max_pool2d"), drawer.choose("nchw", "nhwc")
    x, (_, _, *sizes) = image(drawer, drawer.types if name == "max_pool2d" else FLOATS, layout)
    if drawer.choose(True, False, False, False):
        return drawer.call(name, x, known=pooled(name, x, math.prod(sizes)), layout=layout)
    # The greatest of no elements would be the lowest that there is.
    window, options = slid(drawer, sizes, covers=name == "max_pool2d")
    if name != "max_pool2d":
        options["output_shape_rounding"] = drawer.choose("floor", "ceil")
    options |= {"window_dimensions": window, "layout": layout}
    return drawer.call(name, x, known=pooled(name, x, math.prod(window)), **options)


def pooled(name, x, count):
    """Return the bounds of windows of up to ``count`` elements; empty ones give 0."""
    if name == "max_pool2d":
        return x.known
    known = mean_of(x, count) if name == "average_pool2d" else norm(x, count)
    return attrs.evolve(known, low=min(0, known.low), high=max(0, known.high))


# --- resampling --------------------------------------------------------------------------------------------------


def resampling(drawer):
    x = drawer.pick(("float32", "float16", "uint8", "int8"), rank=4)
    first = drawer.integer(0, 3)
    axes = drawer.permutation([first, (first + drawer.integer(1, 3)) % 4])
    mode = drawer.choose("nearest-neighbor", "linear")
    sizes = []
    for axis in axes:
        size = x.shape[axis]
        # Between elements in halves, quarters and eighths, the interpolation of 8-bit integers is exact.
        exact = [size, 2 * size, 4 * size, *([size // 2] if size % 2 == 0 else [])]
        sizes.append(drawer.choose(*exact, *([] if mode == "linear" and not is_float(x.data_type) else [3, 7, 10])))
    if not drawer.room(x.size // x.shape[axes[0]] // x.shape[axes[1]] * sizes[0] * sizes[1]):
        sizes = [x.shape[axis] for axis in axes]
    if mode == "linear" and is_float(x.data_type):
        # Where an element is taken from may be rounded to float32, too.
        place = max(x.shape[axis] for axis in axes) * 2.0**-23
        spread = x.known.error + place * (x.known.high - x.known.low)
        known = rounded(x.data_type, x.known.low, x.known.high, spread=spread, ulps=8)
    else:
        known = attrs.evolve(x.known)
    return drawer.call("resample2d", x, known=known, mode=mode, sizes=sizes, axes=axes)
