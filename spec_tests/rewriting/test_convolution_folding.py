"""Batch normalizations are folded into a convolution's filter and bias."""

import numpy as np
import pytest

from spec_tests.on_numpy.drawing import Drawing, operators_of, results
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant
from webnn_py.devices.rewriting.convolution_folding import folded as folded_by

rng = np.random.default_rng(18)
STATISTICS = {"mean": rng.normal(size=8), "variance": rng.random(8) + 0.5, "scale": rng.normal(size=8)}
IMAGES = rng.normal(size=(2, 8, 5, 6)).astype(np.float32)
FILTERS = rng.normal(size=(8, 8, 3, 3)).astype(np.float32)
BIAS = rng.normal(size=8).astype(np.float32)
LAST = {"input_layout": "nhwc", "filter_layout": "ohwi"}


def normalized(b, convolved, axis=1, **further):
    statistics = {name: b.known(array.astype(np.float32)) for name, array in (STATISTICS | further).items()}
    return b.batch_normalization(convolved, statistics.pop("mean"), statistics.pop("variance"), axis=axis, **statistics)


FOLDED = {
    "without biases": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS))),
    "with biases": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS), bias=b.known(BIAS)), bias=BIAS[::-1]),
    "pointwise": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS[:, :, :1, :1].copy()))),
    "by the channel": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS[:, :1].copy()), groups=8)),
    "of channels that come last": lambda b, x: normalized(
        b, b.conv2d(b.transpose(x, permutation=[0, 2, 3, 1]), b.known(FILTERS.transpose(0, 2, 3, 1).copy()), **LAST), 3
    ),
}
UNFOLDED = {
    "read twice": lambda b, x: b.add(normalized(b, y := b.conv2d(x, b.known(FILTERS))), y),
    "along another axis": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS), padding=[1, 1, 1, 3]), axis=3),
    "of float16": lambda b, x: b.batch_normalization(
        b.conv2d(b.cast(x, "float16"), b.known(FILTERS.astype(np.float16))),
        *(b.known(STATISTICS[name].astype(np.float16)) for name in ("mean", "variance")),
    ),
    "by what is no constant": lambda b, x: b.batch_normalization(
        b.conv2d(x, b.known(FILTERS)), mean := b.reshape(b.slice(x, [0, 0, 0, 0], [1, 8, 1, 1]), [8]), b.exp(mean)
    ),
    "too large": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS)), scale=np.full(8, 3e38)),
    "too large a bias": lambda b, x: normalized(
        b, b.conv2d(x, b.known(FILTERS)), mean=np.full(8, 3e38), scale=np.full(8, 10)
    ),
    "too small": lambda b, x: normalized(b, b.conv2d(x, b.known(FILTERS)), scale=np.full(8, 2e-38)),
    "divided by zero": lambda b, x: b.batch_normalization(
        b.conv2d(x, b.known(FILTERS)), b.known(BIAS), b.known(np.zeros(8, np.float32)), epsilon=0
    ),
}


def folded(graph):
    return folded_by(graph, lambda constant: constant.data)


@pytest.mark.parametrize("draw", FOLDED.values(), ids=FOLDED)
def test_a_normalization_is_folded_into_its_convolution(draw):
    b = Drawing()
    graph = b.graph(y=draw(b, b.given("x", IMAGES)))
    arrays = {"x": IMAGES}
    expected, got = (results(made, arrays)["y"] for made in (graph, folded(graph)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    assert operators_of(folded(graph)) == [name for name in operators_of(graph) if name != "batch_normalization"]


@pytest.mark.parametrize("draw", UNFOLDED.values(), ids=UNFOLDED)
def test_what_cannot_be_in_a_filter_stays(draw):
    b = Drawing()
    graph = b.graph(y=draw(b, b.given("x", IMAGES)))
    assert operators_of(folded(graph)) == operators_of(graph)


def test_folded_filters_of_one_key_and_the_same_statistics_are_one():
    def key_of_filter(scale, key):
        b = Drawing()
        filters = b.operand(Constant(MLOperandDescriptor("float32", FILTERS.shape), FILTERS, key))
        graph = b.graph(y=normalized(b, b.conv2d(b.given("x", IMAGES), filters), scale=scale))
        return folded(graph).nodes[0].operands["filter"].key

    first = key_of_filter(BIAS, b"weights")
    assert key_of_filter(BIAS, b"weights") == first is not None
    assert len({first, key_of_filter(-BIAS, b"weights"), key_of_filter(BIAS, b"others"), None}) == 4
    assert key_of_filter(BIAS, None) is None
