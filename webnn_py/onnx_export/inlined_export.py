"""``InlinedExport``: a graph as a model that is run and not read back, without functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, final

import attrs
import numpy as np
from onnx import TensorProto

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Node, Value
from webnn_py.core.operators.declaration import of_operands
from webnn_py.devices.rewriting.passes import PassContext, PassManager
from webnn_py.devices.rewriting.report import PassReport
from webnn_py.onnx_export.body import Array, Body, Float16Kernels, Known, OnnxTensor, Write, element_type, name_of
from webnn_py.onnx_export.guards import number_of
from webnn_py.onnx_export.model_export import constant_key, value_info, written_model
from webnn_py.onnx_export.node_passes import WrittenNodes
from webnn_py.onnx_export.nodes import OnnxNode, write_name, write_tensor
from webnn_py.onnx_export.shape_inputs import shape_inputs
from webnn_py.unique_names import Names

LEAST_BESIDE: Final = 4096
"""Constants of fewer bytes stand in the model: to make a value of its own takes longer than to copy them."""


@attrs.frozen(eq=False)
class InlinedModel:
    """A model for onnxruntime to run.

    Attributes:
        encoded: a ModelProto, as bytes.
        operators: those of its nodes.
        makers: the operators that make its outputs.
        inputs: what the graph's inputs are called in the model.
        outputs: what its outputs are called: the script may have one name for an input and an output, ONNX may not.
        guard: the name of its output more that the sum of the guards is, if there are any.
        passes: what each pass did to the nodes.
        beside: the constants outside the model, by name: those of ``LEAST_BESIDE`` bytes and more on which no shape
            depends; the model has no
            more of them than data type and shape, as those that lie in a file.
    """

    encoded: bytes
    operators: frozenset[str]
    makers: frozenset[str]
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    guard: str | None
    passes: tuple[PassReport, ...]
    beside: Mapping[str, Array]


@final
class InlinedExport:
    """One export of a graph; all operators are written into one body, by names that hold in the model.

    Args:
        graph: what to write.
        context: gives the values of constants, and says what the passes are for.
        write: writes an operator into a body.
        passes: the passes over the nodes that were written.
        float16: the ONNX operators with kernels of float16.
    """

    def __init__(
        self,
        graph: Graph,
        context: PassContext,
        write: Write,
        passes: PassManager,
        float16: Float16Kernels = Float16Kernels(),  # noqa: B008 - frozen
    ) -> None:
        self._inputs = {name: f"i{number}" for number, name in enumerate(graph.inputs)}
        self._outputs = {name: f"o{number}" for number, name in enumerate(graph.outputs)}
        self._beside: dict[str, Array] = {}
        self._graph = graph
        self._context = context
        self._write = write
        self._passes = passes
        self._arrays: dict[Value, Array] = {}
        self._with_arrays: dict[str, Value] = {}
        known = Known(self._arrays.get, ())
        self._body = Body(self._with_arrays, known, write, float16, joins_constants=True)
        self._tensors: dict[Value, OnnxTensor] = {
            value: OnnxTensor(self._inputs[name], value.descriptor.data_type, value.descriptor)
            for name, value in graph.inputs.items()
        }

    def model(self) -> InlinedModel:
        """Return the whole model."""
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
        outputs = {self._outputs[name]: value.descriptor for name, value in self._graph.outputs.items()}
        infos = [value_info(name, descriptor) for name, descriptor in outputs.items()]
        guard, guards = None, self._guards(names)
        if guards:
            nodes += guards
            guard = nodes[-1].name
            infos.append(value_info(guard, MLOperandDescriptor("float32", ())))
        made = [*outputs] if guard is None else [*outputs, guard]
        drawn = WrittenNodes(nodes, made, self._body.constants)
        written, passes = self._passes.run(drawn, self._context)
        used = set(chain.from_iterable([node.read for node in written.nodes]))
        inputs = [value_info(self._inputs[name], value.descriptor) for name, value in self._graph.inputs.items()]
        model = written_model(written.nodes, inputs, infos)
        add_tensor, shapes = model.graph.initializer.add, _read_for_shapes(written.nodes)
        for name, array in self._body.constants.items():
            if name in used:
                self._write_tensor(add_tensor(), name, array, stands_in_model=name in shapes)
        operators = frozenset([draft.operator for draft in written.nodes]).union(
            *[draft.within.operators for draft in written.nodes if draft.within is not None]
        )
        makers = frozenset([draft.operator for draft in written.nodes if not outputs.keys().isdisjoint(draft.outputs)])
        return InlinedModel(
            model.SerializeToString(), operators, makers, self._inputs, self._outputs, guard, passes, self._beside
        )

    def _add(self, node: Node) -> None:
        tensors = self._tensors
        operands = of_operands(node.operands, lambda value: tensors.get(value) or self._constant(value))
        self._body.label = node.label or node.operator.name
        for result, tensor in zip(node.results, self._write(self._body, node, operands), strict=True):
            tensors[result] = OnnxTensor(tensor.name, tensor.data_type, result.descriptor)
        if node.operator.name == "reshape" and (array := self._arrays.get(node.inputs[0])) is not None:
            result = node.results[0]
            self._know(result, tensors[result].name, array.reshape(result.descriptor.shape))

    def _constant(self, value: Value) -> OnnxTensor:
        """Return the tensor of a constant that is met for the first time."""
        assert isinstance(value, Constant)  # noqa: S101 - all others are made before they are used
        array, descriptor = self._context.contents(value), value.descriptor
        if array.shape != descriptor.shape:
            array = array.reshape(descriptor.shape)
        tensor = self._tensors[value] = self._body.constant(array, constant_key(value.key, array), descriptor)
        self._know(value, tensor.name, array)
        return tensor

    def _know(self, value: Value, name: str, array: Array) -> None:
        """Let rules look at the elements of a value."""
        self._arrays[value] = array
        self._with_arrays[name] = value

    def _names_of_outputs(self) -> dict[str, str]:
        """Return names for tensors that are outputs; one of no node, or of two outputs, goes through an Identity."""
        names: dict[str, str] = {}
        made_elsewhere = {*self._inputs.values(), *self._body.constants}
        for name, value in self._graph.outputs.items():
            tensor = self._tensors[value].name
            if tensor in names or tensor in made_elsewhere:
                self._body.nodes.append(OnnxNode("Identity", [tensor], [self._outputs[name]], name=self._outputs[name]))
            else:
                names[tensor] = self._outputs[name]
        return names

    def _guards(self, names: Mapping[str, str]) -> list[OnnxNode]:
        """Return the nodes that make one number of all guards, whose tensors have other names in part."""
        guards = dict.fromkeys(self._body.guards)
        placed = (attrs.evolve(guard, tensor=names.get(guard.tensor, guard.tensor)) for guard in guards)
        return number_of(placed, Names().new) if guards else []

    def _write_tensor(self, tensor: TensorProto, name: str, array: Array, *, stands_in_model: bool) -> None:
        """Write a constant; its bytes stay outside the model if they are many and no shape depends on them."""
        number = element_type(name_of(array.dtype))
        if stands_in_model or array.nbytes < LEAST_BESIDE:
            write_tensor(tensor, name, number, array)
            return
        lies_well = array.flags.c_contiguous and array.flags.aligned  # asked first: numpy takes longer to require it
        self._beside[name] = array if lies_well else np.require(array, requirements=["C_CONTIGUOUS", "ALIGNED"])
        write_name(tensor, name, number, array)


def _read_for_shapes(nodes: Sequence[OnnxNode]) -> set[str]:
    """Return the names of all inputs on whose values shapes depend, also within nodes."""
    names: set[str] = set()
    for node in nodes:
        names.update(shape_inputs(node.operator, node.inputs))
        if node.within is not None:
            for inner in node.within.graph.node:
                names.update(shape_inputs(inner.op_type, inner.input))
    return names
