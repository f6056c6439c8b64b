"""Other values for the inputs and attributes of a node, and the changes that they make here and in onnxruntime.

A rule that ignores an input or attribute gives silently wrong results: so each must change the result as it changes
onnxruntime's, or be refused.
"""

import concurrent.futures
import functools
import multiprocessing

import attrs
import numpy as np
from onnx import TensorProto, defs
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from spec_tests.onnx_models.single_node import expected, run
from webnn_py.onnx_models import InvalidModelError, UnsupportedModelError
from webnn_py.onnx_models.rule_table.registry import RULES

FLAGS = {
    name
    for versions in RULES.values()
    for item in versions.values()
    for name, kind in item.attribute_types.items()
    if kind is bool
}
"""Attributes that are 0 or 1."""

NUMBERS = {"INT": (1, 0, 2, 3, -1), "FLOAT": (0.5, 2.0, 0.01, 1.0, 0.0)}
LISTS = ([1], [2], [0], [-1], [1, 1], [2, 2], [2, 1], [1, 0], [0, 1, 1, 0], [1, 1, 1, 1], [1] * 6, [0.3], [0.3, 0.4])
"""Values for a list that a case does not give."""

VALUES = {
    "activation": ("Relu", "Tanh", "silu", "none"),
    "activations": (["Relu", "Tanh"], ["Relu", "Tanh", "Sigmoid"], ["Relu"], ["Relu", "Tanh"] * 2, ["Relu"] * 6),
    "aggregate_function": ("AVERAGE", "MIN", "MAX"),
    "approximate": ("tanh", "none"),
    "auto_pad": ("SAME_UPPER", "SAME_LOWER", "VALID"),
    "coordinate_transformation_mode": ("half_pixel", "align_corners", "asymmetric", "output_half_pixel"),
    "direction": ("RIGHT", "LEFT", "reverse", "bidirectional"),
    "dtype": (TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64),
    "equation": ("ij->ji", "ij->i", "i->", "ij,jk->ki", "i,i->i"),
    "keep_aspect_ratio_policy": ("not_larger", "not_smaller"),
    "mode": ("linear", "nearest", "cubic", "bilinear", "edge", "reflect", "CRD", "DCR", "max", "avg", "circular"),
    "nearest_mode": ("floor", "ceil", "round_prefer_ceil"),
    "norm": ("L1", "L2", "MAX"),
    "output_dtype": (TensorProto.FLOAT16, TensorProto.INT8, TensorProto.UINT8),
    "padding_mode": ("border", "reflection", "zeros"),
    "post_transform": ("LOGISTIC", "SOFTMAX", "NONE"),
    "precision": (TensorProto.FLOAT16,),
    "reduction": ("add", "mul", "max", "min", "sum", "mean", "none"),
    "to": (TensorProto.FLOAT16, TensorProto.BOOL, TensorProto.INT32),
    "update_rule": ("linear", "gated", "delta"),
}
"""Values of attributes that are texts or types."""

IN_TRAINING = "matters in training only"
IS_LIKE_WEIGHTS = "repeats the shape of the weights"
OF_8_BITS = "is of floats of 8 bits"
ONLY_SHAPE = "gives its shape alone"
WITHOUT_INFLUENCE = {
    (None, "kernel_shape"): IS_LIKE_WEIGHTS,
    (None, "saturate"): OF_8_BITS,
    (None, "round_mode"): OF_8_BITS,
    ("Attention", "softmax_precision"): "is float32",
    ("BatchNormalization", "momentum"): IN_TRAINING,
    ("CastLike", "target_type"): "gives its data type alone",
    ("Dropout", "ratio"): IN_TRAINING,
    ("Dropout", "seed"): IN_TRAINING,
    ("EyeLike", "input"): ONLY_SHAPE,
    ("LinearAttention", "chunk_size"): "is a hint",
    ("QuantizeLinear", "precision"): "rounds the quotient, which seldom shows",
    ("Reshape", "allowzero"): "matters where there are no elements",
    ("Shape", "data"): ONLY_SHAPE,
    ("Size", "data"): ONLY_SHAPE,
    ("TopK", "sorted"): "leaves the order open where it is 0",
    ("ai.onnx.ml.LinearClassifier", "multi_class"): "is not looked at by onnxruntime",
    ("ai.onnx.ml.TreeEnsembleClassifier", "nodes_hitrates"): "is a statistic",
    ("ai.onnx.ml.TreeEnsembleRegressor", "nodes_hitrates"): "is a statistic",
    ("com.microsoft.Attention", "rotary_embedding_dim"): "is of do_rotary",
    ("com.microsoft.EmbedLayerNormalization", "mask_index_type"): "is for the inference of shapes",
    ("com.microsoft.FusedGemm", "activation_gamma"): "is of no activation that is taken",
    ("com.microsoft.GroupQueryAttention", "k_norm_epsilon"): "is of inputs that are refused",
    ("com.microsoft.GroupQueryAttention", "q_norm_epsilon"): "is of inputs that are refused",
    ("com.microsoft.GroupQueryAttention", "qk_norm_epsilon"): "is of inputs that are refused",
    ("com.microsoft.MatMulNBits", "accuracy_level"): "is a hint",
    ("com.microsoft.QLinearSoftmax", "x_zero_point"): "moves all scores alike, which a softmax does not see",
    ("com.microsoft.RotaryEmbedding", "scale"): "is not looked at by onnxruntime",
}
"""Inputs and attributes that change nothing, by operator, None being any; with the reason."""

