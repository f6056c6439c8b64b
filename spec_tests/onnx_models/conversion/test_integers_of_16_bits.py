"""Integers of 16 bits between QuantizeLinear and DequantizeLinear: as onnxruntime, which has them, computes."""

import numpy as np
import pytest
from onnx import TensorProto

from spec_tests.onnx_models.single_node import parsed, run, run_onnxruntime
from spec_tests.support.backends import BACKENDS
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

rng = np.random.default_rng(16)
X = (rng.normal(size=(3, 4, 6)) * 4000).astype(np.float32)
X[0, 0] = 0.5, 1.5, -2.5, 1e5, -1e5, 3e38
COUNTS = {"signed": (np.int16, -300), "unsigned": (np.uint16, 40000)}
PER_AXIS = np.array([0.25, 1, 3.5, 0.7], np.float32)
LEAST_SAME = 0.98
"""Of all elements, how many are the same: devices may divide otherwise in the last place, and a tie is rounded then."""


def model(data_type, point, *, moved="", scale=0.7, opset=21, domain="", takes="scale, point", **attributes):
    """Return a model that quantizes, moves, and dequantizes; and the same of the opposite, which is not moved."""
    quantized = "" if not attributes else f"<{', '.join(f'{name} = {item}' for name, item in attributes.items())}>"
    axis = f"<axis = {attributes['axis']}>" if "axis" in attributes else ""
    text = f"""(float[a,b,c] y, float[3,4,6] z) <int64[2] shape = {{4, -1}}, int64[1] axes = {{0}}> {{
      q = {domain}QuantizeLinear {quantized} (x, {takes})
      {moved or "moved = Identity (q)"}
      y = {domain}DequantizeLinear {axis} (moved, {takes})
      opposite = Neg (x)
      steps = {domain}QuantizeLinear {quantized} (opposite, {takes})
      z = {domain}DequantizeLinear {axis} (steps, {takes})
    }}"""
    known = {"scale": np.array(scale, np.float32), "point": np.full(np.shape(scale), point, data_type)}
    return parsed(text, inputs="float[3,4,6] x", opset=opset, **{name: known[name] for name in takes.split(", ")})


MOVED = "t = Transpose <perm = [1, 0, 2]> (q)  r = Reshape (t, shape)  moved = Unsqueeze (r, axes)"
SHORT = {"signed": TensorProto.INT16, "unsigned": TensorProto.UINT16}


def check_steps(actual, wanted, scale):
    for ours, theirs in zip(actual, wanted, strict=True):
        assert ours.shape == theirs.shape
        steps = np.abs(ours.astype(np.float64) - theirs) / scale
        assert steps.max() < 1.01, f"{steps.max()} steps"
        assert np.mean(steps < 0.01) >= LEAST_SAME, f"{np.mean(steps < 0.01)} are the same"


@pytest.mark.parametrize("backend", BACKENDS, scope="module")
@pytest.mark.parametrize("kind", COUNTS)
async def test_they_are_moved_and_taken_back(context, kind, backend):
    made = model(*COUNTS[kind], moved=MOVED)
    check_steps(await run(context, made, {"x": X}), run_onnxruntime(made, {"x": X}), 0.7)


@pytest.mark.parametrize(
    "written",
    [
        {"scale": PER_AXIS, "axis": 1},
        {"scale": PER_AXIS, "axis": 1, "opset": 17, "domain": "com.microsoft."},
        {"opset": 25},
    ],
    ids=["axis", "before opset 21", "newest"],
)
@pytest.mark.parametrize("kind", COUNTS)
async def test_every_way_of_writing_it_is_read(context, kind, written):
    made = model(*COUNTS[kind], **written)
    scale = np.reshape(written.get("scale", 0.7), (-1, 1))
    check_steps(await run(context, made, {"x": X}), run_onnxruntime(made, {"x": X}), scale)


@pytest.mark.parametrize("kind", COUNTS)
async def test_the_type_may_be_asked_for_without_a_zero_point(context, kind):
    made = model(*COUNTS[kind], takes="scale", output_dtype=SHORT[kind])
    check_steps(await run(context, made, {"x": X}), run_onnxruntime(made, {"x": X}), 0.7)


def refusal(context, node):
    known = "float scale = {0.7}"
    text = f"(float[3,4,6] y) <{known}> {{ q = QuantizeLinear (x, scale, point)  {node} }}"
    model = parsed(text, inputs="float[3,4,6] x", opset=21, point=np.int16(7), other=np.uint16(7))
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(model).convert(MLGraphBuilder(context))
    return str(caught.value)


OTHERS = {
    "an operator that computes": ("y = Max (q, q)", "an input is int16, which WebNN lacks"),
    "a zero point of another type": (
        "y = DequantizeLinear (q, scale, other)",
        "the data type of input x_zero_point is uint16; it must be int16",
    ),
    "another type that is asked for": (
        f"y = QuantizeLinear <output_dtype = {TensorProto.INT16}> (x, scale, other)",
        "attribute output_dtype is int16; it must be uint16, that of the zero point",
    ),
    "a type that does not exist": (
        "y = QuantizeLinear <output_dtype = 99> (x, scale, other)",
        "attribute output_dtype is type 99; it must be uint16, that of the zero point",
    ),
    "an output": ("y = Identity (q)", "output 'y': it is int16, which WebNN lacks; leave it out, by outputs"),
}


@pytest.mark.parametrize("case", OTHERS)
async def test_uses_that_would_show_that_they_are_wider_are_refused(context, case):
    node, words = OTHERS[case]
    assert words in refusal(context, node)
