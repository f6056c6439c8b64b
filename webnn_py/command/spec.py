"""``webnn-py spec``: the operators as data: the specification, and what devices, browsers and ONNX make of it."""

import argparse
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any, Final

from webnn_py.command.failures import BadInputError, needed
from webnn_py.command.printing import print_json, print_lines
from webnn_py.core.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.core.device import registry
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.device.compiling.expansion import missing_primitives
from webnn_py.core.graph import Graph, Input
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.message_text import nearest, shown
from webnn_py.core.operators.declaration import Operator, Parameter, spec_name_of
from webnn_py.core.operators.limits import MAX_RANK, RankRange
from webnn_py.core.operators.registry import BY_SPEC_NAME, CATEGORIES, OPERATORS
from webnn_py.extensions.browser_limits import NAMES, BrowserProfile, find
from webnn_py.javascript import descriptions
from webnn_py.operator_documentation import documentation
from webnn_py.testing.device_cases.files import Case, load
from webnn_py.text_tables import table

Record = dict[str, Any]

NOTHING_CLAIMED: Final = Capabilities(supports=lambda _operator: ())
"""The capabilities of a device that has to expand every operator."""

FEWEST_CALLS: Final = 6
"""One case in so many has a form of ONNX that is called common."""


def spec(options: argparse.Namespace) -> int:
    """Print what is known of all operators, or of those that are named by either of their names.

    Raises:
        BadInputError: there is no such operator.
        CommandFailedError: the extra ``onnx`` is not installed.
    """
    known = {**OPERATORS, **BY_SPEC_NAME}
    for name in options.operators:
        if name not in known:
            raise BadInputError(f"no operator {shown(name)}; webnn-py spec lists them{nearest(name, known)}")
    in_order = sorted(OPERATORS.values(), key=lambda operator: CATEGORIES.index(operator.category))
    chosen = list(dict.fromkeys(known[name] for name in options.operators)) or in_order
    if options.json:
        source = descriptions.of_specification()["source"]
        print_json({"specification": source, "operators": [record(operator) for operator in chosen]})
    else:
        rows = [(one.spec_name, one.name, one.category, ", ".join(_decomposition(one) or ())) for one in chosen]
        print_lines(table([("operator", "in Python", "category", "expanded into"), *rows]))
    return 0


def record(operator: Operator[..., Any]) -> Record:
    """Return what is known of an operator, as JSON."""
    about = documentation(operator)
    cases = load(operator.category, operator.name).cases
    return {
        "name": operator.spec_name,
        "python_name": operator.name,
        "category": operator.category,
        "in_specification": operator.spec_name in _of_builder(),
        "section": {"title": about.section.title, "url": about.section.url},
        "computes": _plain(about.summary),
        "arguments": [
            _argument(operator, parameter, about.arguments[name]) for name, parameter in operator.parameters.items()
        ],
        "returns": {"sequence": operator.returns_sequence, "meaning": _plain(about.returns)},
        "limits": {spec_name_of(name): _limits(operator, name) for name in operator.limits},
        "errors": {error: _plain(reason) for error, reason in about.raises.items()},
        "decomposition": _decomposition(operator),
        "tolerance": tolerances(cases),
        "devices": [one.title for one in registry.built_in() if one.capabilities().supports(operator)],
        "browsers": {name: _of_browser(operator, find(name)) for name in NAMES},
        "onnx": _onnx(operator, cases),
    }


def _of_builder() -> set[str]:
    interfaces = descriptions.of_specification()["interfaces"]
    return {operation["name"] for operation in interfaces["MLGraphBuilder"]["operations"]}


def _argument(operator: Operator[..., Any], parameter: Parameter, meaning: str) -> Record:
    declared = operator.signature.parameters[parameter.name]
    is_option = declared.kind is declared.KEYWORD_ONLY
    found: Record = {
        "name": parameter.spec_name,
        "python_name": parameter.name,
        "kind": "operand" if parameter.is_operand else "option" if is_option else "argument",
        **_idl_type(operator.spec_name, parameter.spec_name),
        "required": parameter.required,
        "meaning": _plain(meaning),
    }
    if not parameter.required:
        found["default"] = parameter.default
    return found


@cache
def _idl_types(operator: str) -> dict[str, Record]:
    """Return the types of the IDL, by the names of parameters and members of options; none of what it lacks."""
    api = descriptions.of_specification()
    operations = {operation["name"]: operation for operation in api["interfaces"]["MLGraphBuilder"]["operations"]}
    found: dict[str, Record] = {}
    for overload in operations.get(operator, {"overloads": []})["overloads"]:
        for argument in overload["arguments"]:
            found[argument["name"]] = argument["type"]
            options = argument["type"]["name"] if argument["type"]["kind"] == "dictionary" else None
            while options is not None:
                dictionary = api["dictionaries"][options]
                found.update({member["name"]: member["type"] for member in dictionary["members"]})
                options = dictionary["parent"]
    return found


