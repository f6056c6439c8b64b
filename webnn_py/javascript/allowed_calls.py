"""The calls that a host answers: those of the description of the API, on objects and with arguments of its types.

A description is made from the IDL and the proposals that are enabled. The bindings send nothing else; a program that
writes messages of its own to the host gets no further than :meth:`AllowedCalls.check`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from webnn_py.core.api.buffer import MLBuffer
from webnn_py.core.api.builder import MLGraphBuilder
from webnn_py.core.api.context import MLContext
from webnn_py.core.api.graph import MLGraph
from webnn_py.core.api.ml import ML
from webnn_py.core.operators.operand import MLOperand
from webnn_py.extensions.subgraph import MLSubgraph
from webnn_py.javascript.values import BufferSource, MessageError

Check = Callable[[Any], bool]
"""Returns whether an argument, as it is decoded, has a type."""

CLASSES: Final[Mapping[str, type]] = {
    "ML": ML,
    "MLContext": MLContext,
    "MLGraph": MLGraph,
    "MLGraphBuilder": MLGraphBuilder,
    "MLOperand": MLOperand,
    "MLSubgraph": MLSubgraph,
    "MLTensor": MLBuffer,
}
"""Python's classes by the interfaces that they stand for."""


def _is_data(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_data, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_data(item) for name, item in value.items())
    return value is None or isinstance(value, bool | int | float | str)


_PLAIN: Final[Mapping[str, Check]] = {
    "boolean": lambda value: isinstance(value, bool),
    "long": lambda value: type(value) is int,
    "unsigned long": lambda value: type(value) is int,
    "unsigned long long": lambda value: type(value) is int,
    "float": lambda value: type(value) in {int, float},
    "double": lambda value: type(value) in {int, float},
    "unrestricted double": lambda value: type(value) in {int, float},
    "bigint": lambda value: type(value) is int,
    "DOMString": lambda value: isinstance(value, str),
    "USVString": lambda value: isinstance(value, str),
    "bufferSource": lambda value: isinstance(value, BufferSource),
    "GPUDevice": lambda value: value is None,
    "data": _is_data,
}


def _of_interface(name: str) -> Check:
    allowed = CLASSES.get(name, ())
    return lambda value: isinstance(value, allowed)


class AllowedCalls:
    """The calls that a description allows."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self._description = description
        self._overloads: dict[tuple[str, str], list[list[dict[str, Any]]]] = {}
        for name, interface in description["interfaces"].items():
            for operation in interface["operations"]:
                self._allow(name, operation["name"], operation["overloads"])
            self._allow(name, "constructor", interface["constructors"] or [])
        for name, operation in description.get("unexposed", ()):
            self._allow(name, operation["name"], operation["overloads"])
        self._checks: dict[tuple[str, str], list[list[Check]]] = {}
        self._makers: dict[str, Callable[[Any], Check]] = {
            "interface": _of_interface,
            "enum": self._of_enum,
            "dictionary": self._of_dictionary,
            "sequence": self._of_sequence,
            "record": self._of_record,
            "union": self._of_union,
        }

    def _allow(self, interface: str, member: str, overloads: list[dict[str, Any]]) -> None:
        self._overloads[interface, member] = [overload["arguments"] for overload in overloads]

    def check(self, interface: str, member: str, this: object, arguments: list[Any]) -> None:
        """Refuse a call that is not of the API.

        Args:
            interface: the interface.
            member: its operation, or "constructor".
            this: the object that is called.
            arguments: the decoded arguments.

        Raises:
            MessageError: the description has no such member, or it has other types.
        """
        called = f"{interface}.{member}"
        overloads = self._checks.get((interface, member))
        if overloads is None:
            if not self._overloads.get((interface, member)):
                raise MessageError(f"{called} is not a member of the API")
            overloads = self._checks[interface, member] = [
                [self._of_argument(argument) for argument in overload]
                for overload in self._overloads[interface, member]
            ]
        if member != "constructor" and not isinstance(this, CLASSES.get(interface, ())):
            raise MessageError(f"{called} is called on a {type(this).__name__}")
        if not any(
            len(checks) == len(arguments) and all(check(given) for check, given in zip(checks, arguments, strict=True))
            for checks in overloads
        ):
            raise MessageError(f"the arguments of {called} are not of its types")

    def _of_argument(self, argument: Mapping[str, Any]) -> Check:
        check = self._of_type(argument["type"])
        if argument.get("optional") and "default" not in argument:
            return lambda value: value is None or check(value)
        return check

    def _of_type(self, described: Mapping[str, Any]) -> Check:
        """Return the check of a type; whatever is not the type of an argument has no values."""
        kind, of = described["kind"], described.get("of")
        if kind in self._makers:
            return self._makers[kind](described["name"] if of is None else of)
        return _PLAIN.get(kind, lambda _value: False)

    def _of_enum(self, name: str) -> Check:
        values = frozenset(self._description["enums"][name])
        return lambda value: isinstance(value, str) and value in values

    def _of_sequence(self, of: Mapping[str, Any]) -> Check:
        item = self._of_type(of)
        return lambda value: isinstance(value, list) and all(map(item, value))

    def _of_record(self, of: Mapping[str, Any]) -> Check:
        item = self._of_type(of)
        return lambda value: (
            isinstance(value, dict) and all(isinstance(name, str) and item(one) for name, one in value.items())
        )

    def _of_union(self, of: list[Mapping[str, Any]]) -> Check:
        members = [self._of_type(member) for member in of]
        return lambda value: any(member(value) for member in members)

    def _of_dictionary(self, name: str) -> Check:
        checks: dict[str, Check] = {}
        needed: set[str] = set()
        parent: str | None = name
        while parent is not None:
            dictionary = self._description["dictionaries"][parent]
            for member in dictionary["members"]:
                checks[member["name"]] = self._of_type(member["type"])
                if member.get("required") or "default" in member:
                    needed.add(member["name"])
            parent = dictionary["parent"]

        def check(value: Any) -> bool:
            return (
                isinstance(value, dict)
                and value.keys() >= needed
                and all(key in checks and checks[key](item) for key, item in value.items())
            )

        return check
