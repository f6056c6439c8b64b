"""Messages show values and labels short and on one line, and never fail themselves."""

import sys

import numpy as np
import pytest

from spec_tests.support.cells import cells
from spec_tests.support.hostile import VALUES
from spec_tests.support.scene import assert_refused, assert_works, set_scene
from webnn_py import MLGraphBuilder, UnknownError
from webnn_py.core.api import buffer_source
from webnn_py.core.message_text import in_brackets, listed, shown

LONGEST = 1000


@cells("what", VALUES)
def test_a_value_is_shown_short_and_on_one_line(what):
    text = shown(VALUES[what]())
    assert type(text) is str
    assert text.isprintable(), repr(text)
    assert len(text) <= LONGEST, f"{len(text)} characters"


def test_a_value_is_shown_as_python_would():
    numbers = [0, -5, 2**64, 1.5, True]
    for value in (*numbers, numbers, "a", b"a", (1,), {2: 2}, {"a": [1]}, None, np.dtype("f4"), np.float64):
        assert shown(value) == repr(value)
    assert shown(np.ones((2, 2))) == "array([[1., 1.], [1., 1.]])"
    assert shown("\x1b[31m\u202e") == r"'\x1b[31m\u202e'"
    assert listed((1, 2, 3)) == "[1, 2, 3]"


def test_long_integers_are_shown_by_their_length():
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert shown(-(1 << 50_000)) == "an integer of 50001 bits"
        assert shown([1 << 50_000]) == "[an integer of 50001 bits]"
    finally:
        sys.set_int_max_str_digits(limit)


@pytest.mark.parametrize("label", ["", None, 5, ["a"]])
def test_other_values_than_labels_are_not_shown(label):
    assert in_brackets(label) == ""


async def test_a_long_label_is_cut_in_messages_and_kept_in_the_graph(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[4])
    label = "much " * 200_000
    for call in (lambda: builder.relu(1, label=label), lambda: builder.softmax(x, 4, label=label)):
        with pytest.raises(TypeError, match=r"\(\) \[much much .*\.\.\.\]: ") as caught:
            call()
        assert len(str(caught.value)) < 300


async def test_the_refusal_of_minus_one_names_the_allowed_values(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    x = builder.input("x", data_type="float32", shape=[2, 3])
    nothing = "; a size is at least 1 and never inferred, and no axis counts from the end$"
    for words, call in {
        r"shape\[0\] is -1; it must be from 1 to 2147483647": lambda: builder.input("y", data_type="int8", shape=[-1]),
        r"new_shape\[0\] is -1; it must be from 0 to 4294967295": lambda: builder.reshape(x, [-1, 2]),
        "axis is -1; it must be from 0 to 4294967295": lambda: builder.softmax(x, -1),
    }.items():
        with pytest.raises(TypeError, match=words + nothing):
            call()


async def test_a_host_without_memory_for_a_copy_is_reported_as_a_failure(ml, options, monkeypatch):
    scene = await set_scene(ml, options)

    def no_memory(*_args, **_kwargs):
        raise MemoryError

    data = bytes(8)
    calls = {
        "write_buffer": lambda: scene.context.write_buffer(scene.y, data),
        "create_constant_buffer": lambda: scene.context.create_constant_buffer(data, data_type="float32", shape=[2]),
        "constant": lambda: scene.builder.constant(data, data_type="float32", shape=[2]),
    }
    for method, call in calls.items():
        with monkeypatch.context() as patch:
            patch.setattr(buffer_source.np, "array", no_memory)
            words = rf"^{method}\(\): there is no memory for a copy of 8 bytes"
            caught = await assert_refused(method, call, UnknownError, words)
        assert isinstance(caught.value.__cause__, MemoryError)
        assert scene.context.statistics().queued_operations == 0
    for method in calls:
        await assert_works(method, scene)
