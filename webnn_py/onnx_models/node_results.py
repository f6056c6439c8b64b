"""What a node gives: computed while building where all its inputs are known, else converted by its rule.

Either way stands in for the other: what ONNX's reference implementation cannot compute is drawn, and what cannot be
drawn, of data types that WebNN lacks, is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from onnx import NodeProto, defs

from webnn_py.onnx_models.calling import call, check_form
from webnn_py.onnx_models.conversion_context import ConversionContext, Value
from webnn_py.onnx_models.empty_tensors import empty_results
from webnn_py.onnx_models.folding import NotComputed, fold, is_folded
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.registry import RULES
from webnn_py.onnx_models.schemas import operator_name, schema_of
from webnn_py.onnx_models.table import Rule
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.rules import Refused

Results = Sequence[Value | None]


def check_operator(node: NodeProto, opsets: Mapping[str, int]) -> None:
    """Refuse a node for its operator alone, its inputs being missing.

    Raises:
        Refused: there is no rule, and whatever the inputs were, it could not be computed while building.
    """
    schema = schema_of(node, opsets)
    name = operator_name(node)
    if schema.since_version not in RULES.get(name, {}) and not is_folded(name):
        raise Refused(_no_rule(schema))


def results_of(
    node: NodeProto,
    values: Sequence[Value | None],
    opsets: Mapping[str, int],
    context: ConversionContext,
) -> Results:
    """Compute a node now if all its inputs are known, else convert it by its rule.

    Raises:
        Refused: neither is possible.
    """
    schema = schema_of(node, opsets)
    check_form(schema, node)
    empty = empty_results(node, values, opsets, context.expenses)
    if empty is not None:
        return empty
    name = operator_name(node)
    rule = RULES.get(name, {}).get(schema.since_version)
    if rule is None:
        return _computed(node, values, schema, opsets, context)
    if not is_folded(name) or any(isinstance(value, MLOperand) for value in values):
        return call(rule, schema, node, values, context)
    drawn = partial(call, rule, schema, node, values, context)
    known = [value for value in values if not isinstance(value, MLOperand)]
    computed = partial(fold, node, known, opsets, context.expenses)
    if _is_drawn_first(name, rule):
        return _either(drawn, Refused, computed, NotComputed)
    return _either(computed, NotComputed, drawn, Refused)


def _computed(
    node: NodeProto,
    values: Sequence[Value | None],
    schema: defs.OpSchema,
    opsets: Mapping[str, int],
    context: ConversionContext,
) -> Results:
    """The results of a node without a rule, whose inputs must be known."""
    if is_folded(operator_name(node)):
        known = [context.known(value) for value in values]
        if all(item is not None or value is None for item, value in zip(known, values, strict=True)):
            return fold(node, known, opsets, context.expenses)
    raise RefusedWithWayOut(_no_rule(schema), context.freezing(values))


def _either(
    first: Callable[[], Results], failure: type[Refused], second: Callable[[], Results], other: type[Refused]
) -> Results:
    """What the first way gives or, where it fails, the second; where both fail, the rule says why.

    What the reference implementation says are numpy's words for what it stumbled over.
    """
    try:
        return first()
    except failure as error:
        try:
            return second()
        except other as last:
            raise (last if isinstance(error, NotComputed) else error) from None


def _is_drawn_first(name: str, rule: Rule) -> bool:
    """Whether the device computes the node's constant result, which for weights is smaller before than after."""
    return not rule.may_compute_shapes or name in {"ConstantOfShape", "DequantizeLinear", "QuantizeLinear"}


def _no_rule(schema: defs.OpSchema) -> str:
    versions = sorted(RULES.get(schema.name, {}))
    if not versions:
        unless = ", unless all its inputs are known while building" if is_folded(schema.name) else ""
        return f"the operator is not supported{unless}"
    return (
        f"version {schema.since_version} of the operator is not supported; "
        f"only those of opset {', '.join(map(str, versions))} are"
    )
