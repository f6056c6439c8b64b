"""Results of a model in float64, which tell whether an error is this package's or onnxruntime's."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

FLOATS = {TensorProto.FLOAT, TensorProto.FLOAT16}


DOMAIN = "spec_tests"
"""Of the operators below, which the reference evaluator lacks or takes all memory for."""


class Conv(OpRun):
    """Convolution in any number of dimensions."""

    op_domain = DOMAIN

    def _run(self, x, w, b=None, **attributes):
        across = {name: attributes.get(name) for name in ("strides", "dilations", "pads", "group")}
        return (convolved(x, w, b, attributes.get("auto_pad"), **across),)


class ConvTranspose(OpRun):
    """Transposed convolution of one group: a convolution of the input with zeros between its elements."""

    op_domain = DOMAIN

    def _run(self, x, w, b=None, *, strides=None, output_shape=None, pads=None, **_):
        dimensions = x.ndim - 2
        strides, pads = strides or [1] * dimensions, np.array(pads or [0] * 2 * dimensions)
        sizes = np.array([(size - 1) * step + 1 for size, step in zip(x.shape[2:], strides, strict=True)])
        apart = np.zeros([*x.shape[:2], *sizes])
        apart[:, :, *(slice(None, None, step) for step in strides)] = x
        reach = np.array(w.shape[2:]) - 1
        before, after = reach - pads[:dimensions], reach - pads[dimensions:]
        if output_shape:  # what is more than the filter reaches is at the end
            after = np.array(output_shape) - sizes + reach - before
        filters = np.flip(w, range(2, w.ndim)).swapaxes(0, 1)
        return (convolved(apart, filters, b, None, strides=None, dilations=None, pads=[*before, *after], group=1),)


class ImageScaler(OpRun):
    """Pictures times a number, and a number for each channel."""

    op_domain = DOMAIN

    def _run(self, x, *, scale=1.0, bias):
        return (x * scale + np.reshape(bias, [-1, 1, 1]),)


class Affine(OpRun):
    """Times a number, and another."""

    op_domain = DOMAIN

    def _run(self, x, *, alpha=1.0, beta=0.0):
        return (x * alpha + beta,)


class Crop(OpRun):
    """Pictures without their borders."""

    op_domain = DOMAIN

    def _run(self, x, *, border, **_):
        left, top, right, bottom = border
        return (x[:, :, top : x.shape[2] - bottom, left : x.shape[3] - right],)


OPERATORS = [Conv, ConvTranspose, ImageScaler, Affine, Crop]


def convolved(x, w, b, auto_pad, *, strides, dilations, pads, group):
    """Convolution in any number of dimensions; memory for one place of the filter at a time."""
    dimensions = x.ndim - 2
    strides, dilations = strides or [1] * dimensions, dilations or [1] * dimensions
    pads = pads or [0] * 2 * dimensions
    spans = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilations, strict=True)]
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        needed = [
            max(0, (-(-size // step) - 1) * step + span - size)
            for size, step, span in zip(x.shape[2:], strides, spans, strict=True)
        ]
        less = [item // 2 for item in needed]
        more = [item - half for item, half in zip(needed, less, strict=True)]
        pads = [*less, *more] if auto_pad == "SAME_UPPER" else [*more, *less]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pads[:dimensions], pads[dimensions:], strict=True)])
    sizes = [(size - span) // step + 1 for size, span, step in zip(x.shape[2:], spans, strides, strict=True)]
    group = group or 1
    filters = w.reshape(group, -1, *w.shape[1:])
    sums = np.zeros([len(x), group, filters.shape[1], np.prod(sizes)])
    for place in np.ndindex(*w.shape[2:]):
        seen = [
            slice(at * dilation, at * dilation + (size - 1) * step + 1, step)
            for at, dilation, size, step in zip(place, dilations, sizes, strides, strict=True)
        ]
        window = x[:, :, *seen]
        sums += filters[..., *place] @ window.reshape(len(x), group, -1, np.prod(sizes))
    y = sums.reshape(len(x), -1, *sizes)
    return y if b is None else y + b.reshape(-1, *[1] * dimensions)


def exactly(path, feeds):
    """The outputs by name, all floats of the model and of what it is given in float64."""
    proto = onnx.load(path)
    _widen(proto.graph)
    proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    evaluator = ReferenceEvaluator(proto, new_ops=OPERATORS)
    wide = {name: value.astype(np.float64) if value.dtype.kind == "f" else value for name, value in feeds.items()}
    return dict(zip(evaluator.output_names, evaluator.run(None, wide), strict=True))


def _widen(graph):
    for tensor in graph.initializer:
        _widen_tensor(tensor)
    for item in [*graph.input, *graph.output, *graph.value_info]:
        if item.type.tensor_type.elem_type in FLOATS:
            item.type.tensor_type.elem_type = TensorProto.DOUBLE
    for node in graph.node:
        if node.op_type in {item.__name__ for item in OPERATORS}:
            node.domain = DOMAIN
        for attribute in node.attribute:
            _widen_attribute(node.op_type, attribute)


def _widen_attribute(operator, attribute):
    if attribute.HasField("t"):
        _widen_tensor(attribute.t)
    if attribute.HasField("g"):
        _widen(attribute.g)
    if operator == "Cast" and attribute.name == "to" and attribute.i in FLOATS:
        attribute.i = TensorProto.DOUBLE
    if operator == "Constant" and attribute.name in ("value_float", "value_floats"):
        value = np.array(helper.get_attribute_value(attribute), np.float64)
        attribute.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))


def _widen_tensor(tensor):
    if tensor.data_type in FLOATS:
        name, value = tensor.name, numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(value, name))
