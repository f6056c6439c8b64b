"""Normalizations of float16 that a model draws in parts: their squares overflow, so the operators are drawn."""

from itertools import product

import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, parsed, run, run_onnxruntime
from spec_tests.support.backends import DEVICES, on_each
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel
from webnn_py.pictures import picture

backend = on_each(DEVICES)

RANDOM = np.random.default_rng(907)
X = (RANDOM.uniform(-1, 1, (2, 3, 8)) * 1000).astype(np.float16)
"""Numbers whose squares are beyond float16."""

KNOWN = {
    "two": np.float16(2),
    "one": np.float16(1),
    "epsilon": np.float16(1e-5),
    "scale": RANDOM.uniform(0.5, 2, 8).astype(np.float16),
    "bias": RANDOM.uniform(-1, 1, 8).astype(np.float16),
    "wide_two": np.float32(2),
    "of_rank_4": np.full((1, 1, 1, 1), 1e-5, np.float16),
}

MEAN = "m = ReduceMean <axes = [-1]> (x) "
CENTRED = MEAN + "d = Sub (x, m) c = Identity (d) "
TWICE = MEAN + "d = Sub (x, m) c = Sub (x, m) "
APART = MEAN + "n = ReduceMean <axes = [2]> (x) d = Sub (x, m) c = Sub (x, n) "
PLAIN = "d = Identity (x) c = Identity (x) "
SQUARES = {"Pow": "q = Pow (d, two) ", "Pow, float32": "q = Pow (d, wide_two) ", "Mul": "q = Mul (d, d) "}
ROOT = "v = ReduceMean <axes = [-1]> (q) e = Add ({}) r = Sqrt (e) "
DIVISIONS = {
    "Div": "z = Div (c, r) ",
    "Reciprocal": "i = Reciprocal (r) z = Mul (c, i) ",
    "1 / r": "i = Div (one, r) z = Mul (i, c) ",
}
LAYER = "s = Mul (z, scale) y = Add (s, bias)"
RMS = "y = Mul (scale, z)"


def model(nodes, inputs="float16[2,3,8] x", outputs="float16[a,b,c] y", **initializers):
    used = {name: array for name, array in KNOWN.items() if name in nodes}
    return parsed(f"({outputs}) {{ {nodes} }}", inputs=inputs, opset=17, **used, **initializers)


DRAWINGS = {
    f"{kind}, {square}, {division}": begin + SQUARES[square] + ROOT.format("v, epsilon") + DIVISIONS[division] + end
    for (kind, begin, end), square, division in product(
        [("layer", CENTRED, LAYER), ("rms", PLAIN, RMS)], SQUARES, DIVISIONS
    )
} | {
    "layer, drawn twice": TWICE + SQUARES["Pow"] + ROOT.format("epsilon, v") + DIVISIONS["Div"] + LAYER,
    "layer, with two means": APART + SQUARES["Mul"] + ROOT.format("v, epsilon") + DIVISIONS["Reciprocal"] + LAYER,
    "layer, without scale": CENTRED + SQUARES["Pow"] + ROOT.format("v, epsilon") + "y = Div (c, r)",
    "layer, along two axes": (
        "m = ReduceMean <axes = [1, 2]> (x) d = Sub (x, m) q = Pow (d, two) v = ReduceMean <axes = [1, 2]> (q) "
        "e = Add (v, epsilon) r = Sqrt (e) y = Div (d, r)"
    ),
    "layer, along the channels": (
        "m = ReduceMean <axes = [1]> (x) d = Sub (x, m) q = Mul (d, d) v = ReduceMean <axes = [1]> (q) "
        "e = Add (v, epsilon) r = Sqrt (e) y = Div (d, r)"
    ),
    "rms, of numbers less another mean": (
        "m = ReduceMean <axes = [1]> (x) d = Sub (x, m) q = Pow (d, two) "
        + ROOT.format("v, epsilon")
        + "y = Div (d, r)"
    ),
    "rms, along all axes": "q = Mul (x, x) v = ReduceMean (q) e = Add (v, epsilon) r = Sqrt (e) y = Div (x, r)",
    "layer, in a branch": (
        "w = ReduceMax <keepdims = 0> (x) k = Less (w, one) "
        "y = If (k) <then_branch = f () => (float16[2,3,8] o) { o = Neg (x) }, "
        "else_branch = g () => (float16[2,3,8] o) { "
        + (CENTRED + SQUARES["Pow"] + ROOT.format("v, epsilon"))
        + "o = Div (c, r) }>"
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("drawing", DRAWINGS)
async def test_squares_that_overflow_give_the_numbers_of_onnxruntime(context, drawing):
    data = model(DRAWINGS[drawing])
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}), relative=2e-3, absolute=2e-3)


