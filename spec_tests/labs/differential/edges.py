"""Single calls on numbers at the edges: NaN, infinities, zeros of both signs, the greatest and the least."""

import numpy as np

from spec_tests.labs.differential.program import Program, Step, data_text, descriptor_text
from webnn_py.core.operators.casting import INTEGER_RANGES
from webnn_py.core.operators.registry import OPERATORS

FLOATS = ("float32", "float16")
UNARY = [
    "abs",
    "ceil",
    "cos",
    "erf",
    "exp",
    "floor",
    "identity",
    "log",
    "neg",
    "reciprocal",
    "roundEven",
    "sin",
    "sign",
    "sqrt",
    "tan",
    "elu",
    "gelu",
    "hardSigmoid",
    "hardSwish",
    "leakyRelu",
    "linear",
    "relu",
    "sigmoid",
    "softplus",
    "softsign",
    "tanh",
    "clamp",
    "isNaN",
    "isInfinite",
]
BINARY = [
    "add",
    "sub",
    "mul",
    "div",
    "max",
    "min",
    "pow",
    "prelu",
    "equal",
    "notEqual",
    "greater",
    "greaterOrEqual",
    "lesser",
    "lesserOrEqual",
]
REDUCING = [
    "reduceSum",
    "reduceMax",
    "reduceMin",
    "reduceMean",
    "reduceProduct",
    "reduceL1",
    "reduceL2",
    "reduceLogSum",
    "reduceLogSumExp",
    "reduceSumSquare",
    "argMin",
    "argMax",
]
MOVING = (
    "transpose(x)",
    "reverse(x)",
    "pad(x, [1, 0], [0, 1], {mode: 'constant', value: -1})",
    "pad(x, [1, 1], [1, 1], {mode: 'reflection'})",
    "triangular(x)",
    "triangular(x, {upper: false, diagonal: 1})",
    "cumulativeSum(x, 1)",
    "softmax(x, 1)",
    "where(builder.greater(x, x), x, builder.identity(x))",
    "cast(x, 'int32')",
    "cast(x, 'uint8')",
    "cast(x, 'int8')",
    "cast(x, 'int64')",
    "cast(x, 'uint32')",
    "cast(x, 'float16')",
    "cast(x, 'float32')",
)
COLUMNS = 4


def special(data_type):
    """Numbers at the edges of a data type, and some between them."""
    if data_type not in FLOATS:
        low, high = INTEGER_RANGES[data_type]
        return np.array(sorted({low, low + 1, max(low, -7), max(low, -1), 0, 1, 2, 3, 7, high - 1, high}), data_type)
    info = np.finfo(data_type)
    ordinary = [0.0, -0.0, 0.5, -0.5, 1, -1, 1.5, -1.5, 2.5, -2.5, 3, -3, 6, 10, -10, 88, -88, 100, -100]
    edges = [np.nan, np.inf, -np.inf, info.max, info.min, info.smallest_normal, -info.smallest_normal, info.eps]
    with np.errstate(over="ignore"):
        return np.array([*ordinary, *edges, *edges, 1e38, -1e38, 0.1, 1e-7], data_type)


def generate(number, seed, profile):
    """The ``number``-th program of a seed: one call, of the operators in turn."""
    rng = np.random.default_rng([seed, number, 1])
    names = [*UNARY, *UNARY, *BINARY, *BINARY, *REDUCING, *MOVING]
    name = names[number % len(names)]
    operator = name.partition("(")[0]
    data_type = str(rng.choice(types_of(operator, profile)))
    pool = special(data_type)
    rows = int(rng.integers(1, 4)) if operator in REDUCING else 8
    arrays = [pool[rng.integers(len(pool), size=(rows, COLUMNS))]]
    if number % 3 == 2 and data_type in FLOATS:  # one of them, alone, among ordinary ones
        arrays[0][:, 1:] = rng.integers(-3, 4, (rows, COLUMNS - 1))
    call, features = f"{operator}(x)", {data_type, f"{operator} {data_type}"}
    if operator in BINARY:
        arrays.append(pool[rng.integers(len(pool), size=(rows, COLUMNS))])
        call = f"{operator}(x, y)"
        if data_type not in FLOATS and operator == "pow" and (arrays[1] < 0).any():
            features.add("of a negative integer")
        if data_type not in FLOATS and operator == "div" and (arrays[1] == 0).any():
            features.add("by an integer of 0")
    elif operator in REDUCING:
        options = "1, {outputDataType: 'int32'}" if operator.startswith("arg") else "{axes: [1]}"
        call = f"{operator}(x, {options})"
    elif operator == "clamp":
        low, high = sorted(rng.integers(-3, 4, 2).tolist())
        call = f"clamp(x, {{minValue: {low}, maxValue: {high}}})"
    elif "(" in name:
        call = name
        features.update({part.strip(" '") for part in name.partition("(")[2].rstrip(")").split(",")[1:]})
    return written(number, operator, call, arrays, frozenset(features))


def types_of(operator, profile):
    """The data types that the browser takes for an operator; float32 where it is not known."""
    if profile is None:
        return [*FLOATS, "float32"]
    by_spec_name = {OPERATORS[name].spec_name: rows for name, rows in profile.operators.items()}
    row = next(iter(by_spec_name[operator].values())) if operator != "where" else None
    for name in ("input", "a"):
        row = by_spec_name[operator].get(name, row)
    allowed = [*FLOATS, "int32"] if row is None else row.data_types
    return ["float32", "float32", *(data_type for data_type in allowed if data_type not in {"int4", "uint4"})]


def written(number, operator, call, arrays, features):
    """A program of one call."""
    lines = ["const context = await open();", "const builder = new MLGraphBuilder(context);"]
    inputs = []
    for name, array in zip("xy", arrays, strict=False):
        described = descriptor_text(array.dtype, array.shape)
        lines.append(f"const {name} = builder.input('{name}', {described});")
        inputs.append(f"  {name}: {{...{described}, array: {data_text(array)}}},")
    lines += [f"const r = builder.{call};", "return await compute(context, builder, {r}, {", *inputs, "});"]
    return Program("edges", number, "\n".join(lines), {"r": Step(operator, features, given=tuple(arrays))})
