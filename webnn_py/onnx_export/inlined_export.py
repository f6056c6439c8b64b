"""``InlinedExport``: a graph as a model that is run and not read back, without functions."""

from __future__ import annotations

from typing import Final, final

import attrs
import numpy as np
from onnx import ModelProto, TensorProto, helper

from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.onnx_export.body import Array, Body, Known, OnnxTensor, Write, element_type, name_of
from webnn_py.onnx_export.drafts import Draft, write_name, write_tensor
from webnn_py.onnx_export.guards import number_of
from webnn_py.onnx_export.model_export import (
    Names,
    ReadConstant,
    constant_key,
    empty_model,
    needed,
    opset_of,
    value_info,
)

LEAST_BESIDE: Final = 4096
"""Constants of fewer bytes always stand in the model: engines look at some as they infer shapes, and a value of its own
takes longer to make than those take to copy."""


@final
class InlinedExport:
    """One export of a graph; all operators are written into one body, by names that hold in the model.

    Args:
        graph: what to write.
        read_constant: gives the values of constants.
        write: writes an operator into a body.

    Attributes:
        inputs: what the graph's inputs are called in the model.
        outputs: what its outputs are called: the script may have one name for an input and an output, ONNX may not.
        beside: once the model is made, the constants of ``LEAST_BESIDE`` bytes and more, by name; the model has no more
            of them than data type and shape, as those that lie in a file.
        guard: once the model is made, the name of its output more that the sum of the guards is, if there are any.
    """

    def __init__(self, graph: Graph, read_constant: ReadConstant, write: Write) -> None:
        self.inputs = {name: f"i{number}" for number, name in enumerate(graph.inputs)}
        self.outputs = {name: f"o{number}" for number, name in enumerate(graph.outputs)}
        self.beside: dict[str, Array] = {}
        self.guard: str | None = None
        self._graph = graph
        self._read_constant = read_constant
        self._write = write
        self._arrays: dict[Value, Array] = {}
        self._with_arrays: dict[str, Value] = {}
        self._body = Body(self._with_arrays, Known(self._arrays.get, ()), write)
        self._tensors: dict[Value, OnnxTensor] = {
            value: OnnxTensor(self.inputs[name], value.descriptor.data_type, value.descriptor)
            for name, value in graph.inputs.items()
        }

    def model(self) -> ModelProto:
        """The whole model."""
        for node in self._graph.nodes:
            self._add(node)
        names = self._names_of_outputs()
        renamed = names.keys()
        nodes = [
            draft
            if renamed.isdisjoint(draft.outputs) and renamed.isdisjoint(draft.inputs)
            else draft.placed(names, draft.name)
            for draft in self._body.nodes
        ]
        outputs = [value_info(self.outputs[name], value.descriptor) for name, value in self._graph.outputs.items()]
        guards = dict.fromkeys(self._body.guards)
        if guards:
            placed = (attrs.evolve(guard, tensor=names.get(guard.tensor, guard.tensor)) for guard in guards)
            nodes += number_of(placed, Names().new)
            self.guard = nodes[-1].name
            outputs.append(helper.make_tensor_value_info(self.guard, TensorProto.FLOAT, []))
        nodes, used = needed(nodes, [item.name for item in outputs])
        model = empty_model()
        # In place: each message that is put into another one is copied.
        new_name, add_node, add_tensor = Names().new, model.graph.node.add, model.graph.initializer.add
        for draft in nodes:
            draft.write(add_node(), new_name(draft.name))
        inputs = self._graph.inputs.items()
        model.graph.input.extend([value_info(self.inputs[name], value.descriptor) for name, value in inputs])
        model.graph.output.extend(outputs)

        for name, array in self._body.constants.items():
            if name in used:
                self._write_tensor(add_tensor(), name, array)
        model.opset_import.append(opset_of(nodes))
        return model

    def _add(self, node: Node) -> None:
        operands: dict[str, OnnxTensor | tuple[OnnxTensor, ...]] = {}
        tensors = self._tensors
        for parameter, operand in node.operands.items():
            if isinstance(operand, tuple):
                operands[parameter] = tuple([tensors.get(value) or self._constant(value) for value in operand])
            else:
                operands[parameter] = tensors.get(operand) or self._constant(operand)
        self._body.label = node.label or node.operator.name
        for result, tensor in zip(node.results, self._write(self._body, node, operands), strict=True):
            tensors[result] = OnnxTensor(tensor.name, tensor.data_type, result.descriptor)
        if node.operator.name == "reshape" and (array := self._arrays.get(node.inputs[0])) is not None:
            result = node.results[0]
            self._know(result, tensors[result].name, array.reshape(result.descriptor.shape))

    def _constant(self, value: Value) -> OnnxTensor:
        """The tensor of a constant that is met for the first time."""
        assert isinstance(value, Constant)  # noqa: S101 - all others are made before they are used
        array, descriptor = self._read_constant(value), value.descriptor
        if array.shape != descriptor.shape:
            array = array.reshape(descriptor.shape)
        name = self._body.constant(array, constant_key(value.key, array)).name
        tensor = self._tensors[value] = OnnxTensor(name, descriptor.data_type, descriptor)
        self._know(value, name, array)
        return tensor

    def _know(self, value: Value, name: str, array: Array) -> None:
        """Let rules look at the elements of a value."""
        self._arrays[value] = array
        self._with_arrays[name] = value

    def _names_of_outputs(self) -> dict[str, str]:
        """The names that what nodes make gets as an output; what is none's, or two's, goes through an Identity."""
        names: dict[str, str] = {}
        made_elsewhere = {*self.inputs.values(), *self._body.constants}
        for name, value in self._graph.outputs.items():
            tensor = self._tensors[value].name
            if tensor in names or tensor in made_elsewhere:
                self._body.nodes.append(Draft("Identity", [tensor], [self.outputs[name]], name=self.outputs[name]))
            else:
                names[tensor] = self.outputs[name]
        return names

    def _write_tensor(self, tensor: TensorProto, name: str, array: Array) -> None:
        number = element_type(name_of(array.dtype))
        if array.nbytes < LEAST_BESIDE:
            write_tensor(tensor, name, number, array)
            return
        lies_well = array.flags.c_contiguous and array.flags.aligned  # asked first: numpy takes longer to require it
        self.beside[name] = array if lies_well else np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])
        write_name(tensor, name, number, array)
