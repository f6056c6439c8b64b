"""Browsers' limits: what one browser's WebNN accepts, by a table, and the extension that enforces it.

``open_ml(extensions=[BrowserLimits("chromium-153-litert")])``: contexts report that browser's limits and accept what it
accepts; results stay the same. See docs/browser_profiles.md.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Final, Literal

import attrs

from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES, MLBufferDescriptor, MLOperandDataType, MLOperandDescriptor
from webnn_py.core.errors import InvalidStateError, NotSupportedError, UnknownError
from webnn_py.core.extension import Extension, LeafT
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.message_text import in_brackets, nearest, plain, shown
from webnn_py.core.operators.declaration import python_name_of
from webnn_py.core.operators.limits import RankRange
from webnn_py.core.operators.registry import BY_SPEC_NAME
from webnn_py.extensions.browser_rules import RULES, BrowserRule, ErrorName, When

NAMES: Final = ("chromium-153-litert",)
"""The names of the profiles."""

_ERRORS: Final = {each.__name__: each for each in (TypeError, NotSupportedError, InvalidStateError, UnknownError)}


@attrs.frozen
class Refusal:
    """The reason for which a browser refuses something.

    Attributes:
        error: the name of the error that it is refused with.
        when: whether the call is refused, or the build that follows.
        reason: what is wrong and what is allowed.
    """

    error: ErrorName
    when: When
    reason: str


@attrs.frozen
class Allowed:
    """The data types and ranks that an operand may have."""

    data_types: tuple[MLOperandDataType, ...]
    ranks: RankRange

    @classmethod
    def read(cls, text: str) -> "Allowed":
        """Return what ``float32 int32, 0 to 8`` allows; data types that this package lacks are left out."""
        data_types, ranks = text.split(", ")
        lowest, highest = ranks.split(" to ")
        return cls(
            tuple(name for name in DATA_TYPES if name in data_types.split()), RankRange(int(lowest), int(highest))
        )

    def problem(self, what: str, descriptor: MLOperandDescriptor, *, any_rank: bool = False) -> str | None:
        """Return the reason why a descriptor is refused, or None."""
        if descriptor.data_type not in self.data_types:
            allowed = " or ".join(self.data_types)
            return f"the data type of {what} is {descriptor.data_type}; it must be {allowed}"
        if not any_rank and descriptor.rank not in self.ranks:
            return f"the rank of {what} {list(descriptor.shape)} is {descriptor.rank}; it must be {self.ranks}"
        return None

    def narrowed(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Return the part of a device's limits that is allowed, both in the form of ``op_support_limits()``."""
        ranks = plain["rank_range"]
        return {
            "data_types": [name for name in self.data_types if name in plain["data_types"]],
            "rank_range": {"min": max(self.ranks.min, ranks["min"]), "max": min(self.ranks.max, ranks["max"])},
        }


