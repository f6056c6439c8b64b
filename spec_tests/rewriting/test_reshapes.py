"""The origin of a value: the value that a chain of reshapes, and of what acts as reshapes, starts from."""

import pytest

from spec_tests.support.stand_ins import noted
from webnn_py.core import graph as graphs
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Input, Output
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.devices.rewriting.reshapes import reshape


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
    assert result.origin is value
    assert isinstance(result, Output)
    assert result.node.reshapes is value


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
    assert result.origin is result
    assert isinstance(result, Output)
    assert result.node.reshapes is None
    assert value.origin is value


def test_an_origin_is_found_once_for_each_node_of_a_chain_of_any_length(monkeypatch):
    looked_at = noted(monkeypatch, graphs, "_acts_as_reshape", lambda node: node)
    _, origin = drawn(lambda b, x: b.neg(x))
    chain, value = [], origin
    for number in range(5000):
        value = reshape(value, ((6,), (2, 3))[number % 2], origin.node).results[0]
        chain.append(value)
    assert chain[-1].origin is origin
    looked_at.clear()
    assert all(one.origin is origin for one in chain)
    assert reshape(chain[-1], (3, 2), chain[-1].node).results[0].origin is origin
    assert len(looked_at) == 1