def _idl_type(operator: str, name: str) -> Record:
    """Return the type of a parameter, with the values of an enumeration."""
    declared = _idl_types(operator).get(name)
    if declared is None:
        return {}
    item = declared["of"] if declared["kind"] == "sequence" else declared
    values = descriptions.of_specification()["enums"].get(item.get("name")) if item["kind"] == "enum" else None
    return {"type": _type_text(declared)} | ({} if values is None else {"values": values})


def _type_text(declared: Record) -> str:
    match declared:
        case {"kind": "sequence", "of": item}:
            return f"sequence<{_type_text(item)}>"
        case {"kind": "union", "of": items}:
            return f"({' or '.join(map(_type_text, items))})"
    text = str(declared.get("name", declared["kind"]))
    return f"[EnforceRange] {text}" if "enforceRange" in declared else text


def _plain(text: str) -> str:
    """Return a docstring's text on one line without references."""
    return " ".join(re.sub(r":\w+:`~?([\w.]+)`", r"\1()", text).replace("``", "").split())


def _limits(operator: Operator[..., Any], name: str) -> Record:
    row = operator.limits[name]
    found: Record = {
        "output": name not in operator.parameters,
        "data_types": list(row.data_types),
        "required_data_types": list(row.required),
        "ranks": _ranks(row.ranks),
        "required_ranks": _ranks(row.required_ranks),
    }
    if row.type_of is not None:
        found["data_type_of"] = spec_name_of(row.type_of)
    if row.rank_of is not None:
        found["rank_of"] = spec_name_of(row.rank_of)
    return found


def _ranks(ranks: RankRange) -> Record:
    return {"min": ranks.min, "max": None if ranks.max == MAX_RANK else ranks.max}


def _decomposition(operator: Operator[..., Any]) -> list[str] | None:
    """Return the operators that an operator ends in when all are expanded; None for one that is not expanded."""
    if operator.decomposition is None:
        return None
    return [OPERATORS[name].spec_name for name in missing_primitives(operator, NOTHING_CLAIMED)]


def tolerances(cases: tuple[Case, ...]) -> dict[str, str]:
    """Return how far a result may be from the oracle's in the tests of devices, at most, by the output's data type."""
    most: dict[str, dict[str, float]] = {}
    for case in cases:
        for expected in case.raw["expected"]:
            ((kind, value),) = case.tolerance.items()
            kinds = most.setdefault(expected["data_type"], {})
            kinds[kind] = max(kinds.get(kind, 0), value)
    return {data_type: _tolerance(most[data_type]) for data_type in DATA_TYPES if data_type in most}


def _tolerance(kinds: dict[str, float]) -> str:
    parts = [f"{kinds['ulp']:g} ulp"] if kinds.get("ulp") else []
    parts += [f"{kinds['absolute']:g}"] if kinds.get("absolute") else []
    return " or ".join(parts) or "exact"


def _of_browser(operator: Operator[..., Any], profile: BrowserProfile) -> Record | None:
    rows = profile.operators.get(operator.name)
    if rows is None:
        return None
    return {
        "limits": {
            spec_name_of(name): {
                "data_types": list(row.data_types),
                "ranks": {"min": row.ranks.min, "max": row.ranks.max},
            }
            for name, row in rows.items()
        },
        "refuses": [rule.reason for rule in profile.rules.get(operator.name, ())],
    }


def _onnx(operator: Operator[..., Any], cases: tuple[Case, ...]) -> Record:
    """Return the operators of ONNX that calls are written as, and whether they form a function of their own.

    Of the forms that are common among the float32 cases it is the shortest: calls with other options take more.
    """
    model_of = needed("webnn_py.onnx_export.model_export", "what ONNX has for an operator").model_of
    chosen = [case for case in cases if "float32" in str(case.inputs)] or list(cases)
    forms = Counter(_form(model_of(_graph_of(operator, case))) for case in chosen)
    common = [form for form, number in forms.items() if number * FEWEST_CALLS >= len(chosen)]
    names, as_function = min(common, key=lambda form: (form[0] == ("Identity",), len(form[0]), -forms[form]))
    return {"operators": [*names], "as_function": as_function}


def _form(model: Any) -> tuple[tuple[str, ...], bool]:
    """Return the operators of a model, and whether they form a function."""
    used = {node.op_type: None for node in model.graph.node}
    functions = {function.name: function for function in model.functions}
    inner = {node.op_type: None for name in used if name in functions for node in functions[name].node}
    return tuple(name for name in {**used, **inner} if name not in functions), bool(functions)


def _graph_of(operator: Operator[..., Any], case: Case) -> Graph:
    builder = RewriteBuilder()
    numbers = count()

    def operand(tensor: Any) -> object:
        descriptor = MLOperandDescriptor(tensor["data_type"], tuple(tensor["shape"]))
        return builder.operand(Input(descriptor, f"input{next(numbers)}"))

    operands = {name: list(map(operand, t)) if isinstance(t, list) else operand(t) for name, t in case.inputs.items()}
    draw: Callable[..., Any] = getattr(builder, operator.name)
    drawn = draw(**operands, **case.options)
    results = drawn if isinstance(drawn, list) else [drawn]
    return Graph.reaching({f"output{index}": builder.value(result) for index, result in enumerate(results)})
