"""Integers of 16 bits between QuantizeLinear and DequantizeLinear: as onnxruntime, which has them, computes."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from spec_tests.onnx_models.single_node import make_model, run, run_onnxruntime
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


def model(data_type, point, *, moved=(), scale=0.7, opset=21, domain="", takes=("scale", "point"), **attributes):
    """Quantize, move, and take back; and the same of the opposite, which is not moved."""
    quantize, dequantize = (
        lambda x, y, kind=kind, **more: helper.make_node(f"{kind}Linear", [x, *takes], [y], domain=domain, **more)
        for kind in ("Quantize", "Dequantize")
    )
    names = [f"moved{index}" for index in range(len(moved) + 1)]
    nodes = [
        quantize("x", names[0], **attributes),
        *(
            helper.make_node(operator, [source, *inputs], [target], **options)
            for (operator, inputs, options), source, target in zip(moved, names, names[1:], strict=False)
        ),
        dequantize(names[-1], "y", **{name: item for name, item in attributes.items() if name == "axis"}),
        helper.make_node("Neg", ["x"], ["opposite"]),
        quantize("opposite", "steps", **attributes),
        dequantize("steps", "z", **{name: item for name, item in attributes.items() if name == "axis"}),
    ]
    known = {
        "scale": np.array(scale, np.float32),
        "point": np.full(np.shape(scale), point, data_type),
        "shape": np.array([4, -1], np.int64),
        "axes": np.array([0], np.int64),
    }
    used = {name for node in nodes for name in node.input}
    known = {name: array for name, array in known.items() if name in used}
    return make_model(nodes, {"x": X}, ["y", "z"], known, opset=opset)


MOVED = [("Transpose", [], {"perm": [1, 0, 2]}), ("Reshape", ["shape"], {}), ("Unsqueeze", ["axes"], {})]
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
        {"scale": PER_AXIS, "axis": 1, "opset": 17, "domain": "com.microsoft"},
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
    made = model(*COUNTS[kind], takes=["scale"], output_dtype=SHORT[kind])
    check_steps(await run(context, made, {"x": X}), run_onnxruntime(made, {"x": X}), 0.7)


def refusal(context, *nodes, outputs=("y",)):
    known = {"scale": np.array(0.7, np.float32), "point": np.array(7, np.int16), "other": np.array(7, np.uint16)}
    used = {name for node in nodes for name in node.input}
    known = {name: array for name, array in known.items() if name in used}
    with pytest.raises(UnsupportedModelError) as caught:
        OnnxModel.load(make_model(nodes, {"x": X}, outputs, known, opset=21)).convert(MLGraphBuilder(context))
    return str(caught.value)


QUANTIZE = helper.make_node("QuantizeLinear", ["x", "scale", "point"], ["q"])
OTHERS = {
    "an operator that computes": (helper.make_node("Max", ["q", "q"], ["y"]), "an input is int16, which WebNN lacks"),
    "a zero point of another type": (
        helper.make_node("DequantizeLinear", ["q", "scale", "other"], ["y"]),
        "the data type of input x_zero_point is uint16; it must be int16",
    ),
    "another type that is asked for": (
        helper.make_node("QuantizeLinear", ["x", "scale", "other"], ["y"], output_dtype=TensorProto.INT16),
        "attribute output_dtype is int16; it must be uint16, that of the zero point",
    ),
    "a type that does not exist": (
        helper.make_node("QuantizeLinear", ["x", "scale", "other"], ["y"], output_dtype=99),
        "attribute output_dtype is type 99; it must be uint16, that of the zero point",
    ),
}


@pytest.mark.parametrize("case", OTHERS)
async def test_what_would_see_that_they_are_wider_is_refused(context, case):
    node, words = OTHERS[case]
    assert words in refusal(context, QUANTIZE, node)


async def test_they_are_no_outputs(context):
    told = refusal(context, QUANTIZE, helper.make_node("Identity", ["q"], ["y"]))
    assert "output 'y': it is int16, which WebNN lacks; leave it out, by outputs" in told
