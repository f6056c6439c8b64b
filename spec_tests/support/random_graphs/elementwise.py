"""Random calls of the element-wise categories: arithmetic, logical, unary, activation, conversion."""

import math

import attrs

from spec_tests.support.random_graphs import bounds
from spec_tests.support.random_graphs.bounds import (
    FLOAT16_LEAST,
    SMOOTH,
    Known,
    computed,
    float16_unit,
    is_float,
    moved,
    number,
    of_sum,
    rounded,
    whole,
)
from spec_tests.support.random_graphs.drawer import FLOATS, SIGNED, usual_data
from webnn_py.core.operators.casting import INTEGER_RANGES

TRUTH = Known(0, 1, 1)
WIDE = (-64, 64)

# --- several of them ---------------------------------------------------------------------------------------------


def chain(drawer):
    """Calls of which each reads what the one before computes: candidates for one kernel."""
    # More often of types that a kernel has to narrow by itself.
    data_type = drawer.choose(*drawer.types, "float16", "float16", "int8", "int8", "uint8", "uint8")
    if drawer.flag():
        begin = drawer.pick((data_type,))
    else:
        shape = drawer.shape(drawer.integer(1, 3), drawer.usual_elements)
        begin = drawer.source(data_type, shape, usual_data(data_type)[1])
    chain_from(drawer, begin, drawer.integer(2, 5))


def chain_from(drawer, begin, length):
    """Calls behind each other, the first of which reads ``begin``."""
    drawer.following = begin
    for _ in range(length):
        drawer.choose(arithmetic, arithmetic, arithmetic, unary, activation, logical, cast)(drawer)
        drawer.following = drawer.calls[-1].results[0]
    drawer.following = None


# --- arithmetic --------------------------------------------------------------------------------------------------


def arithmetic(drawer):
    method = drawer.choose("add", "sub", "mul", "div", "max", "min", "pow")
    if method == "pow":
        return power(drawer, drawer.pick())
    a = drawer.pick(within=WIDE)
    apart_from_zero = Known(0.25, 4, 2.0**-6) if method == "div" and is_float(a.data_type) else None
    b = drawer.within(drawer.broadcastable(a, apart_from_zero), WIDE)
    operands = (a, b) if method == "div" or drawer.flag() else (b, a)
    return drawer.call(method, *operands, known=RULES[method](a.data_type, *(item.known for item in operands)))


def of_difference(data_type, a, b):
    return of_sum(data_type, a, attrs.evolve(b, low=-b.high, high=-b.low))


def of_product(data_type, a, b):
    terms = bounds.product(a, b)
    return computed(data_type, terms.low, terms.high, step=terms.step, spread=terms.error)


def of_quotient(data_type, a, b):
    if not is_float(data_type):
        most = max(a.most, 1)
        return whole(data_type, -most if a.low < 0 or b.low < 0 else 0, most)
    corners = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
    spread = a.error / b.low + a.most * b.error / b.low**2
    return rounded(data_type, min(corners), max(corners), spread=spread, ulps=4)


def of_greater(_data_type, a, b):
    return attrs.evolve(moved(a, b), low=max(a.low, b.low), high=max(a.high, b.high))


def of_lesser(_data_type, a, b):
    return attrs.evolve(moved(a, b), low=min(a.low, b.low), high=min(a.high, b.high))


RULES = {
    "add": of_sum,
    "sub": of_difference,
    "mul": of_product,
    "div": of_quotient,
    "max": of_greater,
    "min": of_lesser,
}


def power(drawer, a):
    """Integers raised to anything; floats to 1, 2 or 3, or positive ones to powers from -3 to 3."""
    if not is_float(a.data_type):
        b = drawer.broadcastable(a)
        return drawer.call("pow", a, b, known=Known(*INTEGER_RANGES[a.data_type], 1))
    if drawer.flag():
        a, exponent = drawer.within(a, (-2, 2)), drawer.integer(1, 3)
        b = drawer.source(a.data_type, (), number(exponent))
        most = max(a.known.most**exponent, a.known.most)
        spread = exponent * 2 ** (exponent - 1) * a.known.error
        known = rounded(a.data_type, -most, most, spread=spread, ulps=2 * SMOOTH)
        return drawer.call("pow", a, b, known=known)
    a = drawer.within(a, (0.5, 2))
    b = drawer.broadcastable(a, Known(-3, 3, 2.0**-3), within=(-3, 3))
    spread = 48 * a.known.error + 6 * b.known.error  # b·a^(b-1) and ln a·a^b at a = 0.5, b = -3, and a little more
    return drawer.call("pow", a, b, known=rounded(a.data_type, 0.125, 8, spread=spread, ulps=2 * SMOOTH))


# --- logical -----------------------------------------------------------------------------------------------------


