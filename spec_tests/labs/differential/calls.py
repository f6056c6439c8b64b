"""Calls that are right, or wrong in one or two ways: who refuses them, when, and with which error."""

from functools import cache

import attrs
import numpy as np

from spec_tests.labs.differential.program import Program, Step, descriptor_text
from webnn_py.core.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.core.operators.examples import examples_of
from webnn_py.core.operators.registry import OPERATORS

USUAL = {"float32", "float16", "int32", "uint8"}
NUMBERS = (
    "-1",
    "0",
    "1",
    "2",
    "3",
    "7",
    "1.5",
    "'2'",
    "null",
    "NaN",
    "Infinity",
    "2**31",
    "2**32 - 1",
    "2**32",
    "true",
)
SCALARS = (*NUMBERS, "1n", "'x'", "undefined", "{}", "[]", "[1]", "'relu'", "'nhwc'", "'float16'", "Symbol()")
ODD = ("undefined", "null", "{}", "[]", "1", "'x'", "context", "other", "late")
"""The values that may stand where an operand does; ``other`` is another builder's, ``late`` a tensor."""


@attrs.frozen
class Raw:
    """A piece of JavaScript as an argument."""

    text: str


@cache
def pool():
    """Right calls, as (operator, arguments)."""
    found = []
    for operator in OPERATORS.values():
        for seed in range(4):
            rng = np.random.default_rng([seed, 7])
            types = {}
            for row, limits in operator.limits.items():
                usual = [name for name in limits.data_types if name in USUAL]
                types[row] = str(rng.choice(usual if usual and seed < 3 else limits.data_types))
            try:
                found += [(operator, example) for example in examples_of(operator, types, int(rng.integers(5)))]
            except (KeyError, ValueError):  # there is no such example for these types
                continue
    return found


def generate(number, seed, _profile):
    """The ``number``-th program of a seed."""
    rng = np.random.default_rng([seed, number, 2])
    if number % 4 == 3:
        return of_other_methods(number, rng)
    calls = pool()
    operator, example = calls[rng.integers(len(calls))]
    given = {name: value for name, value in example.items() if value is not None}
    if "label" not in given and rng.random() < 0.1:
        given["label"] = "a label"
    for _ in range(int(rng.choice([0, 1, 1, 1, 2]))):
        mutate(given, operator, rng)
    return written(number, operator, given, rng)


def mutate(given, operator, rng):
    """Change one of the arguments."""
    name = str(rng.choice([*operator.parameters] if rng.random() < 0.2 else [*given]))
    value = given.get(name)
    if isinstance(value, MLOperandDescriptor):
        given[name] = changed_operand(value, rng)
    elif isinstance(value, list) and value and isinstance(value[0], MLOperandDescriptor):
        at = int(rng.integers(len(value)))
        given[name] = [*value[:at], changed_operand(value[at], rng), *value[at + 1 :]]
    elif isinstance(value, (list, tuple)) and rng.random() < 0.8:
        given[name] = changed_list(value, rng)
    else:
        given[name] = Raw(str(rng.choice(SCALARS)))


def changed_operand(descriptor, rng):
    """Another data type, another shape, or no operand at all."""
    shape, way = list(descriptor.shape), rng.integers(6)
    if way == 0:
        return MLOperandDescriptor(str(rng.choice(DATA_TYPES)), descriptor.shape)
    if way == 1 and shape:
        shape[rng.integers(len(shape))] = int(rng.choice([1, 2, 3, 5]))
    elif way == 2 and shape:
        shape.pop(int(rng.integers(len(shape))))
    elif way == 3:
        shape.insert(int(rng.integers(len(shape) + 1)), int(rng.choice([1, 2])))
    elif way == 4:
        return Raw(str(rng.choice(ODD)))
    else:
        shape = [int(size) for size in rng.integers(1, 4, rng.integers(9))]
    return MLOperandDescriptor(descriptor.data_type, tuple(shape))


def changed_list(value, rng):
    """A list of numbers or words with one more, one less or another."""
    texts, way = list(map(text_of, value)), rng.integers(4)
    at = int(rng.integers(len(texts) + 1))
    if way == 0 and texts:
        texts.pop(min(at, len(texts) - 1))
    elif way == 1:
        texts.insert(at, str(rng.choice(NUMBERS)))
    elif texts:
        texts[min(at, len(texts) - 1)] = str(rng.choice(NUMBERS))
    return Raw(f"[{', '.join(texts)}]")


