"""``ChromiumDrawing``: a graph as the ONNX model that Chromium's onnxruntime backend writes of it.

Written after ``services/webnn/ort/graph_builder_ort.cc`` and ``model_editor.cc`` of Chromium 145.0.7568.0, with the
changes of early 2026 to ``batchNormalization`` of one dimension, to ``reverse`` of no axes and to the names of
activations, and after ``layout_transformer.cc`` of Blink, which transposes images whose channels are last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto

from webnn_py.graph import Constant, Graph, Node, Value
from webnn_py.onnx_export.body import element_type, name_of
from webnn_py.onnx_export.model_export import IR_VERSION, value_info
from webnn_py.onnx_export.nodes import OnnxNode, attributes_of, write_name, write_tensor
from webnn_py.operators.declaration import of_operands

OPSETS: Final = {
    "": 21,
    "com.microsoft": 1,
    "com.ms.internal.nhwc": 21,
    "com.microsoft.nchwc": 1,
    "com.microsoft.dml": 1,
}
"""The versions of operators that Chromium's models ask for, by domain."""

LEAST_BESIDE: Final = 128
"""Constants of fewer bytes stand in the model."""

_PLACES: Final = re.compile(r"webnn(\d+)_")

Given = str | NDArray[Any] | None
"""An input of an ONNX node: a tensor by its name, a constant, or none."""

Drawn = str | list[str]
"""The names of an operator's outputs."""

Rule = Callable[..., Drawn]
"""Draws an operator, given the drawing, the node, and the names of its operands by parameter."""

RULES: Final[dict[str, Rule]] = {}
"""The rule of each operator, by Python name."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register


@attrs.frozen(eq=False)
class ChromiumModel:
    """The ONNX model of a graph.

    Attributes:
        encoded: a ModelProto, as bytes.
        beside: the constants outside the model, by name.
        operators: the ONNX operators, by the node's name.
    """

    encoded: bytes
    beside: Mapping[str, NDArray[Any]]
    operators: Mapping[str, str]


def places_in(name: str) -> list[int]:
    """Return the places of the operators that an ONNX node was drawn for; onnxruntime makes longer names of names."""
    return [int(place) for place in dict.fromkeys(_PLACES.findall(name))]


class ChromiumDrawing:
    """One drawing of a graph.

    Args:
        graph: what to draw, without composites.
        resamples_last_axes_only: see :class:`~webnn_py.browser_profiles.engines.BrowserEngine`.

    Raises:
        KeyError: Chromium has no rule for an operator.
    """

    def __init__(self, graph: Graph, *, resamples_last_axes_only: bool = False) -> None:
        self.resamples_last_axes_only = resamples_last_axes_only
        self._graph = graph
        self._place = 0
        self._nodes: dict[str, OnnxNode] = {}
        self._constants: dict[str, NDArray[Any]] = {}
        self._names: dict[Value, str] = {value: f"i{number}" for number, value in enumerate(graph.inputs.values())}

    def model(self) -> ChromiumModel:
        """Return the model."""
        for place, node in enumerate(self._graph.nodes):
            self._place = place
            operands = of_operands(node.operands, self._name)
            drawn = RULES[node.operator.name](self, node, **operands)
            for result, name in zip(node.results, drawn if isinstance(drawn, list) else [drawn], strict=True):
                self._names[result] = name
        model = ModelProto(ir_version=IR_VERSION, producer_name="Chromium")
        for domain, version in OPSETS.items():
            model.opset_import.add(domain=domain, version=version)
        graph, beside = model.graph, {}
        graph.name = "graph"
        for name, written in self._nodes.items():
            written.write(graph.node.add(), name)
        graph.input.extend([value_info(self._names[value], value.descriptor) for value in self._graph.inputs.values()])
        outputs = dict.fromkeys(self._graph.outputs.values())
        graph.output.extend([value_info(self._names[value], value.descriptor) for value in outputs])
        for name, array in self._constants.items():
            number = element_type(name_of(array.dtype))
            if array.nbytes < LEAST_BESIDE:
                write_tensor(graph.initializer.add(), name, number, array)
            else:
                beside[name] = np.ascontiguousarray(array)
                write_name(graph.initializer.add(), name, number, array)
        operators = {name: written.operator for name, written in self._nodes.items()}
        return ChromiumModel(model.SerializeToString(), beside, operators)

    def node(self, operator: str, *inputs: Given, **attributes: Any) -> str:
        """Add a node of one output; return the output's name."""
        (name,) = self.nodes(operator, inputs, [True], **attributes)
        return name

    def nodes(self, operator: str, inputs: Sequence[Given], outputs: Sequence[bool], **attributes: Any) -> list[str]:
        """Add a node of several outputs; return the names of those that are wanted, "" for the others."""
        name = f"webnn{self._place}_{len(self._nodes)}"
        names = [f"{name}_{index}" if wanted else "" for index, wanted in enumerate(outputs)]
        given = [self.constant(item) if isinstance(item, np.ndarray) else item or "" for item in inputs]
        empty = {key: int64s(value) for key, value in attributes.items() if value == []}  # of which the type is unknown
        kept = attributes_of({key: value for key, value in attributes.items() if key not in empty})
        self._nodes[name] = OnnxNode(operator, given, names, kept, lists=empty or None)
        return names

    def constant(self, array: NDArray[Any]) -> str:
        """Add a constant; return its name."""
        name = f"c{len(self._constants)}"
        self._constants[name] = array
        return name

    def cast(self, tensor: str, data_type: str) -> str:
        """Cast a tensor, also to "bool"."""
        return self.node("Cast", tensor, to=element_type(data_type))

    def reshape(self, tensor: str, shape: Sequence[int]) -> str:
        """Reshape a tensor."""
        return self.node("Reshape", tensor, int64s(shape))

    def transpose(self, tensor: str, permutation: Sequence[int]) -> str:
        """Transpose a tensor, unless the order stays the same."""
        if list(permutation) == sorted(permutation):
            return tensor
        return self.node("Transpose", tensor, perm=list(permutation))

    def _name(self, value: Value) -> str:
        """Return the name of a value; a constant gets one when it is first met."""
        if value not in self._names:
            assert isinstance(value, Constant)  # noqa: S101 - all others are made before they are used
            self._names[value] = self.constant(_elements(value))
        return self._names[value]


def _elements(constant: Constant) -> NDArray[Any]:
    """Return the elements of a constant; where a device has them, zeros: providers look at shapes and data types."""
    descriptor = constant.descriptor
    if isinstance(constant.data, np.ndarray):
        return constant.data.reshape(descriptor.shape)
    return np.zeros(descriptor.shape, descriptor.data_type)


def int64s(numbers: Sequence[int]) -> NDArray[Any]:
    """Return numbers as a tensor of one axis."""
    return np.array(list(numbers), np.int64)


def shape_of(node: Node, operand: str) -> tuple[int, ...]:
    """Return the shape of an operand."""
    return tuple(node.operand(operand).shape)