@attrs.frozen(eq=False)
class BrowserProfile:
    """The calls that one browser's WebNN accepts, and how it looks to a script; never what it computes.

    Attributes:
        name: what options call it.
        title: browser, version and backend.
        preferred_input_layout: what it reports.
        max_tensor_byte_length: the most bytes of a tensor.
        tensors: the limits of tensors, inputs, constants and outputs.
        operators: the limits of every operator's operands and outputs, by Python's names.
        rules: what it refuses beyond that, by operator.
        has_constant_tensors: whether ``createConstantTensor()`` works.
        survives_shared_outputs: whether one operand may be two outputs of a graph; otherwise the context is lost.
        compatibility: what JavaScript's bindings do otherwise, by the switches of the compatibility modes.
    """

    name: str
    title: str
    preferred_input_layout: Literal["nchw", "nhwc"]
    max_tensor_byte_length: int
    tensors: Allowed
    operators: Mapping[str, Mapping[str, Allowed]]
    rules: Mapping[str, tuple[BrowserRule, ...]]
    has_constant_tensors: bool
    survives_shared_outputs: bool
    compatibility: tuple[str, ...]

    def narrowed(self, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Return a device's limits cut down to the browser's, both in the form of ``op_support_limits()``."""
        found: dict[str, Any] = {
            "preferred_input_layout": self.preferred_input_layout,
            "max_tensor_byte_length": min(self.max_tensor_byte_length, limits["max_tensor_byte_length"]),
        }
        for name, members in limits.items():
            if name in {"input", "constant", "output"}:
                found[name] = self.tensors.narrowed(members)
            elif name not in found:
                rows = self.operators.get(name, {})
                found[name] = {operand: rows[operand].narrowed(row) for operand, row in members.items() if rows}
        return found

    def refusal_of_tensor(self, what: str, descriptor: MLOperandDescriptor) -> Refusal | None:
        """Return why a tensor, an input or a constant is refused, or None."""
        is_constant = isinstance(descriptor, MLBufferDescriptor) and descriptor.constant
        if is_constant and not self.has_constant_tensors:
            reason = "there are no constant tensors; use constant(descriptor, data)"
            return Refusal("NotSupportedError", "call", reason)
        return self._refusal(self.tensors.problem(what, descriptor), what, descriptor)

    def refusal_of_node(self, node: Node) -> Refusal | None:
        """Return why a node is refused, when it is added or when its graph is built, or None."""
        rows = self.operators.get(node.operator.name)
        if rows is None:
            return Refusal("TypeError", "call", "there is no such operator")
        for row, what, descriptor in _descriptors(node):
            # Browsers report the ranks of outputs, and enforce what the text does: Chromium gathers to a scalar.
            problem = rows[row].problem(what, descriptor, any_rank=row in node.operator.output_limits)
            if (refusal := self._refusal(problem, what, descriptor)) is not None:
                return refusal
        for rule in self.rules.get(node.operator.name, ()):
            if rule.refuses(node):
                return Refusal(rule.error, rule.when, rule.reason)
        return None

    def _refusal(self, problem: str | None, what: str, descriptor: MLOperandDescriptor) -> Refusal | None:
        if problem is None and descriptor.byte_length > self.max_tensor_byte_length:
            most = self.max_tensor_byte_length
            problem = f"{what} has {descriptor.byte_length:,} bytes; it must have at most {most:,}"
        return None if problem is None else Refusal("TypeError", "call", problem)

    def refusal_of_outputs(self, graph: Graph) -> Refusal | None:
        """Return why the outputs of a graph are refused whatever its nodes are, or None."""
        if self.survives_shared_outputs or len(set(graph.outputs.values())) == len(graph.outputs):
            return None
        reason = "the context is lost: one operand is two outputs; use identity() of it for one of them"
        return Refusal("InvalidStateError", "build", reason)


def _descriptors(node: Node) -> Iterator[tuple[str, str, MLOperandDescriptor]]:
    """Yield every operand and output of a node, as (the row of limits, the name to show, descriptor)."""
    for name, operand in node.operands.items():
        if isinstance(operand, Value):
            yield name, name, operand.descriptor
        else:
            for index, item in enumerate(operand):
                yield name, f"{name}[{index}]", item.descriptor
    names = node.operator.output_limits
    for result in node.results:
        yield names[result.index] if len(names) > 1 else names[0], "the output", result.descriptor


@cache
def find(name: str) -> BrowserProfile:
    """Return the profile of one of :data:`NAMES`."""
    return read(name, (files(__package__) / f"{name}.toml").read_text(encoding="utf-8"))


def read(name: str, text: str) -> BrowserProfile:
    """Return a profile of a table's text.

    Raises:
        KeyError: an operator, operand or rule is unknown.
        TypeError: a member is missing or unknown.
        ValueError: the text is no TOML, or a row is not in the form ``input output: float32 int32, 0 to 8``.
    """
    table = tomllib.loads(text)
    operators = {BY_SPEC_NAME[operator].name: _rows(rows) for operator, rows in table["operators"].items()}
    rules = [RULES[rule] for rule in table["rules"]]
    changed = {
        "tensors": Allowed.read(table["tensors"]),
        "operators": operators,
        "rules": {name: tuple(rule for rule in rules if name in rule.operators) for name in operators},
        "compatibility": tuple(table["compatibility"]),
    }
    return BrowserProfile(name=name, **(table | changed))


def _rows(lines: list[str]) -> Mapping[str, Allowed]:
    rows: dict[str, Allowed] = {}
    for line in lines:
        operands, _, allowed = line.partition(": ")
        rows |= dict.fromkeys(map(python_name_of, operands.split()), Allowed.read(allowed))
    return rows


# --- the extension -----------------------------------------------------------------------------------------------


class BrowserLimits(Extension):
    """The limits of a browser, for all contexts.

    Args:
        name: the browser profile, by name: ``"chromium-153-litert"``.

    Raises:
        TypeError: there is no such profile.
    """

    sees_all = True

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or plain(name) not in NAMES:
            known = f"{', '.join(NAMES)}{nearest(name, NAMES)}"
            raise TypeError(f"BrowserLimits(): name is {shown(name)}; it must be one of {known}")
        self.profile = find(plain(name))

    def limits(self, limits: dict[str, Any]) -> dict[str, Any]:
        """Return the device's limits cut down to the browser's."""
        return self.profile.narrowed(limits)

    def buffer(self, descriptor: MLBufferDescriptor) -> None:
        """Refuse the tensors that the browser refuses."""
        self._refuse("", self.profile.refusal_of_tensor("the tensor", descriptor))

    def leaf(self, _builder: MLGraphBuilder, value: LeafT) -> LeafT:
        """Refuse the inputs and constants that the browser refuses."""
        kind = kind_of(value)
        self._refuse(f"{kind}(): ", self.profile.refusal_of_tensor(f"the {kind}", value.descriptor))
        return value

    def node(self, _builder: MLGraphBuilder, node: Node) -> Node:
        """Refuse the operators that the browser refuses at once."""
        refusal = self.profile.refusal_of_node(node)
        if refusal is not None and refusal.when == "call":
            self._refuse(_start(node), refusal)
        return node

    def graph(self, builder: MLGraphBuilder, method: str, graph: Graph) -> Graph:
        """Refuse the graphs that the browser refuses to build, which ends the builder, and maybe loses the context."""
        if method == "build":
            of_nodes = ((f"build(): {_start(node)}", self.profile.refusal_of_node(node)) for node in graph.nodes)
            for start, refusal in chain([("build(): ", self.profile.refusal_of_outputs(graph))], of_nodes):
                if refusal is not None:
                    builder.destroy()
                    if refusal.error == "InvalidStateError":
                        builder.context.device.backend.lost(f"{start}{self._words(refusal)}")
                    self._refuse(start, refusal)
        return graph

    def _refuse(self, start: str, refusal: Refusal | None) -> None:
        if refusal is not None:
            raise _ERRORS[refusal.error](f"{start}{self._words(refusal)}")

    def _words(self, refusal: Refusal) -> str:
        return f"the browser profile {self.profile.name} refuses it: {refusal.reason}"


def kind_of(value: Input | Constant) -> str:
    """Return the method that makes a value: "input" or "constant"."""
    return "constant" if isinstance(value, Constant) else "input"


def _start(node: Node) -> str:
    return f"{node.operator.name}(){in_brackets(node.label)}: "
