"""A Loop of an ONNX model is one node with a step in it, which computes the same bits as its steps."""

from contextlib import contextmanager

import numpy as np
import onnx
import pytest

from spec_tests.on_onnxruntime.both import assert_same
from spec_tests.onnx_models.single_node import parsed, run, run_onnxruntime
from spec_tests.support.computing import compute, run_graph
from webnn_py import MLGraphBuilder, open_ml
from webnn_py.checking import check_finite
from webnn_py.devices.composites.drawn_out import spelled_out
from webnn_py.devices.composites.loops import LOOP
from webnn_py.devices.rewriting.passes import PassContext, passes_left_out
from webnn_py.drawn_graphs import drawing_of
from webnn_py.onnx_models import InvalidModelError, ModelLimits, OnnxModel, UnsupportedModelError, save
from webnn_py.pictures import picture
from webnn_py.saved_graphs import SavedGraphs
from webnn_py.web_export import save_js

pytest.importorskip("onnxruntime")

from webnn_py.devices.flops import flops
from webnn_py.devices.onnxruntime.passes.loop_rerolling import unroll_loops
from webnn_py.devices.onnxruntime.providers import CPU
from webnn_py.onnx_models.conversion.context import ConversionContext

STEPS, UNITS = 20, 6
RNG = np.random.default_rng(3)
FEEDS = {
    "x": RNG.normal(size=(STEPS, 1, UNITS)).astype(np.float32),
    "h": np.full((1, UNITS), 0.25, np.float32),
}
WEIGHTS = {
    "w": RNG.normal(size=(UNITS, 2 * UNITS)).astype(np.float32) / 3,
    "r": RNG.normal(size=(UNITS, 2 * UNITS)).astype(np.float32) / 3,
    "rows": RNG.normal(size=(STEPS, 8, UNITS)).astype(np.float32),
    "zeros": np.zeros((1, UNITS), np.float32),
}
TEXT = """(float[1,6] end, float[n,1,6] all)
<int64 trips = {20}, int64 nought = {0}, int64 unit = {1}, int64 last = {19}, float one = {1}>
{
  end, all = Loop (trips, , h) <body = gated (int64 i, bool on, float[1,6] s)
    => (bool more, float[1,6] t, float[1,6] y)
  {
    more = Identity (on)
    row = Gather (x, i)
    p = MatMul (row, w)
    q = MatMul (s, r)
    a = Add (p, q)
    g, c = Split <axis = 1> (a)
    gate = Sigmoid (g)
    new = Tanh (c)
    kept = Mul (gate, s)
    rest = Sub (one, gate)
    let = Mul (rest, new)
    t = Add (kept, let)
    y = Identity (t)
  }>
}"""
"""A gated unit."""

COUNTED = [
    (", h) <body = gated (int64 i, bool on", ", h, nought) <body = gated (int64 k, bool on"),
    ("float[1,6] s)", "float[1,6] s, int64 i)"),
    ("float[1,6] t, float", "float[1,6] t, int64 j, float"),
    ("more = Identity (on)", "j = Add (i, unit)  more = LessOrEqual (j, last)"),
    ("end, all = Loop", "end, count, all = Loop"),
]
"""By a state, which ends the loop."""

LOOPS = {
    "by the number of the iteration": [],
    "by a state": COUNTED,
    "by a state, without a trip count": [*COUNTED, ("(trips,", "(,")],
    "with a condition before": [("trips, ,", "trips, yes,"), ("float one", "bool yes = {1}, float one")],
    "backward": [("Gather (x, i)", "Gather (x, place)"), ("row =", "place = Sub (last, i)  row =")],
    "backward by negative numbers": [
        ("Gather (x, i)", "Gather (x, place)"),
        ("row =", "off = Neg (i)  place = Sub (off, unit)  row ="),
    ],
    "along the second axis": [
        ("end, all", "turned = Transpose <perm = [1, 0, 2]> (x)  end, all"),
        ("Gather (x, i)", "Gather <axis = 1> (turned, i)"),
    ],
    "by a list of one number": [
        ("Gather (x, i)", "Gather (x, place)"),
        ("row =", "axes = Constant <value_ints = [0]> ()  place = Unsqueeze (i, axes)  row ="),
        ("MatMul (row", "flat = Reshape (row, shape)  p = MatMul (flat"),
        ("p = flat", "flat"),
        ("float one", "int64[2] shape = {1, 6}, float one"),
    ],
    "from a constant state": [(", h)", ", zeros)")],
    "of constant rows": [
        ("Gather (x, i)", "Gather (rows, i)"),
        ("float one", "int64[1] from = {0}, int64[1] to = {1}, float one"),
        ("p = MatMul (row", "few = Slice (row, from, to)  both = Mul (few, h)  p = MatMul (both"),
    ],
    "with weights that are states": [
        (", h)", ", h, r)"),
        ("float[1,6] s)", "float[1,6] s, float[6,12] m)"),
        ("float[1,6] t, float", "float[1,6] t, float[6,12] m, float"),
        ("MatMul (s, r)", "MatMul (s, m)"),
        ("end, all = Loop", "end, matrix, all = Loop"),
    ],
    "with values that are the same in all steps": [
        ("q =", "e = Tanh (h)  m = Mul (r, e2)  q ="),
        ("m = Mul", "e2 = ReduceSum (e)  m = Mul"),
        ("MatMul (s, r)", "MatMul (s, m)"),
    ],
    "of states that move on": [
        (", h)", ", h, zeros)"),
        ("float[1,6] s)", "float[1,6] s, float[1,6] before)"),
        ("float[1,6] t, float", "float[1,6] t, float[1,6] s, float"),
        ("kept = Mul (gate, s)", "kept = Mul (gate, before)"),
        ("end, all = Loop", "end, older, all = Loop"),
    ],
    "of which only the state is used": [("(float[1,6] end, float[n,1,6] all)", "(float[1,6] end)")],
    "of which only the results are used": [("(float[1,6] end, float[n,1,6] all)", "(float[n,1,6] all)")],
}
"""The changes of the text for loops that are one node."""

