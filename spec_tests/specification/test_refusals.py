"""Each step that refuses something is the one that does: the words are its own, not those of a later check.

Later steps would often refuse the same arguments with the same error; these calls distinguish them.
"""

import gc
import weakref

import attrs
import numpy as np
import pytest

from spec_tests.specification import steps
from spec_tests.specification.references import resolved
from spec_tests.support.buffers import filled
from webnn_py import InvalidStateError, MLGraphBuilder
from webnn_py.core.operators.limits import MAX_RANK


def of(builder):
    """Makes inputs."""
    numbers = iter(range(99))
    return lambda shape, data_type="float32": builder.input(f"x{next(numbers)}", data_type=data_type, shape=shape)


IMAGE = (1, 2, 4, 4)

REFUSED = {
    "argminmax-op 4": (lambda b, x: b.arg_min(x([2]), 1), "axis is 1"),
    "argminmax-op 5": (lambda b, x: b.arg_max(x([2]), 0, output_data_type="float32"), "output_data_type is float32"),
    "calculate reduction output sizes 3": (
        lambda b, x: b.reduce_sum(x([2]), axes=[0, 0]),
        r"axes is \[0, 0\]; it must be without duplicates",
    ),
    "clamp 7": (lambda b, x: b.clamp(x([2]), min_value=3, max_value=1), "min_value, as float32, is 3"),
    "concat 3": (lambda b, _: b.concat([], 0), "the number of inputs is 0"),
    "concat 5": (lambda b, x: b.concat([x([2])], 1), "axis is 1"),
    "concat 8.4.2.2": (
        lambda b, x: b.concat([x([2**30], "uint8"), x([2**30], "uint8")], 0),
        r"the size of axis 0 up to inputs\[1\] is 2147483648",
    ),
    "conv2d 8": (lambda b, x: b.conv2d(x(IMAGE), x([3, 2, 1, 1]), padding=[1]), "the length of padding"),
    "conv2d 15": (lambda b, x: b.conv2d(x(IMAGE), x([3, 2, 1, 1]), groups=0), "the number of groups is 0"),
    "conv2d 16.5": (
        lambda b, x: b.conv2d(x([1, 3, 4, 4]), x([2, 1, 1, 1]), groups=2),
        "the number of groups is 2; it must be a divisor of the number of input channels, 3",
    ),
    "conv2d 16.12": (lambda b, x: b.conv2d(x(IMAGE), x([3, 2, 5, 1])), "the output's height is 0"),
    "convTranspose2d 20.13": (
        lambda b, x: b.conv_transpose2d(x(IMAGE), x([2, 3, 1, 1]), padding=[2, 2, 0, 0]),
        "the output's height is 0",
    ),
    "expand 4": (lambda b, x: b.expand(x([1]), [1] * (MAX_RANK + 1)), "the rank of new_shape"),
    "gather 7": (lambda b, x: b.gather(x([2]), x([1], "int32"), axis=1), "axis is 1"),
    "lstm 6": (
        lambda b, x: b.lstm(x([1, 2, 3]), x([1, 16, 3]), x([1, 16, 4]), 0, 4),
        "steps is 0; it must be at least 1",
    ),
    "pad 6.1.1": (
        lambda b, x: b.pad(x([2]), [2], [0], mode="reflection"),
        r"beginning_padding is \[2\]; it must be less than the shape",
    ),
    "pad 6.1.2": (
        lambda b, x: b.pad(x([2]), [0], [2], mode="reflection"),
        r"ending_padding is \[2\]; it must be less than the shape",
    ),
    "pad 7": (lambda b, x: b.pad(x([2], "uint8"), [2**31 - 2], [1]), "the padded shape is"),
    "pooling-op 8": (lambda b, x: b.max_pool2d(x(IMAGE), window_dimensions=[2]), "the length of window_dimensions"),
    "pooling-op 9": (lambda b, x: b.max_pool2d(x(IMAGE), window_dimensions=[2, 0]), r"window_dimensions is \[2, 0\]"),
    "pooling-op 13": (lambda b, x: b.max_pool2d(x(IMAGE), strides=[1]), "the length of strides"),
    "pooling-op 14": (lambda b, x: b.max_pool2d(x(IMAGE), strides=[1, 0]), r"strides is \[1, 0\]"),
    "pooling-op 15.1": (lambda b, x: b.max_pool2d(x(IMAGE), output_sizes=[1]), "the length of output_sizes"),
    "pooling-op 17": (lambda b, x: b.max_pool2d(x(IMAGE), dilations=[1]), "the length of dilations"),
    "pooling-op 18": (lambda b, x: b.max_pool2d(x(IMAGE), dilations=[1, 0]), r"dilations is \[1, 0\]"),
    "pooling-op 20.5": (
        lambda b, x: b.max_pool2d(x(IMAGE), window_dimensions=[5, 1]),
        r"the output's height and width is \[0, 4\]",
    ),
    "resample2d 10.3.3": (lambda b, x: b.resample2d(x(IMAGE), scales=[0.1, 1]), "the new size of axis 2 is 0"),
    "reshape 3": (lambda b, x: b.reshape(x([1]), [1] * (MAX_RANK + 1)), "the rank of new_shape"),
    "reshape 6": (lambda b, x: b.reshape(x([1]), [1, 0]), r"new_shape is \[1, 0\]"),
    "slice 3": (lambda b, x: b.slice(x([2]), [0], [0]), r"sizes is \[0\]; it must be at least 1 everywhere"),
    "slice 4": (lambda b, x: b.slice(x([2]), [0, 0], [1]), "the length of starts"),
    "slice 9.5": (lambda b, x: b.slice(x([2]), [0], [1], strides=[0]), r"strides is \[0\]"),
    "split 6.1": (lambda b, x: b.split(x([2]), []), "the number of splits is 0"),
    "split 6.2": (lambda b, x: b.split(x([2]), [0, 2]), r"splits is \[0, 2\]; it must be at least 1 everywhere"),
    "tile 3": (lambda b, x: b.tile(x([2]), [1, 1]), "the length of repetitions"),
    "tile 4": (lambda b, x: b.tile(x([2]), [0]), r"repetitions is \[0\]"),
    "transpose 4.1": (lambda b, x: b.transpose(x([2, 3]), permutation=[0]), "the length of permutation"),
}


