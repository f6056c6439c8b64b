"""Errors of kernels of the numpy device are reported with operator, label and operands."""

import numpy as np
import pytest

from spec_tests.support.buffers import filled, zeroed
from webnn_py import MLGraphBuilder, OperationError, UnknownError
from webnn_py.core.operators import arithmetic
from webnn_py.devices.numpy import table

MESSAGE = r"add \[sum of rows\]\(float32 \[2, 3\], float32 \[2, 3\]\): matmul: .*mismatch"


def raising(_node):
    """Matrices that do not fit together: numpy itself refuses them."""
    return np.matmul


@pytest.fixture(params=[0.0, 1e12], ids=["inline", "in a worker thread"])
def _broken_add(request, monkeypatch):
    assert table.find(arithmetic.add)  # the others of its category are there as well
    monkeypatch.setitem(table._TABLE, arithmetic.add, table.NumpyEntry(raising, None, lambda _node: request.param))


def draw(context, *, constant):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[2, 3])
    a = builder.constant(np.ones((2, 3), np.float32))
    return builder.build({"y": builder.mul(x, builder.add(a, a if constant else x, label="sum of rows"))})


@pytest.mark.usefixtures("_broken_add")
async def test_a_kernel_that_raises_is_named_by_the_read_of_what_it_should_have_computed(numpy_context):
    graph = await draw(numpy_context, constant=False)
    x, y = await filled(numpy_context, np.ones((2, 3))), await zeroed(numpy_context, [2, 3])

    numpy_context.dispatch(graph, {"x": x}, {"y": y})

    with pytest.raises(UnknownError, match=rf"read_buffer\(\).*dispatch\(\) failed: {MESSAGE}"):
        await numpy_context.read_buffer(y)
    np.testing.assert_array_equal(await numpy_context.read_buffer(x), np.ones((2, 3)))


@pytest.mark.usefixtures("_broken_add")
async def test_a_kernel_that_raises_on_constants_is_named_by_build(numpy_context):
    with pytest.raises(OperationError, match=rf"build\(\).*{MESSAGE}") as caught:
        await draw(numpy_context, constant=True)
    assert isinstance(caught.value.__cause__.__cause__, ValueError)
    await numpy_context.drain()
    assert numpy_context.statistics().live_bytes == 0


@pytest.mark.usefixtures("_broken_add")
async def test_after_a_kernel_has_raised_the_device_goes_on(numpy_context):
    graph = await draw(numpy_context, constant=False)
    x, y = await filled(numpy_context, np.ones((2, 3))), await zeroed(numpy_context, [2, 3])
    numpy_context.dispatch(graph, {"x": x}, {"y": y})
    numpy_context.write_buffer(y, np.full((2, 3), 4, np.float32))
    np.testing.assert_array_equal(await numpy_context.read_buffer(y), np.full((2, 3), 4))
    assert numpy_context.lost.state == "pending"
