"""Write the pages of ``docs/operators`` from the declarations: ``python docs/make_operator_pages.py [FOLDER]``.

The builds of the site and of wheels run it, and an editable install; git ignores what it writes.
"""

import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # a build has the package's folder only

from webnn_py.core.descriptors import MLOperandDataTypeLike
from webnn_py.core.device import registry
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.limits import MAX_RANK, RankRange, TensorLimits
from webnn_py.core.operators.registry import CATEGORIES, OPERATORS
from webnn_py.javascript import descriptions
from webnn_py.operator_documentation import Documentation, documentation

FOLDER = Path(__file__).with_name("operators")
IN_SPECIFICATION = {
    operation["name"] for operation in descriptions.of_specification()["interfaces"]["MLGraphBuilder"]["operations"]
}
DEVICES = {record.title: record.capabilities() for record in registry.built_in()}


def signature(operator: Operator) -> str:
    """The method's signature on lines that fit."""
    parameters = []
    keyword_only = False
    for parameter in operator.signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            parameters.append("*")
        parameters.append(parameter_text(parameter))
    returns = "list[MLOperand]" if operator.returns_sequence else "MLOperand"
    one_line = f"builder.{operator.name}({', '.join(parameters)}) -> {returns}"
    if len(one_line) <= 100:
        return one_line
    return f"builder.{operator.name}(\n" + "".join(f"    {text},\n" for text in parameters) + f") -> {returns}"


def parameter_text(parameter: inspect.Parameter) -> str:
    """One parameter as it is declared, with short names of types."""
    annotation = parameter.annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = text.replace(inspect.formatannotation(MLOperandDataTypeLike), "MLOperandDataTypeLike")
    for prefix in (
        "webnn_py.core.operators.operand.",
        "webnn_py.core.descriptors.",
        "webnn_py.",
        "collections.abc.",
        "typing.",
    ):
        text = text.replace(prefix, "")
    text = text.replace("Annotated[int, '[EnforceRange] long']", "int")
    text = text.replace("Annotated[int | float, '(bigint or unrestricted double)']", "MLNumber")
    text = text.replace("Optional[MLNumber]", "MLNumber | None")
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {text}{default}"


def limits_table(operator: Operator) -> str:
    """The operator's limits, allowed and required."""
    lines = [
        "| operand | data types | required | ranks | required |",
        "|---|---|---|---|---|",
        *(limits_line(name, row) for name, row in operator.limits.items()),
    ]
    return "\n".join(lines)


def limits_line(name: str, row: TensorLimits) -> str:
    """One row of the table."""
    allowed = f"that of `{row.type_of}`" if row.type_of else ", ".join(row.data_types)
    if len(row.data_types) == 8 and not row.type_of:
        allowed = "any"
    ranks = f"that of `{row.rank_of}`" if row.rank_of else ranks_text(row.ranks)
    return f"| `{name}` | {allowed} | {', '.join(row.required)} | {ranks} | {row.required_ranks} |"


def ranks_text(ranks: RankRange) -> str:
    """A range of ranks; the highest that any operand may have is left out."""
    if ranks == RankRange(0, MAX_RANK):
        return "any"
    return f"{ranks.min} and more" if ranks.max == MAX_RANK else str(ranks)


def linked(text: str) -> str:
    """A docstring's references to operators of the same page, as links."""
    return re.sub(r":func:`(\w+)`", r"[\1](#\1)", text)


def description(said: Documentation) -> str:
    """Return what an operator computes, takes, returns and refuses."""
    entries = [f"* `{name}`: {meaning}" for name, meaning in said.arguments.items() if name != "label"]
    refusals = [f"* `{error}`: {reason}" for error, reason in said.raises.items()]
    return "\n".join([linked(said.summary), "", *entries, "", f"Returns: {said.returns}", "", "Raises:", "", *refusals])


def shape_rule(operator: Operator) -> str:
    """The body of the declared function, which is the shape rule, without the comments that name steps of the text."""
    source = re.sub(r"^ *# spec: .*\n", "", textwrap.dedent(inspect.getsource(operator.function)), flags=re.MULTILINE)
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    first = function.body[1] if ast.get_docstring(function) is not None else function.body[0]
    return textwrap.dedent("\n".join(source.splitlines()[first.lineno - 1 :]))


def devices(operator: Operator) -> str:
    """Which devices run the operator themselves."""
    return ", ".join(title for title, capabilities in DEVICES.items() if capabilities.supports(operator)) or "nothing"


def place(operator: Operator, said: Documentation) -> str:
    """Where the specification has the operator."""
    if operator.spec_name not in IN_SPECIFICATION:
        return "Not in the specification; see [the differences](../differences.md)."
    return f"In the specification: `{operator.spec_name}()`, section [{said.section.title}]({said.section.url})."


def section(operator: Operator) -> str:
    """Return the section of one operator."""
    said = documentation(operator)
    return "\n".join(
        [
            f"## `{operator.name}`",
            "",
            place(operator, said),
            f"Runs on: {devices(operator)}.",
            "",
            "```python",
            signature(operator),
            "```",
            "",
            description(said),
            "",
            limits_table(operator),
            "",
            "Shape rule:",
            "",
            "```python",
            shape_rule(operator),
            "```",
        ]
    )


def pages() -> dict[str, str]:
    """Every page by its file name."""
    found = {}
    links = []
    for category in CATEGORIES:
        operators = [operator for operator in OPERATORS.values() if operator.category == category]
        module = sys.modules[operators[0].function.__module__]
        head = [f"# {category.capitalize()}", "", inspect.cleandoc(module.__doc__ or ""), ""]
        found[f"{category}.md"] = "\n".join(head) + "\n" + "\n\n".join(map(section, operators)) + "\n"
        names = ", ".join(f"[{operator.name}]({category}.md#{operator.name})" for operator in operators)
        links.append(f"| [{category}]({category}.md) | {names} |")
    found["README.md"] = "\n".join(
        [
            "# Operators",
            "",
            f"All {len(OPERATORS)} operators, by category, from their declarations (`docs/make_operator_pages.py`).",
            "`webnn-py spec --json` prints them as data: every operand, option, default and limit, what they are",
            "expanded into, and what ONNX and browsers make of them.",
            "",
            "| category | operators |",
            "|---|---|",
            *links,
            "",
        ]
    )
    return found


def write(folder: Path) -> None:
    """Write the pages that are not there yet as they should be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(*sys.argv[1:]) if sys.argv[1:] else FOLDER)
