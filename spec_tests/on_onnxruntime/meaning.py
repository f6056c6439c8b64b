"""Drawings in which an optimizer of onnxruntime could change what is computed, with numbers that show it."""

import math

import attrs
import numpy as np

from spec_tests.on_onnxruntime.both import computed

FEEDS = np.random.default_rng(5)
NAN, INF = math.nan, math.inf


@attrs.frozen
class Drawing:
    """A drawing.

    Attributes:
        name: of the case.
        draw: draws one output of a builder and of an input for each feed, in their order.
        feeds: the inputs.
        ulp: by how much results may differ in units of the last place.
        absolute: by how much in all: sums of many products are rounded in another order.
    """

    name: str
    draw: object
    feeds: tuple[np.ndarray, ...]
    ulp: int = 0
    absolute: float = 0.0

    @property
    def tolerance(self):
        """As cases have it."""
        return {"absolute": self.absolute} if self.absolute else {"ulp": self.ulp}

    async def compute(self, context):
        """Return the output on a context."""
        return await computed(context, self.draw, *self.feeds)


def f32(*values):
    return np.array(values, np.float32)


def f16(*values):
    return np.array(values, np.float16)


def const(b, values, shape=None, data_type="float32"):
    array = np.array(values, data_type)
    return b.constant(array if shape is None else np.ascontiguousarray(np.broadcast_to(array, shape)))


def parameters(b, scale, zero_point, rank, data_type="uint8"):
    """Draw a scale and a zero point for a whole operand."""
    return const(b, scale, [1] * rank), const(b, zero_point, [1] * rank, data_type)


def images(channels=1, size=4, batch=1):
    return FEEDS.normal(size=(batch, channels, size, size)).astype(np.float32)


