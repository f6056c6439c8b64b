"""Calls of WebNN's operators in a model that this package wrote.

Where no single ONNX operator means what a WebNN operator does, the model has a function of its own for it, in
:data:`.DOMAIN`, whose body says it in ONNX's operators. The call keeps the operator's options, so that reading the
model draws the operator again and not its body. A function that was changed since, by its digest, is read as any
other.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onnx import FunctionProto, NodeProto

from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.onnx_export.function_digests import DIGEST, DOMAIN, OPTIONS, digest_of
from webnn_py.onnx_models.conversion.context import ConversionContext, Value

_BY_SPEC_NAME: Final[Mapping[str, Operator[..., Any]]] = {item.spec_name: item for item in OPERATORS.values()}


def operator_of(function: FunctionProto) -> Operator[..., Any] | None:
    """Return the operator that a function stands for, if it is as this package wrote it."""
    if function.domain != DOMAIN:
        return None
    sealed = {item.key: item.value for item in function.metadata_props}.get(DIGEST)
    return _BY_SPEC_NAME.get(function.name.partition("_")[0]) if sealed == digest_of(function) else None


def draw_call(
    operator: Operator[..., Any],
    function: FunctionProto,
    node: NodeProto,
    values: Sequence[Value],
    context: ConversionContext,
) -> list[MLOperand]:
    """Draw the operator that a call stands for.

    Raises:
        Refused: the builder refuses it, or the call is not one that this package writes.
    """
    if len(values) != len(function.input):
        refuse("the number of inputs", len(values), f"{len(function.input)}, as the function has")
    arguments = _options_of(node)
    for name, value in zip(function.input, values, strict=True):
        parameter, is_item, _ = name.partition(".")
        operand = context.operand(value)
        if is_item:
            arguments[parameter] = [*arguments.get(parameter, []), operand]
        else:
            arguments[parameter] = operand
    drawn: MLOperand | list[MLOperand] = getattr(context, operator.name)(**arguments)
    outputs = drawn if isinstance(drawn, list) else [drawn]
    if len(node.output) > len(outputs):
        refuse("the number of outputs", len(node.output), f"at most {len(outputs)}")
    return outputs[: len(node.output)]


def _options_of(node: NodeProto) -> dict[str, Any]:
    texts = [item.s for item in node.attribute if item.name == OPTIONS]
    try:
        options = json.loads(texts[0]) if len(texts) == 1 else None
    except (ValueError, RecursionError):  # the second, where lists stand deep in each other
        options = None
    if not isinstance(options, dict):
        raise Refused(f"its attribute {OPTIONS} is missing or no object in JSON")
    return options
