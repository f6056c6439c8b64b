"""``ModelExport``: a graph's nodes, written one after the other, become a model."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, final

import numpy as np
from onnx import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto, helper, numpy_helper

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.onnx_export.body import (
    Array,
    Body,
    Known,
    OnnxTensor,
    element_type,
    name_of,
)
from webnn_py.onnx_export.function_digests import DOMAIN, OPTIONS, options_text, seal
from webnn_py.onnx_export.node_passes import needed
from webnn_py.onnx_export.nodes import OnnxNode, write_tensor
from webnn_py.onnx_export.writing import write
from webnn_py.unique_names import Names
from webnn_py.version import __version__

OPSET: Final = 20
"""The first with Gelu. From 21 on, onnxruntime 1.31 makes wrong models of some with int8: it adds ``output_dtype`` to
QuantizeLinear, and then turns int8 into uint8."""

OPSET_OF_BLOCKS: Final = 21
"""The first that quantizes in blocks, and the newest that onnxruntime 1.20 knows."""

IR_VERSION: Final = 10
"""That of the second."""

DOMAIN_VERSION: Final = 1
"""That of the operators of other domains."""

QUANTIZE_IN_BLOCKS: Final = frozenset({"DequantizeLinear", "QuantizeLinear"})


def model_of(graph: Graph, *, metadata: Mapping[str, str] | None = None) -> ModelProto:
    """Return a graph, as a device is given it, as an ONNX model.

    Args:
        graph: the graph.
        metadata: what else to say of the model, by name.

    Raises:
        ValueError: a constant's data are not the host's.
    """
    model = ModelExport(graph).model()
    helper.set_model_props(model, dict(metadata or {}))
    return model


@final
class ModelExport:
    """One export of a graph.

    Args:
        graph: what to write.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._names = Names([*graph.inputs, *graph.outputs])
        self._function_names = Names()
        self._of_value: dict[Value, str] = {value: name for name, value in graph.inputs.items()}
        self._of_truth: dict[Value, str] = {}
        self._arrays: dict[Value, Array] = {}
        self._known = Known(self._array, self._of_truth)
        self._of_array: dict[object, str] = {}
        self._initializers: dict[str, Array] = {}
        self._functions: dict[bytes, FunctionProto] = {}
        self._nodes: list[OnnxNode] = []

    def model(self) -> ModelProto:
        """Return the whole model."""
        for name, value in self._graph.outputs.items():
            self._of_value.setdefault(value, name)
        for node in self._graph.nodes:
            self._add(node)
        for name, value in self._graph.outputs.items():
            if self._of_value[value] != name:
                self._nodes.append(OnnxNode("Identity", [self._of_value[value]], [name], name=name))
        return self._assembled()

    def _assembled(self) -> ModelProto:
        inputs, outputs = (
            [value_info(name, value.descriptor) for name, value in values.items()]
            for values in (self._graph.inputs, self._graph.outputs)
        )
        nodes, used = needed(self._nodes, self._graph.outputs)
        model = written_model(nodes, inputs, outputs)
        for name, array in self._initializers.items():
            if name in used:
                write_tensor(model.graph.initializer.add(), name, element_type(name_of(array.dtype)), array)
        for function in self._functions.values():
            function.opset_import.append(opset_of(nodes))
        model.functions.extend(self._functions.values())
        return model

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _add(self, node: Node) -> None:
        values: dict[str, Value] = {}
        operands: dict[str, OnnxTensor | tuple[OnnxTensor, ...]] = {}
        for parameter, operand in node.operands.items():
            if isinstance(operand, tuple):
                named = {f"{parameter}.{index}": value for index, value in enumerate(operand)}
                operands[parameter] = tuple([_tensor(name, value) for name, value in named.items()])
                values |= named
            else:
                operands[parameter] = _tensor(parameter, operand)
                values[parameter] = operand
        body = Body(values, self._known, write)
        outputs: list[str] = []
        for tensor in write(body, node, operands):
            is_made_here = tensor.name not in values and tensor.name not in body.constants
            is_first = is_made_here and tensor.name not in outputs
            outputs.append(tensor.name if is_first else body.twin("Identity", tensor).name)
        if node.operator.name == "reshape" and (array := self._array(values["input"])) is not None:
            self._arrays[node.results[0]] = array.reshape(node.outputs[0].shape)
        label = node.label or node.operator.name
        if body.is_plain:
            self._add_nodes(body, outputs, node, label)
        else:
            self._add_call(body, outputs, node, label)

    def _add_nodes(self, body: Body, outputs: Sequence[str], node: Node, label: str) -> None:
        """Add what was written as it is."""
        names = {name: self._name(value) for name, value in body.operands.items()}
        for name, local in body.truths.items():
            names[local] = self._of_truth[body.operands[name]]
        for name, array in body.constants.items():
            names[name] = self._initializer(array)
        names.update(zip(outputs, self._result_names(node, label), strict=True))
        for index, written in enumerate(body.nodes):
            for local in written.outputs:
                if local and local not in names:
                    names[local] = self._names.new(f"{label}/{written.operator}")
            self._nodes.append(written.placed(names, f"{label}/{written.operator}" if index else label))
        if body.made_truths:
            for local, result in zip(outputs, node.results, strict=True):
                if local in body.made_truths:
                    self._of_truth[result] = names[body.made_truths[local]]

    def _add_call(self, body: Body, outputs: Sequence[str], node: Node, label: str) -> None:
        """Add what was written as a function, unless there is the same one, and a call of it."""
        function = _function(body, outputs, node)
        key = function.SerializeToString(deterministic=True)
        if key not in self._functions:
            function.name = self._function_names.new(function.name)
            seal(function)
            self._functions[key] = function
        inputs = [self._name(value) for value in body.operands.values()]
        options = ((OPTIONS, options_text(node.options)),)
        call = OnnxNode(self._functions[key].name, inputs, self._result_names(node, label), options, label, DOMAIN)
        self._nodes.append(call)

    def _result_names(self, node: Node, label: str) -> list[str]:
        names = []
        for result in node.results:
            if result not in self._of_value:
                self._of_value[result] = self._names.new(f"{label}/{result.index}" if len(node.results) > 1 else label)
            names.append(self._of_value[result])
        return names

    # --- constants -------------------------------------------------------------------------------------------------

    def _array(self, value: Value) -> Array | None:
        """Return the values of a constant, or of one that is only reshaped."""
        if isinstance(value, Constant) and value not in self._arrays:
            if not isinstance(value.data, np.ndarray):
                raise ValueError(
                    f"save(): a constant {value.descriptor} is a constant buffer, whose contents only its device has; "
                    "draw it from an array"
                )
            self._arrays[value] = value.data.reshape(value.descriptor.shape)
        return self._arrays.get(value)

    def _name(self, value: Value) -> str:
        if value not in self._of_value:
            assert isinstance(value, Constant)  # noqa: S101 - all others are written before they are used
            array = self._array(value)
            assert array is not None  # noqa: S101 - for type checkers
            self._of_value[value] = self._initializer(array, value.key)
        return self._of_value[value]

    def _initializer(self, array: Array, key: Hashable | None = None) -> str:
        """Return the name of an initializer; equal arrays share one, large ones only if key or array is the same."""
        same = constant_key(key, array)
        if same not in self._of_array:
            self._of_array[same] = self._names.new("constant")
            self._initializers[self._of_array[same]] = array
        return self._of_array[same]


