"""The documentation of an operator: what its declaration says by hand, and what follows from the rest of it.

By hand a declaration says what the operator computes, what each argument means (``Args:``) and what comes out
(``Returns:``). Data types, ranks, errors and the section of the specification follow from the limits row, the
signature and the name. Without ``Returns:`` the output has the operands' shape, or the one to which they broadcast; an
operand that is not described is one of those. The builder's methods have it as their docstrings.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from webnn_py.core.descriptors import DATA_TYPES
from webnn_py.core.operators.declaration import Operator
from webnn_py.core.operators.limits import TensorLimits
from webnn_py.core.operators.methods import describe_methods_by

SPECIFICATION: Final = "https://www.w3.org/TR/webnn/"
WIDTH: Final = 100
INDENT: Final = " " * 4

_PARAGRAPH: Final = textwrap.TextWrapper(WIDTH, INDENT, INDENT, break_long_words=False, break_on_hyphens=False)
_ENTRY: Final = textwrap.TextWrapper(WIDTH, INDENT, 2 * INDENT, break_long_words=False, break_on_hyphens=False)

SHARED_SECTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "arithmetic": ("Element-wise binary operations", "binary"),
    "logical": ("Element-wise logical operations", "logical"),
    "unary": ("Element-wise unary operations", "unary"),
    "pooling": ("Pooling operations", "pool2d"),
}
"""By category: the title of the section that it shares, and the end of its anchor."""

_METHODS: Final = "gelu relu resample2d reshape reverse sigmoid softmax softplus softsign tanh"

ANCHORS: Final[Mapping[str, str]] = {
    "batchNormalization": "batchnorm",
    "hardSigmoid": "hard-sigmoid",
    "hardSwish": "hard-swish",
    "instanceNormalization": "instancenorm",
    "layerNormalization": "layernorm",
    **{name: f"{name}-method" for name in _METHODS.split()},
}
"""The ends of the anchors that are not the operator's name."""


@attrs.frozen
class Section:
    """A section of the specification."""

    title: str
    url: str


@attrs.frozen
class Documentation:
    """The documentation of an operator, part by part.

    Attributes:
        summary: what it computes.
        arguments: the meaning of each parameter.
        returns: what comes out, with its shape.
        raises: when it is refused, by the error's name.
        limits: the data types and ranks of each operand and output: allowed ones, and those of every device.
        section: where the specification describes it.
    """

    summary: str
    arguments: Mapping[str, str]
    returns: str
    raises: Mapping[str, str]
    limits: Mapping[str, str]
    section: Section

    def __str__(self) -> str:
        parts = [
            self.summary,
            _listed("Args", self.arguments),
            f"Returns:\n{_PARAGRAPH.fill(self.returns)}",
            _listed("Raises", self.raises),
            _listed("Data types and ranks", self.limits),
            f'Specification:\n    Section "{self.section.title}", {self.section.url}',
        ]
        return "\n\n".join(parts)


def documentation(operator: Operator[..., Any]) -> Documentation:
    """Return the documentation of an operator."""
    summary, arguments, returns = written(operator)
    operands = [name for name in operator.limits if name in operator.signature.parameters]
    element_wise = not returns
    if element_wise:
        returns = f"The results, of the shape {_shape_of_all(operands)}."
    described = {name: arguments.get(name) or _meaning(name, operands) for name in operator.signature.parameters}
    limits = {name: limits_text(row) for name, row in operator.limits.items()}
    return Documentation(
        summary, described, returns, _raises(operands, element_wise=element_wise), limits, section(operator)
    )


def written(operator: Operator[..., Any]) -> tuple[str, dict[str, str], str]:
    """Return the parts of a declaration's docstring: the summary, the arguments, and the returns."""
    text = inspect.cleandoc(operator.__doc__ or "")
    summary, *rest = re.split(r"^(Args|Returns):\n", text, flags=re.MULTILINE)
    parts = dict(zip(rest[::2], map(textwrap.dedent, rest[1::2]), strict=True))
    entries = re.split(r"^(\w+): ", parts.get("Args", ""), flags=re.MULTILINE)[1:]
    arguments = {name: _joined(meaning) for name, meaning in zip(entries[::2], entries[1::2], strict=True)}
    return summary.strip(), arguments, _joined(parts.get("Returns", ""))


def section(operator: Operator[..., Any]) -> Section:
    """Return the section of the specification that describes the operator."""
    name = operator.spec_name
    title, anchor = name, ANCHORS.get(name, name.lower())
    if operator.category in SHARED_SECTIONS and name != "where":
        title, anchor = SHARED_SECTIONS[operator.category]
    elif name in ("argMin", "argMax"):
        title, anchor = "argMin/argMax operations", "argminmax"
    elif name.startswith("reduce"):
        title, anchor = "Reduction operations", "reduce"
    return Section(title, f"{SPECIFICATION}#api-mlgraphbuilder-{anchor}")


def limits_text(row: TensorLimits) -> str:
    """One row of the limits in words."""
    data_types = f"data type of ``{row.type_of}``" if row.type_of else data_types_text(row.data_types)
    ranks = f"rank of ``{row.rank_of}``" if row.rank_of else f"rank {row.ranks}"
    return f"{data_types}, {ranks}; on every device {data_types_text(row.required, 'and')}, rank {row.required_ranks}."


def data_types_text(data_types: Sequence[str], last_joined_by: str = "or") -> str:
    """Data types in words."""
    if set(data_types) == set(DATA_TYPES):
        return "any data type" if last_joined_by == "or" else "all data types"
    *first, last = data_types
    return f"{', '.join(first)} {last_joined_by} {last}" if first else last


def _meaning(name: str, operands: Sequence[str]) -> str:
    """Return the meaning of a parameter that the declaration does not describe."""
    if name == "label":
        return "the operator's name in messages."
    if operands == [name]:
        return "the elements to compute with."
    if name == operands[0]:
        return "the first operand."
    return f"the second operand, of the same data type; its shape and that of ``{operands[0]}`` broadcast."


def _shape_of_all(operands: Sequence[str]) -> str:
    if len(operands) == 1:
        return f"of ``{operands[0]}``"
    *first, last = (f"``{name}``" for name in operands)
    return f"to which {', '.join(first)} and {last} broadcast"


def _raises(operands: Sequence[str], *, element_wise: bool) -> dict[str, str]:
    refusals = [
        "an argument has the wrong type or is out of range",
        "an operand is another builder's, or its data type or rank is none of those below",
    ]
    if not element_wise:
        refusals.append("arguments and shapes do not fit together as described")
    elif len(operands) > 1:
        refusals.append("the shapes do not broadcast")
    return {
        "TypeError": f"{'; '.join(refusals)}.",
        "InvalidStateError": "the builder has built its graph or is destroyed, or the context is lost.",
    }


def _joined(text: str) -> str:
    return " ".join(text.split())


def _listed(title: str, entries: Mapping[str, str]) -> str:
    return "\n".join([f"{title}:", *(_ENTRY.fill(f"{name}: {text}") for name, text in entries.items())])


describe_methods_by(lambda operator: str(documentation(operator)))
