"""Dynamic shapes: graphs whose dimensions have names, and which are compiled for each set of sizes.

``open_ml(extensions=[DynamicShapes()])``: an input may have a :class:`Dimension` in its shape. Operands then show sizes
that are no numbers; they, and what is computed from them, stand in the arguments of operators. The graph keeps its
recipe, operators with these arguments. A dispatch of new sizes replays them with numbers, by the operators' own shape
rules, compiles, and keeps the graph; the least recently used go.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any
from weakref import WeakKeyDictionary

import attrs
import numpy as np

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.descriptors import MAX_DIMENSION, MLOperandDescriptor, check_dimensions
from webnn_py.core.device.device import GraphHandle
from webnn_py.core.errors import NotSupportedError, UnknownError
from webnn_py.core.extension import Compile, Extension, Variant, compile_step
from webnn_py.core.frozen import frozen
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder, rewrite
from webnn_py.core.in_flight import done
from webnn_py.core.message_text import device_text, in_brackets, listed, shown
from webnn_py.core.operators.declaration import Operator, of_operands
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import Refused
from webnn_py.core.timelines.promise import MLPromise
from webnn_py.devices.content_keys import ContentKey


class _Size:
    """A size that differs from dispatch to dispatch; ``example`` is its number for the examples of the dimensions.

    Arithmetic gives such sizes again. What asks for a number, as ``int()``, a comparison and numpy do, is refused.
    """

    __slots__ = ()
    name: str
    example: Any

    def __repr__(self) -> str:
        return self.name


@attrs.frozen(eq=False, repr=False)
class Dimension(_Size):
    """A dimension of inputs that has a name; equal names are equal sizes.

    Attributes:
        name: not empty.
        example: the size for which ``build()`` checks and compiles.
        min_size: the least size that a dispatch may have.
        max_size: the greatest.

    Raises:
        TypeError: the name is no text, or not 1 ≤ min_size ≤ example ≤ max_size < 2³¹.
    """

    name: str
    example: int
    min_size: int = 1
    max_size: int = MAX_DIMENSION

    def __attrs_post_init__(self) -> None:
        sizes = self.min_size, self.example, self.max_size
        are_sizes = all(type(size) is int for size in sizes) and 1 <= sizes[0] <= sizes[1] <= sizes[2] <= MAX_DIMENSION
        if not isinstance(self.name, str) or not self.name or not are_sizes:
            raise TypeError(
                f"Dimension(): name is {shown(self.name)}; min_size, example, max_size are {listed(sizes)}; they must "
                f"be a text that is not empty, and integers from 1 to {MAX_DIMENSION} in this order"
            )


@attrs.frozen(eq=False, repr=False)
class _Computed(_Size):
    """What a function gives; without one, a size that an operator's result shows."""

    name: str
    example: Any
    function: Callable[..., Any] | None = None
    items: tuple[object, ...] = ()


def computed(function: Callable[..., Any], *items: Any) -> Any:
    """Return what a function computes from sizes: a size again, for the arguments of operators.

    Args:
        function: returns a number, always the same for the same numbers.
        *items: what it is called with: sizes, which are numbers then, and anything else.
    """
    name = f"{getattr(function, '__name__', 'function')}({', '.join(map(str, items))})"
    return _Computed(name, function(*map(_example, items)), function, items)


def _method(function: Callable[..., Any], *, is_swapped: bool = False) -> Callable[..., Any]:
    return lambda *items: computed(function, *(items[::-1] if is_swapped else items))


class _NoNumberError(Refused, TypeError):
    """A size is asked for its number; importers take it for an operator that cannot be converted."""


def _refused(size: _Size, *_: object) -> Any:
    text = f"{size} may differ from dispatch to dispatch, and is no number, and none to compare"
    raise _NoNumberError(f"{text}; compute with + - * / // % **, or with computed(function, size)")


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(_Size, f"__{_name}__", _method(getattr(operator, _name)))
    setattr(_Size, f"__r{_name}__", _method(getattr(operator, _name), is_swapped=True))
for _name in ("neg", "pos", "abs"):
    setattr(_Size, f"__{_name}__", _method(getattr(operator, _name)))
