"""Tensors on the host are arrays for numpy, Python and DLPack; the others name the call that gives their data."""

import operator

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.onnx_programs import add
from spec_tests.support.runtime import device_location
from webnn_py import InvalidStateError
from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.runtime import Tensor, blocking

FORMS = pytest.mark.parametrize("form", [Tensor, blocking.Tensor], ids=["await", "blocking"])

USES = {
    "numpy": lambda tensor: tensor.numpy(),
    "asarray": np.asarray,
    "array": lambda tensor: np.array(tensor, dtype=np.float64),
    "argmax": np.argmax,
    "stack": lambda tensor: np.stack([tensor, tensor]),
    "object": lambda tensor: np.array([tensor], dtype=object),
    "from_dlpack": np.from_dlpack,
    "dlpack_device": lambda tensor: tensor.__dlpack_device__(),
    "bool": bool,
    "float": float,
    "int": int,
    "complex": complex,
    "index": operator.index,
    "len": len,
    "iter": list,
    "item": lambda tensor: tensor[0],
    "in": lambda tensor: 1 in tensor,
    "add": lambda tensor: tensor + 1,
    "radd": lambda tensor: np.ones(3) + tensor,
    "negative": operator.neg,
    "equal to a number": lambda tensor: tensor == 1,
    "equal to a tensor": lambda tensor: tensor == tensor,  # noqa: PLR0124 - the operator is the test
    "array equal": lambda tensor: np.ones(3) == tensor,
    "greater": lambda tensor: tensor > 0.5,
    "matmul": lambda tensor: tensor @ np.ones(3),
}
"""Each reads elements."""

ALL_USES = cells("use", USES.values(), ids=USES)


# --- on the host -----------------------------------------------------------------------------------------------------


@FORMS
@cells("data_type", DATA_TYPES)
def test_a_tensor_on_the_host_is_its_array(form, data_type):
    array = np.arange(6, dtype=data_type).reshape(2, 3)
    tensor = form(array)
    assert (tensor.location, tensor.data_type, tensor.dims) == ("cpu", data_type, (2, 3))
    assert (tensor.shape, tensor.dtype, len(tensor)) == ((2, 3), np.dtype(data_type), 2)
    assert tensor.data is array
    assert repr(tensor) == f"<Tensor {data_type} [2, 3] cpu>"
    for same in (tensor.numpy(), np.asarray(tensor), np.from_dlpack(tensor), np.array(tensor, copy=False)):
        assert np.shares_memory(same, array)
        np.testing.assert_array_equal(same, array, strict=True)
    copied = np.array(tensor)
    assert not np.shares_memory(copied, array)
    np.testing.assert_array_equal(copied, array, strict=True)
    assert not np.shares_memory(np.asarray(tensor, copy=True), array)
    np.testing.assert_array_equal(np.asarray(tensor, np.float64), array.astype(np.float64), strict=True)
    assert np.argmax(tensor) == 5
    assert tensor.__dlpack_device__() == (1, 0)


@FORMS
def test_booleans_and_read_only_arrays_keep_their_properties(form):
    flags = np.array([True, False])
    assert (form(flags).data_type, form(flags).dtype, form(flags)[0]) == ("uint8", np.uint8, 1)
    for same in (form(flags).data, np.asarray(form(flags))):
        assert np.shares_memory(same, flags)
    fixed = np.arange(3, dtype=np.float32)
    fixed.flags.writeable = False
    assert not np.asarray(form(fixed)).flags.writeable
    assert not np.from_dlpack(form(fixed)).flags.writeable


@FORMS
def test_indexing_and_iteration_are_numpys(form):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = form(array)
    assert tensor[1, 2] == 5
    np.testing.assert_array_equal(tensor[:, ::2], array[:, ::2])
    np.testing.assert_array_equal(tensor[tensor > 3], [4, 5])
    assert [row.tolist() for row in tensor] == array.tolist()
    assert 5 in tensor
    assert 7 not in tensor
    with pytest.raises(IndexError):
        tensor[2]
    with pytest.raises(TypeError, match="unsized"):
        len(form(np.array(1, np.float32)))


@FORMS
def test_operators_compute_with_the_elements_and_give_arrays(form):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = form(array)
    for computed, expected in (
        (tensor + 1, array + 1),
        (2 * tensor, 2 * array),
        (array - tensor, np.zeros_like(array)),
        (-tensor, -array),
        (tensor @ array.T, array @ array.T),
        (tensor == 3, array == 3),
        (tensor != form(array), array != array),  # noqa: PLR0124 - the same values
        (array == tensor, array == array),  # noqa: PLR0124 - likewise
        (tensor > 2, array > 2),
        (np.exp(tensor), np.exp(array)),
        (np.add.reduce(tensor), np.add.reduce(array)),
        (np.concatenate([tensor, tensor]), np.concatenate([array, array])),
    ):
        assert type(computed) is np.ndarray
        np.testing.assert_array_equal(computed, expected, strict=True)
    with pytest.raises(TypeError, match=r"add\(\): out is <Tensor .*>; it must be an array, such as the tensor's data"):
        tensor += 1
    with pytest.raises(TypeError, match="out is <Tensor"):
        np.exp(array, out=tensor)
    np.testing.assert_array_equal(array, np.arange(6).reshape(2, 3))


