"""A result of float16 is rounded, whatever reads it: onnxruntime drops a rounding together with casts of its own."""

from functools import partial

import numpy as np
import pytest

from spec_tests.on_onnxruntime.both import assert_both, on_both
from spec_tests.support.stand_ins import noted

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
engine = pytest.importorskip("webnn_py.devices.onnxruntime.engine", exc_type=ImportError)

rng = np.random.default_rng(8)
A, B = ((rng.integers(-128, 129, shape) / 8).astype(np.float16) for shape in ((16, 7), (7, 24)))
ADDED = np.float16(0.125)
"""With it a result that lacks a rounding is rounded once where it must be twice."""


def one(name, **options):
    return lambda b, x: getattr(b, name)(x, **options)


def two(name):
    return lambda b, x: getattr(b, name)(x, b.constant((A[:1, :1] @ B[:1]).astype(np.float16)))


def images(draw):
    return lambda b, x: draw(b, b.reshape(x, [1, 2, 8, 24]))


MOVED = "abs ceil floor identity neg relu reverse round_even sign transpose"
COMPARED = "equal greater greater_or_equal lesser lesser_or_equal max min mul not_equal prelu sub"
READERS = {
    **{name: one(name) for name in MOVED.split()},
    **{name: two(name) for name in COMPARED.split()},
    **{
        f"pad, {mode}": partial(lambda b, x, mode: b.pad(x, [1, 0], [0, 1], mode=mode), mode=mode)
        for mode in ("constant", "edge", "reflection")
    },
    "arg_max": one("arg_max", axis=1),
    "cast": one("cast", data_type="int32"),
    "clamp": one("clamp", min_value=-20, max_value=20),
    "concat": lambda b, x: b.concat([x, x], 0),
    "cumulative_sum": one("cumulative_sum", axis=1),
    "expand": lambda b, x: b.expand(x, [2, 16, 24]),
    "gather": lambda b, x: b.gather(x, b.constant(np.array([5, -1]))),
    "is_nan": one("is_nan"),
    "max_pool2d": images(one("max_pool2d", window_dimensions=[2, 2])),
    "reduce_max": one("reduce_max", axes=[1]),
    "reduce_min": one("reduce_min", axes=[1]),
    "resample2d": images(one("resample2d", scales=[2, 2])),
    "scatter_nd": lambda b, x: b.scatter_nd(x, b.constant(np.array([[3]])), b.slice(x, [0, 0], [1, 24])),
    "slice": one("slice", starts=[1, 2], sizes=[8, 8], strides=[2, 2]),
    "split": lambda b, x: b.split(x, 2)[1],
    "tile": one("tile", repetitions=[2, 1]),
    "triangular": one("triangular", upper=False),
    "where": lambda b, x: b.where(b.constant(np.arange(24, dtype=np.uint8)[None] % 2), x, b.neg(x)),
}


def drawn(reader, b, a):
    y = READERS[reader](b, b.matmul(a, b.constant(B)))
    return b.add(y, b.constant(ADDED.reshape(()))) if y.data_type == "float16" else y


@pytest.mark.parametrize("reader", READERS)
async def test_what_is_read_was_rounded(contexts, reader):
    await assert_both(contexts, partial(drawn, reader), A)


@pytest.mark.parametrize("reader", READERS)
async def test_onnxruntime_puts_in_no_casts(contexts, reader, monkeypatch, tmp_path):
    encoded = noted(monkeypatch, engine.EngineOptions, "session", lambda _options, model, _values: model.encoded)
    await on_both(contexts[:1], partial(drawn, reader), A)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.optimized_model_filepath = str(tmp_path / "put_in.onnx")
    onnxruntime.InferenceSession(encoded[0], options, providers=["CPUExecutionProvider"])
    given = onnx.load_from_string(encoded[0]).graph.node
    made = onnx.load(tmp_path / "put_in.onnx").graph.node
    assert [node.op_type for node in made] == [node.op_type for node in given]
