"""The proposal "int4": constants of four bits, and what is quantized to them, on every device."""

import numpy as np
import pytest

import webnn_py
from spec_tests.support.backends import BACKENDS, DEVICES, on_each
from spec_tests.support.computing import compute
from spec_tests.support.depth import is_full
from webnn_py import MLGraphBuilder, NotSupportedError, save_js
from webnn_py.buffer_copies import copy_buffer
from webnn_py.checking import check_finite

RANGES = {"int4": (-8, 7), "uint4": (0, 15)}


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"int4"}) as opened:
        yield opened


backend = on_each(DEVICES)


@pytest.fixture
async def on_gpu(ml, shared_gpu):
    return await ml.create_context(gpu_device=shared_gpu)


def pack(elements):
    """Two in a byte, the first in the lower bits; the text's own words, element by element."""
    flat = [int(element) & 15 for element in np.ravel(elements)] + [0] * (np.size(elements) % 2)
    return bytes(low | high << 4 for low, high in zip(flat[::2], flat[1::2], strict=True))


def four_bits(builder, elements, data_type):
    return builder.constant(pack(elements), data_type=data_type, shape=np.shape(elements))


def drawn_numbers(rng, data_type, shape):
    low, high = RANGES[data_type]
    return rng.integers(low, high, shape, endpoint=True)


