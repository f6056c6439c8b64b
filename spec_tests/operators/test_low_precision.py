"""The proposal "low-precision": bfloat16 and float8 on numpy, bit by bit, and quantization schemes."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.backends import BACKENDS
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder, NotSupportedError, low_precision, save_js
from webnn_py.checking import check_finite
from webnn_py.operators.registry import OPERATORS

ml_dtypes = pytest.importorskip("ml_dtypes")
TYPES = {"bfloat16": ml_dtypes.bfloat16, "float8e4m3": ml_dtypes.float8_e4m3fn}
UNSIGNED = {"bfloat16": np.uint16, "float8e4m3": np.uint8}


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"low-precision"}) as opened:
        yield opened


def independent(x, data_type):
    """The bits of numbers by ml_dtypes, which has no saturating conversion."""
    with np.errstate(all="ignore"):
        return (
            (x.clip(-448, 448) if data_type == "float8e4m3" else x).astype(TYPES[data_type]).view(UNSIGNED[data_type])
        )


def drawn_floats(data_type):
    """Random bits; all numbers of the format, all middles of two, and what is next to these."""
    random = np.random.default_rng(5).integers(0, 2**32, 2**16, dtype=np.uint64).astype(np.uint32).view(np.float32)
    count = 2 ** (8 * np.dtype(UNSIGNED[data_type]).itemsize)
    numbers = low_precision.of_bits(np.arange(count, dtype=UNSIGNED[data_type]), data_type)
    finite = np.unique(numbers[np.isfinite(numbers)]).astype(np.float64)
    middles = ((finite[1:] + finite[:-1]) / 2).astype(np.float32)
    with np.errstate(under="ignore"):
        nearby = [np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf)]
    return np.concatenate([random, numbers, middles, *nearby])


@pytest.mark.parametrize("data_type", TYPES)
def test_conversions_give_the_same_bits_as_ml_dtypes(data_type):
    every = np.arange(2 ** (8 * np.dtype(UNSIGNED[data_type]).itemsize)).astype(UNSIGNED[data_type])
    numbers = low_precision.of_bits(every, data_type)
    np.testing.assert_array_equal(
        numbers.view(np.uint32), every.view(TYPES[data_type]).astype(np.float32).view(np.uint32)
    )
    is_number = ~np.isnan(numbers)
    np.testing.assert_array_equal(low_precision.to_bits(numbers, data_type)[is_number], every[is_number])
    x = drawn_floats(data_type)
    bits = low_precision.to_bits(low_precision.rounded(x, data_type), data_type)
    np.testing.assert_array_equal(bits[~np.isnan(x)], independent(x, data_type)[~np.isnan(x)])
    again = low_precision.of_bits(bits, data_type)
    assert np.isnan(again[np.isnan(x)]).all()
    np.testing.assert_array_equal(np.signbit(again), np.signbit(x))


def test_integers_are_rounded_once():
    x = np.array([2**62 + 2**54, 2**62 + 2**54 + 1, -(2**62) - 2**54 - 1, 2**63 - 1, 257, 259, -257], np.int64)
    expected = [2.0**62, 2.0**62 + 2.0**55, -(2.0**62) - 2.0**55, 2.0**63, 256, 260, -256]
    assert low_precision.rounded(x, "bfloat16").tolist() == expected
    assert low_precision.rounded(np.array([2**24 + 1, 2**32 - 1], np.uint32), "bfloat16").tolist() == [2**24, 2**32]
    assert low_precision.rounded(np.array([17, 19, -(2**31)], np.int32), "float8e4m3").tolist() == [16, 20, -448]


def bits_of(x, data_type):
    return low_precision.to_bits(low_precision.rounded(np.asarray(x, np.float32), data_type), data_type)


def numbers(bits, data_type):
    return low_precision.of_bits(bits, data_type)


async def run(context, feeds, draw):
    """Compute what is drawn of bfloat16 inputs; feeds are numbers. The outputs are numbers, too."""
    builder = MLGraphBuilder(context)
    operands = {name: builder.input(name, data_type="bfloat16", shape=np.shape(x)) for name, x in feeds.items()}
    graph = await builder.build(draw(builder, **operands))
    inputs, outputs = {}, {}
    for name, x in feeds.items():
        inputs[name] = await context.create_buffer(data_type="bfloat16", shape=np.shape(x), writable=True)
        context.write_buffer(inputs[name], bits_of(x, "bfloat16"))
    for name, item in graph.output_descriptors.items():
        outputs[name] = await context.create_buffer(data_type=item.data_type, shape=item.shape, readable=True)
    context.dispatch(graph, inputs, outputs)
    found = {name: await context.read_buffer(buffer) for name, buffer in outputs.items()}
    return {
        name: numbers(found[name], buffer.data_type) if buffer.data_type in TYPES else found[name]
        for name, buffer in outputs.items()
    }


async def test_each_result_is_rounded_once(numpy_context):
    rng = np.random.default_rng(2)
    x, w = (numbers(bits_of(rng.standard_normal(shape), "bfloat16"), "bfloat16") for shape in ((3, 64), (64, 5)))
    found = await run(
        numpy_context,
        {"x": x, "w": w},
        lambda b, x, w: {
            "product": b.matmul(x, w),
            "both": b.add(b.matmul(x, w), b.constant(0.1, data_type="bfloat16")),
            "softmax": b.softmax(x, 1),
            "wide": b.cast(b.exp(x), "float32"),
            "compared": b.greater(x, b.constant(0.1, data_type="bfloat16")),
            "sliced": b.slice(x, [0, 1], [2, 3]),
            "clamped": b.clamp(x, min_value=-0.1, max_value=0.3),
            "scalar": b.reduce_sum(x),
        },
    )

    def nearest(values):
        return low_precision.rounded(np.asarray(values, np.float32), "bfloat16")

    tenth = nearest(0.1)
    product = nearest(x @ w)
    np.testing.assert_array_equal(found["product"], product)
    np.testing.assert_array_equal(found["both"], nearest(product + tenth))
    np.testing.assert_array_equal(found["wide"], nearest(np.exp(x)))
    np.testing.assert_array_equal(found["compared"], x > tenth)
    np.testing.assert_array_equal(found["sliced"], x[:2, 1:4])
    np.testing.assert_array_equal(found["clamped"], x.clip(-tenth, nearest(0.3)))
    assert found["scalar"].shape == ()
    assert set(np.unique(nearest(found["softmax"]) - found["softmax"])) == {0}


async def test_sixteen_bits_without_float16_s_overflow(numpy_context):
    found = await run(numpy_context, {"x": [300.0]}, lambda b, x: {"y": b.mul(x, x)})
    assert found["y"].tolist() == [90112]
    found = await run(numpy_context, {"x": [256.0]}, lambda b, x: {"y": b.add(x, b.constant(1, data_type="bfloat16"))})
    assert found["y"].tolist() == [256]


async def test_casts(numpy_context):
    x = np.array([0.3, -3.5, 17, 460, np.inf, -np.inf, np.nan, -0.0, 1e-3, 1e-9], np.float32)

    def draw(b, x):
        y = b.cast(b.cast(x, "float8e4m3"), "float16")
        return {
            "eight": b.cast(x, "float8e4m3"),
            "half": y,
            "integers": b.cast(x, "int32"),
            "back": b.cast(y, "bfloat16"),
        }

    found = await run(numpy_context, {"x": x}, draw)
    expected = [0.3125, -3.5, 16, 448, 448, -448, np.nan, -0.0, 0.001953125, 0]
    np.testing.assert_array_equal(found["eight"], np.float32(expected))
    np.testing.assert_array_equal(np.signbit(found["eight"]), np.signbit(np.float32(expected)))
    np.testing.assert_array_equal(found["half"], np.float16(expected))
    np.testing.assert_array_equal(found["back"], np.float32(expected))
    assert found["integers"].tolist() == [0, -3, 17, 460, 2**31 - 1, -(2**31), 0, 0, 0, 0]


@pytest.mark.parametrize("scale_type", ["float32", "float16", "bfloat16"])
async def test_schemes_say_what_shapes_say(numpy_context, scale_type):
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((4, 64)) * 100).astype("float32")
    scale = np.abs(x).reshape(4, 2, 32).max(2) / 448
    builder = MLGraphBuilder(numpy_context)
    given = builder.cast(builder.input("x", data_type="float32", shape=x.shape), scale_type)
    scales = builder.cast(builder.constant(scale), scale_type)
    zero = builder.constant(bytes(8), data_type="float8e4m3", shape=[4, 2])
    ways = {
        "affine": {},
        "blocks": {"scheme": "blockwise-float", "block_size": 32},
        "unsaid": {"scheme": "blockwise-float"},
    }
    outputs = {}
    for name, options in ways.items():
        quantized = builder.quantize_linear(given, scales, zero, **options)
        again = builder.dequantize_linear(quantized, scales, zero, **options)
        assert (quantized.data_type, again.data_type) == ("float8e4m3", scale_type)
        outputs |= {f"q {name}": quantized, f"again {name}": builder.cast(again, "float32")}
    found = await compute(numpy_context, builder, {"x": x}, outputs)
    for part in ("q", "again"):
        np.testing.assert_array_equal(found[f"{part} affine"], found[f"{part} blocks"])
        np.testing.assert_array_equal(found[f"{part} affine"], found[f"{part} unsaid"])
    if scale_type == "float32":
        blocks = np.repeat(scale, 32, 1)
        np.testing.assert_array_equal(found["q affine"], independent(x / blocks, "float8e4m3"))
        np.testing.assert_array_equal(found["again affine"], numbers(found["q affine"], "float8e4m3") * blocks)


async def test_what_a_scheme_refuses(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[4, 64])
    scale = builder.constant(np.ones((4, 2), "float32"))
    zero = builder.constant(bytes(8), data_type="float8e4m3", shape=[4, 2])
    one = builder.constant(bytes([56] * 8), data_type="float8e4m3", shape=[4, 2])
    integers = builder.constant(np.zeros((4, 2), "int8"))
    refusals = [
        (zero, {"scheme": "float"}, "scheme is 'float'; it must be one of affine, symmetric-float, blockwise-float"),
        (zero, {"block_size": 32}, "block_size is 32; it must be absent: only the scheme blockwise-float has blocks"),
        (
            integers,
            {"scheme": "symmetric-float"},
            "the data type of zero_point is int8; it must be float8e4m3, for the sch",
        ),
        (
            one,
            {"scheme": "blockwise-float"},
            "zero_point is no constant of zeros; it must be one, for the scheme block",
        ),
        (zero, {"scheme": "symmetric-float"}, r"the shape of scale is \[4, 2\]; it must be 1 or the size of \[4, 64\]"),
        (
            zero,
            {"scheme": "blockwise-float", "block_size": 16},
            "such that blocks have 16 elements along an axis, and 1",
        ),
        (zero, {"scheme": "blockwise-float", "block_size": -1}, "block_size is -1; it must be from 0"),
    ]
    for point, options, words in refusals:
        with pytest.raises(TypeError, match=rf"quantize_linear\(\) \[q\]: .*{words}"):
            builder.quantize_linear(x, scale, point, label="q", **options)
    with pytest.raises(TypeError, match=r"the data type of a is float8e4m3; it must be float32 or"):
        builder.matmul(zero, zero)
    with pytest.raises(TypeError, match="the data type of b is float32; it must be bfloat16, that of a"):
        builder.add(builder.cast(x, "bfloat16"), x)


async def test_operators_have_bfloat16_where_they_have_float16(ml):
    context = await ml.create_context(backend="numpy")
    limits = context.op_support_limits()
    assert limits["input"]["data_types"][-2:] == ["bfloat16", "float8e4m3"]
    for name, operator in OPERATORS.items():
        for row, declared in operator.limits.items():
            found = limits[name][row]["data_types"]
            assert ("bfloat16" in found) == ("float16" in declared.data_types), (name, row)
    with_float8 = {name for name in OPERATORS if "float8e4m3" in str(limits[name])}
    assert {"cast", "quantize_linear", "dequantize_linear", "reshape", "gather", "equal"} <= with_float8
    assert not {"neg", "matmul", "conv2d", "softmax"} & with_float8


@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "numpy"])
async def test_other_devices_say_that_they_have_neither(ml, backend):
    context = await ml.create_context(backend=backend)
    assert "bfloat16" not in str(context.op_support_limits())
    builder = MLGraphBuilder(context)
    with pytest.raises(TypeError, match=r"input\(\): data type is bfloat16; this device has float32, .*numpy emulates"):
        builder.input("x", data_type="bfloat16", shape=[2])
    with pytest.raises(TypeError, match=r"data type is float8e4m3; this device has"):
        await context.create_buffer(data_type="float8e4m3", shape=[2], readable=True)
    x = builder.input("x", data_type="float32", shape=[2])
    with pytest.raises(TypeError, match=r"cast\(\): the data type of the output is bfloat16; it must be float32 or"):
        builder.cast(x, "bfloat16")


async def test_nobody_has_low_precision_without_asking():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        assert "float8e4m3" not in str(context.op_support_limits())
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[2])
        for call in (
            lambda: builder.input("y", data_type="bfloat16", shape=[2]),
            lambda: builder.constant(1, data_type="bfloat16"),
            lambda: builder.cast(x, "bfloat16"),
        ):
            with pytest.raises(TypeError, match="data_type is 'bfloat16'; it must be one of float32, "):
                call()
        with pytest.raises(TypeError, match="unexpected keyword argument 'scheme'"):
            builder.quantize_linear(x, x, x, scheme="affine")
        with pytest.raises(TypeError, match="the array's data type is bfloat16; it must be one of"):
            builder.constant(np.ones(2, TYPES["bfloat16"]))


async def test_data_are_bits(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    ones = [
        builder.constant(data, data_type="bfloat16", shape=[2])
        for data in (np.uint16([0x3F80] * 2), b"\x80\x3f" * 2, np.ones(2, TYPES["bfloat16"]), np.full(2, 0x3F80, ">u2"))
    ]
    ones += [
        builder.constant(np.ones(2, TYPES["bfloat16"])),
        builder.expand(builder.constant(1, data_type="bfloat16"), [2]),
    ]
    eights = [
        builder.constant(data, data_type="float8", shape=[2]) for data in (b"\x38\x38", np.ones(2, TYPES["float8e4m3"]))
    ]
    outputs = {str(index): builder.cast(one, "float32") for index, one in enumerate([*ones, *eights])}
    assert {one.data_type for one in eights} == {"float8e4m3"}
    assert builder.cast(ones[0], "float8").data_type == "float8e4m3"
    assert {str(item.tolist()) for item in (await compute(numpy_context, builder, {}, outputs)).values()} == {
        "[1.0, 1.0]"
    }
    builder = MLGraphBuilder(numpy_context)
    with pytest.raises(TypeError, match="data are float16; they must be uint16, the bits of bfloat16, or bytes"):
        builder.constant(np.ones(2, "float16"), data_type="bfloat16", shape=[2])
    with pytest.raises(TypeError, match=r"data of 2 bytes given for bfloat16 \[2\]; they must be exactly 4 bytes"):
        builder.constant(b"12", data_type="bfloat16", shape=[2])
    with pytest.raises(TypeError, match="data are uint16; they must be uint8, the bits of float8e4m3"):
        builder.constant(np.ones(2, "uint16"), data_type="float8e4m3", shape=[2])


async def test_buffers_hold_bits(numpy_context):
    context = numpy_context
    constant = await context.create_constant_buffer(np.uint16([1, 2]), data_type="bfloat16", shape=[2])
    buffer = await context.create_buffer(data_type="bfloat16", shape=[2], readable=True, writable=True)
    context.copy_buffer(constant, buffer, source_offset=1, destination_offset=0, count=1)
    read = await context.read_buffer(buffer)
    assert (read.dtype, read.tolist()) == (np.uint16, [2, 0])
    out = np.zeros(2, "uint16")
    await context.read_buffer(buffer, out=out)
    assert out.tolist() == [2, 0]
    with pytest.raises(TypeError, match="out is float16; it must be uint16, for the bits of bfloat16"):
        await context.read_buffer(buffer, out=np.zeros(2, "float16"))
    builder = MLGraphBuilder(context)
    found = await compute(context, builder, {}, {"y": builder.cast(builder.constant(constant), "float32")})
    np.testing.assert_array_equal(found["y"], numbers(np.uint16([1, 2]), "bfloat16"))
    constant.destroy()


async def test_what_knows_nothing_of_low_precision_says_so(ml, numpy_context, tmp_path):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="bfloat16", shape=[2])
    y = builder.neg(x)
    with pytest.raises(NotSupportedError, match=r"check_finite\(\): an operand is bfloat16 \[2\]"):
        await check_finite({"y": y}, {"x": bytes(4)})
    with pytest.raises(NotSupportedError, match=r"save_js\(\): an operand is bfloat16 \[2\]"):
        save_js({"y": y}, tmp_path / "page")
    builder = MLGraphBuilder(numpy_context)
    one, two = builder.constant(1.5, data_type="bfloat16"), builder.constant(np.full(2, 2.5, TYPES["bfloat16"]))
    picture = builder.picture({"y": builder.add(one, two)})
    assert "add(a=1.5, b=constant bfloat16 [2])" in str(picture)
    assert '"statistics":{"min":"2.5","max":"2.5"' in picture.to_html()


async def test_a_graph_with_low_precision_within_is_not_saved(tmp_path):
    async with webnn_py.open_ml(experimental={"low-precision"}, graph_cache=tmp_path) as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[2])
        graph = await builder.build({"y": builder.cast(builder.cast(x, "bfloat16"), "float32")})
        with pytest.raises(NotSupportedError, match=r"save_graph\(\): an operand is bfloat16 \[2\]"):
            await context.save_graph("key", graph)
