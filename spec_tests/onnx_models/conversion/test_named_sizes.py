"""Models whose dimensions stay open: one graph with named dimensions, of the proposal "dynamic shapes"."""

import re

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import parsed, run_onnxruntime
from webnn_py import MLDynamicDimension, MLGraphBuilder, open_ml
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

INDICES = (
    "int64 first = {0}, int64 one = {1}, int64[1] at = {0}, int64[1] along = {1}, int64[1] end = {9223372036854775807}"
)
TEXTS = {
    "a product": "t = Transpose (w) z = MatMul (x, t) s = Softmax <axis = -1> (z) y = MatMul (s, w)",
    "a size in a shape": "s = Shape (x) n = Gather (s, at) h = Concat <axis = 0> (n, two) y = Reshape (x, h)",
    "half of a size": "s = Shape <end = 1> (x) m = Mul (s, pair) h = Concat <axis = 0> (m, pair) y = Reshape (x, h)",
    "all elements": "s = Size (x) a = Reshape (s, along) y = Reshape (x, a)",
    "a kept dimension": "y = Reshape (x, kept)",
    "what is left": "y = Reshape (x, rest)",
    "all but the first": "y = Slice (x, along, end, at)",
    "the last": "z = Slice (x, last, end, at) y = Add (z, x)",
    "a longer one": "z = Concat <axis = 0> (x, w) y = Neg (z)",
    "expanded": "s = Shape (x) z = Expand (row, s) y = Add (z, x)",
    "a size as a number": "s = Shape (x) n = Gather (s, first) f = Cast <to = 1> (n) y = Mul (x, f)",
    "positions": "s = Shape (x) n = Gather (s, first) r = Range (first, n, one) f = Cast <to = 1> (r) "
    "c = Unsqueeze (f, along) y = Add (x, c)",
    "zeros": "s = Shape (x) e = Equal (s, last) t = Where (e, two, s) z = ConstantOfShape (t) y = Add (x, z)",
    "a causal mask": "s = Shape (x) n = Gather (s, first) r = Range (first, n, one) a = Unsqueeze (r, at) "
    "b = Unsqueeze (r, along) m = LessOrEqual (a, b) t = Transpose (x) p = MatMul (x, t) f = Cast <to = 1> (m) "
    "y = Mul (p, f)",
}
"""Nodes of models with an input x of [n, 4]."""

SIZES = (2, 5, 16)


def model(nodes):
    constants = f"{INDICES}, int64[2] two = {{2, 2}}, int64[1] pair = {{2}}, int64[3] kept = {{0, 2, 2}}"
    constants = f"<{constants}, int64[3] rest = {{-1, 2, 2}}, int64[1] last = {{-1}}>"
    weights = {"w": np.linspace(-1, 1, 12).reshape(3, 4), "row": np.ones((1, 4))}
    return parsed(
        f"(float[a] y) {constants} {{ {nodes} }}".replace("(float[a] y)", "(float y)"),
        inputs="float[n, 4] x",
        **{name: item.astype(np.float32) for name, item in weights.items() if name in nodes},
    )


async def computed(context, graph, x):
    """Return the output of a graph for an array."""
    shape = graph.compute_shapes({"x": x.shape})["y"]
    given = await context.create_buffer(data_type="float32", shape=x.shape, writable=True)
    made = await context.create_buffer(data_type="float32", shape=shape, readable=True)
    context.write_buffer(given, x)
    context.dispatch(graph, {"x": given}, {"y": made})
    result = await context.read_buffer(made)
    given.destroy()
    made.destroy()
    return result


@pytest.mark.parametrize("backend", ["numpy", pytest.param("wgpu", marks=pytest.mark.sampled(4))])
async def test_one_graph_is_right_for_all_sizes(backend):
    async with open_ml(experimental={"dynamic-shapes"}) as ml:
        context = await ml.create_context(backend=backend)
        for name, nodes in TEXTS.items():
            builder, data = MLGraphBuilder(context), model(nodes)
            shapes = {"x": [MLDynamicDimension("n", SIZES[-1], SIZES[0]), 4]}
            graph = await builder.build(OnnxModel.load(data).convert(builder, shapes))
            for size in SIZES:
                x = np.linspace(-2, 3, 4 * size, dtype=np.float32).reshape(size, 4)
                (expected,) = run_onnxruntime(data, {"x": x})
                np.testing.assert_allclose(await computed(context, graph, x), expected, rtol=1e-5, err_msg=name)
            graph.destroy()


async def test_the_models_own_names_become_named_dimensions():
    async with open_ml(experimental={"dynamic-shapes"}) as ml:
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        loaded = OnnxModel.load(model(TEXTS["what is left"]))
        outputs = await loaded.convert_in_steps(builder, largest_sizes={"n": 8})
        assert outputs["y"].shape[1:] == (2, 2)
        assert str(outputs["y"].shape[0]) == "n"
        with pytest.raises(ValueError, match=r"largest_sizes names \['m'\]; the model's dimensions are \['n'\]"):
            loaded.convert(builder, largest_sizes={"m": 8})


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("y = Slice (x, along, end, at)", "a dimension is -n + 1, whose sign is known at dispatch only; it must be a"),
        ("s = Shape (x) n = Gather (s, first) r = Range (one, n, one) y = Cast <to = 1> (r)", "from 0 in steps of 1"),
    ],
)
async def test_what_depends_on_a_decision_about_a_size_is_refused(nodes, reason):
    async with open_ml(experimental={"dynamic-shapes"}) as ml:
        builder = MLGraphBuilder(await ml.create_context(backend="numpy"))
        with pytest.raises(UnsupportedModelError, match=re.escape(reason)):
            OnnxModel.load(model(nodes)).convert(builder, largest_sizes={"n": 8})


async def test_named_dimensions_have_to_be_asked_for(numpy_context):
    loaded = OnnxModel.load(model(TEXTS["what is left"]))
    with pytest.raises(UnsupportedModelError, match="shape"):
        loaded.convert(MLGraphBuilder(numpy_context), largest_sizes={"n": 8})
