"""The origin of a value: the value that a chain of reshapes, and of what acts as reshapes, starts from."""

import pytest

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Input, Output
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.devices.rewriting.reshapes import acts_as_reshape, origin_of, reshape


def drawn(draw, shape=(2, 1, 3)):
    """Return a value, and what ``draw`` makes of it with a builder."""
    value, builder = Input(MLOperandDescriptor("float32", shape), "x"), RewriteBuilder("", ())
    return value, builder.value(draw(builder, builder.operand(value)))


@pytest.mark.parametrize(
    "draw",
    [
        lambda b, x: b.reshape(x, [3, 2]),
        lambda b, x: b.transpose(x, permutation=[0, 2, 1]),
        lambda b, x: b.reduce_max(x, axes=[1]),
        lambda b, x: b.reduce_mean(b.reshape(b.transpose(x, permutation=[1, 0, 2]), [1, 6]), axes=[0]),
    ],
)
def test_what_keeps_all_elements_in_their_order_has_the_origin_of_its_operand(draw):
    value, result = drawn(draw)
    assert origin_of(result) is value
    assert isinstance(result, Output)
    assert acts_as_reshape(result.node)


@pytest.mark.parametrize(
    "draw",
    [
        lambda b, x: b.neg(x),
        lambda b, x: b.transpose(x),
        lambda b, x: b.reduce_max(x, axes=[0]),
        lambda b, x: b.reduce_l2(x, axes=[1]),
    ],
)
def test_other_values_are_their_own_origin(draw):
    value, result = drawn(draw)
    assert origin_of(result) is result
    assert isinstance(result, Output)
    assert not acts_as_reshape(result.node)
    assert origin_of(value) is value


def test_a_chain_of_any_length_has_one_origin():
    _, origin = drawn(lambda b, x: b.neg(x))
    value = origin
    for number in range(5000):
        value = reshape(value, ((6,), (2, 3))[number % 2], origin.node).results[0]
    assert origin_of(value) is origin
