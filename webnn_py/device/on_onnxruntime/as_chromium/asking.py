"""Questions to an execution provider: which operators of a graph, drawn as Chromium draws it, it takes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import date
from typing import Any, Final, Literal

import attrs

from webnn_py.browser_profiles.engines import ENGINES, BrowserEngine
from webnn_py.browser_profiles.verdict import EngineVerdict, OperatorVerdict
from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, ChromiumModel, places_in
from webnn_py.device.on_onnxruntime.as_chromium.engine_process import ENGINES_PROCESS
from webnn_py.device.on_onnxruntime.as_chromium.registry import RULES
from webnn_py.graph import Constant, Graph, Input, Node, Value
from webnn_py.message_text import in_brackets, shortened, visible
from webnn_py.operators.declaration import of_operands
from webnn_py.rewriting.composites import spelled_out

_CODE: Final = re.compile(r"\d+ : [A-Z_]+ : ")
"""The number and name of an error before onnxruntime's words."""

_SOURCE: Final = re.compile(
    r"(?:Exception during initialization: )?/\S+\.(?:cc|h):\d+ .*[\])] (?:(?:.*? )?was false\. )?(?=\S)"
)
"""A place in onnxruntime's source, with the signature of the function."""

_NAME: Final = re.compile(r"webnn(\d+)_\d+(?:_\d+)?")
"""The name of a node or tensor that was drawn."""

LONGEST_REASON: Final = 300


def model_of(graph: Graph, asked: BrowserEngine) -> ChromiumModel:
    """Return the model that Chromium writes of a graph without composites."""
    return ChromiumDrawing(graph, resamples_last_axes_only=asked.resamples_last_axes_only).model()


def ask(browser: str, graph: Graph) -> EngineVerdict:
    """Ask the engine of a browser profile about a graph.

    The graph becomes a session in which the CPU may compute what the provider leaves, and onnxruntime tells where each
    node went. Where it makes no session, each operator is asked about alone, so that all are found and not the first.
    Each operator that is not taken is asked about alone, to tell why.
    """
    asked, graph = ENGINES[browser], spelled_out(graph)
    presence = ENGINES_PROCESS.presence(asked)
    if presence.missing:
        return EngineVerdict(browser, asked.provider, not_asked=presence.missing)
    verdict = EngineVerdict(browser, asked.provider, presence.versions, date.today().isoformat())  # noqa: DTZ011 - a day
    unknown = [(place, node) for place, node in enumerate(graph.nodes) if node.operator.name not in RULES]
    if unknown:
        error = "Chromium has no such operator"
        operators = tuple(_verdict(place, node, (), "refused", error) for place, node in unknown)
        return attrs.evolve(verdict, error=error, operators=operators)
    questions = _Questions(asked)
    left, error = questions.about(graph)
    if error:
        return attrs.evolve(verdict, error=error, operators=questions.about_each(graph))
    return attrs.evolve(verdict, operators=questions.verdicts(graph, left))


@attrs.frozen
class _Answer:
    """The answer about an operator alone.

    Attributes:
        left: the ONNX operators that are left to the CPU.
        error: the engine's words where it makes no session.
    """

    left: tuple[str, ...] = ()
    error: str = ""