@pytest.mark.parametrize("reference", REFUSED)
async def test_a_step_refuses_in_its_own_words(ml, reference):
    _, [(name, identifier)] = resolved(reference, "here")
    assert steps.ALGORITHMS[name].step(identifier).refuses
    builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
    call, words = REFUSED[reference]
    with pytest.raises(TypeError, match=words):
        call(builder, of(builder))


EFFECTS = {
    "calculate reduction output sizes 4": (
        lambda b, x: b.reduce_sum(x([2, 3]), axes=[1], keep_dimensions=True),
        (2, 1),
    ),
}
"""Steps that refuse nothing → a call, and the shape that it has because of the step."""


@pytest.mark.parametrize("reference", EFFECTS)
async def test_a_step_has_its_effect(ml, reference):
    builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
    call, shape = EFFECTS[reference]
    assert call(builder, of(builder)).shape == shape


_HERE = "spec_tests/specification/test_refusals.py"
NAMED = {
    "cast 3": f"{_HERE}::test_an_output_that_the_device_lacks_is_refused",
    "MLContext.readTensor(tensor) 8.1.2.1": f"{_HERE}::test_a_read_that_is_done_is_no_longer_kept_by_its_buffer",
    "MLContext.readTensor(tensor, outputData) 6": f"{_HERE}::test_a_target_is_checked_before_the_buffer_is_destroyed",
    "create a context 3.3": (
        "spec_tests/script_timeline/test_compute_policy.py::test_on_a_processor_a_graph_runs_by_fallback_whatever_was_"
        "asked_for"
    ),
}
"""Steps → a test of its own that fails without the step."""


@pytest.mark.parametrize(
    "draw",
    [
        lambda b, x: b.cast(x([2]), "int64"),
        lambda b, x: b.arg_min(x([2]), 0, output_data_type="int64"),
    ],
    ids=["cast", "arg_min"],
)
async def test_an_output_that_the_device_lacks_is_refused(ml, draw):
    context = await ml.create_context(backend="numpy")
    types = tuple(one for one in context._capabilities.data_types if one != "int64")
    context._capabilities = attrs.evolve(context._capabilities, data_types=types)
    builder = MLGraphBuilder(context)
    with pytest.raises(TypeError, match="the data type of the output is int64; it must be"):
        draw(builder, of(builder))


async def test_a_read_that_is_done_is_no_longer_kept_by_its_buffer(ml):
    context = await ml.create_context(backend="numpy")
    buffer = await filled(context, [1, 2])
    result = weakref.ref(await context.read_buffer(buffer))
    gc.collect()
    assert result() is None
    pending = context.read_buffer(buffer)
    buffer.destroy()
    with pytest.raises(InvalidStateError):
        await pending


async def test_a_target_is_checked_before_the_buffer_is_destroyed(ml):
    context = await ml.create_context(backend="numpy")
    buffer = await filled(context, [1, 2])
    read = context.read_buffer(buffer, out=np.empty(1, np.float32))
    buffer.destroy()
    with pytest.raises(TypeError, match="they must be exactly 8 bytes"):
        await read