OTHERS = {
    "another numerator": MEAN + "d = Sub (x, m) q = Pow (d, two) " + ROOT.format("v, epsilon") + "y = Div (x, r)",
    "means along other axes": (
        "m = ReduceMean <axes = [1]> (x) d = Sub (x, m) q = Pow (d, two) "
        + ROOT.format("v, epsilon")
        + "z = Add (d, one) y = Div (z, r)"
    ),
    "another power": MEAN + "d = Sub (x, m) q = Pow (d, four) " + ROOT.format("v, epsilon") + "y = Div (d, r)",
    "a rank that the epsilon adds": (
        "q = Mul (x, x) v = ReduceMean <axes = [-1]> (q) e = Add (v, of_rank_4) r = Sqrt (e) y = Div (x, r)"
    ),
    "a subtraction the other way": (
        MEAN + "d = Sub (m, x) c = Sub (x, m) q = Pow (d, two) " + ROOT.format("v, epsilon") + "y = Div (c, r)"
    ),
}


@pytest.mark.parametrize("drawing", OTHERS)
async def test_other_drawings_stay(context, drawing):
    small = (X / 1000).astype(np.float16)
    outputs = "float16[1,2,3,8] y" if "rank" in drawing else "float16[2,3,8] y"
    data = model(OTHERS[drawing], outputs=outputs, four=np.float16(4))
    assert_same(
        await run(context, data, {"x": small}), run_onnxruntime(data, {"x": small}), relative=0.01, absolute=0.01
    )


async def test_parts_of_float32_stay_as_they_are(context):
    nodes = (CENTRED + SQUARES["Pow"] + ROOT.format("v, e0") + "y = Div (c, r)").replace("two", "wide_two")
    data = model(nodes, "float[2,3,8] x", "float[2,3,8] y", e0=np.float32(1e-5))
    wide = X.astype(np.float32)
    assert_same(await run(context, data, {"x": wide}), run_onnxruntime(data, {"x": wide}), relative=1e-4, absolute=1e-5)
    builder = MLGraphBuilder(context)
    assert "layerNormalization" not in str(picture(OnnxModel.load(data).convert(builder)))


async def test_a_part_that_is_read_elsewhere_keeps_its_value(context):
    nodes = CENTRED + SQUARES["Pow"] + ROOT.format("v, epsilon") + "y = Div (c, r)"
    data = model(nodes, outputs="float16[2,3,8] y, float16[2,3,8] d")
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}), relative=2e-3, absolute=1)


async def test_layers_of_a_loop_are_normalized(context):
    body = (
        CENTRED.replace("(x", "(a") + SQUARES["Mul"] + ROOT.format("v, epsilon") + "z = Div (c, r) o = Mul (z, large)"
    )
    nodes = f"""y = Loop (count, , x)
      <body = b (int64 i, bool k, float16[2,3,8] a) => (bool j, float16[2,3,8] o) {{ j = Identity (k) {body} }}>"""
    data = model(nodes, count=np.int64(3), large=np.float16(1000))
    assert_same(await run(context, data, {"x": X}), run_onnxruntime(data, {"x": X}), relative=5e-3, absolute=3)
