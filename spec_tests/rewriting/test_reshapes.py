"""The origin of a value: the value that a chain of reshapes, and of what acts as reshapes, starts from."""

import pytest

from spec_tests.support.stand_ins import noted
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Input, Output
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.devices.rewriting import reshapes
from webnn_py.devices.rewriting.reshapes import origin_of, reshape, reshaped_value


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
    assert reshaped_value(result.node) is value


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
    assert reshaped_value(result.node) is None
    assert origin_of(value) is value


def test_an_origin_is_found_once_for_each_node_of_a_chain_of_any_length(monkeypatch):
    looked_at = noted(monkeypatch, reshapes, "_acts_as_reshape", lambda node: node)
    _, origin = drawn(lambda b, x: b.neg(x))
    chain, value = [], origin
    for number in range(5000):
        value = reshape(value, ((6,), (2, 3))[number % 2], origin.node).results[0]
        chain.append(value)
    assert origin_of(chain[-1]) is origin
    looked_at.clear()
    assert all(origin_of(one) is origin for one in chain)
    assert origin_of(reshape(chain[-1], (3, 2), chain[-1].node).results[0]) is origin
    assert len(looked_at) == 1