def text_of(value):
    """An argument that is no operand, in JavaScript."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(text_of, value))}]"
    return f"'{value}'" if isinstance(value, str) else str(value)


@attrs.define
class Operands:
    """Writes operands.

    Attributes:
        rng: where chance comes from.
        has_constants: whether some of them are constants.
        lines: the lines that make them.
        features: what they are.
    """

    rng: np.random.Generator
    has_constants: bool
    lines: list[str] = attrs.field(factory=list)
    features: set[str] = attrs.field(factory=set)

    def spelled(self, value):
        """An argument in JavaScript."""
        if isinstance(value, MLOperandDescriptor):
            return self.made(value)
        if isinstance(value, list) and any(isinstance(one, MLOperandDescriptor) for one in value):
            return f"[{', '.join(map(self.spelled, value))}]"
        return text_of(value)

    def made(self, value):
        """The name of a new operand."""
        name, described = f"o{len(self.lines)}", descriptor_text(value.data_type, value.shape)
        self.features.add(value.data_type)
        if self.has_constants and self.rng.random() < 0.6:
            call = f"constant({described}, new Uint8Array({value.byte_length}))"
        else:
            call = f"input('{name}', {described})"
        self.lines.append(f"const {name} = builder.{call};")
        return name


START = (
    "const context = await open();",
    "const builder = new MLGraphBuilder(context);",
    "const other = new MLGraphBuilder(context).input('other', {dataType: 'float32', shape: [2]});",
    "const late = await context.createTensor({dataType: 'float32', shape: [2]});",
)


def written(number, operator, given, rng):
    """A call, and a build of what it gives."""
    operands = Operands(rng, rng.random() < 0.5)
    positional, named = [], []
    for name, parameter in operator.parameters.items():
        if name not in given:
            continue
        text, spelling = operands.spelled(given[name]), spec_name_of(name)
        if isinstance(given[name], Raw):
            operands.features.add(f"{spelling}={text}")
        if parameter.required:
            positional.append(text)
        else:
            named.append(f"{spelling}: {text}")
    options = [f"{{{', '.join(named)}}}"] if named else []
    call = f"builder.{operator.spec_name}({', '.join([*positional, *options])})"
    end = [
        f"const results = [{call}].flat();",
        "const said = results.map(({dataType, shape}) => `${dataType} [${shape}]`).join(', ');",
        "stage = 'build';",
        "await builder.build(Object.fromEntries(results.map((result, index) => [`y${index}`, result])));",
        "return {said};",
    ]
    step = Step(operator.spec_name, frozenset(operands.features))
    return Program("calls", number, "\n".join([*START, *operands.lines, *end]), {"call": step})


DESCRIPTORS = (
    *(f"{{dataType: '{name}', shape: [2, 3]}}" for name in DATA_TYPES),
    "{dataType: 'float32', shape: []}",
    "{dataType: 'float32', shape: [0]}",
    "{dataType: 'float32', shape: [2, 0]}",
    "{dataType: 'float32', shape: [-1]}",
    "{dataType: 'float32', shape: [1.5]}",
    "{dataType: 'float32', shape: ['2']}",
    "{dataType: 'float32', shape: [2 ** 32]}",
    "{dataType: 'float32', shape: [2 ** 31]}",
    "{dataType: 'float32', shape: [2 ** 16, 2 ** 16]}",
    "{dataType: 'float32', shape: [1, 1, 1, 1, 1, 1, 1, 1, 1]}",
    "{dataType: 'float32', shape: 2}",
    "{dataType: 'float32', shape: null}",
    "{dataType: 'float32'}",
    "{shape: [2]}",
    "{dataType: 'float64', shape: [2]}",
    "{dataType: 'FLOAT32', shape: [2]}",
    "{}",
    "null",
    "undefined",
    "1",
)
BUFFERS = (
    "new Float32Array(6)",
    "new Float32Array(5)",
    "new Float32Array(7)",
    "new ArrayBuffer(24)",
    "new DataView(new ArrayBuffer(24))",
    "new DataView(new ArrayBuffer(32), 4, 24)",
    "new Float32Array(8).subarray(1, 7)",
    "new Uint8Array(24)",
    "new Int32Array(6)",
    "new Uint32Array(6)",
    "new Float64Array(3)",
    "new Float16Array(6)",
    "new BigInt64Array(3)",
    "new Uint8ClampedArray(24)",
    "[1, 2, 3, 4, 5, 6]",
    "null",
    "undefined",
    "{}",
)
TENSOR = "await context.createTensor({dataType: 'float32', shape: [2, 3], readable: true, writable: true})"
OTHERS = (
    "builder.input('x', DESCRIPTOR)",
    "builder.input(NAME, {dataType: 'float32', shape: [2]})",
    "builder.constant(DESCRIPTOR, BUFFER)",
    "builder.constant({dataType: 'float32', shape: [2, 3]}, BUFFER)",
    "builder.constant({dataType: 'int32', shape: [2, 3]}, BUFFER)",
    "builder.constant('float32', SCALAR)",
    "builder.constant('int64', SCALAR)",
    "builder.constant('uint8', SCALAR)",
    "await context.createTensor(DESCRIPTOR)",
    f"context.writeTensor({TENSOR}, BUFFER)",
    "context.writeTensor(await context.createTensor({dataType: 'float32', shape: [2, 3]}), BUFFER)",
    f"await context.readTensor({TENSOR}, BUFFER)",
    "await context.readTensor(await context.createTensor({dataType: 'float32', shape: [2, 3]}))",
    "context.writeTensor(SCALAR, BUFFER)",
    "await context.readTensor(SCALAR)",
    "await builder.build({y: ODD})",
    "await builder.build({NAME: builder.relu(x)})",
    "await builder.build(SCALAR)",
    "await builder.build({y: x})",
    "await builder.build({y: builder.constant('float32', 1)})",
    "new MLGraphBuilder(SCALAR)",
    "await navigator.ml.createContext(SCALAR)",
    "await navigator.ml.createContext({deviceType: SCALAR})",
    "await navigator.ml.createContext({powerPreference: SCALAR})",
    "context.dispatch(await builder.build({y: builder.relu(x)}), INPUTS, OUTPUTS)",
)
FLOAT = "{dataType: 'float32', shape: [2], readable: true, writable: true}"
TENSORS = (
    f"await context.createTensor({FLOAT})",
    f"await context.createTensor({FLOAT})",
    f"await context.createTensor({FLOAT})",
    "await context.createTensor({dataType: 'int32', shape: [2]})",
    "await context.createTensor({dataType: 'float32', shape: [1, 2]})",
    f"await (await navigator.ml.createContext()).createTensor({FLOAT})",
    "SCALAR",
)
NAMES = ("x", "x", "x", "x", "z", "")


def of_other_methods(number, rng):
    """A call of another method than those of operators."""
    template = str(rng.choice(OTHERS))

    def bindings(right):
        names = [
            right if rng.random() < 0.85 else str(rng.choice(NAMES)) for _ in range(rng.choice([0, 1, 1, 1, 1, 2]))
        ]
        members = ", ".join(f"'{name}': {rng.choice(TENSORS)}" for name in names)
        return f"{{{members}}}"

    text = template.replace("INPUTS", bindings("x")).replace("OUTPUTS", bindings("y"))
    for word, choices in {
        "DESCRIPTOR": DESCRIPTORS,
        "BUFFER": BUFFERS,
        "SCALAR": SCALARS,
        "ODD": ODD,
        "NAME": ("''", "'y'", "'\\ud800'", "1", "null", "'__proto__'") if "input" in template else ("y", "'a b'", "''"),
    }.items():
        text = text.replace(word, str(rng.choice(choices)))
    lines = [
        *START,
        "const x = builder.input('x', {dataType: 'float32', shape: [2]});",
        f"const result = {text};",
        "return {said: result?.constructor === MLOperand || result?.constructor === MLTensor",
        "  ? `${result.dataType} [${result.shape}]` : result?.constructor?.name ?? String(result)};",
    ]
    method = template.partition("(")[0].rpartition(".")[2].removeprefix("new ")
    return Program("calls", number, "\n".join(lines), {"call": Step(method, frozenset([text, template]))})
