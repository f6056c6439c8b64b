import numpy as np
from onnx import TensorProto, helper, parser

from spec_tests.onnx_models.export.exporting import operators_of
from spec_tests.onnx_models.single_node import compared, node, run
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel

X = np.array([[-2.5, -1, -0.0], [0.5, 1, 300]], np.float32)
SMALL = np.array([[-2.5, -1, -0.0], [0.5, 1, 100]], np.float32)
TRUTHS = np.array([[True, False, True]])
BYTES = np.array([[0, 1, 200]], np.uint8)
TYPES = ("FLOAT", "FLOAT16", "INT8", "INT32", "INT64")


test_casts = compared(
    *(node("Cast", [6, 9, 13, 19, 21, 23], SMALL, to=getattr(TensorProto, name)) for name in TYPES),
    node("Cast", [24, 25], SMALL, to=TensorProto.INT32),
    node("Cast", 28, SMALL, to=TensorProto.INT32, oracle="reference"),
    node("Cast", [6, 9, 13, 19, 21, 23], X, to=TensorProto.BOOL),
    node("Cast", [13, 19], BYTES, to=TensorProto.BOOL),
    node("Cast", [13, 19], TRUTHS, to=TensorProto.BOOL),
    *(node("Cast", [13, 19], TRUTHS, to=getattr(TensorProto, name)) for name in (*TYPES, "UINT8")),
    node("Cast", 13, np.array([-1, 2**31, 2**40 + 5], np.int64), to=TensorProto.INT32),
    node("Cast", [19, 21, 23], SMALL, to=TensorProto.INT32, saturate=0, oracle="reference"),
    node("CastLike", [15, 19, 21, 23, 24, 25], SMALL, np.array([1], np.int64)),
    node("CastLike", [15, 19, 21, 23], X, np.array([True]), known=(1,)),
    node("CastLike", [15, 19], X, np.array([True])),
    node("CastLike", [15, 19], np.abs(SMALL), np.array([1], np.uint8)),
    node("CastLike", [15, 19], SMALL, np.array([1], np.float16), known=(1,)),
)


QUANTIZED = np.arange(24, dtype=np.int8).reshape(2, 3, 4) - 9
UNQUANTIZED = np.linspace(-20, 20, 24, dtype=np.float32).reshape(2, 3, 4)
MAGNITUDES = np.abs(UNQUANTIZED)
HALF, POINT = np.float32(0.5), np.int8(3)
OF_ROWS = np.float32([0.5, 1, 2]), np.int8([1, -2, 3])
DEQUANTIZED = [(QUANTIZED * np.float32(0.3)).astype(np.float16)]
ALL, FROM_13, FROM_21, NEW = [10, 13, 19, 21, 23], [13, 19, 21, 23], [21, 23], [24, 25]


def quantize(versions, *inputs, x=UNQUANTIZED, **options):
    return node("QuantizeLinear", versions, x, *inputs, **options)


def dequantize(versions, *inputs, x=QUANTIZED, **options):
    return node("DequantizeLinear", versions, x, *inputs, **options)


LIMITS = np.array([[-(2**31), 2**31 - 1, 0], [5, -(2**31) + 9, 2**31 - 9]], np.int32)
"""Integers whose difference from a zero point has more than 32 bits; onnxruntime's wraps around."""


test_quantization = compared(
    dequantize(ALL, HALF, POINT, known=(1,)),
    dequantize(ALL, HALF, x=QUANTIZED.astype(np.int32), known=(1,)),
    *(
        cases
        for kind in (quantize, dequantize)
        for cases in (
            kind(FROM_13, *OF_ROWS, known=(1, 2)),
            kind(FROM_13, np.float32([0.5, 2]), axis=0),
            kind(NEW, *OF_ROWS, known=(1, 2)),
            kind(28, *OF_ROWS, known=(1, 2), oracle="reference"),
        )
    ),
    dequantize(FROM_13, np.float32([0.5, 1, 2, 4]), axis=-1),
    dequantize(FROM_21, UNQUANTIZED[:, :, :2].copy(), known=(1,), axis=2, block_size=2),
    dequantize(FROM_21, MAGNITUDES[:, :, :2], QUANTIZED[:, :, 2:], known=(1, 2), axis=-1, block_size=3),
    quantize(FROM_21, MAGNITUDES[:, :2], known=(1,), axis=1, block_size=2),
    quantize(ALL, HALF, POINT, known=(1, 2)),
    quantize(ALL, HALF, known=(1,)),
    quantize(FROM_21, MAGNITUDES[:, :, :2], known=(1,), axis=2, block_size=2),
    quantize(FROM_21, HALF, output_dtype=TensorProto.INT8),
    quantize(23, np.float16(0.3), x=UNQUANTIZED.astype(np.float16), precision=TensorProto.FLOAT, oracle="reference"),
    quantize(13, np.float32(0.3), x=UNQUANTIZED.astype(np.int32), oracle="reference"),
    dequantize(23, np.float32(0.3), output_dtype=TensorProto.FLOAT16, oracle=DEQUANTIZED),
    *(
        dequantize([19, 21, 23], np.float32(0.5), np.int32(point), x=LIMITS, known=known, oracle="reference")
        for point in (-10, 10)
        for known in ((1, 2), ())
    ),
)


ONE_SCALE_OF_TWO = """
    <ir_version: 10, opset_import: ["" : 21]> g (uint8[2] a, uint8[1,2] b) => (float[2] x, float[1,2] y)
    <float scale = {0.5}> { x = DequantizeLinear (a, scale)  y = DequantizeLinear (b, scale) }
"""
"""Of one scale, which takes the axes of each value that it is beside."""


async def test_a_known_scale_gets_its_axes_while_building(context):
    model = OnnxModel.load(parser.parse_model(ONE_SCALE_OF_TWO).SerializeToString())
    builder = MLGraphBuilder(context)
    assert operators_of(model.convert(builder)) == ["dequantize_linear", "dequantize_linear"]
    x, y = await run(context, model, {"a": np.array([2, 6], np.uint8), "b": np.array([[1, 4]], np.uint8)})
    assert (x.tolist(), y.tolist()) == ([1, 3], [[0.5, 2]])


NARROW = {"int4": ([-8, 7, 3], 2), "uint4": ([0, 15, 3], 8), "int16": ([-300, 300, 9], -7), "uint16": ([0, 65535], 7)}


def known_values(name, values, point):
    kind = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name.upper()))
    return dequantize([21, 23], HALF, np.array(point, kind), x=np.array([values], kind), known=(0, 2))


test_known_integers_of_types_that_webnn_lacks = compared(*(known_values(name, *NARROW[name]) for name in NARROW))
