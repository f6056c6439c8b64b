"""The passes of the WebGPU device are named, reported, and can be left out where graphs do without them."""

import numpy as np
import pytest

from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.lowering import KERNEL_PASSES
from webnn_py.devices.wgpu.passes.pipeline import PASSES
from webnn_py.pictures import picture

LOWERING = "lowering, epilogue-fusion, operand-fusion, partial-sums"


def layers(b):
    """Draw two linear layers of one input, and a gemm and a pooling that are composites."""
    x = b.input("x", data_type="float32", shape=[4, 16])
    sides = [b.matmul(x, b.constant(np.ones((16, 32), np.float32))) for _ in range(2)]
    return b.average_pool2d(b.reshape(b.matmul(sides[0], b.transpose(sides[1])), [1, 1, 4, 4]))


def attention(b):
    """Draw attention with element-wise nodes in front of it, in it, and behind it."""
    x = b.sigmoid(b.tanh(b.input("x", data_type="float32", shape=[1, 2, 16, 16])))
    y = b.input("y", data_type="float32", shape=[1, 2, 16, 16])
    scores = b.mul(b.matmul(x, b.transpose(y, permutation=[0, 1, 3, 2])), b.constant(0.25, data_type="float32"))
    product = b.matmul(b.softmax(scores, 3), y)
    late = b.exp(b.matmul(y, x))
    return b.softmax(b.exp(b.add(b.relu(product, label="last"), late)), 3)


async def passes_of(context, draw):
    """Return the lines about each pass of a graph, by the pass."""
    b = MLGraphBuilder(context)
    graph = await b.build({"y": draw(b)}, keep_source=True)
    lines = picture(graph).describe(passes=True).splitlines()
    found = {}
    for line in lines[lines.index("passes") + 1 :]:
        if line.startswith("    "):
            found[name].append(line.strip())  # noqa: F821 - the first line is a pass
        else:
            name, _, counts = line.strip().partition(": ")
            found[name] = [counts.partition(",")[0]]
    return found


async def test_a_graph_describes_the_passes(gpu):
    found = await passes_of(gpu, layers)
    groupings = ["elementwise-fusion", "attention-fusion", "gemm-computed-sides"]
    rewriting = ["composites", "rms-normalization", "equal-nodes", "horizontal-fusion"]
    assert list(found) == [*rewriting, *groupings, LOWERING]
    assert found["horizontal-fusion"] == ["6 → 7 nodes", "horizontal-fusion: matmul, matmul"]


async def test_a_graph_describes_what_is_fused(gpu, fuse_attention_from):
    fuse_attention_from(0)
    assert await passes_of(gpu, attention) == {
        "composites": ["13 → 13 nodes"],
        "equal-nodes": ["13 → 13 nodes"],
        "horizontal-fusion": ["13 → 13 nodes"],
        "elementwise-fusion": [
            "13 → 9 groups",
            "elementwise-fusion: tanh into sigmoid",
            "elementwise-fusion: relu, exp, add into exp",
        ],
        "attention-fusion": ["9 → 6 groups", "attention-fusion: matmul, mul, softmax into matmul"],
        "gemm-computed-sides": ["6 → 6 groups"],
        LOWERING: [
            "6 → 4 kernels",
            "epilogue-fusion: relu into matmul",
            "epilogue-fusion: exp (2 ×), add into matmul",
        ],
    }


def product(b, x):
    """Multiply by a matrix of constants."""
    return b.matmul(x, b.constant(np.ones((16, 16), np.float32)))


REFUSALS = {
    "horizontal-fusion: matmul, matmul: what reads the results would have to copy them": lambda b, x: b.add(
        b.softmax(product(b, x), 1), b.softmax(product(b, x), 1)
    ),
    "elementwise-fusion: sigmoid: several kernels read it": lambda b, x: b.softmax(
        b.matmul(b.tanh(y := b.sigmoid(x)), b.abs(y)), 1
    ),
    "elementwise-fusion: sigmoid: it is broadcast": lambda b, x: b.add(b.sigmoid(b.slice(x, [0, 0], [1, 16])), x),
    "attention-fusion: matmul: its scores are no product that is read once": lambda b, x: b.matmul(b.softmax(x, 1), x),
    "attention-fusion: matmul: no kernel is made for its sizes and operands": lambda b, x: b.matmul(
        b.softmax(b.matmul(x, x), 1), x
    ),
    "epilogue-fusion: add into matmul: an operand is computed later": lambda b, x: b.add(
        product(b, x), product(b, b.abs(x))
    ),
}


@pytest.mark.parametrize("line", REFUSALS)
async def test_a_graph_describes_what_is_not_fused_and_why(gpu, line):
    found = await passes_of(gpu, lambda b: REFUSALS[line](b, b.input("x", data_type="float32", shape=[16, 16])))
    assert f"not {line}" in [one for lines in found.values() for one in lines]


@pytest.mark.parametrize("name", [*PASSES.optional, *KERNEL_PASSES.optional])
async def test_an_optional_pass_can_be_left_out(gpu, name):
    with passes_left_out(name):
        assert name not in ", ".join(await passes_of(gpu, layers)).split(", ")


@pytest.mark.parametrize("name", ["composites", "lowering"])
async def test_a_required_pass_cannot_be_left_out(gpu, name):
    with passes_left_out(name), pytest.raises(Exception, match=f"'{name}' are required"):
        await passes_of(gpu, layers)
