import numpy as np
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models.single_node import Random, compared, microsoft, refused
from spec_tests.support.backends import BACKENDS, ON_GPU, on_each
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel

random = Random(3)
floats = random.floats
SIGNED, UNSIGNED = map(helper.tensor_dtype_to_np_dtype, (TensorProto.INT4, TensorProto.UINT4))
ROWS = np.array([[3, 0, -1], [2, 2, 4]], np.int64)


backend = on_each(BACKENDS)


def packed(*shape):
    return random.integers("uint8", *shape)


def of_four_bits(kind, *shape):
    low = -8 if kind == SIGNED else 0
    return random.rng.integers(low, low + 16, shape).astype(kind)


def gathered(table, *inputs, rows=ROWS, known=(0, 2), block_size=16, **options):
    return microsoft("GatherBlockQuantized", table, rows, *inputs, known=known, block_size=block_size, **options)


test_rows_of_packed_integers = compared(
    gathered(packed(5, 24), floats(5, 3)),
    gathered(packed(5, 24), floats(5, 3), packed(5, 2), known=(0, 2, 3)),
    gathered(packed(5, 48), floats(5, 2), packed(5, 2), rows=ROWS[0], known=(0, 2, 3), bits=8, block_size=32),
    gathered(packed(5, 2, 48), floats(5, 2, 3), bits=8, quantize_axis=-1),
    gathered(packed(5, 2, 24), floats(5, 2, 3), packed(5, 2, 2), quantize_axis=-1),
    gathered(packed(5, 17), floats(5, 3).astype(np.float16), rows=ROWS[:1, :1]),
)


test_rows_of_integers_of_four_bits = compared(
    *(
        cases
        for kind in (SIGNED, UNSIGNED)
        for cases in (
            gathered(of_four_bits(kind, 5, 48), floats(5, 3)),
            gathered(of_four_bits(kind, 5, 48), floats(5, 3), of_four_bits(kind, 5, 3), known=(0, 2, 3)),
        )
    )
)


TABLE = packed(5, 24), floats(5, 3)


test_other_layouts_are_refused = refused(
    (gathered(*TABLE, gather_axis=1), "attribute gather_axis is 1 of [5, 24]; it must be 0"),
    (gathered(*TABLE, quantize_axis=0), "attribute quantize_axis is 0; it must be 1, the last one"),
    (gathered(*TABLE, bits=2), "attributes bits and block_size is 2 and 16; it must be 4 or 8"),
    (gathered(*TABLE, block_size=32), "the shape of input scales is [5, 3]; it must be of 2 blocks to a row"),
)


@pytest.mark.parametrize("backend", [ON_GPU], scope="module")
async def test_packed_rows_are_one_kernel_on_a_gpu(context):
    case = gathered(packed(5, 24), floats(5, 3), packed(5, 2), known=(0, 2, 3))[0]
    builder = MLGraphBuilder(context)
    graph = await builder.build(OnnxModel.load(case.model()).convert(builder))
    assert [kernel.name for kernel in graph.handle.compiled.plan.kernels] == ["gatherBlockQuantized float32"]
