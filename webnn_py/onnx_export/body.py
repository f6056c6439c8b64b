"""``Body``: what a rule writes to, the ONNX nodes of one WebNN operator."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TypeGuard, final

import attrs
import numpy as np
from numpy.typing import NDArray
from onnx import helper

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.frozen import frozen
from webnn_py.core.graph import Constant, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators.declaration import of_operands
from webnn_py.onnx_export.guards import Guard, Must
from webnn_py.onnx_export.nodes import OnnxNode, Within, attributes_of

Array = NDArray[Any]

BOOL: Final = "bool"


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """Return the name of a data type, which numpy puts together each time."""
    return dtype.name


@cache
def element_type(data_type: str) -> int:
    """Return the number of an element type in ONNX, by the name that numpy has for it."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(data_type))


@frozen(eq=False)
class OnnxTensor:
    """A tensor in a body.

    Attributes:
        name: its name there.
        data_type: that of its elements, also "bool".
        descriptor: of an operand, or of a result, of an operator; None for what lies between.
    """

    name: str
    data_type: str
    descriptor: MLOperandDescriptor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions of an operand."""
        assert self.descriptor is not None  # noqa: S101 - rules ask for the shapes of operands only
        return self.descriptor.shape

    @property
    def rank(self) -> int:
        """The number of dimensions of an operand."""
        return len(self.shape)


Given = OnnxTensor | Array | None
"""An input of a node: a tensor, a constant, or None for an absent input."""


Operands = Mapping[str, OnnxTensor | tuple[OnnxTensor, ...]]
"""An operator's operands by the names of its parameters."""

Write = Callable[["Body", Node, Operands], list[OnnxTensor]]


@attrs.frozen
class Known:
    """Known facts about a graph's values.

    Attributes:
        array: gives the elements of a constant; None for anything else.
        truths: the values of uint8 that came from a boolean, which can be had for them.
    """

    array: Callable[[Value], Array | None]
    truths: Container[Value]


@attrs.frozen
class Float16Kernels:
    """The ONNX operators with kernels of float16 where a model will run; by default those that all models assume.

    Attributes:
        missing: operators without such a kernel, which are written in float32 with casts where they would be in
            float16. They round nothing.
        computing: operators with a kernel that rounds a result once, which are written in float16. Others that round
            are written in float32.
    """

    missing: Container[str] = ()
    computing: Container[str] = ()


