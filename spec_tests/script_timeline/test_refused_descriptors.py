"""Data types, shapes and sizes that buffers, inputs and constants refuse, and the largest that they accept."""

import numpy as np
import pytest

from spec_tests.support.abilities import longest_operand
from spec_tests.support.cells import cells
from spec_tests.support.scene import assert_refused, assert_works, set_scene
from webnn_py import MLGraphBuilder

BAD = {
    "a dimension of zero": ("float32", [2, 0], r"\[2, 0\]; dimension 1 must be from 1 to 2147483647"),
    "only a dimension of zero": ("int8", [0], r"dimension 0 must be from 1"),
    "a negative dimension": ("float32", [-1], r"shape\[0\] is -1; it must be from 1 to 2147483647"),
    "a dimension beyond long": ("int8", [2**31], r"dimension 0 must be from 1 to 2147483647"),
    "a dimension beyond unsigned long": (
        "int8",
        [2**32 + 1],
        r"shape\[0\] is 4294967297; it must be from 1 to 2147483647",
    ),
    "too high a rank": ("float32", [1] * 9, "rank is 9; it must be at most 8"),
    "too many elements": ("int8", [65536, 32768], "2147483648 elements; it must have at most 2147483647"),
    "too many bytes": ("float32", [2**29], "2147483648 bytes; it must take at most LONGEST"),
    "too many bytes in int64": ("int64", [2, 2**27], "2147483648 bytes; it must take at most LONGEST"),
    "a data type of numpy only": ("float64", [2], "data_type is 'float64'; it must be one of float32, float16"),
    "a data type with a dash": ("float-32", [2], "data_type is 'float-32'"),
    "a data type in capitals": ("Float32", [2], "data_type is 'Float32'"),
    "a type of numpy only": (np.float64, [2], "data_type is <class 'numpy.float64'>; .*, or numpy's native dtype"),
    "a dtype of numpy only": (np.dtype("complex64"), [2], r"data_type is dtype\('complex64'\)"),
    "a dtype of bool": (np.dtype(bool), [2], r"data_type is dtype\('bool'\)"),
    "a type of bool": (np.bool_, [2], "data_type is <class 'numpy.bool'>"),
    "a dtype of the other byte order": (np.dtype("float32").newbyteorder(), [2], r"data_type is dtype\('>f4'\)"),
    "a dtype of records": (np.dtype([("x", "f4")]), [2], r"data_type is dtype\(\[\('x'"),
    "a kind of numpy's types": (np.floating, [2], "data_type is <class 'numpy.floating'>"),
    "a type of Python": (float, [2], "data_type is <class 'float'>"),
    "an array": (np.ones(2, np.float32), [2], r"data_type is array"),
    "a data type that cannot be hashed": (["float32"], [2], r"data_type is \['float32'\]"),
    "no data type": (None, [2], "data.type is (None|missing)"),
    "a number for a shape": ("float32", 2, "shape is 2; it must be a sequence of integers"),
    "a string for a shape": ("float32", "2", "shape is '2'; it must be a sequence of integers"),
    "bytes for a shape": ("float32", b"2", "shape is b'2'; it must be a sequence of integers"),
    "a mapping for a shape": ("float32", {2: 2}, r"shape is \{2: 2\}; it must be a sequence of integers"),
    "a float in a shape": ("float32", [2, 2.0], r"shape\[1\] is 2.0; it must be an integer"),
    "a string in a shape": ("float32", ["2"], r"shape\[0\] is '2'; it must be an integer"),
    "a bool in a shape": ("float32", [True], r"shape\[0\] is True; it must be an integer, not a bool"),
    "None in a shape": ("float32", [None], r"shape\[0\] is None; it must be an integer"),
}

METHODS = {
    "create_buffer": lambda s, d: s.context.create_buffer(**d),
    "create_constant_buffer": lambda s, d: s.context.create_constant_buffer(b"", **d),
    "input": lambda s, d: s.builder.input("z", **d),
    "constant": lambda s, d: s.builder.constant(b"", **d),
}


