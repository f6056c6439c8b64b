"""A random graph as a list of the builder's calls, which can be printed, built and run on any device."""

import attrs
import numpy as np

from spec_tests.support.buffers import filled, zeroed
from spec_tests.support.random_graphs import bounds
from spec_tests.support.random_graphs.bounds import Known, Value
from webnn_py import MLGraphBuilder

ROUNDS = 2
"""How often a program runs, with other inputs each time, in the same buffers."""


@attrs.frozen(eq=False)
class Source:
    """A graph input or a constant, its elements random multiples of the step."""

    value: Value
    is_input: bool
    seed: int

    def data(self, number):
        """The elements in a round; those of constants are the same in each."""
        known, value = self.value.known, self.value
        rng = np.random.default_rng([self.seed, number if self.is_input else 0])
        steps = rng.integers(round(known.low / known.step), round(known.high / known.step), value.shape, endpoint=True)
        return (steps * (int(known.step) if known.step >= 1 else known.step)).astype(value.data_type)

    def __str__(self) -> str:
        value, known = self.value, self.value.known
        of = f"data_type={value.data_type!r}, shape={list(value.shape)}"
        call = f'input("{value}", {of})' if self.is_input else f"constant(data, {of})"
        said = f"multiples of {known.step:g} from {known.low:g} to {known.high:g}, seed {self.seed}"
        return f"{value} = builder.{call}  # {said}"


@attrs.frozen(eq=False)
class Call:
    """A call of a builder's method."""

    method: str
    args: tuple
    options: dict
    results: tuple[Value, ...]
    in_list: bool

    @property
    def operands(self):
        """The values that it reads."""
        given = [*self.args, *self.options.values()]
        return [v for item in given for v in (item if isinstance(item, list) else [item]) if isinstance(v, Value)]

    def make(self, builder, operands):
        """Call the method, and remember what it returns by the names of the results."""

        def drawn(item):
            if isinstance(item, list):
                return [drawn(member) for member in item]
            return operands[item.name] if isinstance(item, Value) else item

        options = {name: drawn(item) for name, item in self.options.items()}
        result = getattr(builder, self.method)(*map(drawn, self.args), **options)
        for value, operand in zip(self.results, result if self.in_list else [result], strict=True):
            operands[value.name] = operand

    def __str__(self) -> str:
        given = [repr(item) for item in self.args] + [f"{name}={item!r}" for name, item in self.options.items()]
        left = ", ".join(map(str, self.results))
        left = f"[{left}]" if self.in_list else left
        shapes = ", ".join(f"{value.data_type} {list(value.shape)}" for value in self.results)
        return f"{left} = builder.{self.method}({', '.join(given)})  # {shapes}"


@attrs.frozen(eq=False)
class Program:
    """A graph, its data, and what is known of its outputs."""

    sources: tuple[Source, ...]
    calls: tuple[Call, ...]
    outputs: tuple[Value, ...]

    @classmethod
    def of(cls, sources, calls, outputs):
        """Only what the outputs need."""
        needed, kept = {value.name for value in outputs}, []
        for call in reversed(calls):
            if needed.intersection(value.name for value in call.results):
                kept.append(call)
                needed.update(value.name for value in call.operands)
        return cls(tuple(s for s in sources if s.value.name in needed), tuple(reversed(kept)), tuple(outputs))

    def __repr__(self) -> str:
        outputs = ", ".join(f'"y{number}": {value}' for number, value in enumerate(self.outputs))
        lines = [*map(str, self.sources), *map(str, self.calls), f"builder.build({{{outputs}}})"]
        return "\n" + "\n".join(f"    {line}" for line in lines)

    def _repr_pretty_(self, printer, _cycle):
        printer.text(repr(self))  # hypothesis would list the attributes

    def draw(self, builder):
        """Make the calls; the outputs."""
        operands = {}
        for source in self.sources:
            value = source.value
            if source.is_input:
                operand = builder.input(value.name, data_type=value.data_type, shape=value.shape)
            else:
                operand = builder.constant(source.data(0))
            operands[value.name] = operand
        for call in self.calls:
            call.make(builder, operands)
        return {f"y{number}": operands[value.name] for number, value in enumerate(self.outputs)}

    def build(self, context, **options):
        """Draw, and begin to build."""
        builder = MLGraphBuilder(context)
        return builder.build(self.draw(builder), **options)

    async def run(self, context):
        """The outputs of each round, and the inputs as they are after the last."""
        graph = await self.build(context)
        given = {s.value.name: s for s in self.sources if s.is_input and s.value.name in graph.input_descriptors}
        inputs = {name: await filled(context, s.data(0), s.value.data_type) for name, s in given.items()}
        outputs = {
            f"y{number}": await zeroed(context, value.shape, value.data_type)
            for number, value in enumerate(self.outputs)
        }
        rounds = []
        for number in range(ROUNDS):
            for name, buffer in inputs.items():
                context.write_buffer(buffer, given[name].data(number))
            context.dispatch(graph, inputs, outputs)
            rounds.append([context.read_buffer(buffer) for buffer in outputs.values()])
        unchanged = [(s.data(ROUNDS - 1), context.read_buffer(inputs[name])) for name, s in given.items()]
        results = [[await read for read in reads] for reads in rounds]
        for data, read in unchanged:
            np.testing.assert_array_equal(await read, data, "an input was changed")
        for thing in (graph, *inputs.values(), *outputs.values()):
            thing.destroy()
        return results


def what_is_wrong(value, got, expected, device):
    """In words, how two devices' results contradict what is known of a value; empty when they do not."""
    known = value.known
    kind = np.float64 if bounds.is_float(value.data_type) else object  # integers of 64 bits, without rounding
    got, expected = got.astype(kind), expected.astype(kind)
    for name, array in (("numpy", expected), (device, got)):
        if outside := outside_of(known, array):
            return f"{name} computed {outside}"
    away = np.abs(got - expected)
    wrong = away > known.error
    if not wrong.any():
        return ""
    at = np.unravel_index(np.argmax(away), away.shape)
    most = f"{got[at]!s} on {device}, {expected[at]!s} on numpy at {[int(index) for index in at]}"
    return f"{int(wrong.sum())} of {wrong.size} wrong: {most}, {away[at]:g} apart (allowed: {known.error:g})"


def outside_of(known: Known, array):
    """Describe the first value that is NaN or out of bounds: a mistake in the bounds, or in a device."""
    slack = known.error + 1e-3 * known.most
    inside = (array >= known.low - slack) & (array <= known.high + slack)
    if bool(np.all(inside)):
        return ""
    return f"{array[~inside].flat[0]!s}, beyond the range from {known.low:g} to {known.high:g}"
