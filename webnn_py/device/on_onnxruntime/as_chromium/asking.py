"""Questions to an execution provider: which operators of a graph, drawn as Chromium draws it, it takes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Literal

import attrs
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as bindings

from webnn_py.browser_profiles.engines import ENGINES, BrowserEngine
from webnn_py.browser_profiles.verdict import EngineVerdict, OperatorVerdict
from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device.on_onnxruntime import engine as installed
from webnn_py.device.on_onnxruntime.as_chromium.drawing import ChromiumDrawing, ChromiumModel, places_in
from webnn_py.device.on_onnxruntime.as_chromium.registry import RULES
from webnn_py.device.on_onnxruntime.providers import CPU
from webnn_py.errors import NotSupportedError
from webnn_py.graph import Constant, Graph, Input, Node, Value
from webnn_py.message_text import in_brackets, shortened, visible
from webnn_py.operators.declaration import of_operands
from webnn_py.rewriting.composites import spelled_out

CONFIGURATION: Final = {
    "session.record_ep_graph_assignment_info": "1",
    "session.strict_shape_type_inference": "1",  # as Chromium sets it
}
"""The configuration of every session."""

DISABLES_FALLBACK: Final = {"session.disable_cpu_ep_fallback": "1"}
"""The configuration with which no session is made where the provider leaves anything."""

SESSION_ERRORS: Final = (
    RuntimeError,
    bindings.EPFail,
    bindings.Fail,
    bindings.InvalidArgument,
    bindings.InvalidGraph,
    bindings.NotImplemented,
    bindings.RuntimeException,
)
"""The errors that onnxruntime raises where it makes no session."""

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


def session_of(
    model: ChromiumModel, asked: BrowserEngine, *, has_fallback: bool = True
) -> onnxruntime.InferenceSession:
    """Make a session as Chromium does.

    Args:
        model: the model; its constants must outlive the session.
        asked: the engine.
        has_fallback: whether the CPU may compute what the provider leaves.

    Raises:
        NotSupportedError: there is no such provider here.
        RuntimeError: onnxruntime makes no session, or raises one of :data:`SESSION_ERRORS`.
    """
    provider = installed.find(asked.provider)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # failures are raised
    options.intra_op_num_threads = 1
    # The CPU cannot be told that it must not fall back to itself.
    more = {} if has_fallback or provider is CPU else DISABLES_FALLBACK
    for name, value in {**CONFIGURATION, **more}.items():
        options.add_session_config_entry(name, value)
    if model.beside:
        tensors = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, model.beside.values())]
        options.add_external_initializers(list(model.beside), tensors)
    chosen = installed.EngineOptions(provider=provider, provider_options=asked.options).chosen(options, {})
    # It runs after the provider has taken its part, and may end the process.
    left_out = {installed.FUSES_TRANSPOSES} if {"Transpose", "Cast", "MatMul"} <= {*model.operators.values()} else set()
    session = onnxruntime.InferenceSession(model.encoded, options, disabled_optimizers=left_out, **chosen)
    if provider.name not in session.get_providers():
        raise RuntimeError(f"onnxruntime cannot use {provider.name} here")
    return session


def ask(browser: str, graph: Graph) -> EngineVerdict:
    """Ask the engine of a browser profile about a graph.

    The graph becomes a session in which the CPU may compute what the provider leaves, and onnxruntime tells where each
    node went. Where it makes no session, each operator is asked about alone, so that all are found and not the first.
    Each operator that is not taken is asked about alone, to tell why.
    """
    asked, graph = ENGINES[browser], spelled_out(graph)
    try:
        installed.find(asked.provider)
    except NotSupportedError:
        return EngineVerdict(browser, asked.provider, not_asked=_missing(asked))
    questions = _Questions(asked)
    verdict = EngineVerdict(browser, asked.provider, _versions(asked), date.today().isoformat())  # noqa: DTZ011 - a day
    unknown = [(place, node) for place, node in enumerate(graph.nodes) if node.operator.name not in RULES]
    if unknown:
        error = "Chromium has no such operator"
        operators = tuple(_verdict(place, node, (), "refused", error) for place, node in unknown)
        return attrs.evolve(verdict, error=error, operators=operators)
    try:
        left = _left(model_of(graph, asked), asked)
    except SESSION_ERRORS as error:
        operators = questions.about_each(graph)
        return attrs.evolve(verdict, error=_words(error, graph.nodes), operators=operators)
    return attrs.evolve(verdict, operators=questions.about(graph, left))


def _missing(asked: BrowserEngine) -> str:
    """Say what to install, or that what is installed finds no device."""
    package = installed.register_installed().get(asked.provider)
    if package is not None:
        return f"the package {package} finds no device for {asked.provider} here"
    return f"onnxruntime has no {asked.provider} here; {asked.install}"


def _left(model: ChromiumModel, asked: BrowserEngine) -> dict[int, tuple[str, ...]]:
    """Return the ONNX operators that the provider leaves to the CPU, by the place of the operator they are drawn for.

    The place is -1 for nodes that onnxruntime has put in and that are not named after others.
    """
    session = session_of(model, asked)
    found: dict[int, dict[str, None]] = {}
    for part in session.get_provider_graph_assignment_info():
        if part.ep_name != asked.provider:
            for node in part.get_nodes():
                for place in places_in(node.name) or [-1]:
                    found.setdefault(place, {})[model.operators.get(node.name, node.op_type)] = None
    return {place: tuple(names) for place, names in sorted(found.items())}


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
    """Questions about operators alone, each asked once."""

    def __init__(self, asked: BrowserEngine) -> None:
        self._asked = asked
        self._answers: dict[Hashable, _Answer] = {}

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

    def about(self, graph: Graph, left: dict[int, tuple[str, ...]]) -> tuple[OperatorVerdict, ...]:
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
            self._answers[key] = self._asked_alone(node)
        return self._answers[key]

    def _asked_alone(self, node: Node) -> _Answer:
        try:
            left = _left(model_of(alone(node), self._asked), self._asked)
        except SESSION_ERRORS as error:
            return _Answer(error=_words(error, [node]))
        return _Answer(tuple(dict.fromkeys(name for names in left.values() for name in names)))


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


def _versions(asked: BrowserEngine) -> str:
    """Return the versions of onnxruntime and of the provider's package, if it has one of its own."""
    versions = [f"onnxruntime {onnxruntime.__version__}"]
    package = installed.register_installed().get(asked.provider)
    if package is not None:
        try:
            name = package.replace("_", "-")
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(package)
    return " with ".join(versions)


def _words(error: Exception, nodes: Sequence[Node]) -> str:
    """Return onnxruntime's words in one line, with operators in place of the names that they were drawn by."""
    said = _CODE.sub("", str(error).rpartition("[ONNXRuntimeError] : ")[2], count=1)
    named = _NAME.sub(lambda match: _called(nodes[int(match[1])]), _SOURCE.sub("", " ".join(said.split())))
    return visible(shortened(named, LONGEST_REASON))


def _called(node: Node) -> str:
    return f"{node.operator.spec_name}{in_brackets(node.label)}"


def _listed(names: Iterable[Any]) -> str:
    return " and ".join(map(str, names))
