"""The functions by which ONNX itself defines operators, for those without a rule.

They are converted as the model's own functions are: the nodes of the body, in place of the node.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    TensorProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)

from webnn_py.core.message_text import shown
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused, refuse
from webnn_py.onnx_models.conversion.context import ConversionContext, Value
from webnn_py.onnx_models.problems import shortened

REDUCTIONS: Final = (b"none", b"sum", b"mean")
"""The reductions of losses."""

SMALL: Final = 1024
"""The most elements of a value that is looked at, as it may be a shape."""


def has_body(schema: defs.OpSchema) -> bool:
    """Return whether ONNX defines an operator by a function of tensors and attributes."""
    declared: Any = schema  # onnx's stubs lack what concerns functions
    kinds = {item.type.value for item in declared.attributes.values()}
    has_function = declared.has_function or declared.has_context_dependent_function
    return bool(has_function and AttributeProto.GRAPH not in kinds)


def defining_function(
    node: NodeProto, schema: defs.OpSchema, values: Sequence[Value | None], context: ConversionContext
) -> FunctionProto:
    """Return the function that defines a node's operator, with the operator's defaults of attributes.

    Raises:
        Refused: the node does not fit the operator's declaration.
    """
    call = NodeProto(op_type=node.op_type, attribute=node.attribute)
    call.input.extend("" if value is None else f"x{index}" for index, value in enumerate(values))
    call.output.extend(f"y{index}" if name else "" for index, name in enumerate(node.output))
    try:
        types = [TypeProto() if value is None else _type_of(value, context) for value in values]
        _check(call, schema, types, values)
        function = _function(call, schema, types)
    except Refused:
        raise
    except Exception as error:  # of several kinds, those of C++ among them
        raise Refused(f"it does not fit the declaration of the operator: {shortened(str(error))}") from error
    defaults = [item.default_value for item in schema.attributes.values()]
    function.attribute_proto.extend(item for item in defaults if item.type != AttributeProto.UNDEFINED)
    return function


def _type_of(value: Value, context: ConversionContext) -> TypeProto:
    """Return the type of a value of the model; where float64 stands for float32, it is that already.

    Raises:
        Refused: it is float64, which WebNN lacks.
    """
    if context.is_boolean(value):
        data_type = np.dtype(np.bool_)
    elif isinstance(value, MLOperand):
        data_type = np.dtype(value.data_type)
    elif value.dtype == np.float64:
        data_type = np.dtype(context.data_type("the data type of an input", TensorProto.DOUBLE))
    else:
        data_type = value.dtype
    made: TypeProto = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(data_type), value.shape)
    return made


def _check(call: NodeProto, schema: defs.OpSchema, types: Sequence[TypeProto], values: Sequence[Value | None]) -> None:
    """Let ONNX check a node, and infer its outputs, which finds shapes and sizes that do not fit.

    Raises:
        Refused: the reduction of a loss is unknown; ONNX's function would compute a sum.
    """
    for attribute in call.attribute:
        if attribute.name == "reduction" and attribute.s not in REDUCTIONS:
            refuse("attribute reduction", shown(attribute.s.decode(errors="replace")), "none, sum or mean")
    known = {name: value for name, value in zip(call.input, values, strict=True) if isinstance(value, np.ndarray)}
    shape_inference.infer_node_outputs(
        schema,
        call,
        {name: item for name, item in zip(call.input, types, strict=True) if name},
        {name: numpy_helper.from_array(value, name) for name, value in known.items() if value.size <= SMALL},
        opset_imports=[helper.make_opsetid("", schema.since_version)],
        ir_version=onnx.IR_VERSION,
    )


def _function(call: NodeProto, schema: defs.OpSchema, types: Sequence[TypeProto]) -> FunctionProto:
    """Return the function in the latest operator set for which ONNX has it."""
    declared: Any = schema  # onnx's stubs lack what concerns functions
    if declared.has_function:
        encoded = declared.get_function_with_opset_version(declared.function_opset_versions[-1])
    else:
        given = [item.SerializeToString() for item in types]
        latest = declared.context_dependent_function_opset_versions[-1]
        encoded = declared.get_context_dependent_function_with_opset_version(latest, call.SerializeToString(), given)
    function = FunctionProto()
    function.ParseFromString(encoded)
    return function
