"""Differences of the declarations from the specification, with reasons; rendered into ``docs/differences.md``."""

DIFFERENCES = {
    ("isNaN", "a", "allowed_types"): "The table says any; the algorithm refuses all but float32 and float16.",
    ("isInfinite", "a", "allowed_types"): "The table says any; the algorithm refuses all but float32 and float16.",
    ("cumulativeSum", "axis", "type"): "The text lacks [EnforceRange]; a wrapped axis is never meant.",
    ("gather", "output", "allowed_ranks"): "The table says 1 to N; one index of a vector gathers a scalar.",
    ("tile", "repetitions", "type"): "The text lacks [EnforceRange]; a wrapped repetition is never meant.",
}
"""(operator, parameter or operand, column) → the reason. An entry that is no difference is an error."""

BEYOND: dict[str, str] = {}
"""Operators that the specification does not have → the reason for having them."""


def rendered() -> str:
    """The table of ``docs/differences.md``."""
    lines = ["| operator | of | what | reason |", "|---|---|---|---|"]
    for (operator, name, column), reason in DIFFERENCES.items():
        lines.append(f"| `{operator}` | `{name}` | {column.replace('_', ' ')} | {reason} |")
    lines += [f"| `{operator}` | – | the operator | {reason} |" for operator, reason in BEYOND.items()]
    return "\n".join(lines)
