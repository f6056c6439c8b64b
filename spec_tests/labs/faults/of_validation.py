"""Faults of the operators' limits and shape rules: of each category one that is not checked."""

import attrs

from spec_tests.labs.faults.records import Faults

BAD = "spec_tests/operators/test_bad_operands.py"
LIMITS = "spec_tests/operators/test_limits.py"
VECTORS = "spec_tests/wpt/test_validation_vectors.py"
"""Collected where WEBNN_WPT_VECTORS names the folder of the vectors; without it three of these faults are missed."""

BUILDER = "spec_tests/script_timeline"

FAULTS = Faults()


def _accepts(name, seam, only=""):
    """A fault by which a check accepts everything."""
    FAULTS.at(seam, BAD, VECTORS, only=f"odd_shapes or {only}", name=name)(lambda *_given, **_more: None)


_accepts("activation-accepts-any-axis", "webnn_py.core.operators.rules.check_axis", "softmax")
_accepts("conversion-accepts-any-scale", "webnn_py.core.operators.conversion._check_blocks", "quantize")
_accepts(
    "convolution-accepts-any-output-padding", "webnn_py.core.operators.convolution.check_below_strides", "transpose"
)
_accepts("indexing-accepts-any-indices", "webnn_py.core.operators.indexing._check_element_indices", "elements")
_accepts("matrix-accepts-any-inner-size", "webnn_py.core.operators.matrix.check_inner", "gemm or matmul")
_accepts("movement-joins-anything", "webnn_py.core.operators.movement._check_joins", "concat")
_accepts("normalization-accepts-any-scale", "webnn_py.core.operators.rules.check_shape", "normalization")
_accepts("pooling-accepts-a-stride-of-0", "webnn_py.core.operators.windows.check_steps", "pool")
_accepts("recurrent-accepts-any-activations", "webnn_py.core.operators.rules.check_length", "gru or lstm")
_accepts("reduction-accepts-an-axis-twice", "webnn_py.core.operators.rules.check_axes", "reduce")
_accepts("resampling-accepts-any-number-of-scales", "webnn_py.core.operators.rules.check_length", "resample")


@FAULTS.at("webnn_py.core.operators.rules.broadcast", BAD, VECTORS, only="add or div or pow")
def arithmetic_broadcasts_anything(broadcast, a, b, names=()):
    shorter, longer = sorted((a, b), key=len)
    padded = (1,) * (len(longer) - len(shorter)) + tuple(shorter)
    return tuple(map(max, padded, longer))


@FAULTS.at("webnn_py.core.api.limits._check_operand", BAD, only="must_follow")
def logical_operands_of_two_types(check, shown, operand, row, arguments):
    check(shown, operand, attrs.evolve(row, type_of=None), arguments)


@FAULTS.at("webnn_py.core.api.limits._check_operand", LIMITS, only="numpy and every_other_data_type")
def unary_operands_of_any_type(check, shown, operand, row, arguments):
    check(shown, operand, attrs.evolve(row, data_types=(operand.data_type,)), arguments)


@FAULTS.at(
    "webnn_py.core.descriptors.check_dimensions", BAD, LIMITS, BUILDER, only="dimension or byte or large or rank"
)
def tensors_of_any_size(check, descriptor, **limits):
    return None


@FAULTS.at("webnn_py.core.operators.limits.RankRange.__contains__", LIMITS)
def ranks_of_one_more(contains, ranks, rank):
    return contains(ranks, rank) or contains(ranks, rank - 1)
