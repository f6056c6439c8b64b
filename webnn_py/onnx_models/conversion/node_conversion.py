"""Results of nodes: computed while building where all inputs are known, or else converted by a rule.

Either way stands in for the other: what ONNX's reference implementation cannot compute is drawn, and what cannot be
drawn, of data types that WebNN lacks, is computed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final

import attrs
from onnx import NodeProto, defs

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.conversion.function_bodies import has_body
from webnn_py.onnx_models.folding.empty_tensors import empty_results
from webnn_py.onnx_models.folding.evaluation import FOLDED, NotComputed, fold
from webnn_py.onnx_models.problems import RefusedWithWayOut
from webnn_py.onnx_models.reading.functions import OWN_DOMAINS
from webnn_py.onnx_models.rule_table.arguments import Form, call, check_form, form_of
from webnn_py.onnx_models.rule_table.declaration import Rule
from webnn_py.onnx_models.rule_table.registry import RULES
from webnn_py.onnx_models.rule_table.schemas import schema_of

Results = Sequence[Value | None]

DRAWN_FIRST: Final = frozenset(
    {"ConstantOfShape", "DequantizeLinear", "DynamicQuantizeLinear", "EyeLike", "Hardmax", "QuantizeLinear", "Shrink"}
)
"""Operators that no model computes shapes with: the device computes them as any other."""


HIGHEST_RANK_OF_MASKS: Final = 2
"""The highest rank of an input that is frozen for an operator without a rule, as a mask of tokens for NonZero."""


@attrs.frozen(eq=False)
class OperatorKind:
    """Facts about all nodes of an operator in a version of its operator set.

    Attributes:
        schema: its schema.
        form: the parts of that which are asked for at each node.
        rule: how it is converted; None where there is no rule.
        is_folded: whether it is computed while building when all its inputs are known.
        is_drawn_first: whether the device computes its constant result, which for weights is smaller before than after.
        has_body: whether it has no rule and is not folded, but ONNX defines it by a function, whose body is converted.
    """

    schema: defs.OpSchema
    form: Form
    rule: Rule | None
    is_folded: bool
    is_drawn_first: bool
    has_body: bool


def kind_of(node: NodeProto, opsets: Mapping[str, int]) -> OperatorKind:
    """Return what is known of a node's operator.

    Raises:
        Refused: nothing is.
    """
    domain = node.domain
    return _kind(node.op_type, domain, opsets.get("" if domain in OWN_DOMAINS else domain))


@lru_cache(1024)
def _kind(operator: str, domain: str, version: int | None) -> OperatorKind:
    name = operator if domain in OWN_DOMAINS else f"{domain}.{operator}"
    schema = schema_of(name, domain, version)
    rule = RULES.get(name, {}).get(schema.since_version)
    is_drawn_first = rule is not None and (name in DRAWN_FIRST or rule.category == "early_opsets")
    is_folded = name in FOLDED
    is_defined = rule is None and not is_folded and has_body(schema)
    return OperatorKind(schema, form_of(schema), rule, is_folded, is_drawn_first, is_defined)


def is_computed(node: NodeProto, values: Sequence[Value | None], opsets: Mapping[str, int]) -> bool:
    """Return whether :func:`results_of` computes a node with these inputs, rather than drawing it."""
    kind = kind_of(node, opsets)
    return kind.is_folded and not kind.is_drawn_first and not any(isinstance(value, MLOperand) for value in values)


def check_operator(node: NodeProto, opsets: Mapping[str, int]) -> None:
    """Refuse a node for its operator alone, its inputs being missing.

    Raises:
        Refused: there is no rule or body, and whatever the inputs were, it could not be computed while building.
    """
    kind = kind_of(node, opsets)
    if kind.rule is None and not (kind.is_folded or kind.has_body):
        raise Refused(_no_rule(kind.schema))


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
    kind = kind_of(node, opsets)
    check_form(kind.form, node)
    known = [value for value in values if not isinstance(value, MLOperand)]
    if known:
        empty = empty_results(node, values, opsets, context.expenses)
        if empty is not None:
            return empty
    if kind.rule is None:
        return _computed(node, values, kind, opsets, context)
    if not kind.is_folded or len(known) < len(values):
        return call(kind.rule, kind.form, node, values, context)
    drawn = partial(call, kind.rule, kind.form, node, values, context)
    computed = partial(fold, node, known, opsets, context.expenses)
    if kind.is_drawn_first:
        return _either(drawn, Refused, computed, NotComputed)
    return _either(computed, NotComputed, drawn, Refused)


def _computed(
    node: NodeProto,
    values: Sequence[Value | None],
    kind: OperatorKind,
    opsets: Mapping[str, int],
    context: ConversionContext,
) -> Results:
    """Return the results of a node without a rule, whose inputs must be known."""
    if kind.is_folded:
        known = [context.known(value) for value in values]
        if all(item is not None or value is None for item, value in zip(known, values, strict=True)):
            return fold(node, known, opsets, context.expenses)
    way_out = context.freezing(values, HIGHEST_RANK_OF_MASKS) if kind.is_folded else ""
    raise RefusedWithWayOut(_no_rule(kind.schema), way_out)


def _either(
    first: Callable[[], Results], failure: type[Refused], second: Callable[[], Results], other: type[Refused]
) -> Results:
    """Return the result of the first way or, where it fails, of the second; where both fail, the rule says why.

    What the reference implementation says are numpy's words for what it stumbled over.
    """
    try:
        return first()
    except failure as error:
        try:
            return second()
        except other as last:
            raise (last if isinstance(error, NotComputed) else error) from None


def _no_rule(schema: defs.OpSchema) -> str:
    versions = sorted(RULES.get(schema.name, {}))
    if not versions:
        unless = ", unless all its inputs are known while building" if schema.name in FOLDED else ""
        return f"the operator is not supported{unless}"
    return (
        f"version {schema.since_version} of the operator is not supported; "
        f"only those of opset {', '.join(map(str, versions))} are"
    )