for _name in ("int", "index", "float", "complex", "bool", "hash", "round", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(_Size, f"__{_name}__", _refused)


def _example(item: Any, kind: type[_Size] = _Size) -> Any:
    return item.example if isinstance(item, kind) else item


def _mapped(item: Any, change: Callable[[Any], Any]) -> Any:
    return [_mapped(each, change) for each in item] if isinstance(item, list | tuple) else change(item)


def _has_sizes(item: object) -> bool:
    """Return whether an argument, an operand or a graph has sizes that are no numbers."""
    if isinstance(item, MLOperand | MLOperandDescriptor):
        item = item.shape
    elif isinstance(item, Graph):
        descriptors = [value.descriptor for value in item.inputs.values()]
        item = [*descriptors, *(option for node in item.nodes for option in node.options.values())]
    return any(map(_has_sizes, item)) if isinstance(item, list | tuple) else isinstance(item, _Size)


def _showing(descriptor: MLOperandDescriptor, shape: Iterable[object]) -> MLOperandDescriptor:
    made = MLOperandDescriptor(descriptor.data_type, descriptor.shape)
    object.__setattr__(made, "shape", tuple(shape))  # whose converter takes integers alone
    return made


@frozen(eq=False)
class _StandIn(Value):
    """An operand of the examples' shape, for shape rules; it has the real one, and the arguments of the call."""

    real: Value
    arguments: Mapping[str, object]


def _number(item: Any, known: Mapping[object, int]) -> Any:
    """Return what a size is where some are known, by name or identity; anything else as it is."""
    if not isinstance(item, _Size):
        return item
    if isinstance(item, _Computed) and item.function is not None:
        try:
            return item.function(*[_number(each, known) for each in item.items])
        except Exception as error:
            raise TypeError(f"{item} fails: {error!r}") from error
    key = item.name if isinstance(item, Dimension) else id(item)
    if key not in known:
        raise TypeError(f"{item} is of no operand that the graph needs")
    return known[key]


@attrs.frozen
class Figures:
    """Counts of a graph with named dimensions.

    Attributes:
        kept: the compiled graphs that are kept beside the one for the examples.
        made: how many were made for new sizes.
        seconds: the time that the last new sizes took on the device timeline; None before the first are compiled.
    """

    kept: int
    made: int
    seconds: float | None


class _Variants:
    """The recipe of a graph with named dimensions, and its compiled graphs, which are released with it."""

    def __init__(self, builder: MLGraphBuilder, recipe: Graph, most: int) -> None:
        self.kept: OrderedDict[tuple[int, ...], Variant] = OrderedDict()
        self.made = 0
        self.seconds: float | None = None
        self._recipe = Graph(recipe.inputs, recipe.outputs, tuple(sorted(recipe.nodes, key=lambda node: node.drawn)))
        self._builder = builder
        self._most = most
        sizes = [size for value in recipe.inputs.values() for size in list[Any](value.descriptor.shape)]
        self.examples = {size.name: size.example for size in sizes if isinstance(size, Dimension)}

    def handles(self) -> list[GraphHandle]:
        """Return those of all that are kept."""
        return [variant.handle for variant in self.kept.values()]

    def sizes_of(self, shapes: Mapping[str, Sequence[int]], method: str) -> dict[str, int]:
        """Return the sizes of the dimensions that inputs of these shapes have, or raise TypeError for what they are."""
        inputs = self._recipe.inputs
        if shapes.keys() != inputs.keys():
            raise TypeError(f"{method}(): inputs are {listed([*shapes])}; the graph's are {listed([*inputs])}")
        sizes: dict[str, int] = {}
        for name, value in inputs.items():
            shape, known = shapes[name], list[Any](value.descriptor.shape)
            where = f"{method}(): inputs[{shown(name)}] is {listed(shape)}"
            for size, each in zip(shape, known, strict=False):
                if isinstance(each, Dimension):
                    if not each.min_size <= size <= each.max_size:
                        raise TypeError(f"{where}; {shown(each.name)} must be from {each.min_size} to {each.max_size}")
                    sizes.setdefault(each.name, size)
            must_be = [sizes.get(each.name, each) if isinstance(each, Dimension) else each for each in known]
            if must_be != [*shape]:
                raise TypeError(f"{where}; it must be {listed(must_be)}")
        return sizes

    def replayed(self, sizes: Mapping[str, int], method: str) -> Graph:
        """Return the graph of some sizes, or raise TypeError as an operator does that refuses them."""
        known: dict[Any, int] = dict(sizes)
        device = self._builder.context.device.backend.capabilities
        limits = {"max_rank": device.max_rank, "max_byte_length": device.max_byte_length}
        number = partial(_number, known=known)

        def again(node: Node, current: Node) -> Mapping[Value, Value]:
            builder = RewriteBuilder(node.label, node.drawn)
            try:
                options = {name: _mapped(item, number) for name, item in node.options.items()}
                drawn = builder.append(node.operator, **of_operands(current.operands, builder.operand), **options)
                results = [builder.value(item) for item in (drawn if isinstance(drawn, list) else [drawn])]
                for problem in (check_dimensions(result.descriptor, **limits) for result in results):
                    if problem is not None:
                        raise Refused(problem)
            except (Refused, TypeError) as error:
                where = f"the graph is none where {_worded(sizes)}: {node.operator.name}(){in_brackets(node.label)}"
                raise TypeError(f"{method}(): {where}: {error}") from None
            for value, result in zip(node.results, results, strict=True):
                known.update(zip(map(id, value.descriptor.shape), result.descriptor.shape, strict=True))
            return dict(zip(node.results, results, strict=True))

        inputs: dict[Value, Value] = {
            value: Input(MLOperandDescriptor(value.descriptor.data_type, _mapped(value.descriptor.shape, number)), name)
            for name, value in self._recipe.inputs.items()
        }
        return rewrite(self._recipe, again, inputs)

    def variant(self, graph: MLGraph, sizes: Mapping[str, int]) -> Variant:
        """Return the compiled graph of some sizes, which may still have to be compiled on the device timeline."""
        key = tuple(sizes.values())
        variant, context = self.kept.get(key), graph.context
        if variant is None:
            source = self.replayed(sizes, "dispatch")
            for extension in context.extensions:
                source = extension.graph(self._builder, "dispatch", source)
            ends = ({name: each.descriptor for name, each in end.items()} for end in (source.inputs, source.outputs))
            variant = self.kept[key] = Variant(GraphHandle(graph.label), *ends)
            self.made += 1
            step = partial(compile_step(graph, source), source)
            _made: MLPromise[None] = context.enqueue("build", partial(self._compile, variant, step, sizes))
            if len(self.kept) > self._most:
                oldest = self.kept.popitem(last=False)[1].handle
                context.enqueue("release", partial(context.device.release_graph, oldest), abortable=False)
        self.kept.move_to_end(key)
        return variant

    async def _compile(self, variant: Variant, step: Callable[..., Any], sizes: Mapping[str, int]) -> None:
        begin = perf_counter()
        try:
            await done(step(variant.handle, None))
        except Exception as error:  # noqa: BLE001 - reads of what it should have computed report it
            why = f"the graph for {_worded(sizes)} cannot be compiled: {device_text(error)}"
            variant.handle.failure = UnknownError(why)
            if self.kept.get(tuple(sizes.values())) is variant:  # it is tried again by the next dispatch
                del self.kept[tuple(sizes.values())]
        self.seconds = perf_counter() - begin


def _worded(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())


# --- the extension, and its functions ----------------------------------------------------------------------------


class DynamicShapes(Extension):
    """The extension.

    Args:
        variants: how many compiled graphs each graph keeps beside the one for the examples.

    Raises:
        TypeError: it is no integer of 1 or more.
    """

    name = "dynamic-shapes"
    sees_all = True

    def __init__(self, variants: int = 8) -> None:
        if type(variants) is not int or variants < 1:
            raise TypeError(f"DynamicShapes(): variants is {shown(variants)}; it must be an integer of at least 1")
        self._most = variants
        self._shape: Any = ()  # of the input that is being made
        self._variants: WeakKeyDictionary[Input, _Variants] = WeakKeyDictionary()

    def arguments(
        self, builder: MLGraphBuilder, called: Operator[..., Any] | str, given: dict[str, Any]
    ) -> dict[str, Any]:
        """Put the numbers of the examples in the place of sizes, which the operands of the call remember."""
        if isinstance(called, str):
            if called == "input":
                self._shape = given["shape"]
                given["shape"] = _mapped(self._shape, partial(_example, kind=Dimension))
            return given
        if not any(map(_has_sizes, given.values())):
            return given

        def for_rules(item: Any) -> Any:
            if not isinstance(item, MLOperand):
                return _example(item)
            descriptor = MLOperandDescriptor(item.data_type, tuple(map(_example, item.shape)))
            return builder.operand_of(_StandIn(descriptor, builder.value_of(item), given))

        return {name: _mapped(item, for_rules) for name, item in given.items()}

    def leaf(self, _builder: MLGraphBuilder, value: Any) -> Any:
        """Show the names of an input's dimensions, and let variants share constants."""
        if isinstance(value, Input) and _has_sizes(self._shape):
            return Input(_showing(value.descriptor, self._shape), value.name)
        if isinstance(value, Constant) and value.key is None and isinstance(value.data, np.ndarray):
            return Constant(value.descriptor, value.data, ContentKey(value.data))  # all variants have it once
        return value

    def node(self, _builder: MLGraphBuilder, node: Node) -> Node:
        """Keep the sizes of an operator's arguments, and show those of its results."""
        if any(isinstance(body, Graph) and _has_sizes(body) for body in node.options.values()):
            raise NotSupportedError(f"{node.operator.name}(){in_brackets(node.label)}: its body has named dimensions")
        stand_ins = [value for value in node.inputs if isinstance(value, _StandIn)]
        if not stand_ins and not any(_has_sizes(value.descriptor) for value in node.inputs):
            return node
        given = stand_ins[0].arguments if stand_ins else {}
        options = {name: given[name] if _has_sizes(given.get(name)) else item for name, item in node.options.items()}
        operands = of_operands(node.operands, lambda value: value.real if isinstance(value, _StandIn) else value)
        name = f"{node.operator.name}(){in_brackets(node.label)}.shape"
        outputs = [
            _showing(each, [_Computed(f"{name}[{axis}]", size) for axis, size in enumerate(each.shape)])
            for each in node.outputs
        ]
        return Node(node.operator, operands, options, tuple(outputs), node.label, node.drawn)

    def graph(self, builder: MLGraphBuilder, method: str, graph: Graph) -> Graph:
        """Return the graph of the examples; what has no named dimensions stays as it is."""
        if not _has_sizes(graph):
            return graph
        variants = _Variants(builder, graph, self._most)
        replayed = variants.replayed(variants.examples, method)
        self._variants[next(iter(replayed.inputs.values()))] = variants  # which stays where extensions change the graph
        return replayed

    def compile(self, graph: MLGraph, source: Graph, step: Compile) -> Compile:
        """Keep the recipe of a graph with named dimensions."""
        graph.attached += filter(None, [self._variants.pop(value, None) for value in source.inputs.values()])
        return step

    def dispatch(self, graph: MLGraph, inputs: Mapping[str, MLOperandDescriptor]) -> Variant | None:
        """Return the graph for the sizes of the inputs, made where they are new."""
        if (variants := _variants_of(graph)) is None:
            return None
        sizes = variants.sizes_of({name: each.shape for name, each in inputs.items()}, "dispatch")
        return None if sizes == variants.examples else variants.variant(graph, sizes)


def _variants_of(graph: MLGraph) -> _Variants | None:
    return next((each for each in graph.attached if isinstance(each, _Variants)), None)


def figures(graph: MLGraph) -> Figures:
    """Return how many compiled graphs a graph with named dimensions has, and the time of the last; zero for others."""
    variants = _variants_of(graph)
    return Figures(0, 0, None) if variants is None else Figures(len(variants.kept), variants.made, variants.seconds)


def compute_shapes(graph: MLGraph, input_shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a graph's outputs for shapes of its inputs, without a dispatch.

    Raises:
        TypeError: a dispatch would refuse these shapes.
        InvalidStateError: the graph is destroyed, or the context is lost.
        NotSupportedError: the graph has no named dimensions.
    """
    graph.check_usable("compute_shapes")
    if (variants := _variants_of(graph)) is None:
        raise NotSupportedError("compute_shapes(): the graph has no named dimensions; see graph.output_descriptors")
    replayed = variants.replayed(variants.sizes_of(input_shapes, "compute_shapes"), "compute_shapes")
    return {name: value.descriptor.shape for name, value in replayed.outputs.items()}