def spiked(array, *values):
    """With these values in places far from each other."""
    array = array.copy()
    flat = array.reshape(-1)
    for number, value in enumerate(values):
        flat[(number * 2 + 1) * len(flat) // (2 * len(values))] = value
    return array


WEIGHTS = {count: (FEEDS.integers(-4, 5, (count, count, 3, 3)) / 8).astype(np.float32) for count in (1, 16)}


def conv(b, x, channels=1, scale=1.0, **options):
    return b.conv2d(x, b.constant(np.float32(scale) * WEIGHTS[channels]), padding=[1, 1, 1, 1], **options)


def _layer(b, x):
    """Layer normalization, as models have it that know no such operator."""
    mean = b.reduce_mean(x, axes=[1], keep_dimensions=True)
    centered = b.sub(x, mean)
    variance = b.reduce_mean(b.pow(centered, const(b, 2)), axes=[1], keep_dimensions=True)
    scaled = b.div(centered, b.sqrt(b.add(variance, const(b, 1e-5))))
    return b.add(b.mul(scaled, const(b, 2, [8])), const(b, 1, [8]))


def _quantized_there_and_back(b, x, scale):
    given = parameters(b, scale, 3, 1)
    return b.dequantize_linear(b.quantize_linear(x, *given), *given)


def _gelu(b, x):
    gate = b.add(b.erf(b.div(x, const(b, math.sqrt(2)))), const(b, 1))
    return b.mul(b.mul(x, gate), const(b, 0.5))


def _fast_gelu(b, x):
    cube = b.mul(b.mul(x, b.mul(x, x)), const(b, 0.044715))
    gate = b.add(b.tanh(b.mul(b.add(x, cube), const(b, math.sqrt(2 / math.pi)))), const(b, 1))
    return b.mul(b.mul(x, const(b, 0.5)), gate)


EXTREME = f32(-INF, INF, NAN, -0.0, 0.0, 1e-39, -1e-39, 1e38, -1e38, 1, -2, 3e-30)
FAR = (100 + FEEDS.normal(size=(3, 8))).astype(np.float32)
UNITS = np.eye(4, dtype=np.float32)

DRAWINGS = [
    Drawing(
        "conv2d, scaled",
        lambda b, x: b.mul(conv(b, x, scale=1e30), const(b, 1e10, [1, 1, 1, 1])),
        (1e-20 * images(),),
        8,
    ),
    Drawing(
        "conv2d, small scale",
        lambda b, x: b.mul(conv(b, x, scale=1e-30), const(b, 1e-20, [1, 1, 1, 1])),
        (1e30 * images(),),
        8,
    ),
    Drawing("conv2d and a sum", lambda b, x: b.add(conv(b, x), const(b, 1e8, [1, 1, 1, 1])), (images(),), 8),
    Drawing("conv2d and relu", lambda b, x: b.relu(conv(b, x)), (spiked(images(), NAN, INF),), 8),
    Drawing(
        "conv2d and clamp", lambda b, x: b.clamp(conv(b, x), min_value=0, max_value=1), (spiked(images(), NAN, INF),), 8
    ),
    Drawing(
        "conv2d and leaky relu", lambda b, x: b.leaky_relu(conv(b, x), alpha=0.1), (spiked(images(), NAN, INF),), 8
    ),
    Drawing("conv2d and hard sigmoid", lambda b, x: b.hard_sigmoid(conv(b, x)), (spiked(images(), NAN, INF),), 8),
    Drawing("conv2d and tanh", lambda b, x: b.tanh(conv(b, x)), (spiked(images(), NAN, INF),), 64),
    Drawing("conv2d, a residual and relu", lambda b, x: b.relu(b.add(conv(b, x), x)), (spiked(images(), NAN, INF),), 8),
    Drawing("blocked conv2d", lambda b, x: conv(b, x, 16), (spiked(images(16, 6), NAN, INF, -INF),), absolute=1e-4),
    Drawing(
        "blocked conv2d and relu",
        lambda b, x: b.relu(conv(b, x, 16)),
        (spiked(images(16, 6), NAN, INF),),
        absolute=1e-4,
    ),
    Drawing(
        "blocked conv2d and max pool",
        lambda b, x: b.max_pool2d(b.relu(conv(b, x, 16)), window_dimensions=[2, 2]),
        (spiked(images(16, 6), NAN),),
        absolute=1e-4,
    ),
    Drawing(
        "blocked conv2d and average pool",
        lambda b, x: b.average_pool2d(conv(b, x, 16), window_dimensions=[3, 3], padding=[1, 1, 1, 1]),
        (spiked(images(16, 6), INF),),
        absolute=1e-4,
    ),
    Drawing(
        "blocked residual",
        lambda b, x: b.relu(b.add(conv(b, conv(b, x, 16), 16), x)),
        (spiked(images(16, 6), NAN),),
        absolute=1e-3,
    ),
    Drawing(
        "depthwise conv2d and clamp",
        lambda b, x: b.clamp(b.conv2d(x, const(b, 0.5, [16, 1, 3, 3]), groups=16), min_value=0, max_value=6),
        (spiked(images(16, 6), NAN, INF, -INF),),
        8,
    ),
    Drawing(
        "gemm and relu",
        lambda b, x: b.relu(b.gemm(x, b.constant(UNITS))),
        (spiked(FEEDS.normal(size=(2, 4)).astype(np.float32), NAN),),
    ),
    Drawing(
        "gemm without its sum",
        lambda b, x: b.gemm(b.constant(UNITS), b.constant(UNITS), c=x, beta=0.0),
        (f32(1, NAN, INF, 2),),
    ),
    Drawing("gemm without its product", lambda b, x: b.gemm(x, b.constant(UNITS), alpha=0.0), (f32([1, NAN, INF, 2]),)),
    Drawing(
        "matmul of what was scaled",
        lambda b, x: b.matmul(b.mul(x, const(b, 1e30)), const(b, 1e-20, [4, 4])),
        (spiked(1e20 * UNITS, 0.5),),
        4,
    ),
    Drawing(
        "matmul, scaled", lambda b, x: b.mul(b.matmul(x, const(b, 1e20, [4, 4])), const(b, 1e-20)), (1e30 * UNITS,), 4
    ),
    Drawing(
        "matmul of a transposed factor",
        lambda b, x: b.matmul(b.transpose(x), x),
        (FEEDS.integers(-4, 5, (4, 4)).astype(np.float32),),
    ),
    Drawing(
        "matmul and a sum",
        lambda b, x: b.add(b.matmul(x, b.constant(UNITS)), const(b, -0.0, [4])),
        (spiked(UNITS, -0.0, NAN),),
    ),
    Drawing(
        "1 / x · y",
        lambda b, x, y: b.mul(b.div(const(b, 1), x), y),
        (f32(1e-39, 3e38, 0, 3, 7), f32(1e-30, 3e38, 0, 5, 3)),
    ),
    Drawing(
        "reciprocal · y",
        lambda b, x, y: b.mul(b.reciprocal(x), y),
        (f32(1e-39, 3e38, 0, 3, 7), f32(1e-30, 3e38, 0, 5, 3)),
    ),
    Drawing(
        "prelu of slopes that are not finite",
        lambda b, x, slope: b.add(b.prelu(x, slope), b.prelu(x, const(b, [NAN, INF, 1, NAN, -INF, 0]))),
        (f32(1, 2, 3, 0, -1, -2), f32(1, NAN, INF, 1, -INF, 0.5)),
    ),
    Drawing("x + 0", lambda b, x: b.div(const(b, 1), b.add(x, const(b, 0))), (EXTREME,)),
    Drawing("x - 0", lambda b, x: b.div(const(b, 1), b.sub(x, const(b, 0))), (EXTREME,)),
    Drawing("0 - x", lambda b, x: b.div(const(b, 1), b.sub(const(b, 0), x)), (EXTREME,)),
    Drawing("x · 1", lambda b, x: b.div(const(b, 1), b.mul(x, const(b, 1))), (EXTREME,)),
    Drawing("x · 0", lambda b, x: b.mul(x, const(b, 0)), (EXTREME,)),
    Drawing("x / x", lambda b, x: b.div(x, x), (EXTREME,)),
    Drawing("x - x", lambda b, x: b.sub(x, x), (EXTREME,)),
    Drawing("relu and clamp", lambda b, x: b.clamp(b.relu(x), min_value=1, max_value=6), (EXTREME,)),
    Drawing(
        "integer relu and clamp",
        lambda b, x: b.clamp(b.relu(x), min_value=1, max_value=6),
        (np.array([-3, 2, 9], np.int32),),
    ),
    Drawing(
        "clamps", lambda b, x: b.clamp(b.clamp(x, min_value=-5, max_value=1), min_value=2, max_value=6), (EXTREME,)
    ),
    Drawing(
        "x to int32 and back",
        lambda b, x: b.cast(b.cast(x, "int32"), "float32"),
        (f32(1.5, -1.5, 3e9, -3e9, NAN, INF),),
    ),
    Drawing(
        "x to uint8 and back", lambda b, x: b.cast(b.cast(x, "uint8"), "float32"), (f32(1.5, -1.5, 300, NAN, INF),)
    ),
    Drawing("x to float16 and back", lambda b, x: b.cast(b.cast(x, "float16"), "float32"), (f32(1.0001, 70000, 1e-9),)),
    Drawing(
        "int32 to int8 and back",
        lambda b, x: b.cast(b.cast(x, "int8"), "int32"),
        (np.array([127, 128, 300, -200], np.int32),),
    ),
    Drawing(
        "int64 to int32 and back",
        lambda b, x: b.cast(b.cast(x, "int32"), "int64"),
        (np.array([2**31, -(2**40) + 3, 7], np.int64),),
    ),
    Drawing(
        "int32 to float16 and back",
        lambda b, x: b.cast(b.cast(x, "float16"), "int32"),
        (np.array([2049, 70000, -3], np.int32),),
    ),
    Drawing("float16 sums", lambda b, x: b.sub(b.add(x, x), x), (f16(60000, 1e-7, 1.001),)),
    Drawing("float16 products", lambda b, x: b.div(b.mul(x, x), x), (f16(300, 1e-4, 1.001),)),
    Drawing("float16 matmul and sum", lambda b, x: b.sub(b.matmul(x, x), x), (f16([300, 300], [0.1, 0.2]),)),
    Drawing(
        "float16 conv2d and relu",
        lambda b, x: b.relu(b.conv2d(x, const(b, 3, [1, 1, 1, 1], "float16"))),
        (spiked(images().astype(np.float16), NAN, 30000),),
    ),
    Drawing(
        "pad and conv2d",
        lambda b, x: b.conv2d(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), b.constant(WEIGHTS[1])),
        (images(),),
        8,
    ),
    Drawing(
        "pad and conv2d, padded by 1",
        lambda b, x: b.conv2d(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1], value=1.0), b.constant(WEIGHTS[1])),
        (images(),),
        8,
    ),
    Drawing(
        "pad and max pool",
        lambda b, x: b.max_pool2d(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), window_dimensions=[2, 2]),
        (-1 - np.abs(images()),),
    ),
    Drawing(
        "pad and average pool",
        lambda b, x: b.average_pool2d(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), window_dimensions=[2, 2]),
        (images(),),
        4,
    ),
    Drawing(
        "pad and integer max pool",
        lambda b, x: b.max_pool2d(b.pad(x, [0, 0, 1, 1], [0, 0, 1, 1]), window_dimensions=[2, 2]),
        (np.full((1, 1, 4, 4), -3, np.int8),),
    ),
    Drawing("gelu", lambda b, x: b.gelu(x), (EXTREME,), absolute=1e-6),
    Drawing("many squares", lambda b, x: b.reduce_sum_square(x), (FEEDS.random(200_000, np.float32),), 2),
    Drawing(
        "many rows to few places",
        lambda b, x, i: b.scatter_nd(const(b, 0, [4, 2, 500]), i, x),
        (FEEDS.random((3000, 500), np.float32), FEEDS.integers(-3, 3, (3000, 2), np.int32)),
    ),
    Drawing("gelu, written out", _gelu, (EXTREME,), 4),
    Drawing("gelu by tanh, written out", _fast_gelu, (EXTREME,), 64),
    Drawing("x · hard sigmoid", lambda b, x: b.mul(x, b.hard_sigmoid(x, alpha=1 / 6)), (EXTREME,), 4),
    Drawing("x · sigmoid", lambda b, x: b.mul(x, b.sigmoid(x)), (f32(-INF, INF, NAN, -80, -20, -3, 0.5),), 4),
    Drawing(
        "x · sigmoid of a multiple",
        lambda b, x: b.mul(x, b.sigmoid(b.mul(x, const(b, 1.702)))),
        (f32(-INF, INF, NAN, -40, -20, -3, 0.5),),
        8,
    ),
    Drawing("layer normalization", lambda b, x: b.layer_normalization(x, axes=[1]), (FAR,), 2000),
    Drawing("layer normalization, written out", _layer, (FAR,), 2000),
    Drawing(
        "layer normalization of a sum",
        lambda b, x: b.layer_normalization(b.add(x, x), scale=const(b, 2, [8]), bias=const(b, 1, [8]), axes=[1]),
        (FAR,),
        2000,
    ),
    Drawing(
        "layer normalization of a sum of three",
        lambda b, x: b.layer_normalization(
            b.add(b.add(x, x), const(b, 1e4, [8])), scale=const(b, 2, [8]), bias=const(b, 1, [8]), axes=[1]
        ),
        (FAR,),
        2000,
    ),
    Drawing(
        "bytes dequantized and multiplied",
        lambda b, x: b.matmul(
            b.dequantize_linear(x, *parameters(b, 0.1, 3, 2)),
            b.dequantize_linear(const(b, 7, [4, 4], "int8"), *parameters(b, 0.3, -1, 2, "int8")),
        ),
        (np.arange(8, dtype=np.uint8).reshape(2, 4) * 30,),
        4,
    ),
    Drawing(
        "bytes dequantized and quantized",
        lambda b, x: b.quantize_linear(
            b.relu(b.dequantize_linear(x, *parameters(b, 0.1, 3, 1))), *parameters(b, 0.1, 5, 1)
        ),
        (np.arange(0, 250, 7, dtype=np.uint8),),
    ),
    Drawing(
        "quantized twice",
        lambda b, x: _quantized_there_and_back(b, _quantized_there_and_back(b, x, 0.1), 0.3),
        (np.linspace(-3, 40, 60).astype(np.float32),),
    ),
    Drawing(
        "quantized matmul",
        lambda b, x: b.gelu(
            b.matmul(
                b.dequantize_linear(x, const(b, 0.1, [1, 1]), const(b, 128, [1, 1], "uint8")),
                b.dequantize_linear(const(b, 7, [64, 3], "int8"), const(b, 0.05, [1, 3]), const(b, 0, [1, 3], "int8")),
            )
        ),
        (np.arange(128, dtype=np.uint8).reshape(2, 64),),
        absolute=1e-4,
    ),
    Drawing(
        "quantized conv2d",
        lambda b, x: b.quantize_linear(
            b.conv2d(
                b.dequantize_linear(x, *parameters(b, 0.1, 128, 4)),
                b.dequantize_linear(const(b, 7, [1, 1, 3, 3], "int8"), *parameters(b, 0.05, 0, 4, "int8")),
            ),
            *parameters(b, 0.07, 9, 4),
        ),
        (FEEDS.integers(0, 255, (1, 1, 8, 8), np.uint8),),
    ),
    Drawing(
        "where of a comparison",
        lambda b, x: b.where(b.logical_not(b.greater(x, const(b, 0))), x, const(b, 5)),
        (f32(NAN, 1, -1),),
    ),
    Drawing(
        "integers divided",
        lambda b, x: b.mul(b.div(x, const(b, 2, None, "int32")), const(b, 2, None, "int32")),
        (np.array([3, -3, 2**31 - 1, -(2**31)], np.int32),),
    ),
    Drawing(
        "softmax of what is masked",
        lambda b, x: b.softmax(b.add(x, const(b, [0, -INF, -3e38, 0])), axis=1),
        (spiked(UNITS, -INF, 1e38),),
        8,
    ),
    Drawing(
        "gather of slices",
        lambda b, x: b.add(
            b.gather(x, b.constant(np.array([9], np.int32))), b.gather(x, b.constant(np.array([-9], np.int32)))
        ),
        (f32(1, 2, 3),),
    ),
]