LARGEST_COMPARED: Final = 4096
"""The most bytes of a constant that is identified by its contents."""


def constant_key(key: Hashable | None, array: Array) -> tuple[object, ...]:
    """Return what identifies a constant of a model: its key, its contents, or, if these are large, the array."""
    if key is None:
        return name_of(array.dtype), array.shape, array.tobytes() if array.nbytes <= LARGEST_COMPARED else id(array)
    return key, name_of(array.dtype), array.shape


def written_model(
    nodes: Sequence[OnnxNode], inputs: Iterable[ValueInfoProto], outputs: Iterable[ValueInfoProto]
) -> ModelProto:
    """Return a model of nodes, which get names of their own; its constants are yet to be written."""
    model = ModelProto(ir_version=IR_VERSION, producer_name="webnn_py", producer_version=__version__)
    graph = model.graph
    graph.name = "graph"
    # In place: each message that is put into another one is copied.
    new_name, add_node = Names().new, graph.node.add
    for node in nodes:
        node.write(add_node(), new_name(node.name))
    graph.input.extend(inputs)
    graph.output.extend(outputs)
    domains = {node.domain for node in nodes} - {""}
    add_opset = model.opset_import.add
    model.opset_import.extend([opset_of(nodes)])
    for domain in sorted(domains):
        add_opset(domain=domain, version=DOMAIN_VERSION)
    return model


def opset_of(nodes: Iterable[OnnxNode]) -> OperatorSetIdProto:
    """Return the version of ONNX's operators that nodes need."""
    in_blocks = [node for node in nodes if node.operator in QUANTIZE_IN_BLOCKS]
    has_blocks = any(name == "block_size" for node in in_blocks for name, _ in node.attributes)
    return OperatorSetIdProto(domain="", version=OPSET_OF_BLOCKS if has_blocks else OPSET)


def _tensor(name: str, value: Value) -> OnnxTensor:
    return OnnxTensor(name, value.descriptor.data_type, value.descriptor)


def _function(body: Body, outputs: Sequence[str], node: Node) -> FunctionProto:
    """Return the function that a body is, not sealed yet; its name may be another's, and it lacks the model's opset."""
    results = [f"output{index}" for index in range(len(node.results))] if node.operator.returns_sequence else ["output"]
    names = dict(zip(outputs, results, strict=True))
    before = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(array))
        for name, array in body.constants.items()
    ]
    casts = [OnnxNode("Cast", [name], [local], (("to", element_type("bool")),)) for name, local in body.truths.items()]
    drafts, used = needed([*casts, *(written.placed(names, written.outputs[0]) for written in body.nodes)], results)
    nodes = [constant for constant in before if constant.output[0] in used]
    for draft in drafts:
        nodes.append(NodeProto())
        draft.write(nodes[-1], draft.name)
    return helper.make_function(
        DOMAIN, node.operator.spec_name, list(body.operands), results, nodes, [], attributes=[OPTIONS]
    )


def value_info(name: str, descriptor: MLOperandDescriptor) -> ValueInfoProto:
    """Return an input or output of a model."""
    info = ValueInfoProto(name=name)  # not by onnx.helper, which takes three times as long
    tensor = info.type.tensor_type
    tensor.elem_type = element_type(descriptor.data_type)
    tensor.shape.SetInParent()  # also of no dimensions
    add = tensor.shape.dim.add
    for size in descriptor.shape:
        add().dim_value = size
    return info