SINCE_1_32 = frozenset(("com.microsoft.GroupQueryAttention", name) for name in ("k_norm_epsilon", "q_norm_epsilon"))
"""Those that onnxruntime declares from 1.32 on."""

UNLIKE = {
    ("Resize", "coordinate_transformation_mode"): "onnxruntime takes tf_half_pixel_for_nn otherwise",
    ("Resize", "keep_aspect_ratio_policy"): "onnxruntime looks at other axes than those that are given",
    ("Resize", "roi"): "a region that ends before it begins means nothing",
    ("com.microsoft.GroupQueryAttention", "seqlens_k"): "rows behind a sample's end are of what was in memory",
    ("com.microsoft.GroupQueryAttention", "total_sequence_length"): "a cache does not grow while the graph runs",
    ("com.microsoft.QLinearSoftmax", "y_scale"): "onnxruntime computes with few bits, which other scales show",
    ("ai.onnx.ml.TreeEnsembleClassifier", "class_ids"): "onnxruntime's label of two classes is not the greater's",
}
"""Inputs and attributes of which other values are no fair comparison, with the reason."""


@attrs.frozen
class Declared:
    """The inputs and attributes of an operator.

    Attributes:
        inputs: the names of its inputs; of one that may come any number of times, once.
        attributes: the types of its attributes, as ONNX calls them.
    """

    inputs: tuple
    attributes: dict


@functools.cache
def declared(operator, version):
    """Return the inputs and attributes that ONNX declares, or onnxruntime for operators that ONNX lacks."""
    if defs.has(operator):
        schema = defs.get_schema(operator, version, "")
        return Declared(
            tuple(item.name for item in schema.inputs),
            {name: item.type.name for name, item in schema.attributes.items()},
        )
    domain, _, name = operator.rpartition(".")
    (schema,) = (
        item
        for item in get_all_operator_schema()
        if (item.domain, item.name, item.since_version) == (domain, name, version)
    )
    return Declared(
        tuple(item.name for item in schema.inputs), {name: item.type.name for name, item in schema.attributes.items()}
    )


def conversion_of(operator, version):
    """Return the function of the rule for an operator; None where ONNX's own function takes its place."""
    rule = RULES.get(operator, {}).get(version)
    return None if rule is None else rule.function


def attributes_of(operator, version):
    """Return the names of the attributes that a rule takes; without one, those that ONNX declares."""
    rule = RULES.get(operator, {}).get(version)
    return declared(operator, version).attributes if rule is None else rule.attributes


def other_arrays(array):
    """Return arrays in place of an input: of the same shape and data type, and indices within the same range."""
    if array.dtype == np.bool_:
        others = [~array]
    elif array.dtype.kind == "f":
        half, quarter = (array.dtype.type(number) for number in (0.5, 0.25))
        others = [np.flip(array, -1), np.roll(array, 1, -1)] if array.ndim else []
        others += [array * half + quarter, -array]
    elif array.dtype.kind in "iu" and array.size:
        one = array.dtype.type(1)
        lowest, highest = array.min(), array.max()
        others = [np.flip(array, -1), np.roll(array, 1, -1), np.flip(array, 0)] if array.ndim else []
        others += [array[[*range(array.size - 2), -1, -2]]] if array.ndim == 1 and array.size > 1 else []
        others += [np.maximum(array, lowest + one)] if highest > lowest else []
        others += [array - one, array + one] if lowest > 0 else [array + one]
        others += [np.full_like(array, one), np.zeros_like(array)]
    else:
        others = []
    return [np.array(item, order="C") for item in others if not np.array_equal(item, array)]


