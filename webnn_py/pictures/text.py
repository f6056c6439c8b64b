"""A graph as text: what goes in and out, the operators, the kernels that a device made of them."""

from collections.abc import Iterator
from typing import Final

from webnn_py.core.message_text import in_brackets, named_by, shortened, visible
from webnn_py.devices.compiled_plan import CompiledPlan
from webnn_py.pictures.description import DrawnOperator, GraphDescription
from webnn_py.pictures.scene import LONGEST_NAME, Fates
from webnn_py.text_tables import counted, table

NOT_COMPILED: Final = ", not compiled"


def summary(graph: GraphDescription, plan: CompiledPlan | None, where: str, label: str = "") -> Iterator[str]:
    """Yield the first lines: how much there is of what."""
    name = f"graph {named_by(label)}of {counted(len(graph.operators), 'operator')}"
    yield f"{name}{f' on {where}' if where else NOT_COMPILED}"
    if plan is not None:
        fates = Fates.from_graph(graph, plan)
        kinds = [fates.kind(index) for index in range(len(graph.operators))]
        yield (
            f"{counted(len(plan.kernels), 'kernel')}; "
            f"{counted(kinds.count('folded'), 'operator')} computed at build, "
            f"{counted(kinds.count('view'), 'view')} without a kernel"
        )
        yield (
            f"memory: {plan.intermediate_bytes:,} bytes for values between kernels, "
            f"{plan.constant_bytes:,} bytes of constants"
        )


def ends(graph: GraphDescription) -> Iterator[str]:
    """Inputs and outputs."""
    inputs = [(_name(graph.values[index].name), str(graph.values[index].descriptor)) for index in graph.inputs]
    outputs = [
        (_name(name), str(graph.values[index].descriptor), f"= {_reference(graph, index)}")
        for name, index in graph.outputs
    ]
    yield "inputs" if inputs else "no inputs"
    yield from table(inputs, "  ")
    yield "outputs"
    yield from table(outputs, "  ")


def operators(
    graph: GraphDescription, plan: CompiledPlan | None, start: int = 0, stop: int | None = None
) -> Iterator[str]:
    """Yield a line for each operator, or for those from ``start`` to before ``stop``."""
    fates = Fates.from_graph(graph, plan)
    rows = []
    for index, operator in enumerate(graph.operators[start:stop], start):
        results = ", ".join(str(graph.values[value].descriptor) for value in operator.results)
        fate = [] if plan is None else [_fate(fates, index)]
        rows.append((f"#{index + 1}", *fate, f"{_call(graph, operator)} -> {results}"))
    yield from table(rows, "  ")


def kernels(graph: GraphDescription, plan: CompiledPlan) -> Iterator[str]:
    """Yield a line for each kernel."""
    indices = {operator.place: index for index, operator in enumerate(graph.operators)}
    rows = []
    for number, kernel in enumerate(plan.kernels, 1):
        computed = " ".join(f"#{indices[place] + 1}" for place in kernel.operators if place in indices)
        rows.append((str(number), kernel.name, computed))
    yield from table(rows, "  ")


def whole(graph: GraphDescription, plan: CompiledPlan | None, where: str, label: str = "") -> str:
    """Return all of it."""
    lines = [*summary(graph, plan, where, label), *ends(graph), "operators", *operators(graph, plan)]
    if plan is not None:
        lines += ["kernels", *kernels(graph, plan)]
    return "\n".join(map(visible, lines))


def _call(graph: GraphDescription, operator: DrawnOperator) -> str:
    arguments = [f"{name}={_reference(graph, value)}" for name, value in operator.operands]
    options = [visible(text).replace(" ", "=", 1) for text in operator.options_given()]
    return f"{operator.operator.spec_name}{in_brackets(operator.label)}({', '.join([*arguments, *options])})"


def _reference(graph: GraphDescription, index: int) -> str:
    """Return the name of a value where it is read."""
    value = graph.values[index]
    if value.kind == "input":
        return _name(value.name)
    if value.kind == "constant":
        return value.name or f"constant {value.descriptor}"
    several = len(graph.operators[value.source].results) > 1
    return f"#{value.source + 1}{f'.{value.port}' if several else ''}"


def _fate(fates: Fates, index: int) -> str:
    kind = fates.kind(index)
    if kind != "operator":
        return "computed at build" if kind == "folded" else "view"
    numbers = [number + 1 for number in fates.kernels[index]]
    if len(numbers) == 1:
        return f"kernel {numbers[0]}"
    return (
        f"{len(numbers)} kernels from {numbers[0]}" if len(numbers) > 4 else f"kernels {', '.join(map(str, numbers))}"
    )


def _name(name: str) -> str:
    return visible(shortened(repr(name), LONGEST_NAME))