UNROLLED = {
    "until a condition after fewer steps than rows": [*COUNTED, ("LessOrEqual", "Less")],
    "of fewer steps than rows": [("trips = {20}", "trips = {19}")],
    "of few steps": [
        ("trips = {20}", "trips = {7}"),
        ("Gather (x", "Gather (few"),
        ("end, all", "few = Slice (x, from, to) end, all"),
        ("float one", "int64[1] from = {0}, int64[1] to = {7}, float one"),
    ],
    "of each row twice": [
        ("Gather (x, i)", "Gather (x, place)"),
        ("row =", "two = Constant <value_int = 2> ()  place = Div (i, two)  row ="),
    ],
    "of rows of the state": [("Gather (x, i)", "Gather (wide, i)"), ("row =", "wide = Add (x, s)  row =")],
    "with numbers among the results": [
        ("y = Identity (t)", "y = Cast <to = 1> (i)"),
        ("float[1,6] y)", "float y)"),
        ("float[n,1,6] all", "float[n] all"),
    ],
    "with results that are the same in all steps": [("y = Identity (t)", "y = Identity (zeros)")],
    "with numbers among the operands": [
        ("MatMul (row, w)", "MatMul (more, w)"),
        ("p =", "f = Cast <to = 1> (i)  more = Add (row, f)  p ="),
        ("bool more", "bool on"),
        ("more = Identity (on)", ""),
    ],
    "of a state that changes its shape": [
        ("float[1,6] s)", "float[n,6] s)"),
        ("t = Add (kept, let)", "t = Concat <axis = 0> (s, zeros)"),
        ("float[1,6] t", "float[n,6] t"),
        ("float[1,6] end", "float[n,6] end"),
        ("y = Identity (t)", "y = ReduceSum (let)"),
        ("float[1,6] y", "float[1,1] y"),
        ("float[n,1,6] all", "float[n,1,1] all"),
    ],
    "without a product": [
        ("MatMul (row, w)", "Concat <axis = 1> (row, row)"),
        ("MatMul (s, r)", "Concat <axis = 1> (s, s)"),
    ],
    "with an operator that has a guard": [("Sigmoid (g)", "Softplus (g)")],
}
"""Of others."""


def model(changes):
    text = TEXT
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return parsed(text, inputs="float[20,1,6] x, float[1,6] h", opset=17, **WEIGHTS)


def drawn(context, changes=(), **options):
    builder = MLGraphBuilder(context)
    return builder, OnnxModel.load(model(changes), **options).convert(builder)


def loops(_builder, outputs):
    return [node.operator.name for node in drawing_of("a test", outputs).nodes].count("loop")


async def results(context, changes):
    builder, outputs = drawn(context, changes)
    number = loops(builder, outputs)
    return number, await compute(context, builder, FEEDS, outputs)


@pytest.fixture
def unrolling(monkeypatch):
    """Return a context manager in which loops are drawn as their steps."""

    @contextmanager
    def leave_out():
        with monkeypatch.context() as patch, passes_left_out("loops"):
            patch.setattr(ConversionContext, "draws_whole", lambda _context, composite: composite is not LOOP)
            yield

    return leave_out