def dequantized(numbers, scale, zeros):
    blocks = np.ones([size // count for size, count in zip(numbers.shape, scale.shape, strict=True)], int)
    return (numbers - np.kron(zeros, blocks)) * np.kron(scale, blocks)


@pytest.mark.parametrize("data_type", RANGES)
@pytest.mark.parametrize(
    ("shape", "scales"),
    [((), ()), ((1,), (1,)), ((5,), (1,)), ((3, 6), (3, 2)), ((64, 65), (64, 1)), ((2, 66, 33), (1, 3, 33))],
    ids=str,
)
async def test_what_was_quantized_is_what_it_was(context, data_type, shape, scales):
    rng = np.random.default_rng(5)
    numbers, zeros = drawn_numbers(rng, data_type, shape), drawn_numbers(rng, data_type, scales)
    scale = rng.integers(1, 9, scales).astype("float32") / 4
    builder = MLGraphBuilder(context)
    given = [four_bits(builder, numbers, data_type), builder.constant(scale), four_bits(builder, zeros, data_type)]
    x = builder.input("x", data_type="float32", shape=shape)
    y = builder.dequantize_linear(*given)
    found = await compute(context, builder, {"x": np.zeros(shape, "float32")}, {"y": builder.add(y, x)})
    np.testing.assert_array_equal(found["y"], dequantized(numbers, scale, zeros).astype("float32"))


@pytest.mark.parametrize("data_type", RANGES)
@pytest.mark.parametrize("count", [1, 4, 7])
async def test_floats_are_quantized_and_packed(context, data_type, count):
    x = np.array([-100, -3.5, -0.2, 2.4, 2.5, np.nan, 100][-count:], "float32")
    low, high = RANGES[data_type]
    zero = (low + high) // 2
    builder = MLGraphBuilder(context)
    value = builder.input("x", data_type="float32", shape=[count])
    scale, point = builder.constant(np.float32([0.5])), four_bits(builder, [zero], data_type)
    quantized = builder.quantize_linear(value, scale, point)
    again = builder.dequantize_linear(quantized, scale, point)
    assert (quantized.data_type, again.data_type) == (data_type, "float32")
    found = await compute(context, builder, {"x": x}, {"q": quantized, "again": again})
    expected = np.clip(np.rint(x / 0.5) + zero, low, high)
    expected[np.isnan(x)] = 0
    assert found["q"].dtype == np.uint8
    assert found["q"].tobytes() == pack(expected)
    np.testing.assert_array_equal(found["again"], ((expected - zero) * 0.5).astype("float32"))


@pytest.mark.parametrize("backend", BACKENDS)
async def test_limits_tell_of_four_bits(ml, backend):
    context = await ml.create_context(backend=backend)
    limits = context.op_support_limits()
    rows = [
        limits["constant"],
        limits["output"],
        limits["dequantize_linear"]["input"],
        limits["quantize_linear"]["output"],
    ]
    assert all(row["data_types"][-2:] == ["int4", "uint4"] for row in rows)
    assert limits["input"]["data_types"] == list(limits["constant"]["data_types"][:-2])
    assert "int4" not in limits["reshape"]["input"]["data_types"]


async def test_nobody_has_four_bits_without_asking():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        assert "int4" not in str(context.op_support_limits())
        builder = MLGraphBuilder(context)
        with pytest.raises(TypeError, match=r"constant\(\): data_type is 'int4'; it must be one of float32, "):
            builder.constant(b"\x01", data_type="int4", shape=[2])
        with pytest.raises(TypeError, match="data_type is 'uint4'"):
            await context.create_buffer(data_type="uint4", shape=[2], readable=True)


async def test_what_is_no_constant_of_quantization_is_refused(ml, numpy_context):
    builder = MLGraphBuilder(numpy_context)
    with pytest.raises(TypeError, match="data_type is 'int4'; it must be one of float32, "):
        builder.input("x", data_type="int4", shape=[2])
    packed = four_bits(builder, [1, 2, 3], "int4")
    with pytest.raises(TypeError, match=r"reshape\(\): the data type of input is int4; it must be float32 or"):
        builder.reshape(packed, [3, 1])
    with pytest.raises(TypeError, match=r"they must be exactly 2 bytes: int4 \[3\] has two elements in a byte"):
        builder.constant(b"123", data_type="int4", shape=[3])
    with pytest.raises(TypeError, match="the data type of zero_point is uint4; it must be int4"):
        builder.dequantize_linear(packed, builder.constant(np.float32([1])), four_bits(builder, [1], "uint4"))
    with pytest.raises(TypeError, match=r"int4, of which outputs of graphs are; such a buffer must not be writable"):
        await numpy_context.create_buffer(data_type="int4", shape=[2], writable=True)
    with pytest.raises(TypeError, match="data_type is 'int4'"):
        await numpy_context.create_constant_buffer(b"1", data_type="int4", shape=[2])
    output = await numpy_context.create_buffer(data_type="int4", shape=[3], readable=True)
    assert (await numpy_context.read_buffer(output)).tolist() == [0, 0]
    with pytest.raises(TypeError, match="source is int4, of which a byte holds two"):
        copy_buffer(numpy_context, output, output)
    output.destroy()


async def test_what_knows_nothing_of_four_bits_says_so(ml, numpy_context, tmp_path):
    builder = MLGraphBuilder(numpy_context)
    weights = builder.dequantize_linear(
        four_bits(builder, [1], "uint4"), builder.constant(np.float32([1])), four_bits(builder, [1], "uint4")
    )
    with pytest.raises(NotSupportedError, match=r"check_finite\(\): an operand is uint4 \[1\]"):
        await check_finite({"y": weights}, {})
    with pytest.raises(NotSupportedError, match=r"save_js\(\): an operand is uint4 \[1\]"):
        save_js({"y": weights}, tmp_path / "page")
    builder.destroy()


async def test_large_weights_stay_packed_on_a_gpu(on_gpu):
    rng = np.random.default_rng(3)
    shape = (512, 256)
    numbers = drawn_numbers(rng, "int4", shape)
    graphs = {}
    for data_type in ("int4", "int8"):
        builder = MLGraphBuilder(on_gpu)
        point = np.zeros((512, 1), "int8")
        given = [
            four_bits(builder, numbers, "int4") if data_type == "int4" else builder.constant(numbers.astype("int8")),
            builder.constant(np.full((512, 1), 0.25, "float32")),
            four_bits(builder, point, "int4") if data_type == "int4" else builder.constant(point),
        ]
        x = builder.input("x", data_type="float32", shape=shape)
        graphs[data_type] = await builder.build({"y": builder.add(x, builder.dequantize_linear(*given))})
    constants = {name: graph.handle.compiled.plan.constant_bytes for name, graph in graphs.items()}
    assert constants["int8"] >= 512 * 256 * 4, "folded to float32"
    assert constants["int4"] <= 512 * 256 // 2 + 4096, constants
    for graph in graphs.values():
        graph.destroy()


SIDES = {
    "rows, blocks along them": ((3, 128), (64, 128), (64, 4), True),
    "rows, one scale each": ((20, 128), (64, 128), (64, 1), True),
    "columns, blocks across": ((2, 64), (64, 96), (2, 96), False),
    "columns, odd": ((9, 65), (65, 67), (1, 67), False),
    "one vector": ((1, 256), (256, 64), (8, 64), False),
    "a batch": ((4, 5, 128), (64, 128), (64, 8), True),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("case", "data_type"), [*zip(SIDES, [*RANGES] * len(SIDES), strict=False)])
async def test_a_product_reads_packed_weights(on_gpu, case, data_type):
    left, shape, scales, is_transposed = SIDES[case]
    rng = np.random.default_rng(7)
    numbers, zeros = drawn_numbers(rng, data_type, shape), drawn_numbers(rng, data_type, scales)
    scale = rng.integers(1, 9, scales).astype("float32") / 16
    x = rng.integers(-4, 5, left).astype("float32")
    builder = MLGraphBuilder(on_gpu)
    given = [four_bits(builder, numbers, data_type), builder.constant(scale), four_bits(builder, zeros, data_type)]
    weights = builder.dequantize_linear(*given)
    weights = builder.transpose(weights) if is_transposed else weights
    product = builder.matmul(builder.input("x", data_type="float32", shape=left), weights)
    columns = shape[0] if is_transposed else shape[1]
    bias = rng.integers(-3, 4, columns).astype("float32")
    found = await compute(on_gpu, builder, {"x": x}, {"y": builder.relu(builder.add(product, builder.constant(bias)))})
    whole = dequantized(numbers, scale, zeros)
    expected = np.maximum(x @ (whole.T if is_transposed else whole) + bias, 0)
    np.testing.assert_array_equal(found["y"], expected.astype("float32"))


@pytest.mark.parametrize("rows", [1, 16])
async def test_a_product_s_weights_are_never_unpacked_in_memory(on_gpu, rows):
    numbers = drawn_numbers(np.random.default_rng(1), "uint4", (256, 512))
    builder = MLGraphBuilder(on_gpu)
    scale = builder.constant(np.full((256, 16), 0.5, "float32"))
    given = [four_bits(builder, numbers, "uint4"), scale, four_bits(builder, np.full((256, 16), 8), "uint4")]
    x = builder.input("x", data_type="float32", shape=[rows, 512])
    graph = await builder.build({"y": builder.gemm(x, builder.dequantize_linear(*given), b_transpose=True)})
    plan = graph.handle.compiled.plan
    assert plan.constant_bytes <= 256 * 512 // 2 + 256 * 16 * 5 + 1024, plan
    assert plan.intermediate_bytes <= 64 * 1024, plan
    graph.destroy()


def around(builder, weights):
    """Draw graphs around weights of four bits, which ``weights()`` draws anew; return the results by name."""
    x, y = (builder.input(name, data_type="float32", shape=shape) for name, shape in (("x", [5, 96]), ("y", [64, 96])))
    once, twice = weights(), weights()
    seen = builder.transpose(twice)
    return {
        "an output and a side": once,
        "read once more": builder.matmul(x, builder.transpose(once)),
        "read by two": builder.matmul(x, seen),
        "and by this": builder.add(y, twice),
        "beside another": builder.relu(builder.matmul(x, builder.transpose(weights()))),
        "reduced": builder.reduce_sum(builder.mul(weights(), y), axes=[1]),
        "reduced at once": builder.reduce_max(weights(), axes=[0]),
        "both sides": builder.matmul(weights(), builder.transpose(weights())),
        "the left side": builder.gemm(weights(), x, b_transpose=True),
        "in a batch": builder.matmul(
            builder.reshape(x, [5, 1, 96]), builder.reshape(builder.transpose(weights()), [1, 96, 64])
        ),
        "gathered": builder.gather(weights(), builder.constant(np.int32([3, 1]))),
        "in an epilogue": builder.add(
            builder.matmul(y, builder.transpose(y)), builder.slice(weights(), [0, 0], [64, 64])
        ),
    }


async def test_whatever_reads_packed_weights_reads_the_same_numbers(numpy_context, on_gpu, pytestconfig):
    if not is_full(pytestconfig):
        pytest.skip("at full depth only")
    rng = np.random.default_rng(2)
    numbers, zeros = drawn_numbers(rng, "int4", (64, 96)), drawn_numbers(rng, "int4", (64, 6))
    scale = rng.integers(1, 5, (64, 6)).astype("float32") / 8
    feeds = {name: rng.integers(-3, 4, shape).astype("float32") for name, shape in (("x", (5, 96)), ("y", (64, 96)))}
    found = []
    for context in (numpy_context, on_gpu):
        builder = MLGraphBuilder(context)

        def weights(builder=builder):
            given = [four_bits(builder, numbers, "int4"), builder.constant(scale), four_bits(builder, zeros, "int4")]
            return builder.dequantize_linear(*given)

        found.append(await compute(context, builder, feeds, around(builder, weights)))
    for name, expected in found[0].items():
        np.testing.assert_array_equal(found[1][name], expected, err_msg=name)