def logical(drawer):
    kind = drawer.choose("comparison", "connective", "test", "where", "where")
    if kind == "comparison":
        a = drawer.pick(exact=True)
        b = drawer.broadcastable(a)
        b = b if b.known.is_exact else a
        names = ("equal", "not_equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal")
        return drawer.call(drawer.choose(*names), a, b, known=TRUTH)
    if kind == "connective":
        a = drawer.pick(("uint8",))
        name = drawer.choose("logical_and", "logical_or", "logical_xor", "logical_not")
        operands = (a,) if name == "logical_not" else (a, drawer.broadcastable(a))
        return drawer.call(name, *operands, known=TRUTH)
    if kind == "test":
        return drawer.call(drawer.choose("is_nan", "is_infinite"), drawer.pick(FLOATS), known=Known(0, 0, 1))
    values = drawer.pick()
    other = drawer.broadcastable(values)
    condition = drawer.operand("uint8", [size if drawer.flag() else 1 for size in values.shape], TRUTH)
    return drawer.call("where", condition, values, other, known=moved(values.known, other.known))


# --- unary -------------------------------------------------------------------------------------------------------

SMOOTH_FUNCTIONS = {
    # name: (the domain, the range over it, the steepest slope there)
    "cos": ((-8, 8), (-1, 1), 1),
    "sin": ((-8, 8), (-1, 1), 1),
    "tan": ((-1.25, 1.25), (-3.01, 3.01), 10.1),
    "erf": ((-8, 8), (-1, 1), 1.13),
    "exp": ((-8, 2), (0, 7.4), 7.4),
    "log": ((0.125, 8), (-2.08, 2.08), 8),
    "reciprocal": ((0.25, 8), (0.125, 4), 16),
    "sqrt": ((0.125, 8), (0.35, 2.83), 1.42),
    "gelu": ((-8, 8), (-0.171, 8), 1.13),
    "hard_swish": ((-8, 8), (-0.375, 8), 1.84),
    "sigmoid": ((-8, 8), (0, 1), 0.25),
    "softplus": ((-8, 8), (0, 8.001), 1),
    "softsign": ((-8, 8), (-1, 1), 1),
    "tanh": ((-8, 8), (-1, 1), 1),
}


def smooth(drawer, name, **options):
    domain, (low, high), slope = SMOOTH_FUNCTIONS[name]
    x = drawer.pick(FLOATS, within=domain)
    known = rounded(x.data_type, low, high, spread=slope * x.known.error, ulps=SMOOTH)
    return drawer.call(name, x, known=known, **options)


def unary(drawer):
    kind = drawer.choose("smooth", "smooth", "jump", "signed", "identity")
    if kind == "smooth":
        return smooth(drawer, drawer.choose("cos", "sin", "tan", "erf", "exp", "log", "reciprocal", "sqrt"))
    if kind == "identity":
        x = drawer.pick()
        return drawer.move("identity", x)
    if kind == "jump":
        name = drawer.choose("ceil", "floor", "round_even", "sign")
        x = drawer.pick(FLOATS if name != "sign" else SIGNED, exact=True)
        ends = (-1, 1) if name == "sign" else (math.floor(x.known.low), math.ceil(x.known.high))
        return drawer.call(name, x, known=Known(*ends, 1))
    name = drawer.choose("abs", "neg")
    x = drawer.pick(SIGNED)
    known = x.known
    ends = (-known.high, -known.low) if name == "neg" else (min(0, known.low), known.most)
    if is_float(x.data_type):
        return drawer.call(name, x, known=attrs.evolve(known, low=ends[0], high=ends[1]))
    return drawer.call(name, x, known=whole(x.data_type, *ends))


# --- activation --------------------------------------------------------------------------------------------------


def activation(drawer):
    kind = drawer.choose("smooth", "pieces", "clamp", "prelu", "relu", "elu", "softmax")
    if kind == "smooth":
        names = ("gelu", "hard_swish", "sigmoid", "softplus", "softsign", "tanh")
        return smooth(drawer, drawer.choose(*names))
    return {"pieces": pieces, "clamp": clamp, "prelu": prelu, "relu": relu, "elu": elu, "softmax": softmax}[kind](
        drawer
    )


def pieces(drawer):
    """Functions of straight lines: linear, hard_sigmoid and leaky_relu."""
    x = drawer.pick(FLOATS)
    name = drawer.choose("linear", "hard_sigmoid", "leaky_relu")
    alpha = drawer.choose(0.5, 0.25, 0.125, 0.2, 0.01, *([-1.5] if name == "linear" else []))
    beta = drawer.choose(0, 0.5, -0.25, 0.1)
    short = alpha not in {0.2, 0.01} and (beta != 0.1 or name == "leaky_relu")
    known, step = x.known, min(x.known.step / 8, 0.25) if short else 0
    ends = sorted((alpha * known.low + beta, alpha * known.high + beta))
    options = {"alpha": alpha, "beta": beta}
    if name == "hard_sigmoid":
        ends = [min(max(end, 0), 1) for end in ends]
    elif name == "leaky_relu":
        del options["beta"]
        ends = [end if end > 0 else alpha * end for end in (known.low, known.high)]
    spread = max(abs(alpha), 1 if name == "leaky_relu" else 0) * known.error
    sums = max(1, abs(alpha)) * known.most + abs(beta)
    return drawer.call(name, x, known=rounded(x.data_type, *ends, step=step, spread=spread, sums=sums), **options)


