"""A convolution and the Relu behind it are written as the one node that onnxruntime makes of them."""

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import computed
from spec_tests.on_onnxruntime.meaning import images, spiked

pytest.importorskip("onnxruntime")

from webnn_py.device.on_onnxruntime.passes.pipeline import NODE_PASSES
from webnn_py.onnx_export.node_passes import WrittenNodes
from webnn_py.onnx_export.nodes import OnnxNode
from webnn_py.rewriting.passes import PassContext, passes_left_out

NAN, INF = np.nan, np.inf


def conv(b, x, filters=16, channels=16, size=3, **options):
    weights = np.random.default_rng(size * filters).normal(size=(filters, channels, size, size)).astype(np.float32)
    bias = np.zeros(filters, np.float32)
    bias[::2] = -0.0
    return b.conv2d(x, b.constant(weights), bias=b.constant(bias), **options)


def read_twice(b, x):
    y = conv(b, x)
    return {"y": b.relu(y), "z": b.neg(y)}


def an_output(b, x):
    y = conv(b, x)
    return {"y": b.relu(y), "z": y}


def shown_twice(b, x):
    y = b.relu(conv(b, x))
    return {"y": y, "z": y, "w": b.exp(y)}


def weights(b):
    return b.constant(np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16, 1, 1))


def added(b, x, *shape, first=False):
    """Draw summands of a convolution of 16 filters without a bias."""
    filters = b.constant(np.random.default_rng(5).normal(size=(16, 16, 3, 3)).astype(np.float32))
    operands = b.conv2d(x, filters), b.constant(np.random.default_rng(6).normal(size=shape).astype(np.float32))
    return b.add(*operands[::-1]) if first else b.add(*operands)


CASES = {
    "with a number added for each filter": (
        lambda b, x: {"y": b.relu(added(b, x, 1, 16, 1, 1))},
        {"FusedConv": 1, "Add": 0},
    ),
    "added to a number for each filter": (
        lambda b, x: {"y": added(b, x, 1, 16, 1, 1, first=True)},
        {"Conv": 1, "Add": 0},
    ),
    "with a number added for each element": (
        lambda b, x: {"y": b.relu(added(b, x, 1, 16, 6, 6))},
        {"Conv": 1, "Relu": 1, "Add": 1},
    ),
    "with a number added for each column": (
        lambda b, x: {"y": b.relu(added(b, x, 1, 1, 1, 6))},
        {"Conv": 1, "Relu": 1, "Add": 1},
    ),
    "leaky": (lambda b, x: {"y": b.leaky_relu(conv(b, x), alpha=0.3)}, {"FusedConv": 1, "LeakyRelu": 0}),
    "in blocks": (lambda b, x: {"y": b.relu(conv(b, x))}, {"FusedConv": 1}),
    "of few filters": (lambda b, x: {"y": b.relu(conv(b, x, filters=3))}, {"FusedConv": 1}),
    "by the channel": (lambda b, x: {"y": b.relu(conv(b, x, channels=1, groups=16))}, {"FusedConv": 1}),
    "one behind the other": (
        lambda b, x: {"y": b.relu(conv(b, b.relu(conv(b, x)), size=1))},
        {"FusedConv": 2},
    ),
    "whose result others read": (read_twice, {"Conv": 1, "Relu": 1}),
    "whose result is an output": (an_output, {"Conv": 1, "Relu": 1}),
    "whose Relu is read and an output": (shown_twice, {"FusedConv": 1}),
    "behind a sum": (
        lambda b, x: {"y": b.relu(b.add(conv(b, x), conv(b, x, size=3)))},
        {"Add": 1, "Conv": 2, "Relu": 1},
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_results_have_the_bits_of_two_nodes(context, written, case):
    draw, counts = CASES[case]
    x = spiked(images(16, 8), NAN, INF, -INF, -0.0, 1e-45, -3e38)
    ours = await computed(context, draw, x)
    kinds = ("Add", "Conv", "FusedConv", "LeakyRelu", "Relu")
    assert {name: written[name] for name in kinds if written[name]} == {name: n for name, n in counts.items() if n}
    with passes_left_out("fused-activations"):
        apart = await computed(context, draw, x)
    assert ours.keys() == apart.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array.view(np.int32), apart[name].view(np.int32))
    assert np.isnan(ours["y"]).any()


@pytest.mark.parametrize(("provider", "counts"), [("CPUExecutionProvider", 1), ("another", 2)])
def test_only_the_cpu_provider_is_given_one_node(provider, counts):
    nodes = [OnnxNode("Conv", ["x", "w", "b"], ["t"]), OnnxNode("Relu", ["t"], ["y"], name="the label")]
    written, reports = NODE_PASSES.run(WrittenNodes(nodes, ["y"], {}), PassContext(target=provider))
    assert len(written.nodes) == counts
    applied = [one for report in reports for one in report.applied]
    assert [(one.rule, one.where) for one in applied] == [("Relu into Conv", "Relu [the label]")] * (2 - counts)
