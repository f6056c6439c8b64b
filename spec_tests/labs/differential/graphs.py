"""Random graphs of all categories with ordinary numbers: each value with a bound of how far two places may be apart."""

import inspect
import itertools

import attrs
import numpy as np

from spec_tests.labs.differential.program import Program, Step, data_text, descriptor_text, number_text
from spec_tests.support.random_graphs import drawer as drawing
from spec_tests.support.random_graphs.bounds import Value, is_float
from spec_tests.support.random_graphs.program import Program as Trimmed
from spec_tests.support.random_graphs.programs import CATEGORIES, FREQUENT
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Node
from webnn_py.core.graph import Value as Edge
from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.core.operators.registry import OPERATORS

TYPES = ("float32", "float32", "float32", "float16", "int32", "int64", "uint32", "int8", "uint8", "uint64")
MOST_CALLS = 6
REFUSED_TURNS = 0.03
"""How often a call stays that the profile refuses: the verdicts are compared as well."""


class UnwantedError(Exception):
    """The browser would refuse the call."""


@attrs.define(eq=False)
class SeededDrawer(drawing.Drawer):
    """Draws without hypothesis: the same for the same generator of random numbers, whatever versions there are.

    Attributes:
        rng: where chance comes from.
        profile: the browser profile whose refusals are mostly avoided; None for none.
    """

    rng: np.random.Generator = None
    profile: object = None

    def choose(self, *items):
        return items[self.rng.integers(len(items))]

    def integer(self, low, high):
        return int(self.rng.integers(low, high, endpoint=True))

    def flag(self):
        return bool(self.rng.integers(2))

    def some(self, items):
        items = list(items)
        return [items[at] for at in self.rng.permutation(len(items))[: self.rng.integers(len(items) + 1)]]

    def permutation(self, items):
        items = list(items)
        return [items[at] for at in self.rng.permutation(len(items))]

    def call(self, method, *args, known, **options):
        results = super().call(method, *args, known=known, **options)
        if self.profile is not None and self.rng.random() >= REFUSED_TURNS:
            constants = {source.value.name for source in self.sources if not source.is_input}
            if self.profile.refusal_of_node(node_of(self.calls[-1], constants)) is not None:
                raise UnwantedError
        return results

    def grow(self, begin):
        """Add what ``begin`` draws, unless the browser would refuse it."""
        kept = [list(part) for part in (self.sources, self.calls, self.values)]
        read = set(self.read)
        try:
            begin(self)
        except UnwantedError:
            self.sources, self.calls, self.values = kept
            self.read = read
        self.following = None


def node_of(call, constants):
    """A call as a node of a graph."""
    operator = OPERATORS[call.method]
    bound = inspect.signature(operator.function).bind(*call.args, **call.options)

    def edge(value):
        descriptor = MLOperandDescriptor(value.data_type, value.shape)
        return Constant(descriptor, None) if value.name in constants else Edge(descriptor)

    operands, options = {}, {}
    for name, parameter in operator.parameters.items():
        given = bound.arguments.get(name, parameter.default)
        if isinstance(given, Value):
            operands[name] = edge(given)
        elif isinstance(given, list) and given and isinstance(given[0], Value):
            operands[name] = tuple(map(edge, given))
        elif not parameter.is_operand:
            options[name] = given
    outputs = tuple(MLOperandDescriptor(value.data_type, value.shape) for value in call.results)
    return Node(operator, operands, options, outputs)


def spelled(item):
    """An argument in JavaScript."""
    if isinstance(item, Value):
        return item.name
    if isinstance(item, (list, tuple)):
        return f"[{', '.join(map(spelled, item))}]"
    return f"'{item}'" if isinstance(item, str) else number_text(item)


def call_text(call):
    """A call in JavaScript."""
    operator = OPERATORS[call.method]
    bound = inspect.signature(operator.function).bind(*call.args, **call.options).arguments
    positional, named = [], []
    for name, parameter in operator.parameters.items():
        if name not in bound or bound[name] is None:
            continue
        if parameter.required:
            positional.append(spelled(bound[name]))
        else:
            named.append(f"{spec_name_of(name)}: {spelled(bound[name])}")
    options = [f"{{{', '.join(named)}}}"] if named else []
    left = ", ".join(value.name for value in call.results)
    left = f"[{left}]" if call.in_list else left
    return f"const {left} = builder.{operator.spec_name}({', '.join([*positional, *options])});"