@pytest.mark.parametrize("case", [*LOOPS, *UNROLLED])
async def test_a_loop_computes_the_same_bits_as_its_steps(context, unrolling, written, case):
    changes = {**LOOPS, **UNROLLED}[case]
    number, found = await results(context, changes)
    assert number == (case in LOOPS)
    if number:
        assert written["Scan"] == 1
    with unrolling():
        steps, expected = await results(context, changes)
    assert steps == 0
    assert_same(found, expected)
    for ours, theirs in zip(found.values(), run_onnxruntime(model(changes), FEEDS), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


async def test_a_loop_before_dynamic_quantization_is_unrolled(context, unrolling, written):
    changes = [
        ("rest = Sub (one, gate)", "rest = Tanh (new)"),
        ("}>\n}", "}>\nquantized, scale, zero = DynamicQuantizeLinear (all)\n}"),
        ("(float[1,6] end,", "(uint8[n,1,6] quantized, float[1,6] end,"),
    ]
    number, found = await results(context, changes)
    assert number == 1
    assert not written["Scan"]
    with unrolling():
        assert_same(found, (await results(context, changes))[1])


async def test_a_loop_that_is_written_down_has_operators_of_the_specification(ml, tmp_path):
    texts = []
    for backend in ("onnxruntime", "numpy"):
        builder, outputs = drawn(await ml.create_context(backend=backend))
        assert loops(builder, outputs) == (backend == "onnxruntime")
        assert not [node for node in spelled_out(drawing_of("a test", outputs)).nodes if node.operator.name == "loop"]
        save_js(outputs, tmp_path)
        texts.append((tmp_path / "model.js").read_text())
    assert texts[0].count(".matmul(") == texts[1].count(".matmul(") == 2 * STEPS


async def test_a_loop_is_exported_and_imported_again(context, tmp_path):
    builder, outputs = drawn(context)
    save(outputs, tmp_path / "saved.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "saved.onnx"))
    expected = await compute(context, builder, FEEDS, outputs)
    np.testing.assert_equal(await run(context, tmp_path / "saved.onnx", FEEDS), [*expected.values()])


async def test_a_graph_with_a_loop_is_saved_loaded_and_shown(tmp_path):
    saved = SavedGraphs(tmp_path)
    async with open_ml() as ml:
        context = await ml.create_context(backend="onnxruntime", threads=1)
        builder, outputs = drawn(context)
        graph = await builder.build(outputs, keep_source=True)
        await saved.save("gated", graph)
        loaded = await saved.load(context, "gated")
        assert "loop [Loop of end]" in str(picture(graph))
        assert "10 operators" in picture(graph).to_svg()
        assert_same(await run_graph(context, loaded, FEEDS), await run_graph(context, graph, FEEDS))


async def test_the_operations_of_all_steps_are_counted(ml):
    counts = []
    for backend in ("onnxruntime", "numpy"):
        builder, outputs = drawn(await ml.create_context(backend=backend))
        counts.append(sum(map(flops, builder.graph_of("a test", outputs).nodes)))
    assert counts[0] == counts[1] > 0


async def test_the_operator_in_a_loop_that_gives_infinity_is_found(context):
    _builder, outputs = drawn(context)
    found = await check_finite(outputs, {**FEEDS, "x": np.full_like(FEEDS["x"], 3e38)})
    assert (found.operator, found.label) == ("matmul", "Loop of end[0]/MatMul of p")


async def test_the_nodes_of_all_iterations_are_limited(ml):
    texts = []
    for backend in ("onnxruntime", "numpy"):
        context = await ml.create_context(backend=backend)
        drawn(context, limits=ModelLimits(nodes=STEPS * 16))
        with pytest.raises(UnsupportedModelError, match="its iterations") as caught:
            drawn(context, limits=ModelLimits(nodes=STEPS * 12))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "change",
    [
        ("new = Tanh (c)", "new = Det (c)"),
        ("Gather (x, i)", "Gather <side = 0> (x, i)"),
        ("Gather (x, i)", "Gather <axis = 3> (x, i)"),
        ("Gather (x, i)", "Gather (x)"),
    ],
    ids=str,
)
async def test_what_cannot_be_converted_is_refused_as_in_a_step(ml, change):
    texts = []
    for backend in ("onnxruntime", "numpy"):
        with pytest.raises((InvalidModelError, UnsupportedModelError)) as caught:
            drawn(await ml.create_context(backend=backend), [change])
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


async def test_other_providers_run_the_steps(context):
    builder, outputs = drawn(context)
    graph = builder.graph_of("a test", outputs)
    for target, count in ((CPU.name, 1), ("CUDAExecutionProvider", 0)):
        nodes = unroll_loops(graph, PassContext(target=target)).nodes
        assert [node.operator.name for node in nodes].count("loop") == count
