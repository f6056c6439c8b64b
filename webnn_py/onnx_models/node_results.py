"""What a node gives: computed while building where all its inputs are known, else converted by its rule.

Either way stands in for the other: what ONNX's reference implementation cannot compute is drawn, and what cannot be
drawn, of data types that WebNN lacks, is computed.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import NodeProto, defs

from webnn_py.onnx_models.calling import call, check_form
from webnn_py.onnx_models.conversion_context import ConversionContext, Value
from webnn_py.onnx_models.folding import NotComputed, fold, is_folded
from webnn_py.onnx_models.limits import Expenses
from webnn_py.onnx_models.registry import RULES
from webnn_py.onnx_models.schemas import operator_name, schema_of
from webnn_py.onnx_models.table import Rule
from webnn_py.operators.rules import Refused


def check_operator(node: NodeProto, opsets: Mapping[str, int]) -> None:
    """Refuse a node for its operator alone, its inputs being missing.

    Raises:
        Refused: there is no rule.
    """
    schema = schema_of(node, opsets)
    if schema.since_version not in RULES.get(operator_name(node), {}):
        raise Refused(_no_rule(schema))


def results_of(
    node: NodeProto,
    values: Sequence[Value | None],
    opsets: Mapping[str, int],
    context: ConversionContext,
    expenses: Expenses,
) -> Sequence[Value | None]:
    """Compute a node now if all its inputs are known, else convert it by its rule.

    Raises:
        Refused: neither is possible.
    """
    schema = schema_of(node, opsets)
    check_form(schema, node)
    name = operator_name(node)
    rule = RULES.get(name, {}).get(schema.since_version)
    can_fold = is_folded(name)
    if rule is None:
        known = [context.known(value) for value in values] if can_fold else []
        if not can_fold or any(item is None and value is not None for item, value in zip(known, values, strict=True)):
            raise Refused(_no_rule(schema))
        return fold(node, known, opsets, expenses)
    static = [value for value in values if not isinstance(value, np.ndarray) and value is not None]
    if static or not can_fold:
        return call(rule, schema, node, values, context)
    known = [value for value in values if value is None or isinstance(value, np.ndarray)]
    if _is_drawn_first(name, rule):
        try:
            return call(rule, schema, node, values, context)
        except Refused as refused:
            try:
                return fold(node, known, opsets, expenses)
            except NotComputed:
                raise refused from None
    try:
        return fold(node, known, opsets, expenses)
    except NotComputed as failed:
        try:
            return call(rule, schema, node, values, context)
        except Refused:
            raise failed from None


def _is_drawn_first(name: str, rule: Rule) -> bool:
    """Whether the device computes the node's constant result, which for weights is smaller before than after."""
    return not rule.may_compute_shapes or name in {"DequantizeLinear", "QuantizeLinear"}


def _no_rule(schema: defs.OpSchema) -> str:
    versions = sorted(RULES.get(schema.name, {}))
    if not versions:
        unless = ", unless all its inputs are known while building" if is_folded(schema.name) else ""
        return f"the operator is not supported{unless}"
    return (
        f"version {schema.since_version} of the operator is not supported; "
        f"only those of opset {', '.join(map(str, versions))} are"
    )