@cells("method", METHODS)
@cells("what", BAD)
async def test_a_wrong_descriptor_is_refused(ml, options, method, what):
    scene = await set_scene(ml, options)
    data_type, shape, words = BAD[what]
    words = words.replace("LONGEST", str(longest_operand(scene.context)))
    descriptor = {"data_type": data_type, "shape": shape}

    await assert_refused(method, lambda: METHODS[method](scene, descriptor), TypeError, rf"{method}\(\).*{words}")

    assert scene.context.statistics().queued_operations == 0, "a refused call must enqueue nothing"
    await assert_works(method, scene)


@pytest.mark.parametrize(
    ("data_type", "words"),
    [("float64", "'float64'; it must be one of"), (np.float64, "numpy.float64"), (None, "data_type is missing")],
    ids=["of numpy only", "of numpy", "missing"],
)
async def test_a_number_of_a_wrong_data_type_is_refused(scene, data_type, words):
    call = lambda: scene.builder.constant(1, data_type=data_type)  # noqa: E731
    await assert_refused("constant", call, TypeError, rf"constant\(\).*{words}")
    await assert_works("constant", scene)


@pytest.mark.parametrize("flag", ["readable", "writable"])
@pytest.mark.parametrize("value", [1, 0, None, "true", np.True_], ids=repr)
async def test_a_flag_is_refused_unless_it_is_true_or_false(scene, flag, value):
    call = lambda: scene.context.create_buffer(data_type="int8", shape=[1], **{flag: value})  # noqa: E731
    await assert_refused("create_buffer", call, TypeError, rf"create_buffer\(\).*{flag} is .*True or False")
    await assert_works("create_buffer", scene)


SHAPES = {
    "a tuple": lambda: (2,),
    "a list": lambda: [2],
    "a range": lambda: range(2, 3),
    "an array": lambda: np.array([2]),
    "an iterator": lambda: iter([2]),
    "integers of numpy": lambda: [np.int64(2)],
}


@pytest.mark.parametrize("what", SHAPES)
async def test_a_shape_is_any_sequence_of_integers(context, what):
    buffer = await context.create_buffer(data_type="float32", shape=SHAPES[what]())
    assert buffer.shape == (2,)
    assert type(buffer.shape[0]) is int


async def test_the_highest_rank_is_eight(context):
    buffer = await context.create_buffer(data_type="float32", shape=[1] * 8, readable=True)
    assert (await context.read_buffer(buffer)).shape == (1,) * 8
    assert MLGraphBuilder(context).input("x", data_type="float32", shape=[1] * 8).rank == 8


@pytest.mark.parametrize("data_type", ["int8", "float16", "float32", "int64"])
async def test_the_longest_operand_has_as_many_bytes_as_the_device_takes_and_less_than_two_gibibytes(
    context, data_type
):
    elements = longest_operand(context) // np.dtype(data_type).itemsize
    assert longest_operand(context) < 2**31
    operand = MLGraphBuilder(context).input("x", data_type=data_type, shape=[1, elements])
    assert (operand.data_type, operand.shape) == (data_type, (1, elements))
    refusal = r"dimension 1 must be" if elements == 2**31 - 1 else rf"it must take at most {longest_operand(context)}"
    with pytest.raises(TypeError, match=rf"^input\(\): .*{refusal}"):
        MLGraphBuilder(context).input("x", data_type=data_type, shape=[1, elements + 1])


async def test_an_operators_output_is_refused_for_its_size(context):
    builder = MLGraphBuilder(context)
    tall = builder.input("tall", data_type="float32", shape=[32768, 1])
    wide = builder.input("wide", data_type="float32", shape=[1, 32768])
    with pytest.raises(
        TypeError, match=rf"add\(\).*4294967296 bytes; it must take at most {longest_operand(context)}$"
    ):
        builder.add(tall, wide)