class _Questions:
    """Questions about a graph and its operators alone, each of these asked once."""

    def __init__(self, asked: BrowserEngine) -> None:
        self._asked = asked
        self._answers: dict[Hashable, _Answer] = {}

    def about(self, graph: Graph) -> tuple[dict[int, tuple[str, ...]], str]:
        """Return the ONNX operators that the provider leaves, by the place of the operator, and the engine's error.

        The place is -1 for nodes that onnxruntime has put in and that are not named after others.
        """
        model = model_of(graph, self._asked)
        placed = ENGINES_PROCESS.placements(self._asked, model)
        found: dict[int, dict[str, None]] = {}
        for provider, name, operator in placed.nodes:
            if provider != self._asked.provider:
                for place in places_in(name) or [-1]:
                    found.setdefault(place, {})[model.operators.get(name, operator)] = None
        left = {place: tuple(names) for place, names in sorted(found.items())}
        return left, _words(placed.error, graph.nodes)

    def about_each(self, graph: Graph) -> tuple[OperatorVerdict, ...]:
        """Ask about each operator of a graph alone; return those that are not taken."""
        found = []
        for place, node in enumerate(graph.nodes):
            answer = self._answer(node)
            if answer.error:
                found.append(_verdict(place, node, answer.left, "refused", answer.error))
            elif answer.left:
                found.append(_verdict(place, node, answer.left, "cpu", self._reason(node, answer.left)))
        return tuple(found)

    def verdicts(self, graph: Graph, left: dict[int, tuple[str, ...]]) -> tuple[OperatorVerdict, ...]:
        """Return what is left of a graph, with reasons."""
        found = []
        for place, onnx in left.items():
            if place < 0:
                reason = f"{self._asked.provider} leaves {_listed(onnx)} that onnxruntime has put in"
                found.append(OperatorVerdict("", "", place, onnx, "cpu", reason))
                continue
            node = graph.nodes[place]
            answer = self._answer(node)
            if answer.left:
                reason = self._reason(node, answer.left)
            else:
                reason = f"{self._asked.provider} takes it alone, but leaves {_listed(onnx)} in this graph"
            found.append(_verdict(place, node, onnx, "cpu", reason))
        return tuple(found)

    def _reason(self, node: Node, left: tuple[str, ...]) -> str:
        """Say what is left of an operator alone, and whether its data type is why."""
        types = dict.fromkeys(value.descriptor.data_type for value in node.inputs)
        reason = f"{self._asked.provider} takes no {_listed(left)} of {_listed(types)} with these shapes and options"
        others = [name for name in types if name != "float32"]
        for name in others:
            other = _of_float32(node, name)
            if other is not None and self._answer(other) == _Answer():
                return f"{self._asked.provider} takes no {_listed(left)} of {_listed(types)}, but of float32"
        return reason

    def _answer(self, node: Node) -> _Answer:
        key = (
            node.operator.name,
            repr(sorted(node.options.items())),
            tuple((name, _kinds(operand)) for name, operand in node.operands.items()),
            node.outputs,
        )
        if key not in self._answers:
            left, error = self.about(alone(node))
            self._answers[key] = _Answer(tuple(dict.fromkeys(name for names in left.values() for name in names)), error)
        return self._answers[key]


def alone(node: Node) -> Graph:
    """Return a graph of one operator, whose operands are inputs but for constants."""
    inputs: dict[Value, Value] = {}

    def fresh(value: Value) -> Value:
        if isinstance(value, Constant):
            return value
        return inputs.setdefault(value, Input(value.descriptor, f"x{len(inputs)}"))

    single = Node(node.operator, of_operands(node.operands, fresh), node.options, node.outputs, node.label)
    return Graph.reaching({f"y{index}": result for index, result in enumerate(single.results)})


def _of_float32(node: Node, data_type: str) -> Node | None:
    """Return a node with float32 in place of a data type of its operands; None where the operator has no such form."""

    def wide(value: Value) -> Value:
        descriptor = value.descriptor
        if descriptor.data_type != data_type:
            return value
        return Input(MLOperandDescriptor("float32", descriptor.shape), "x")

    if node.operator.name in {"cast", "quantize_linear", "dequantize_linear"}:
        return None
    outputs = tuple(
        MLOperandDescriptor("float32", output.shape) if output.data_type == data_type else output
        for output in node.outputs
    )
    return Node(node.operator, of_operands(node.operands, wide), node.options, outputs)


def _kinds(operand: Value | tuple[Value, ...]) -> Hashable:
    """Return what distinguishes operands when an operator is asked about alone."""
    values = operand if isinstance(operand, tuple) else (operand,)
    return tuple((value.descriptor, isinstance(value, Constant)) for value in values)


def _verdict(
    place: int, node: Node, onnx: tuple[str, ...], outcome: Literal["cpu", "refused"], reason: str
) -> OperatorVerdict:
    return OperatorVerdict(node.operator.spec_name, node.label, place, onnx, outcome, reason)


def _words(error: str, nodes: Sequence[Node]) -> str:
    """Return onnxruntime's words in one line, with operators in place of the names that they were drawn by."""
    said = _SOURCE.sub("", " ".join(_CODE.sub("", error, count=1).split()))
    return visible(shortened(_NAME.sub(lambda match: _called(nodes[int(match[1])]), said), LONGEST_REASON))


def _called(node: Node) -> str:
    return f"{node.operator.spec_name}{in_brackets(node.label)}"


def _listed(names: Iterable[Any]) -> str:
    return " and ".join(map(str, names))
