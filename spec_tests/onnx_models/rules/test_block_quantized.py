import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_refused, assert_same, check, each, node, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS

GATHER = "com.microsoft.GatherBlockQuantized"
rng = np.random.default_rng(3)
ROWS = np.array([[3, 0, -1], [2, 2, 4]], np.int64)


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    return request.param


def packed(*shape):
    return rng.integers(0, 256, shape, np.uint8)


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


@each(
    node(GATHER, 1, packed(5, 24), ROWS, floats(5, 3), known=(0, 2), block_size=16),
    node(GATHER, 1, packed(5, 24), ROWS, floats(5, 3), packed(5, 2), known=(0, 2, 3), block_size=16),
    node(GATHER, 1, packed(5, 48), ROWS[0], floats(5, 2), packed(5, 2), known=(0, 2, 3), bits=8, block_size=32),
    node(GATHER, 1, packed(5, 2, 48), ROWS, floats(5, 2, 3), known=(0, 2), bits=8, block_size=16, quantize_axis=-1),
)
async def test_rows_of_packed_integers(context, case):
    await check(context, case)


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
async def test_rows_of_integers_of_four_bits(context, kind):
    low = -8 if kind == TensorProto.INT4 else 0
    tables = {
        "data": helper.make_tensor("data", kind, [5, 48], rng.integers(low, low + 16, 240).tolist()),
        "points": helper.make_tensor("points", kind, [5, 3], rng.integers(low, low + 16, 15).tolist()),
        "scales": numpy_helper.from_array(floats(5, 3), "scales"),
    }
    nodes = [
        helper.make_node(
            "GatherBlockQuantized", ["data", "rows", "scales", *points], [output], domain="com.microsoft", block_size=16
        )
        for points, output in (([], "y"), (["points"], "z"))
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("rows", TensorProto.INT64, ROWS.shape)],
        [onnx.ValueInfoProto(name=name) for name in "yz"],
        list(tables.values()),
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    assert_same(await run(context, data, {"rows": ROWS}), run_onnxruntime(data, {"rows": ROWS}))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"gather_axis": 1}, "attribute gather_axis is 1 of [5, 24]; it must be 0"),
        ({"quantize_axis": 0}, "attribute quantize_axis is 0; it must be 1, the last one"),
        ({"bits": 2}, "attributes bits and block_size is 2 and 16; it must be 4 or 8"),
        ({"block_size": 32}, "the shape of input scales is [5, 3]; it must be of 2 blocks to a row"),
    ],
)
async def test_other_layouts_are_refused(context, changed, text):
    attributes = {"block_size": 16, **changed}
    (case,) = node(GATHER, 1, packed(5, 24), ROWS, floats(5, 3), known=(0, 2), **attributes)
    assert_refused(context, case, text)
