"""The members of proposals and explainers, for the description of the API where scripts have them."""

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from webnn_py.core.descriptors import FOUR_BITS
from webnn_py.devices.wgpu.interop import DEFAULT_USAGE
from webnn_py.extensions.compute_policy import POLICIES

Json = dict[str, Any]


def _of(kind: str, of: Json) -> Json:
    """Return a type that is made of another: a sequence, a promise."""
    return {"kind": kind, "of": of}


def _named(kind: str, name: str) -> Json:
    return {"kind": kind, "name": name}


def _member(name: str, of: Json, *, required: bool = False, **default: Any) -> Json:
    return {"name": name, "type": of, "required": required, **default}


def _argument(name: str, of: Json, *, optional: bool = False, **default: Any) -> Json:
    return {"name": name, "type": of, "optional": optional, **default}


def _operation(name: str, returns: Json, *arguments: Json) -> Json:
    return {"name": name, "overloads": [{"returns": returns, "arguments": [*arguments]}]}


_STRING: Final = {"kind": "DOMString"}
_UNDEFINED: Final = {"kind": "undefined"}
_UNSIGNED_LONG: Final = {"kind": "unsigned long", "enforceRange": True}
_GRAPH: Final = _named("interface", "MLGraph")
_KEY: Final = _argument("key", _STRING)
_BY_NAME: Final = {"kind": "record", "key": {"kind": "USVString"}}


def _add_compute_policy(description: Json) -> None:
    """Replace two options of contexts by one, and add what a graph really runs by."""
    enums, interfaces = description["enums"], description["interfaces"]
    enums["MLComputePolicy"] = [*POLICIES]
    enums.pop("MLPowerPreference", None)
    options = description["dictionaries"]["MLContextOptions"]
    replaced = {"powerPreference", "accelerated"}
    options["members"] = [member for member in options["members"] if member["name"] not in replaced]
    options["members"].append(_member("computePolicy", _named("enum", "MLComputePolicy"), default="default"))
    context = interfaces["MLContext"]
    context["attributes"] = [one for one in context["attributes"] if one["name"] != "accelerated"]
    interfaces["MLGraph"]["attributes"].append({"name": "computePolicy", "type": _named("enum", "MLComputePolicy")})


def _add_int4(description: Json) -> None:
    enums = description["enums"]
    enums["MLOperandDataType"] = list(dict.fromkeys((*enums["MLOperandDataType"], *FOUR_BITS)))


def _add_webgpu_interop(description: Json) -> None:
    """Add what exports tensors to WebGPU, as the specification has it, with the usages of issue 954."""
    descriptor = _argument("descriptor", _named("dictionary", "MLTensorDescriptor"))
    usage = _argument("usage", _UNSIGNED_LONG, optional=True, default=DEFAULT_USAGE)
    tensor = _named("interface", "MLTensor")
    device = _argument("gpuDevice", {"kind": "GPUDevice"})
    added = [
        _operation("createExportableTensor", _of("promise", tensor), descriptor, device, usage),
        _operation("exportToGPU", {"kind": "GPUBuffer"}, _argument("tensor", tensor)),
    ]
    names = {operation["name"] for operation in added}  # newer IDL has them, of a GPUDevice that is none of its own
    context = description["interfaces"]["MLContext"]
    context["operations"] = [one for one in context["operations"] if one["name"] not in names] + added
    contents = _argument("contents", {"kind": "bufferSource"}), _argument("failure", _STRING, optional=True)
    description["unexposed"] = [  # what the bindings ask for, and scripts do not see
        ("MLTensor", _operation("endExport", _UNDEFINED)),
        ("MLTensor", _operation("returnContents", _UNDEFINED, _argument("arrival", _UNSIGNED_LONG), *contents)),
    ]


def _add_subgraph(description: Json) -> None:
    """Add definitions and calls of sub-graphs, and how a graph computes each call."""
    dictionaries, interfaces = description["dictionaries"], description["interfaces"]
    operands = {**_BY_NAME, "of": _named("interface", "MLOperand")}
    dictionaries["MLSubgraphOptions"] = {
        "parent": None,
        "members": [
            _member("name", {"kind": "USVString"}, required=True),
            _member("inputs", operands, required=True),
            _member("config", {"kind": "data"}),
        ],
    }
    texts = [_member(name, _STRING) for name in ("name", "label", "operator", "reason")]
    dictionaries["MLSubgraphUse"] = {"parent": None, "members": [*texts, _member("operators", _UNSIGNED_LONG)]}
    definition = _named("interface", "MLSubgraph")
    name = {"name": "name", "type": {"kind": "USVString"}}
    interfaces["MLSubgraph"] = {"constructors": None, "attributes": [name], "operations": []}
    options = _named("dictionary", "MLSubgraphOptions"), _named("dictionary", "MLOperatorOptions")
    interfaces["MLGraphBuilder"]["operations"] += [
        _operation("buildSubgraph", definition, _argument("outputs", operands), _argument("options", options[0])),
        _operation(
            "subgraph",
            operands,
            _argument("definition", definition),
            _argument("operands", operands),
            _argument("options", options[1], optional=True, default={}),
        ),
    ]
    uses = {"name": "subgraphs", "type": _of("frozenArray", _named("dictionary", "MLSubgraphUse"))}
    interfaces["MLGraph"]["attributes"].append(uses)


_ADDITIONS: Final[Mapping[str, Callable[[Json], None]]] = {
    "compute-policy": _add_compute_policy,
    "int4": _add_int4,
    "webgpu-interop": _add_webgpu_interop,
    "subgraph": _add_subgraph,
}


def with_proposals(description: Json, experimental: Collection[str]) -> Json:
    """Return a description with the members of the proposals that are asked for."""
    changed = copy.deepcopy(description)
    for name, add in _ADDITIONS.items():
        if name in experimental:
            add(changed)
    return changed


def with_graph_cache(description: Json) -> Json:
    """Return a description with the members of WebNN's cache explainer, for scripts that may save graphs."""
    changed = copy.deepcopy(description)
    interfaces = changed["interfaces"]
    interfaces["MLContext"]["operations"] += [
        _operation("listGraphs", _of("promise", _of("sequence", _STRING))),
        _operation("loadGraph", _of("promise", _GRAPH), _KEY),
        _operation("saveGraph", _of("promise", _UNDEFINED), _KEY, _argument("graph", _GRAPH)),
        _operation("deleteGraph", _UNDEFINED, _KEY),
    ]
    descriptors = {**_BY_NAME, "of": _named("dictionary", "MLOperandDescriptor")}
    interfaces["MLGraph"]["attributes"] += [{"name": name, "type": descriptors} for name in ("inputs", "outputs")]
    return changed