def other_values(name, kind, given):
    """Return values in place of an attribute, of the type that ONNX calls ``kind``."""
    if name in VALUES:
        others = VALUES[name]
    elif name in FLAGS:
        others = (0, 1)
    elif kind in NUMBERS:
        others = NUMBERS[kind]
    elif kind in ("INTS", "FLOATS") and given:
        others = [list(reversed(given)), [item + 1 for item in given], [given[0] + 1, *given[1:]], [1] * len(given)]
    elif kind in ("INTS", "FLOATS"):
        others = [item for item in LISTS if isinstance(item[0], float) == (kind == "FLOATS")]
    else:
        others = ()
    return [item for item in others if item != given]


def changed_inputs(cases, index):
    """Yield each case, the case with another value of an input or without it, and the index of the input."""
    for case in cases:
        given = case.inputs[index] if index < len(case.inputs) else None
        if given is None:
            continue
        for other in [*other_arrays(given), *([None] if index else [])]:
            inputs = tuple(other if place == index else item for place, item in enumerate(case.inputs))
            known = tuple(place for place in case.known if inputs[place] is not None)
            yield case, attrs.evolve(case, inputs=inputs, known=known), index


def changed_attributes(cases, name, kind):
    """Yield each case, the case with another value of an attribute, and None."""
    for case in cases:
        for other in other_values(name, kind, case.attributes.get(name)):
            yield case, attrs.evolve(case, attributes={**case.attributes, name: other}), None


def is_exempt(operator, name):
    """Return whether an input or an attribute changes nothing anywhere, or cannot be compared."""
    return not {(None, name), (operator, name)}.isdisjoint({*WITHOUT_INFLUENCE, *UNLIKE})


class Oracle:
    """The results of cases' oracles, from a process of its own: some nodes make onnxruntime crash."""

    def __init__(self):
        self._process = None
        self._results = {}

    def results(self, case):
        """Return the results of a case; None where its oracle fails, or is a list of results."""
        if isinstance(case.oracle, list):
            return None
        if id(case) not in self._results:  # with the case, whose id no other can have then
            self._results[id(case)] = case, self._from_process(case)
        return self._results[id(case)][1]

    def _from_process(self, case):
        if self._process is None:
            self._process = concurrent.futures.ProcessPoolExecutor(1, mp_context=_processes())
        try:
            return self._process.submit(expected, case).result()
        except concurrent.futures.BrokenExecutor:
            self.close()
            return None
        except Exception:  # noqa: BLE001 - onnxruntime's and the reference evaluator's have no common class
            return None

    def close(self):
        """End the process."""
        if self._process is not None:
            self._process.shutdown()
            self._process = None


@functools.cache
def _processes():
    """Return how processes start: where the platform can, from one that has imported the oracles, in milliseconds."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([expected.__module__])
    return context


async def here(ml, case):
    """Return the results of a case here; None where it is refused."""
    context = await ml.create_context(backend="numpy")
    try:
        return await run(context, case.model(), case.feeds)
    except (UnsupportedModelError, InvalidModelError):
        return None


def is_same(ours, theirs):
    """Return whether results have the same shapes and values, NaN being equal to NaN."""
    return len(ours) == len(theirs) and all(
        (a.shape, a.dtype) == (b.shape, b.dtype) and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        for a, b in zip(ours, theirs, strict=True)
    )


def is_near(case, ours, theirs):
    """Return whether results agree within a case's tolerances; a tenth of bytes may be a step apart."""
    if len(ours) != len(theirs):
        return False
    for mine, other in zip(ours, theirs, strict=True):
        wanted = other.astype(np.uint8) if other.dtype == np.bool_ else other
        if mine.shape != wanted.shape or mine.dtype != wanted.dtype:
            return False
        if wanted.dtype.kind == "f":
            relative, absolute = max(case.relative, 1e-4), max(case.absolute, 1e-5)
            # In float16 the tolerance of a small number would underflow.
            numbers = mine.astype(np.float64), wanted.astype(np.float64)
            if not np.allclose(*numbers, rtol=relative, atol=absolute, equal_nan=True):
                return False
            continue
        steps = np.abs(mine.astype(np.int64) - wanted.astype(np.int64))
        most = 1 if wanted.dtype.itemsize == 1 else 0
        if steps.size and (steps.max() > most or np.count_nonzero(steps) > 0.1 * steps.size):
            return False
    return True