def features_of(call, constants):
    """The subjects of differences."""
    operator = OPERATORS[call.method]
    bound = inspect.signature(operator.function).bind(*call.args, **call.options).arguments
    found = {value.data_type for value in (*call.operands, *call.results)}
    for name, value in bound.items():
        spelling = spec_name_of(name)
        if isinstance(value, str):
            found.add(f"{spelling}={value}")
        elif name == "padding" and value is not None and any(value):
            found.add("padded")
        found.add(spelling)
        if isinstance(value, Value) and value.name in constants:
            found.add(f"constant {spelling}")
    return frozenset(found | _of_integers(call.method, bound))


def _of_integers(method, bound):
    """Operands of integers for which there is no result, as far as is known of them when they are drawn."""
    second = bound.get("b")
    if not isinstance(second, Value) or is_float(second.data_type):
        return set()
    if method == "pow" and second.known.low < 0:
        return {"of a negative integer"}
    return {"by an integer of 0"} if method == "div" and second.known.low <= 0 <= second.known.high else set()


def generate(number, seed, profile):
    """The ``number``-th random graph of a seed; every other one has all that is computed as its outputs."""
    drawer = drawn(number, seed, profile)
    computed = [value.name for call in drawer.calls for value in call.results]
    return written(
        number, drawer, computed if number % 2 == 0 else [name for name in computed if name not in drawer.read]
    )


def with_outputs(number, seed, profile, names):
    """The ``number``-th random graph with other outputs, and what they need: a smaller one, perhaps."""
    return written(number, drawn(number, seed, profile), names)


def drawn(number, seed, profile):
    """A drawer that has drawn at least one call."""
    categories = list(CATEGORIES.values())
    first = categories[number % len(categories)]
    for attempt in itertools.count():
        rng = np.random.default_rng([seed, number, attempt])
        drawer = SeededDrawer(None, TYPES, int(rng.choice([60, 200, 600])), rng=rng, profile=profile)
        drawer.grow(first)
        for _ in range(rng.integers(MOST_CALLS)):
            drawer.grow(drawer.choose(first, *categories, *FREQUENT))
        if drawer.calls:
            return drawer
    raise AssertionError


def written(number, drawer, outputs):
    """The program that a drawer has drawn, with what the outputs of these names need."""
    values = [value for value in drawer.values if value.name in outputs]
    graph = Trimmed.of(drawer.sources, drawer.calls, values)
    read = {value.name for call in graph.calls for value in call.operands}
    constants = {source.value.name for source in drawer.sources if not source.is_input}
    lines = ["const context = await open();", "const builder = new MLGraphBuilder(context);"]
    inputs = []
    for source in graph.sources:
        value, array = source.value, source.data(0)
        described = descriptor_text(value.data_type, value.shape)
        if source.is_input:
            lines.append(f"const {value.name} = builder.input('{value.name}', {described});")
            if value.name in read:
                inputs.append(f"  {value.name}: {{...{described}, array: {data_text(array)}}},")
        else:
            lines.append(f"const {value.name} = builder.constant({described}, {data_text(array)});")
    lines += map(call_text, graph.calls)
    lines += [f"return await compute(context, builder, {{{', '.join(outputs)}}}, {{", *inputs, "});"]
    steps = {}
    fixed, halved = set(constants), set()  # what is computed of constants alone; what float16 has gone into
    for call in graph.calls:
        operands = tuple(operand.name for operand in call.operands)
        features = features_of(call, constants)
        if fixed.issuperset(operands):
            features |= {"of constants alone"}
            fixed.update(value.name for value in call.results)
        if "float16" in features or halved.intersection(operands):
            features |= {"of float16"}
            halved.update(value.name for value in call.results)
        for value in call.results:
            steps[value.name] = Step(OPERATORS[call.method].spec_name, features, operands, value.known)
    return Program("graphs", number, "\n".join(lines), steps)
