"""The description of the API without any IDL: from the operators' declarations, and what is fixed besides them.

The same data as :mod:`descriptions` makes from the specification's IDL. Names of dictionaries are not seen by scripts;
where several operators share one, so do they here.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

from webnn_py.descriptors import MLOperandDataType, MLOperandDataTypeLike
from webnn_py.javascript.descriptions import Description
from webnn_py.operators import convolution, movement, pooling, recurrent, resampling, windows
from webnn_py.operators.declaration import SPEC_NAMES, Operator, Parameter
from webnn_py.operators.idl import Long, MLNumber
from webnn_py.operators.operand import MLOperand
from webnn_py.operators.registry import OPERATORS
from webnn_py.script.records import MLPowerPreference

ENUMERATIONS: dict[str, Any] = {
    "MLPowerPreference": MLPowerPreference,
    "MLInputOperandLayout": windows.InputLayout,
    "MLOperandDataType": MLOperandDataType,
    "MLConv2dFilterOperandLayout": convolution.Conv2dFilterLayout,
    "MLConvTranspose2dFilterOperandLayout": convolution.ConvTranspose2dFilterLayout,
    "MLGruWeightLayout": recurrent.MLGruWeightLayout,
    "MLRecurrentNetworkActivation": recurrent.MLRecurrentNetworkActivation,
    "MLRecurrentNetworkDirection": recurrent.MLRecurrentNetworkDirection,
    "MLLstmWeightLayout": recurrent.MLLstmWeightLayout,
    "MLPaddingMode": movement.PaddingMode,
    "MLRoundingType": pooling.RoundingType,
    "MLInterpolationMode": resampling.InterpolationMode,
}

SHARED_OPTIONS = {
    "MLArgMinMaxOptions": ("argMin", "argMax"),
    "MLGatherOptions": ("gather", "gatherElements"),
    "MLPool2dOptions": ("averagePool2d", "l2Pool2d", "maxPool2d"),
    "MLScatterOptions": ("scatterElements",),
}
"""Dictionaries of options that are not named after their one operator; those of reductions are all one."""

WRAPPING = {("cumulativeSum", "axis"), ("tile", "repetitions")}
"""Arguments without ``[EnforceRange]``: a number out of range wraps."""

Type = dict[str, Any]

UNDEFINED: Type = {"kind": "undefined"}
BOOLEAN: Type = {"kind": "boolean"}
UNSIGNED_LONG: Type = {"kind": "unsigned long"}
ENFORCED: Type = {"kind": "unsigned long", "enforceRange": True}
USV_STRING: Type = {"kind": "USVString"}
BUFFER: Type = {"kind": "bufferSource"}
NUMBER: Type = {"kind": "union", "of": [{"kind": "bigint"}, {"kind": "unrestricted double"}]}


def _interface(name: str) -> Type:
    return {"kind": "interface", "name": name}


def _dictionary(name: str) -> Type:
    return {"kind": "dictionary", "name": name}


def _enum(name: str) -> Type:
    return {"kind": "enum", "name": name}


def _sequence(of: Type) -> Type:
    return {"kind": "sequence", "of": of}


def _promise(of: Type) -> Type:
    return {"kind": "promise", "of": of}


def _record(of: Type) -> Type:
    return {"kind": "record", "key": USV_STRING, "of": of}


OPERAND = _interface("MLOperand")
DATA_TYPE = _enum("MLOperandDataType")


# --- types of annotations --------------------------------------------------------------------------------------------

_TYPES: list[tuple[Any, Type]] = [
    (MLOperand, OPERAND),
    (Sequence[MLOperand], _sequence(OPERAND)),
    (int, ENFORCED),
    (Long, {"kind": "long", "enforceRange": True}),
    (Sequence[int], _sequence(ENFORCED)),
    (int | Sequence[int], {"kind": "union", "of": [ENFORCED, _sequence(ENFORCED)]}),
    (float, {"kind": "double"}),
    (MLNumber, NUMBER),
    (Sequence[float], _sequence({"kind": "float"})),
    (bool, BOOLEAN),
    (str, USV_STRING),
    (MLOperandDataTypeLike, DATA_TYPE),
]


def _type_of(annotation: Any) -> Type:
    """The IDL type that an annotation stands for; see :mod:`webnn_py.operators.idl`."""
    present = [item for item in get_args(annotation) if item is not type(None)]
    if type(None) in get_args(annotation):
        return _type_of(Union[tuple(present)])  # noqa: UP007 - rebuilt from a tuple
    for known, idl_type in _TYPES:
        if annotation == known:
            return idl_type
    if get_origin(annotation) is Literal:
        return _enum(next(name for name, alias in ENUMERATIONS.items() if alias == annotation))
    if get_origin(annotation) is Sequence:
        return _sequence(_type_of(get_args(annotation)[0]))
    raise NotImplementedError(f"no IDL type is known for {annotation!r}")


def _unenforced(idl_type: Type) -> Type:
    if idl_type["kind"] == "sequence":
        return _sequence(_unenforced(idl_type["of"]))
    return {"kind": idl_type["kind"]}


# --- operators -------------------------------------------------------------------------------------------------------


def _options_name(operator: Operator[..., Any]) -> str:
    name = operator.spec_name
    if all(parameter.required or parameter.name == "label" for parameter in operator.parameters.values()):
        return "MLOperatorOptions"
    if name.startswith("reduce"):
        return "MLReduceOptions"
    shared = (dictionary for dictionary, names in SHARED_OPTIONS.items() if name in names)
    return next(shared, f"ML{name[0].upper()}{name[1:]}Options")


def _argument(operator: Operator[..., Any], parameter: Parameter) -> dict[str, Any]:
    idl_type = _type_of(operator.hints[parameter.name])
    if (operator.spec_name, parameter.spec_name) in WRAPPING:
        idl_type = _unenforced(idl_type)
    return {"name": parameter.spec_name, "type": idl_type, "optional": False}


def _operation(operator: Operator[..., Any]) -> dict[str, Any]:
    required = [parameter for parameter in operator.parameters.values() if parameter.required]
    options = {"name": "options", "type": _dictionary(_options_name(operator)), "optional": True, "default": {}}
    overload = {
        "returns": _sequence(OPERAND) if operator.returns_sequence else OPERAND,
        "arguments": [*(_argument(operator, parameter) for parameter in required), options],
    }
    return {"name": operator.spec_name, "overloads": [overload]}


def _options(operator: Operator[..., Any]) -> dict[str, Any]:
    members = []
    for parameter in operator.parameters.values():
        if parameter.required or parameter.name == "label":
            continue
        idl_type = _type_of(operator.hints[parameter.name])
        member = {"name": parameter.spec_name, "type": idl_type, "required": False}
        if parameter.default is not None:
            member["default"] = parameter.default
        members.append(member)
    return {"parent": "MLOperatorOptions", "members": members}


# --- limits ----------------------------------------------------------------------------------------------------------

TENSOR_LIMITS = _dictionary("MLTensorLimits")


def _members(types: Iterable[tuple[str, Type]]) -> list[dict[str, Any]]:
    return [{"name": name, "type": idl_type, "required": False} for name, idl_type in types]


def _limits_name(operator: Operator[..., Any]) -> str:
    return "limits of " + ", ".join(operator.limits)


def _limits_dictionaries() -> dict[str, Any]:
    rows = {
        _limits_name(operator): {
            "parent": None,
            "members": _members((SPEC_NAMES.get(name, name), TENSOR_LIMITS) for name in operator.limits),
        }
        for operator in OPERATORS.values()
    }
    of_operators = [(operator.spec_name, _dictionary(_limits_name(operator))) for operator in OPERATORS.values()]
    everywhere = [(name, TENSOR_LIMITS) for name in ("input", "constant", "output")]
    layout = ("preferredInputLayout", _enum("MLInputOperandLayout"))
    length = ("maxTensorByteLength", {"kind": "unsigned long long", "enforceRange": True})
    rank = [("min", UNSIGNED_LONG), ("max", UNSIGNED_LONG)]
    data_types = [("dataTypes", _sequence(DATA_TYPE)), ("rankRange", _dictionary("MLRankRange"))]
    return rows | {
        "MLOpSupportLimits": {"parent": None, "members": _members([layout, length, *everywhere, *of_operators])},
        "MLTensorLimits": {"parent": None, "members": _members(data_types)},
        "MLRankRange": {"parent": None, "members": _members(rank)},
    }


# --- the interfaces --------------------------------------------------------------------------------------------------


def _required(name: str, idl_type: Type) -> dict[str, Any]:
    return {"name": name, "type": idl_type, "optional": False}


def _method(name: str, returns: Type, *overloads: list[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "overloads": [{"returns": returns, "arguments": arguments} for arguments in overloads]}


def _attributes(*attributes: tuple[str, Type]) -> list[dict[str, Any]]:
    return [{"name": name, "type": idl_type} for name, idl_type in attributes]


def _ml() -> dict[str, Any]:
    options = {"name": "options", "type": _dictionary("MLContextOptions"), "optional": True, "default": {}}
    device = [_required("gpuDevice", _interface("GPUDevice"))]
    create = _method("createContext", _promise(_interface("MLContext")), [options], device)
    return {"constructors": None, "attributes": [], "operations": [create]}


def _context() -> dict[str, Any]:
    tensor, data = _required("tensor", _interface("MLTensor")), _required("inputData", BUFFER)
    named = _record(_interface("MLTensor"))
    read = _method("readTensor", _promise({"kind": "ArrayBuffer"}), [tensor])
    filled = {"returns": _promise(UNDEFINED), "arguments": [tensor, _required("outputData", BUFFER)]}
    read["overloads"].append(filled)
    promised = _promise(_interface("MLTensor"))
    return {
        "constructors": None,
        "attributes": _attributes(("accelerated", BOOLEAN), ("lost", _promise(_dictionary("MLContextLostInfo")))),
        "operations": [
            _method(
                "dispatch",
                UNDEFINED,
                [_required("graph", _interface("MLGraph")), _required("inputs", named), _required("outputs", named)],
            ),
            _method("createTensor", promised, [_required("descriptor", _dictionary("MLTensorDescriptor"))]),
            _method(
                "createConstantTensor", promised, [_required("descriptor", _dictionary("MLOperandDescriptor")), data]
            ),
            read,
            _method("writeTensor", UNDEFINED, [tensor, data]),
            _method("opSupportLimits", _dictionary("MLOpSupportLimits"), []),
            _method("destroy", UNDEFINED, []),
        ],
    }


def _builder() -> dict[str, Any]:
    descriptor = _required("descriptor", _dictionary("MLOperandDescriptor"))
    constants: list[list[dict[str, Any]]] = [
        [descriptor, _required("buffer", BUFFER)],
        [_required("dataType", DATA_TYPE), _required("value", NUMBER)],
        [_required("tensor", _interface("MLTensor"))],
    ]
    return {
        "constructors": [{"arguments": [_required("context", _interface("MLContext"))]}],
        "attributes": [],
        "operations": [
            _method("input", OPERAND, [_required("name", USV_STRING), descriptor]),
            _method("constant", OPERAND, *constants),
            _method("build", _promise(_interface("MLGraph")), [_required("outputs", _record(OPERAND))]),
            *(_operation(operator) for operator in OPERATORS.values()),
        ],
    }


def _interfaces() -> dict[str, Any]:
    shape = ("shape", {"kind": "frozenArray", "of": UNSIGNED_LONG})
    flags = [(name, BOOLEAN) for name in ("readable", "writable", "constant")]
    destroy = [_method("destroy", UNDEFINED, [])]
    return {
        "ML": _ml(),
        "MLContext": _context(),
        "MLGraph": {"constructors": None, "attributes": [], "operations": destroy},
        "MLOperand": {
            "constructors": None,
            "attributes": _attributes(("dataType", DATA_TYPE), shape),
            "operations": [],
        },
        "MLTensor": {
            "constructors": None,
            "attributes": _attributes(("dataType", DATA_TYPE), shape, *flags),
            "operations": destroy,
        },
        "MLGraphBuilder": _builder(),
    }


def _fixed_dictionaries() -> dict[str, Any]:
    def with_default(name: str, idl_type: Type, default: object) -> dict[str, Any]:
        return {"name": name, "type": idl_type, "required": False, "default": default}

    return {
        "MLContextOptions": {
            "parent": None,
            "members": [
                with_default("powerPreference", _enum("MLPowerPreference"), "default"),
                with_default("accelerated", BOOLEAN, True),
            ],
        },
        "MLContextLostInfo": {"parent": None, "members": _members([("message", {"kind": "DOMString"})])},
        "MLOperandDescriptor": {
            "parent": None,
            "members": [
                {"name": "dataType", "type": DATA_TYPE, "required": True},
                {"name": "shape", "type": _sequence(ENFORCED), "required": True},
            ],
        },
        "MLTensorDescriptor": {
            "parent": "MLOperandDescriptor",
            "members": [with_default(name, BOOLEAN, False) for name in ("readable", "writable")],
        },
        "MLOperatorOptions": {"parent": None, "members": [with_default("label", USV_STRING, "")]},
    }


@cache
def describe() -> Description:
    """Describe the API as this package declares it."""
    options = {
        _options_name(operator): _options(operator)
        for operator in OPERATORS.values()
        if _options_name(operator) != "MLOperatorOptions"
    }
    return {
        "enums": {name: list(get_args(alias)) for name, alias in ENUMERATIONS.items()},
        "dictionaries": _fixed_dictionaries() | options | _limits_dictionaries(),
        "interfaces": _interfaces(),
        "navigator": _attributes(("ml", _interface("ML"))),
    }