@FORMS
def test_a_tensor_of_one_element_is_a_number(form):
    for shape in ((), (1,), (1, 1)):
        half, two = form(np.full(shape, 0.5, np.float16)), form(np.full(shape, 2, np.int32))
        assert (float(half), int(two), complex(half), bool(half), bool(half - half)) == (0.5, 2, 0.5, True, False)
    assert operator.index(form(np.array(2, np.int64))) == 2
    with pytest.raises(TypeError, match="index"):
        operator.index(form(np.array(2, np.float32)))
    several = form(np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"float\(\): <Tensor float32 \[3\] cpu> has 3 elements; it must have one"):
        float(several)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(several)


@FORMS
@ALL_USES
def test_a_disposed_tensor_refuses(form, use):
    tensor = form(np.ones(3, np.float32))
    tensor.dispose()
    with pytest.raises(InvalidStateError, match=r"<Tensor float32 \[3\] cpu, disposed> was disposed of"):
        use(tensor)


@FORMS
def test_arrays_outlive_their_tensor(form):
    tensor = form(np.arange(3, dtype=np.float32))
    views = [np.asarray(tensor), np.from_dlpack(tensor), tensor[1:], tensor.numpy()]
    tensor.dispose()
    del tensor
    assert [view.tolist() for view in views] == [[0, 1, 2], [0, 1, 2], [1, 2], [0, 1, 2]]


# --- on the device ---------------------------------------------------------------------------------------------------


async def test_outputs_of_a_session_are_arrays(env, x):
    async with await env.create_session(add()) as session:
        y = (await session.run({"x": x}))["y"]
    assert np.argmax(y) == 5
    np.testing.assert_array_equal(np.asarray(y), x + 1)
    np.testing.assert_array_equal(y, x + 1)


def test_outputs_of_a_blocking_session_are_arrays(options, x):
    with blocking.Environment(**options) as env, env.create_session(add()) as session:
        y = session.run({"x": x})["y"]
        np.testing.assert_array_equal(y, x + 1)
        assert y.numpy() is y.data


@ALL_USES
async def test_a_tensor_on_the_device_names_the_await(env, use):
    tensor = await env.create_tensor(np.ones(3, np.float32))
    assert (tensor.shape, tensor.dtype) == ((3,), np.float32)
    with pytest.raises(TypeError, match=r"is on the device; array = await tensor.get_data\(\) brings its elements"):
        use(tensor)
    np.testing.assert_array_equal(await tensor.get_data(), 1)
    tensor.dispose()
    with pytest.raises(InvalidStateError, match="was disposed of"):
        use(tensor)


@pytest.fixture(scope="module")
def blocking_env(options):
    with blocking.Environment(**options) as environment:
        yield environment


@ALL_USES
def test_a_blocking_tensor_on_the_device_names_the_method(blocking_env, use):
    tensor = blocking_env.create_tensor(np.ones(3, np.float32))
    with pytest.raises(TypeError, match=r"is on the device; array = tensor.get_data\(\) brings its elements"):
        use(tensor)
    with pytest.raises(InvalidStateError, match=r"data: .* is on the device; array = tensor.get_data\(\) brings"):
        tensor.data  # noqa: B018 - reading it is the test
    tensor.dispose()


async def test_a_tensor_has_its_location(env, backend, x):
    on_device = device_location(backend)
    for preferred in ("gpu-buffer", "ml-tensor", {"y": "gpu-buffer"}, {"y": "ml-tensor"}):
        async with await env.create_session(add(), preferred_output_location=preferred) as session:
            y = (await session.run({"x": x}))["y"]
        assert y.location == on_device
        assert repr(y) == f"<Tensor float32 [2, 3] {on_device}>"
        y.dispose()
        assert repr(y) == f"<Tensor float32 [2, 3] {on_device}, disposed>"


# --- handles and promises --------------------------------------------------------------------------------------------

TAKEN_FOR_ARRAYS = cells("use", [np.asarray, np.argmax, np.from_dlpack, list, lambda it: it[0]])


@TAKEN_FOR_ARRAYS
async def test_a_buffer_is_no_array_and_names_the_await(context, use):
    buffer = await context.create_buffer(data_type="float32", shape=[3], readable=True)
    with pytest.raises(TypeError, match=r"<MLBuffer .*> is no array: .*; array = await context.read_buffer\(buffer\)"):
        use(buffer)
    buffer.destroy()


async def test_a_tensor_on_the_host_can_be_written_to_a_buffer(context):
    buffer = await context.create_buffer(data_type="float32", shape=[3], readable=True, writable=True)
    context.write_buffer(buffer, Tensor(np.arange(3, dtype=np.float32)))
    np.testing.assert_array_equal(await context.read_buffer(buffer), [0, 1, 2])
    buffer.destroy()