@final
class Body:
    """The ONNX nodes that compute one WebNN operator.

    Args:
        operands: the operator's operands, by their names in the body.
        known: what is known of them.
        write: writes an operator, given by a node, with its operands' tensors; returns the outputs.
        float16: the ONNX operators with kernels of float16.
        joins_constants: whether constants that are laid end to end become constants.

    Attributes:
        operands: the operands.
        label: what the nodes that are written next are called.
        nodes: what was written so far, with names that hold in the body.
        constants: the constants that the nodes use.
        is_plain: whether all of it are twins: ONNX operators that are read back as the WebNN operator.
        truths: the operands of which the boolean is used, by the name that stands for it.
        made_truths: the booleans that results of uint8 were made of.
        guards: tensors that show where what was written may not mean the operator.
    """

    def __init__(
        self,
        operands: Mapping[str, Value],
        known: Known,
        write: Write,
        float16: Float16Kernels = Float16Kernels(),
        *,
        joins_constants: bool = False,
    ) -> None:
        self.operands = operands
        self._known = known
        self._joins_constants = joins_constants
        self.write = write
        self._float16 = float16
        self._constants: dict[object, str] = {}
        self._values: dict[Value, OnnxTensor] = {}
        self._count = 0
        self.label = ""
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, Array] = {}
        self.is_plain = True
        self.truths: dict[str, str] = {}
        self.made_truths: dict[str, str] = {}
        self.guards: list[Guard] = []

    def node(self, operator: str, *inputs: Given, data_type: str | None = None, **attributes: Any) -> OnnxTensor:
        """Write a node of one output, whose data type is by default that of the first input."""
        self.is_plain = False
        return self._write(operator, inputs, (data_type,), attributes)[0]

    def twin(self, operator: str, *inputs: Given, data_type: str | None = None, **attributes: Any) -> OnnxTensor:
        """Write a node that alone means what the WebNN operator does, and is read back as such."""
        return self._write(operator, inputs, (data_type,), attributes)[0]

    def nodes_outputs(  # noqa: PLR0913 - all that a node may have
        self,
        operator: str,
        inputs: Sequence[Given],
        data_types: Sequence[str],
        *,
        domain: str = "",
        within: Within | None = None,
        lists: Mapping[str, Array] | None = None,
        **attributes: Any,
    ) -> list[OnnxTensor]:
        """Write a node of several outputs; "" for the data type of one that is not wanted."""
        self.is_plain = False
        outputs = self._write(operator, inputs, data_types, attributes)
        if domain or within is not None:
            self.nodes[-1] = attrs.evolve(self.nodes[-1], domain=domain, within=within, lists=lists)
        return outputs

    def twin_outputs(
        self, operator: str, inputs: Sequence[Given], data_types: Sequence[str], **attributes: Any
    ) -> list[OnnxTensor]:
        """Write a twin of several outputs."""
        return self._write(operator, inputs, data_types, attributes)

    def _write(
        self, operator: str, inputs: Sequence[Given], data_types: Sequence[str | None], attributes: Mapping[str, Any]
    ) -> list[OnnxTensor]:
        # In one piece, as what it does for nodes of one output is most of what a build does in Python.
        if operator in self._float16.missing and any(map(_is_float16, inputs)):
            return self._write_in_float32(operator, inputs, data_types, attributes)
        names = []
        for item in inputs:
            if isinstance(item, OnnxTensor):
                names.append(item.name)
            else:
                names.append("" if item is None else self.constant(item).name)
        outputs, made = [], []
        for data_type in data_types:
            name = ""
            if data_type != "":
                self._count += 1
                name = f"t{self._count}"
            made.append(name)
            outputs.append(OnnxTensor(name, _type_of(inputs[0]) if data_type is None else data_type))
        while not names[-1]:  # onnxruntime takes an absent last input for one that is there
            names.pop()
        given = attributes_of(attributes) if attributes else ()
        self.nodes.append(OnnxNode(operator, names, made, given, self.label))
        return outputs

    def _write_in_float32(
        self, operator: str, inputs: Sequence[Given], data_types: Sequence[str | None], attributes: Mapping[str, Any]
    ) -> list[OnnxTensor]:
        """Write nodes of float16 in float32, which they round nothing of."""
        named = [_type_of(inputs[0]) if data_type is None else data_type for data_type in data_types]
        wide = ["float32" if data_type == "float16" else data_type for data_type in named]
        made = self._write(operator, [self._widened(item) for item in inputs], wide, attributes)
        return [
            self.cast(output, "float16") if data_type == "float16" else output
            for output, data_type in zip(made, named, strict=True)
        ]

    def _widened(self, given: Given) -> Given:
        if not _is_float16(given):
            return given
        return self.cast(given, "float32") if isinstance(given, OnnxTensor) else given.astype(np.float32)

    def unwritten(self, descriptor: MLOperandDescriptor) -> OnnxTensor:
        """Return a tensor that no node makes, of a name that nothing else has."""
        self._count += 1
        return OnnxTensor(f"t{self._count}", descriptor.data_type, descriptor)

    @contextmanager
    def apart(self) -> Iterator[list[OnnxNode]]:
        """Collect the nodes written within the block, which do not become the body's."""
        around, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = around

    def constant(self, array: Array, key: object = None, descriptor: MLOperandDescriptor | None = None) -> OnnxTensor:
        """Return a constant; equal ones, or ones of the same key, are shared."""
        data_type = name_of(array.dtype)
        same = (data_type, array.shape, array.tobytes()) if key is None else key
        name = self._constants.get(same)
        if name is None:
            name = self._constants[same] = f"c{len(self._constants) + 1}"
            self.constants[name] = array
        return OnnxTensor(name, data_type, descriptor)

    def known(self, tensor: OnnxTensor) -> Array | None:
        """Return the values of a constant operand."""
        operand = self.operands.get(tensor.name)
        return self.constants.get(tensor.name) if operand is None else self._known.array(operand)

    def end_to_end(self, parts: Sequence[OnnxTensor | Array], axis: int) -> OnnxTensor | Array:
        """Concatenate parts along an axis; constants at once where they are not operands of a shared function."""
        arrays = [self.known(part) if isinstance(part, OnnxTensor) else part for part in parts]
        known = [array for array in arrays if array is not None]
        if self._joins_constants and len(known) == len(arrays):
            return np.concatenate(known, axis)
        return self.node("Concat", *parts, axis=axis)

    def guard(
        self,
        x: OnnxTensor,
        must: Must = Must.BE_NUMBERS,
        *,
        is_number: bool = False,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Note that what was written means the operator only if ``x`` is as it must be, and its sum as well."""
        is_number = is_number or shape == () or (x.descriptor is not None and not x.rank)
        self.guards.append(Guard(x.name, must, is_number, shape))

    def computes(self, operator: str, data_type: str) -> bool:
        """Return whether an ONNX operator that rounds is written in a data type of floats as it is."""
        return data_type == "float32" or (data_type == "float16" and operator in self._float16.computing)

    def computed(self, operator: str, x: OnnxTensor) -> OnnxTensor:
        """Return floats in the data type in which an ONNX operator computes them: their own, or float32."""
        return x if self.computes(operator, x.data_type) else self.cast(x, "float32")

    # --- types ---------------------------------------------------------------------------------------------------

    def cast(self, x: OnnxTensor, data_type: str) -> OnnxTensor:
        """Return the elements as ONNX's Cast converts them; integers keep their low bits."""
        if x.data_type == data_type:
            return x
        truth = self.made_truths.get(x.name)
        given = x if truth is None else OnnxTensor(truth, BOOL)  # 0 or 1 of any data type
        return self.node("Cast", given, data_type=data_type, to=element_type(data_type))

    def truth(self, x: OnnxTensor) -> OnnxTensor:
        """Return a boolean that is true where uint8 is not 0: the one that it was cast from, if there is one."""
        if x.name in self.made_truths:
            return OnnxTensor(self.made_truths[x.name], BOOL)
        if self.operands.get(x.name) in self._known.truths:
            self.truths[x.name] = f"{x.name}?"
            return OnnxTensor(f"{x.name}?", BOOL)
        return self.cast(x, BOOL)

    def number(self, truth: OnnxTensor) -> OnnxTensor:
        """Return a boolean as uint8, 0 or 1."""
        (made,) = self._write("Cast", [truth], ["uint8"], {"to": element_type("uint8")})
        self.made_truths[made.name] = truth.name
        return made

    # --- operators that are decomposed into others -----------------------------------------------------------------

    def decomposed(self, node: Node, operands: Operands) -> list[OnnxTensor]:
        """Write an operator's decomposition."""
        drawing = Drawing(self)
        given = of_operands(operands, drawing.of)
        decompose = node.operator.decomposition
        assert decompose is not None  # noqa: S101 - the caller has looked
        drawn: Any = decompose(drawing, **{**node.options, **given})
        return [drawing.tensor(operand) for operand in (drawn if isinstance(drawn, list) else [drawn])]

    def value(self, value: Value) -> OnnxTensor:
        """Return the tensor of a value in a decomposition."""
        if value not in self._values:
            assert isinstance(value, Constant)  # noqa: S101 - all others are drawn before they are used
            array = np.asarray(value.data)
            self.enter(value, self.constant(array))
        return self._values[value]

    def enter(self, value: Value, tensor: OnnxTensor) -> None:
        """Keep the tensor of a value in a decomposition."""
        self._values[value] = OnnxTensor(tensor.name, tensor.data_type, value.descriptor)


def _type_of(given: Given) -> str:
    if given is None:
        raise ValueError("the first input is absent; say the data type")
    return given.data_type if isinstance(given, OnnxTensor) else name_of(given.dtype)


def _is_float16(given: Given) -> TypeGuard[OnnxTensor | Array]:
    return given is not None and _type_of(given) == "float16"


@final
class Drawing(RewriteBuilder):
    """Looks like a builder, and writes what is drawn with it into a body.

    Args:
        body: where to.
    """

    def __init__(self, body: Body) -> None:
        super().__init__()
        body.is_plain = False
        self._body = body

    def of(self, tensor: OnnxTensor) -> Any:
        """Return an operand that stands for a tensor."""
        assert tensor.descriptor is not None  # noqa: S101 - only operands and results are drawn with
        value = Value(tensor.descriptor)
        self._body.enter(value, tensor)
        return self.operand(value)

    def tensor(self, operand: Any) -> OnnxTensor:
        """Return the tensor that an operand stands for."""
        return self._body.value(self.value(operand))

    def draw(self, node: Node) -> Sequence[Value]:
        """Write a node."""
        operands = of_operands(node.operands, self._body.value)
        for result, tensor in zip(node.results, self._body.write(self._body, node, operands), strict=True):
            self._body.enter(result, tensor)
        return node.results
