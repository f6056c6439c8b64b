"""The members of WebNN's cache explainer, for the description of the API where scripts may save graphs."""

import copy
from typing import Any, Final

_KEY: Final = {"name": "key", "type": {"kind": "DOMString"}, "optional": False}
_GRAPH: Final = {"kind": "interface", "name": "MLGraph"}
_DESCRIPTORS: Final = {
    "kind": "record",
    "key": {"kind": "USVString"},
    "of": {"kind": "dictionary", "name": "MLOperandDescriptor"},
}


def _operation(name: str, returns: dict[str, Any], *arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "overloads": [{"returns": returns, "arguments": list(arguments)}]}


def _promise(of: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "promise", "of": of}


_OPERATIONS: Final = (
    _operation("listGraphs", _promise({"kind": "sequence", "of": {"kind": "DOMString"}})),
    _operation("loadGraph", _promise(_GRAPH), _KEY),
    _operation(
        "saveGraph", _promise({"kind": "undefined"}), _KEY, {"name": "graph", "type": _GRAPH, "optional": False}
    ),
    _operation("deleteGraph", {"kind": "undefined"}, _KEY),
)


def with_graph_cache(description: dict[str, Any]) -> dict[str, Any]:
    """Return a description with the members for saved graphs."""
    changed = copy.deepcopy(description)
    interfaces = changed["interfaces"]
    interfaces["MLContext"]["operations"] += _OPERATIONS
    interfaces["MLGraph"]["attributes"] += [{"name": name, "type": _DESCRIPTORS} for name in ("inputs", "outputs")]
    return changed