def clamp(drawer):
    x = drawer.pick()
    low, high = sorted(drawer.integer(0 if x.data_type.startswith("u") else -4, 6) for _ in range(2))
    return drawer.clamped(x, low, high)


def prelu(drawer):
    x = drawer.pick(SIGNED)
    slope = drawer.broadcastable(x)
    scaled = of_product(x.data_type, x.known, slope.known)
    known = Known(min(scaled.low, 0), max(scaled.high, x.known.high, 0), min(scaled.step, x.known.step))
    if is_float(x.data_type):
        known = attrs.evolve(known, error=max(scaled.error, x.known.error))
    return drawer.call("prelu", x, slope, known=known)


def relu(drawer):
    x = drawer.pick(SIGNED)
    return drawer.call("relu", x, known=attrs.evolve(x.known, low=max(x.known.low, 0), high=max(x.known.high, 0)))


def elu(drawer):
    x, alpha = drawer.pick(FLOATS), drawer.choose(1, 0.5, 2)
    spread = max(1, alpha) * x.known.error
    known = rounded(x.data_type, min(-alpha, 0), max(x.known.high, 0), spread=spread, ulps=SMOOTH)
    return drawer.call("elu", x, known=known, alpha=alpha)


def softmax(drawer):
    x = drawer.pick(FLOATS, rank=(1, 5))
    axis = drawer.integer(0, x.rank - 1)
    # Each row of the Jacobian, p_i (δ_ij - p_j), has absolute values that add up to 2 p_i (1 - p_i), 1/2 at most.
    known = rounded(x.data_type, 0, 1, spread=x.known.error / 2, ulps=2 * SMOOTH)
    return drawer.call("softmax", x, axis, known=known)


# --- conversion --------------------------------------------------------------------------------------------------


def conversion(drawer):
    return drawer.choose(cast, cast, quantize, dequantize)(drawer)


def cast(drawer):
    target = drawer.choose(*drawer.types)
    x = drawer.pick(exact=not is_float(target))
    if is_float(target) and not is_float(x.data_type) and x.known.most > 2**11:
        # Beyond, rounding to float32 would be the device's choice.
        x = drawer.clamped(x, max(x.known.low, -(2**11)), 2**11)
    known = x.known
    if is_float(target):
        if target == "float16" and (known.error or known.step < FLOAT16_LEAST):
            known = attrs.evolve(known, error=known.error + float16_unit(target, known.most))
    elif is_float(x.data_type):
        lowest, highest = INTEGER_RANGES[target]
        low, high = (min(max(math.trunc(end), lowest), highest) for end in (known.low, known.high))
        known = Known(low, high, 1)
    else:
        known = whole(target, known.low, known.high)
    return drawer.call("cast", x, target, known=known)


def scale_shape(drawer, shape):
    """A shape whose dimensions divide those of another."""
    return [drawer.choose(1, size, *(count for count in (2, 4) if size % count == 0)) for size in shape]


def quantize(drawer):
    """Multiples of 1/8, divided by an odd number of eighths: no quotient is near a tie."""
    x = drawer.pick(FLOATS, grid=True)
    target = drawer.choose("uint8", "int8", "int32", "uint32")
    shape, odd = scale_shape(drawer, x.shape), drawer.choose(1, 3, 5, 7, 9)
    scale = drawer.source(x.data_type, shape, Known(odd / 8, odd / 8, 2.0**-3))
    zero_point = drawer.source(target, shape, Known(0 if target.startswith("u") else -9, 99, 1))
    low, high = (zero + 8 * end / odd for zero, end in ((-9, x.known.low), (99, x.known.high)))
    lowest, highest = INTEGER_RANGES[target]
    known = Known(max(math.floor(low), lowest), min(math.ceil(high), highest), 1)
    return drawer.call("quantize_linear", x, scale, zero_point, known=known)


def dequantize(drawer):
    x = drawer.pick(("uint8", "int8", "int32", "uint32"))
    if x.known.most > 2**10:
        x = drawer.clamped(x, max(x.known.low, -(2**10)), 2**10)
    target, shape = drawer.choose(*FLOATS), scale_shape(drawer, x.shape)
    scale = drawer.operand(target, shape, Known(-0.5, 0.5, 2.0**-4))
    zero_point = drawer.operand(x.data_type, shape, Known(0 if x.data_type.startswith("u") else -9, 99, 1))
    if zero_point.known.most > 2**10:
        zero_point = drawer.clamped(zero_point, max(zero_point.known.low, -(2**10)), 2**10)
    distance = of_difference("int64", x.known, zero_point.known)
    return drawer.call("dequantize_linear", x, scale, zero_point, known=of_product(target, distance, scale.known))
