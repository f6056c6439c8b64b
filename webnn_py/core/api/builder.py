"""``MLGraphBuilder``: builds a graph, one operator at a time, and checks each as it is added."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import partial
from typing import Any, final, overload
from weakref import ref

import numpy as np
from trio.lowlevel import enable_ki_protection

from webnn_py.core.api.argument_checks import check_descriptor, named, refuse_progress
from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.buffer_source import ExportsArray, data_type_of, exported_array, host_copy
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.limits import check_operands, check_outputs, limits_of
from webnn_py.core.api.refused_calls import rejected_promise, report_refusal
from webnn_py.core.descriptors import (
    MLOperandDataTypeLike,
    MLOperandDescriptor,
    check_dimensions,
    converted,
    operand_descriptor,
)
from webnn_py.core.device.backend import HostArray, OnProgress
from webnn_py.core.errors import InvalidStateError, NotSupportedError, OperationError, UnknownError
from webnn_py.core.extension import compile_step
from webnn_py.core.graph import Constant, Graph, Input, Node, Output, Value
from webnn_py.core.handle import NotCopied, forgotten_await
from webnn_py.core.message_text import device_text, in_brackets, shown
from webnn_py.core.operators.casting import cast_number
from webnn_py.core.operators.declaration import Operator, of_operands
from webnn_py.core.operators.idl import MLNumber, boolean, ml_number, usv_string
from webnn_py.core.operators.methods import OperatorMethods
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.core.timelines.device_timeline import Work
from webnn_py.core.timelines.promise import MLPromise


@final
class MLGraphBuilder(NotCopied, OperatorMethods):
    """Draws one graph (section "MLGraphBuilder interface").

    Every operator is a method that takes operands and returns one, or a list of them. What does not fit is refused
    at once with ``TypeError``; nothing is computed before :meth:`build`, which ends the builder's work.

    Args:
        context: where the graph will run.

    Raises:
        TypeError: ``context`` is no ``MLContext``.
        SecurityError: the policy denies the use of the API.
        InvalidStateError: the context is lost.
    """

    def __init__(self, context: MLContext) -> None:
        # spec: MLGraphBuilder.MLGraphBuilder 4
        self._has_built = False
        self._destroyed = False
        self._values: dict[MLOperand, Value] = {}
        if type(context) is not MLContext:
            raise TypeError(
                f"MLGraphBuilder(): context is {shown(context)}; it must be an MLContext{forgotten_await(context)}"
            )
        try:
            # spec: MLGraphBuilder.MLGraphBuilder 1
            context._ml._check_allowed("MLGraphBuilder")
            # spec: MLGraphBuilder.MLGraphBuilder 2
            context._check_not_lost("MLGraphBuilder")
        except Exception as error:
            report_refusal(context, "MLGraphBuilder", error)
            raise
        # spec: MLGraphBuilder.MLGraphBuilder 3
        self._context = context
        self._capabilities = context._capabilities
        self._extensions = context._extensions
        self._input_names: set[str] = set()
        self._drawn = 0
        self._constant_buffers: dict[Value, MLBuffer] = {}
        self._reference = ref(self)

    # --- inputs and constants --------------------------------------------------------------------------------

    def input(self, name: str, *, data_type: MLOperandDataTypeLike, shape: Any) -> MLOperand:
        """Return a graph input, whose data come with each dispatch (section "input operands").

        Args:
            name: not empty, and not used by another input of this builder.
            data_type: one of the eight data types, or numpy's dtype of that name.
            shape: the dimensions, each at least 1; empty for a scalar.

        Returns:
            The operand, of the data type and shape given.

        Raises:
            TypeError: the name or the descriptor is refused.
            InvalidStateError: the builder has built, or the context is lost.
        """
        try:
            return self._input(name, data_type, shape)
        except Exception as error:
            report_refusal(self._context, "input", error, label=_text(name))
            raise

    def _input(self, name: object, data_type: object, shape: Any) -> MLOperand:
        for extension in self._extensions:
            given = {"name": name, "data_type": data_type, "shape": shape}
            name, data_type, shape = extension.arguments(self, "input", given).values()
        text = converted("input(): name", usv_string, name)
        descriptor = self._descriptor("input", data_type, shape)
        # spec: input 1
        self.check_can_build("input")
        # spec: input 2
        if not text:
            raise TypeError("input(): name is empty; it must not be")
        # spec: input 3
        if text in self._input_names and not any(each.allows_equal_names for each in self._extensions):
            raise TypeError(f"input(): name is {shown(text)}; another input of this builder has it")
        # spec: input 4
        self._check_descriptor("input", descriptor)
        # spec: input 5-6
        operand = self._leaf(Input(descriptor, text), "input", text)
        self._input_names.add(text)
        return operand

    @overload
    def constant(self, value: MLBuffer) -> MLOperand: ...
    @overload
    def constant(self, value: MLNumber, *, data_type: MLOperandDataTypeLike) -> MLOperand: ...
    @overload
    def constant(
        self, value: ExportsArray, *, data_type: MLOperandDataTypeLike | None = None, shape: Any = None
    ) -> MLOperand: ...
    @overload
    def constant(self, value: object, *, data_type: MLOperandDataTypeLike, shape: Any) -> MLOperand: ...
    def constant(self, value: object, *, data_type: object = None, shape: Any = None) -> MLOperand:
        """Return a constant, in four forms (section "constant operands").

        * ``constant(array)``: an array, numpy's or one that another library exports to numpy.
        * ``constant(data, data_type=…, shape=…)``: any bytes; see :meth:`MLContext.write_buffer`.
        * ``constant(number, data_type=…)``: a scalar; the number is clamped and rounded to the data type.
        * ``constant(buffer)``: a constant buffer of this context.

        Bytes are copied now: what happens to ``value`` later has no effect.

        Args:
            value: an array, bytes, a number or a constant buffer.
            data_type: one of the eight data types, or numpy's dtype of that name; arrays and buffers know their own.
            shape: the dimensions, each at least 1; that of the array, or a scalar, when absent.

        Returns:
            The operand, of that data type and shape.

        Raises:
            TypeError: the value or the descriptor is refused.
            InvalidStateError: the builder has built, or the context is lost.
            UnknownError: there is no memory for a copy of the bytes.
        """
        try:
            return self._constant(value, data_type, shape)
        except Exception as error:
            report_refusal(self._context, "constant", error, value)
            raise

    def _constant(self, value: object, data_type: object, shape: Any) -> MLOperand:
        for extension in self._extensions:
            given = {"value": value, "data_type": data_type, "shape": shape}
            value, data_type, shape = extension.arguments(self, "constant", given).values()
        if type(value) is MLBuffer:
            return self._constant_of_buffer(value, data_type, shape)
        if data_type is None or (shape is None and not issubclass(type(value), np.generic)):
            array = _exported(value)
            if array is not None:
                value = array
                data_type = data_type_of(array) if data_type is None else data_type
                shape = array.shape if shape is None else shape
        if data_type is None:
            raise TypeError("constant(): data_type is missing; only arrays and constant buffers know their own")
        if shape is None:
            return self._constant_of_number(value, data_type)
        return self._constant_of_bytes(value, data_type, shape)

    def _constant_of_bytes(self, value: object, data_type: object, shape: Any) -> MLOperand:
        descriptor = self._descriptor("constant", data_type, shape)
        # spec: constant(descriptor, buffer) 1
        self.check_can_build("constant")
        # spec: constant(descriptor, buffer) 2
        self._check_descriptor("constant", descriptor)
        try:
            # spec: constant(descriptor, buffer) 3, 4.2
            copied = host_copy(value, descriptor)
        except (TypeError, UnknownError) as error:
            raise type(error)(f"constant(): {error}") from error.__cause__
        # spec: constant(descriptor, buffer) 4-5
        return self._leaf(Constant(descriptor, copied), "constant")

    def constant_shared(self, array: HostArray, key: Hashable | None) -> MLOperand:
        """Return a constant whose bytes are not copied, and which all graphs of the context keep once.

        For importers, who have many graphs of the same weights. Not in the specification.

        Args:
            array: C-contiguous, read-only and in the machine's byte order, of one of the eight data types; its bytes
                must never change.
            key: what has an equal one, and the same data type and shape, is taken for the same; None for what is not
                shared.

        Raises:
            ValueError: the array is writable, not contiguous, or of another byte order.
            TypeError: the device has no such data type, or the shape is refused.
            InvalidStateError: the builder has built, or the context is lost.
        """
        if array.flags.writeable or not array.flags.c_contiguous or not array.dtype.isnative:
            raise ValueError("constant(): a shared array must be read-only, C-contiguous and in native byte order")
        descriptor = MLOperandDescriptor(data_type_of(array), array.shape)
        self.check_can_build("constant")
        self._check_descriptor("constant", descriptor)
        return self._leaf(Constant(descriptor, array, key), "constant")

    def _constant_of_number(self, value: object, data_type: object) -> MLOperand:
        number = converted("constant(): the value", ml_number, value)
        descriptor = self._descriptor("constant", data_type, ())
        # spec: constant(dataType, value) 1
        self.check_can_build("constant")
        self._check_descriptor("constant", descriptor)
        # spec: constant(dataType, value) 2
        data = np.array(cast_number(number, descriptor.data_type), descriptor.data_type)
        # spec: constant(dataType, value) 3-5
        return self._leaf(Constant(descriptor, data), "constant")

    def _constant_of_buffer(self, buffer: MLBuffer, data_type: object, shape: Any) -> MLOperand:
        if data_type is not None or shape is not None:
            raise TypeError("constant(): a constant buffer has its own data type and shape; give neither")
        # spec: constant(tensor) 1
        if buffer._context is not self._context:
            raise TypeError(f"constant(): {buffer!r} belongs to another context{in_brackets(buffer._context._label)}")
        # spec: constant(tensor) 2
        buffer._check_alive("constant", repr(buffer))
        # spec: constant(tensor) 3
        if not buffer.constant:
            raise TypeError(f"constant(): {buffer!r} is not constant; create_constant_buffer() makes constant ones")
        # spec: constant(tensor) 4
        self.check_can_build("constant")
        descriptor = MLOperandDescriptor(buffer.data_type, buffer.shape)
        # spec: constant(tensor) 5.2-5.3
        value = Constant(descriptor, buffer._storage)
        # spec: constant(tensor) 5-5.1, 6
        operand = self._leaf(value, "constant")
        self._constant_buffers[self._values[operand]] = buffer
        return operand

    # --- operators -------------------------------------------------------------------------------------------

    def append(self, operator: Operator[..., Any], /, *args: object, **kwargs: object) -> Any:
        """Add any operator, also one that is not in the specification; all methods of operators call this.

        It is checked as the operators of the specification are: arguments, limits of the device, and shapes.

        Args:
            operator: the declaration.
            *args: its operands and options, as its function takes them, with operands for descriptors.
            **kwargs: the same by name, and ``label``.

        Returns:
            The operand, or the list of operands for an operator that returns one.

        Raises:
            TypeError: an argument is refused.
            InvalidStateError: the builder has built, or the context is lost.
        """
        try:
            # spec: * method
            return self._draw(operator, args, kwargs)
        except Exception as error:
            report_refusal(self._context, operator.name, error, label=_text(kwargs.get("label")))
            # spec: * rethrow
            raise

    def _draw(self, operator: Operator[..., Any], args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        name = f"{operator.name}()"
        try:
            if self._extensions:
                args, kwargs = (), self._changed(operator, operator.by_name(args, kwargs))
            arguments = operator.bind(args, kwargs)
        except TypeError as error:
            raise TypeError(f"{name}{in_brackets(kwargs.get('label'))}: {error}") from error.__cause__
        # spec: * can build
        self.check_can_build(operator.name)
        try:
            # spec: * operand; validate operand 0
            values = of_operands(arguments.operands, self._values.__getitem__)
        except KeyError:
            other = next(shown for _, shown, operand in arguments.each_operand() if operand not in self._values)
            raise TypeError(f"{name}{in_brackets(arguments.label)}: {other} belongs to another builder") from None
        rows = limits_of(operator, self._capabilities)
        try:
            check_operands(operator, rows, arguments, self._capabilities)
            descriptors = operator.infer(arguments)
            # spec: * output limits
            check_outputs(operator, rows, descriptors)
            for descriptor in descriptors:
                # spec: convTranspose2d 20.7
                self._check_size(descriptor)
        except Refused as refusal:
            raise TypeError(f"{name}{in_brackets(arguments.label)}: {refusal}") from None
        # spec: * node
        node = Node(operator, values, arguments.options(), tuple(descriptors), arguments.label, (self._drawn,))
        drawn = self.append_node(node)
        # spec: * result
        return drawn if operator.returns_sequence else drawn[0]

    def _changed(self, operator: Operator[..., Any], given: dict[str, Any]) -> dict[str, Any]:
        for extension in self._extensions:
            given = extension.arguments(self, operator, given)
        return given

    def append_node(self, node: Node) -> list[MLOperand]:
        """Add an operator whose arguments and outputs are right, for extensions. Not in the specification.

        Args:
            node: has operands of :meth:`value_of`.

        Returns:
            The new operands.
        """
        for extension in self._extensions:
            node = extension.node(self, node)
        self._drawn += 1
        name, label = node.operator.name, node.label
        if len(node.outputs) == 1 and not node.operator.returns_sequence:
            return [self._operand(node.results[0], name, label)]
        return [self._operand(value, f"{name}[{value.index}]", label) for value in node.results]

    def value_of(self, operand: MLOperand) -> Value:
        """Return the value of the graph that an operand stands for, for tools. Not in the specification.

        Raises:
            TypeError: it belongs to another builder.
        """
        try:
            return self._values[operand]
        except KeyError:
            raise TypeError(f"{operand!r} belongs to another builder") from None

    @property
    def place(self) -> int:
        """The place of the next operator in the order of drawing. Not in the specification."""
        return self._drawn

    # --- build -----------------------------------------------------------------------------------------------

    @enable_ki_protection
    def build(
        self,
        outputs: Mapping[str, MLOperand],
        *,
        progress: OnProgress | None = None,
        label: str = "",
        keep_source: bool = False,
    ) -> MLPromise[MLGraph]:
        """Compile the graph for the context's device; the builder then adds nothing more (section "build method").

        Args:
            outputs: the operands to compute, by name. Inputs and constants themselves cannot be outputs: use
                ``identity()``. Inputs that no output needs are left out of the graph.
            progress: called with the numbers of kernels that are compiled, and of all, on a GPU; its exceptions end the
                build.
            label: a name for the graph in messages and traces. Not in the specification.
            keep_source: whether ``MLGraph.source`` keeps the operators and constants, for pictures and for tools
                that save graphs. Not in the specification.

        Returns:
            A promise of the graph, rejected with ``TypeError`` for a refused argument (the builder stays usable),
            ``InvalidStateError`` when it has built or the context is lost, ``OperationError`` when compiling fails.
        """
        self._context._trio_run.check("build()")
        try:
            refuse_progress("build", progress)
            name = converted("build(): label", usv_string, label)
            keeps = converted("build(): keep_source", boolean, keep_source)
            graph = self.graph_of("build", outputs)
        except (TypeError, InvalidStateError, NotSupportedError, UnknownError) as error:
            return rejected_promise(self._context, "build", error)
        # spec: build 16
        self._has_built = True
        self._forget()
        # spec: build 11-13
        ml_graph = MLGraph._create(self._context, graph, name, keep_source=keeps)
        self._context._graphs.add(ml_graph)
        # spec: build 18.1.1
        work: Work = partial(compile_step(ml_graph, graph), graph, ml_graph._handle, progress)
        # spec: build 17-19
        return self._context._enqueue(
            "build", work, lambda: ml_graph, failed=_cannot_compile, otherwise=ml_graph.destroy
        )

    @property
    def context(self) -> MLContext:
        """The context for which the builder builds. Not in the specification."""
        return self._context

    @property
    def input_names(self) -> frozenset[str]:
        """The names of all inputs so far. Not in the specification."""
        return frozenset(self._input_names)

    def operand_of(self, value: Value, origin: str = "") -> MLOperand:
        """Return an operand that stands for a value of the graph, for importers. Not in the specification.

        Args:
            value: an input, a constant or an output of an operator, which need not be drawn by this builder.
            origin: where it comes from, for the operand's text.
        """
        return self._operand(value, origin)

    def graph_of(self, method: str, outputs: object) -> Graph:
        """Return the graph that :meth:`build` would build, for tools. Not in the specification.

        Args:
            method: the name of the caller, for messages.
            outputs: as for :meth:`build`.

        Raises:
            TypeError: the outputs are refused.
            InvalidStateError: the builder has built, or the context is lost.
        """
        self._context._trio_run.check(f"{method}()")
        graph = self.reached(method, outputs)
        self._check_constant_buffers(graph, method)
        return self._checked(graph, method)

    def reached(self, method: str, outputs: object) -> Graph:
        """Return the graph that computes some outputs, before extensions see it. Not in the specification.

        Args:
            method: the name of the caller, for messages.
            outputs: as for :meth:`build`.

        Raises:
            TypeError: the outputs are refused.
            InvalidStateError: the builder has built, or the context is lost.
        """
        checked = named(f"{method}(): outputs", MLOperand, "operands", outputs)
        # spec: build 2
        self.check_can_build(method)
        # spec: build 3
        if not checked:
            raise TypeError(f"{method}(): outputs is empty; a graph needs at least one")
        # spec: build 4
        for name, operand in checked.items():
            # spec: build 4.1
            if not name:
                raise TypeError(f"{method}(): an output's name is empty; it must not be")
            # spec: build 4.2
            if operand not in self._values:
                raise TypeError(f"{method}(): outputs[{shown(name)}] belongs to another builder")
            # spec: build 4.3
            if not isinstance(self._values[operand], Output):
                kind = "an input" if isinstance(self._values[operand], Input) else "a constant"
                raise TypeError(f"{method}(): outputs[{shown(name)}] is {kind}; use identity() of it instead")
        # spec: build 5-9
        return Graph.reaching({name: self._values[operand] for name, operand in checked.items()})

    def _checked(self, graph: Graph, method: str) -> Graph:
        for extension in self._extensions:
            graph = extension.graph(self, method, graph)
        return graph

    def _check_constant_buffers(self, graph: Graph, method: str) -> None:
        nodes = graph.nodes if self._constant_buffers else ()
        values = (value for node in nodes for value in node.inputs if value in self._constant_buffers)
        for buffer in map(self._constant_buffers.__getitem__, values):
            # spec: build 4.4
            buffer._check_alive(method, repr(buffer))

    def destroy(self) -> None:
        """Drop the graph and its constants without building it; not in the specification. Idempotent."""
        self._destroyed = True
        self._forget()

    def _forget(self) -> None:
        self._values = {}
        self._constant_buffers = {}

    # --- checks ----------------------------------------------------------------------------------------------

    def _leaf(self, value: Input | Constant, origin: str, name: str = "") -> MLOperand:
        for extension in self._extensions:
            value = extension.leaf(self, value)
        return self._operand(value, origin, name)

    def _operand(self, value: Value, origin: str, name: str = "") -> MLOperand:
        # spec: create an MLOperand 1-5
        operand = MLOperand.from_descriptor(value.descriptor, origin, name)
        operand._builder = self._reference
        self._values[operand] = value
        return operand

    def check_can_build(self, method: str) -> None:
        """Refuse a builder that can not build, for extensions. Not in the specification.

        Raises:
            InvalidStateError: the builder has built or is destroyed, or the context is lost.
        """
        if self._has_built:
            raise InvalidStateError(f"{method}(): the builder has built its graph; make another builder")
        if self._destroyed:
            raise InvalidStateError(f"{method}(): destroy() was called on the builder")
        self._context._check_not_lost(method)

    def _descriptor(self, method: str, data_type: object, shape: object) -> MLOperandDescriptor:
        try:
            packed = self._capabilities.packed if method == "constant" else ()
            return operand_descriptor(data_type, shape, packed)
        except TypeError as error:
            raise TypeError(f"{method}(): {error}") from None

    def _check_descriptor(self, method: str, descriptor: MLOperandDescriptor) -> None:
        try:
            check_descriptor(descriptor, self._capabilities)
        except TypeError as error:
            raise TypeError(f"{method}(): {error}") from None

    def _check_size(self, descriptor: MLOperandDescriptor) -> None:
        # spec: MLOperandDescriptor check dimensions 1-5
        problem = check_dimensions(
            descriptor,
            max_rank=self._capabilities.max_rank,
            max_byte_length=self._capabilities.max_byte_length,
        )
        if problem is not None:
            raise Refused(problem)

    def __repr__(self) -> str:
        if self._has_built:
            return "<MLGraphBuilder has built>"
        return f"<MLGraphBuilder {'destroyed' if self._destroyed else f'{len(self._values)} operands'}>"


def _cannot_compile(_method: str, error: Exception) -> OperationError:
    # spec: build 18.1.2
    refusal = OperationError(f"build(): the graph cannot be compiled: {device_text(error)}")
    refusal.__cause__ = error
    return refusal


def _text(label: object) -> str:
    """Return the label of a refused call; "" if it is no string."""
    return label if type(label) is str else ""


def _exported(value: object) -> np.ndarray[Any, Any] | None:
    try:
        return exported_array(value)
    except TypeError as error:
        raise TypeError(f"constant(): {error}") from error.__cause__
