"""A graph as text: what goes in and out, the operators, the kernels that a device made of them."""

from collections.abc import Iterator
from typing import Final

from webnn_py.core.graph import Constant, Input, Node, Output, Value
from webnn_py.core.message_text import in_brackets, named_by, shortened, visible
from webnn_py.pictures.drawn_graph import REMARKS, DrawnGraph, number_of, operands_of, options_given
from webnn_py.pictures.scene import LONGEST_NAME
from webnn_py.text_tables import counted, table

NOT_COMPILED: Final = ", not compiled"


def title(drawn: DrawnGraph, label: str = "") -> str:
    """Return how many operators a graph has, and its label."""
    return f"graph {named_by(label)}of {counted(len(drawn.graph.nodes), 'operator')}"


def summary(drawn: DrawnGraph, where: str, label: str = "") -> Iterator[str]:
    """Yield the first lines: how much there is of what."""
    yield f"{title(drawn, label)}{f' on {where}' if where else NOT_COMPILED}"
    plan = drawn.plan
    if plan is not None:
        kinds = [drawn.kind(index) for index in range(len(drawn.graph.nodes))]
        yield (
            f"{counted(len(plan.kernels), 'kernel')}; "
            f"{counted(kinds.count('folded'), 'operator')} computed at build, "
            f"{counted(kinds.count('view'), 'view')} without a kernel"
        )
        yield (
            f"memory: {plan.intermediate_bytes:,} bytes for values between kernels, "
            f"{plan.constant_bytes:,} bytes of constants"
        )


def ends(drawn: DrawnGraph) -> Iterator[str]:
    """Inputs and outputs."""
    inputs = [(_name(value.name), str(value.descriptor)) for value in drawn.graph.inputs.values()]
    outputs = [
        (_name(name), str(value.descriptor), f"= {_reference(drawn, value)}")
        for name, value in drawn.graph.outputs.items()
    ]
    yield "inputs" if inputs else "no inputs"
    yield from table(inputs, "  ")
    yield "outputs"
    yield from table(outputs, "  ")


def operators(drawn: DrawnGraph, start: int = 0, stop: int | None = None) -> Iterator[str]:
    """Yield a line for each operator, or for those from ``start`` to before ``stop``."""
    rows = []
    for index, node in enumerate(drawn.graph.nodes[start:stop], start):
        fate = [] if drawn.plan is None else [_fate(drawn, index)]
        rows.append((f"#{index + 1}", *fate, f"{_call(drawn, node)} -> {', '.join(map(str, node.outputs))}"))
    yield from table(rows, "  ")


def kernels(drawn: DrawnGraph) -> Iterator[str]:
    """Yield a line for each kernel."""
    assert drawn.plan is not None  # noqa: S101 - the caller looks for it
    rows = []
    for number, (kernel, computed) in enumerate(zip(drawn.plan.kernels, drawn.computed, strict=True), 1):
        rows.append((str(number), kernel.name, " ".join(f"#{index + 1}" for index in computed)))
    yield from table(rows, "  ")


def whole(drawn: DrawnGraph, where: str, label: str = "") -> str:
    """Return all of it."""
    lines = [*summary(drawn, where, label), *ends(drawn), "operators", *operators(drawn)]
    if drawn.plan is not None:
        lines += ["kernels", *kernels(drawn)]
    return "\n".join(map(visible, lines))


def _call(drawn: DrawnGraph, node: Node) -> str:
    arguments = [f"{name}={_reference(drawn, value)}" for name, value in operands_of(node)]
    options = [visible(text).replace(" ", "=", 1) for text in options_given(node)]
    return f"{node.operator.spec_name}{in_brackets(node.label)}({', '.join([*arguments, *options])})"


def _reference(drawn: DrawnGraph, value: Value) -> str:
    """Return the name of a value where it is read."""
    if isinstance(value, Output):
        several = len(value.node.outputs) > 1
        return f"#{drawn.indices[value.node] + 1}{f'.{value.index}' if several else ''}"
    if isinstance(value, Constant):
        return number_of(value) or f"constant {value.descriptor}"
    assert isinstance(value, Input)  # noqa: S101 - there are no other values
    return _name(value.name)


def _fate(drawn: DrawnGraph, index: int) -> str:
    kind = drawn.kind(index)
    if kind == "operator":
        return drawn.kernels_of(index)
    return "view" if kind == "view" else REMARKS[kind]


def _name(name: str) -> str:
    return visible(shortened(repr(name), LONGEST_NAME))
