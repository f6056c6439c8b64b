"""Arrays of other libraries are data as numpy's are, by ``__dlpack__``, ``__array_interface__`` or ``__array__``."""

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.host_data import WAYS_IN, extremes
from spec_tests.support.scene import assert_refused, assert_works, set_scene
from webnn_py import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES

CPU, CUDA = 1, 2


class Dlpack:
    """An array that exports by DLPack, on the CPU as on others."""

    def __init__(self, array, device=CPU):
        self._array, self._device = array, device
        self.exports = 0

    def __dlpack__(self, **options):
        self.exports += 1
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return (self._device, 0)


class OldDlpack(Dlpack):
    """An array of a library from before DLPack 1, which knows no options."""

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__(stream=stream)


class Interface:
    """An array that exports the address of its memory."""

    def __init__(self, array):
        self._array = array  # which has to live as long

    @property
    def __array_interface__(self):
        return self._array.__array_interface__


class Converts:
    """An array that can make itself a numpy array."""

    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return np.array(self._array, dtype, copy=copy)


class OldConverts(Converts):
    """An array of a library from before numpy 2."""

    def __array__(self):
        return self._array


class OnGpu(Dlpack):
    """An array on a GPU that refuses to be made numpy's, as most do."""

    def __init__(self, array):
        super().__init__(array, CUDA)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert device type tensor to numpy. Use Tensor.cpu() to copy it to host memory first.")


PROTOCOLS = {
    "DLPack": Dlpack,
    "DLPack of old": OldDlpack,
    "__array_interface__": Interface,
    "__array__": Converts,
    "__array__ of old": OldConverts,
}


LIBRARIES = {
    "a series of pandas": ("pandas", lambda pandas, values: pandas.Series(values.ravel())),
    "a frame of pandas": ("pandas", lambda pandas, values: pandas.DataFrame(values)),
    "an array of pyarrow": ("pyarrow", lambda pyarrow, values: pyarrow.array(values.ravel())),
    "chunks of pyarrow": ("pyarrow", lambda pyarrow, values: pyarrow.chunked_array([*values])),
    "an array of jax": ("jax.numpy", lambda jax, values: jax.asarray(values)),
    "a tensor of torch": ("torch", lambda torch, values: torch.from_numpy(values)),
    "a strided tensor of torch": ("torch", lambda torch, values: torch.from_numpy(np.ascontiguousarray(values.T)).T),
    "a series of polars": ("polars", lambda polars, values: polars.Series(values.ravel())),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_data_of_every_protocol_arrive_bit_by_bit(context, way_in, protocol):
    for data_type in DATA_TYPES:
        values = extremes(data_type)
        for layout, array in {"rows": values, "columns": np.asfortranarray(values), "flat": values.ravel()}.items():
            arrived = await WAYS_IN[way_in](context, PROTOCOLS[protocol](array), data_type, values.shape)
            assert arrived.tobytes() == values.tobytes(), f"{data_type}, {layout}"


@pytest.mark.parametrize("name", LIBRARIES)
async def test_data_of_a_library_arrive_bit_by_bit(context, way_in, name):
    module, make = LIBRARIES[name]
    library = pytest.importorskip(module)
    for data_type in DATA_TYPES:
        values = extremes(data_type)
        if module.startswith("jax") and data_type.endswith("64"):
            continue  # it has no 64-bit types by default
        arrived = await WAYS_IN[way_in](context, make(library, values.copy()), data_type, values.shape)
        assert arrived.tobytes() == values.tobytes(), data_type


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_constant_takes_data_type_and_shape_from_an_array_of_another_library(numpy_context, protocol):
    builder = MLGraphBuilder(numpy_context)
    values = np.arange(6, dtype=np.int16).reshape(2, 3)
    for data_type in DATA_TYPES:
        array = PROTOCOLS[protocol](values.astype(data_type))
        for operand in (
            builder.constant(array),
            builder.constant(array, data_type=data_type),
            builder.constant(array, shape=(2, 3)),
        ):
            assert (operand.data_type, operand.shape) == (data_type, (2, 3))
    with pytest.raises(TypeError, match=r"^constant\(\): the array's data type is int16; it must be one of float32"):
        builder.constant(PROTOCOLS[protocol](values))


async def test_an_array_of_another_library_is_exported_once(numpy_context):
    array = Dlpack(np.ones((2, 3), np.float32))
    for way_in in WAYS_IN.values():
        await way_in(numpy_context, array, "float32", (2, 3))
    assert array.exports == len(WAYS_IN)
    MLGraphBuilder(numpy_context).constant(array)
    assert array.exports == len(WAYS_IN) + 1


async def test_a_read_array_exports_by_every_protocol(context):
    buffer = await context.create_buffer(data_type="float32", shape=[2, 3], readable=True, writable=True)
    values = extremes("float32")
    context.write_buffer(buffer, values)
    read = await context.read_buffer(buffer)
    assert np.from_dlpack(read).tobytes() == values.tobytes()
    for protocol in PROTOCOLS.values():
        context.write_buffer(buffer, protocol(read))
        assert (await context.read_buffer(buffer)).tobytes() == values.tobytes()


REFUSED = {
    "another data type": (lambda: Converts(np.zeros((2, 3))), "float64; they must be float32"),
    "too many elements": (lambda: Dlpack(np.zeros(7, np.float32)), "28 bytes.*exactly 24 bytes"),
    "another shape": (lambda: Interface(np.zeros((3, 2), np.float32)), r"shape \[3, 2\]; it must be \[2, 3\], or flat"),
    "objects, as of values that are missing": (lambda: Converts(np.array([1.0, None, 2.0], object)), "data are object"),
    "the memory of a GPU": (
        lambda: Dlpack(np.zeros((2, 3), np.float32), CUDA),
        "Dlpack, which does not export them: they are on a device of DLPack's type 2; copy them to the CPU",
    ),
    "the memory of a GPU whose library says what to do": (
        lambda: OnGpu(np.zeros((2, 3), np.float32)),
        "OnGpu, which does not export them: can't convert device type tensor to numpy. Use Tensor.cpu",
    ),
    "an array's class": (lambda: np.ndarray, "data are type; they must be a numpy array"),
}


@cells("what", REFUSED)
@cells("method", WAYS_IN)
async def test_an_array_of_another_library_is_refused_for(ml, options, method, what):
    scene = await set_scene(ml, options)
    make, words = REFUSED[what]
    buffer = await scene.context.create_buffer(data_type="float32", shape=[2, 3], writable=True)
    descriptor = {"data_type": "float32", "shape": [2, 3]}
    call = {
        "write_buffer": lambda: scene.context.write_buffer(buffer, make()),
        "create_constant_buffer": lambda: scene.context.create_constant_buffer(make(), **descriptor),
        "constant": lambda: scene.builder.constant(make(), **descriptor),
    }[method]
    await assert_refused(method, call, TypeError, rf"^{method}\(\): .*{words}")
    assert scene.context.statistics().queued_operations == 0
    await assert_works(method, scene)


async def test_an_array_that_only_exports_is_refused_as_out(context):
    buffer = await context.create_buffer(data_type="float32", shape=[2, 3], readable=True)
    for protocol in PROTOCOLS.values():
        with pytest.raises(TypeError, match=r"^read_buffer\(\): out .*cannot be used as a buffer"):
            await context.read_buffer(buffer, out=protocol(np.zeros((2, 3), np.float32)))
