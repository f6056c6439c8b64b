import tracemalloc

import numpy as np
from onnx import helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_same, compared, make_model, node, run
from webnn_py import MLGraphBuilder
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import ModelLimits, OnnxModel

SHAPE = np.array([2, 3], np.int64)
LARGE = np.array([2048, 2048], np.int64)
X = np.full([1, 2048], 3, np.float32)


def tensor(value):
    return numpy_helper.from_array(np.array([value]))


test_constant_of_shape = compared(
    node("ConstantOfShape", [9, 20, 21, 23], SHAPE, known=(0,)),
    node("ConstantOfShape", [9, 20, 21, 23], SHAPE, known=(0,), value=tensor(np.float32(0.5))),
    node("ConstantOfShape", [24, 25], SHAPE, known=(0,), value=tensor(np.int64(7)), oracle=23),
)


async def test_a_large_tensor_of_one_value_is_filled_by_the_device(context):
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["w"], value=tensor(np.float32(0.5))),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    data = make_model(nodes, {"x": X, "shape": LARGE}, ["y"], {"shape": LARGE}, opset=13)
    model = OnnxModel.load(data, limits=ModelLimits(bytes=1000))
    builder = MLGraphBuilder(context)
    tracemalloc.start()
    try:
        outputs = model.convert(builder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [item.operator.name for item in drawing_of("a test", outputs).nodes] == ["expand", "matmul"]
    assert peak < 1 << 20
    assert_same(await run(context, model, {"x": X}), [np.full([1, 2048], 3072, np.float32)])
