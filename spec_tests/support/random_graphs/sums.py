"""Random calls of the categories that add up: matrix, reduction, normalization."""

import math

import attrs

from spec_tests.support.random_graphs import bounds
from spec_tests.support.random_graphs.bounds import SMOOTH, Known, is_float, of_sum, rounded, total
from spec_tests.support.random_graphs.drawer import ANY, FLOATS, HIGHEST_RANK, NUMBERS
from webnn_py.core.operators.casting import INTEGER_RANGES

# --- matrix ------------------------------------------------------------------------------------------------------


def matrix(drawer):
    return drawer.choose(matmul, gemm, matmul, gemm, attention)(drawer)


def matmul(drawer):
    a = drawer.pick(FLOATS, rank=(2, HIGHEST_RANK))
    *batch, rows, inner = a.shape
    columns = drawer.length(min(64, drawer.most_elements // max(math.prod(batch) * rows, inner)))
    batch = [size if drawer.flag() else 1 for size in batch]
    batch = batch[drawer.choose(0, len(batch)) :]
    if not drawer.room((*batch, inner, columns)):
        batch = []
    b = drawer.operand(a.data_type, (*batch, inner, columns))
    b = drawer.within(b, (-4, 4))
    return product_of(drawer, a, b)


def gemm(drawer):
    a = drawer.pick(FLOATS, rank=2)
    options = {"a_transpose": drawer.flag(), "b_transpose": drawer.flag()}
    rows, inner = reversed(a.shape) if options["a_transpose"] else a.shape
    columns = drawer.length(min(64, drawer.most_elements // max(rows, inner)))
    b = drawer.operand(a.data_type, (columns, inner) if options["b_transpose"] else (inner, columns))
    b = drawer.within(b, (-4, 4))
    terms, plus = bounds.product(a.known, b.known), Known(0, 0, 1)
    if drawer.flag():
        options["alpha"] = alpha = drawer.choose(0.5, -0.25, 1.5)
        terms = bounds.product(terms, Known(alpha, alpha, 0.25))
    if drawer.flag():
        shape = drawer.choose((rows, columns), (1, columns), (rows, 1), (columns,), (1,), ())
        c = options["c"] = drawer.within(drawer.operand(a.data_type, shape))
        beta = options["beta"] = drawer.choose(1, 0.5, -0.25, 0)
        plus = bounds.product(c.known, Known(beta, beta, 0.25))
    return drawer.call("gemm", a, b, known=total(a.data_type, inner, terms, plus=plus, ulps=4), **options)


def attention(drawer):
    """Products of one matrix with constant ones, multiplied with each other head by head."""
    x = drawer.pick(FLOATS, rank=2, within=(-4, 4))
    heads, size = drawer.choose((1, 4), (2, 4), (3, 8), (2, 5))
    if not drawer.room(heads * x.shape[0] ** 2, x.shape[1] * heads * size, x.shape[0] * heads * size):
        return matmul(drawer)
    bias = drawer.flag()
    query, key = (projection(drawer, x, heads * size, bias=bias) for _ in range(2))
    value = projection(drawer, x, heads * drawer.choose(size, 4, 3), bias=drawer.choose(bias, bias, not bias))
    query, value = (by_head(drawer, item, heads, [1, 0, 2]) for item in (query, value))
    scores = drawer.within(product_of(drawer, query, by_head(drawer, key, heads, [1, 2, 0])), (-1, 1))
    mixed = product_of(drawer, scores, value)
    if drawer.flag():
        mixed = drawer.move("transpose", mixed, permutation=[1, 0, 2])
    return drawer.move("reshape", mixed, [x.shape[0], heads * value.shape[2]]) if drawer.flag() else mixed


def projection(drawer, x, columns, *, bias):
    """A product with a constant matrix, and perhaps a bias, by one of two operators."""
    weight, row = (
        drawer.source(x.data_type, shape, Known(-1, 1, 2.0**-3), is_input=False)
        for shape in ((x.shape[1], columns), (columns,))
    )
    if drawer.flag():
        known = total(x.data_type, x.shape[1], bounds.product(x.known, weight.known), plus=row.known if bias else None)
        return drawer.call("gemm", x, weight, known=known, **({"c": row} if bias else {}))
    product = product_of(drawer, x, weight)
    return drawer.call("add", product, row, known=of_sum(x.data_type, product.known, row.known)) if bias else product


def by_head(drawer, x, heads, permutation):
    return drawer.move(
        "transpose", drawer.move("reshape", x, [x.shape[0], heads, x.shape[1] // heads]), permutation=permutation
    )


def product_of(drawer, a, b):
    known = total(a.data_type, a.shape[-1], bounds.product(a.known, b.known))
    return drawer.call("matmul", a, b, known=known)


# --- reduction ---------------------------------------------------------------------------------------------------


def reduction(drawer):
    kind = drawer.choose("sum", "sum", "extreme", "mean", "log", "l2", "product", "position", "cumulative")
    return {
        "sum": reduce_sum,
        "extreme": reduce_extreme,
        "mean": reduce_mean,
        "log": reduce_log,
        "l2": reduce_l2,
        "product": reduce_product,
        "position": position,
        "cumulative": cumulative_sum,
    }[kind](drawer)


def axes_of(drawer, x):
    """Options of a reduction, and how many elements become one."""
    axes = drawer.some(range(x.rank)) if drawer.choose(True, True, False) else None
    count = math.prod(x.shape if axes is None else [x.shape[axis] for axis in axes])
    return {"axes": axes, "keep_dimensions": drawer.flag()}, count


def reduce_sum(drawer):
    name = drawer.choose("reduce_sum", "reduce_l1", "reduce_sum_square")
    x = drawer.pick(NUMBERS)
    options, count = axes_of(drawer, x)
    terms = x.known
    if name == "reduce_sum_square":
        terms = bounds.product(terms, terms)
    elif name == "reduce_l1":
        terms = attrs.evolve(terms, low=0, high=terms.most)
    if name == "reduce_l1" and x.known.low == INTEGER_RANGES.get(x.data_type, (0,))[0] < 0:
        known = Known(*INTEGER_RANGES[x.data_type], 1)  # the lowest integer is its own absolute value
    else:
        known = total(x.data_type, count, terms)
    return drawer.call(name, x, known=known, **options)


def reduce_extreme(drawer):
    x = drawer.pick(ANY)
    return drawer.call(drawer.choose("reduce_max", "reduce_min"), x, known=x.known, **axes_of(drawer, x)[0])


def mean_of(x, count):
    """A mean: the sum's error, divided like the sum."""
    summed = total("float32", count, x.known)
    return rounded(x.data_type, x.known.low, x.known.high, spread=summed.error / count, ulps=4)


def reduce_mean(drawer):
    x = drawer.pick(FLOATS)
    options, count = axes_of(drawer, x)
    return drawer.call("reduce_mean", x, known=mean_of(x, count), **options)


def reduce_log(drawer):
    name = drawer.choose("reduce_log_sum", "reduce_log_sum_exp")
    x = drawer.pick(FLOATS, within=(0.125, 8) if name == "reduce_log_sum" else (-8, 8))
    options, count = axes_of(drawer, x)
    if name == "reduce_log_sum_exp":
        ends, spread = (x.known.low + math.log(count), x.known.high + math.log(count)), x.known.error
    else:  # of a sum of at least count / 8, which is known as a fraction of itself
        ends = (math.log(count * x.known.low), math.log(count * x.known.high))
        spread = total("float32", count, attrs.evolve(x.known, step=0)).error / (count * x.known.low)
    sums = max(*map(abs, ends), x.known.most, 1)
    ulps = SMOOTH + 4 * math.sqrt(count)
    known = rounded(x.data_type, *ends, spread=spread, ulps=ulps, sums=sums)
    return drawer.call(name, x, known=known, **options)


def norm(x, count):
    """The root of a sum of squares, which is as far off, relatively, as half the sum."""
    most = math.sqrt(count) * x.known.most
    spread = math.sqrt(count) * x.known.error
    return rounded(x.data_type, 0, most, spread=spread, ulps=SMOOTH + 2 * math.sqrt(count))


def reduce_l2(drawer):
    x = drawer.pick(FLOATS)
    options, count = axes_of(drawer, x)
    return drawer.call("reduce_l2", x, known=norm(x, count), **options)


def reduce_product(drawer):
    x = drawer.pick(NUMBERS, most=64)
    x = drawer.within(x, (-1.125, 1.125))
    options, count = axes_of(drawer, x)
    if not is_float(x.data_type):
        known = Known(*INTEGER_RANGES[x.data_type], 1)
    else:
        greatest = max(1, x.known.most) ** count
        spread = count * greatest * x.known.error
        known = rounded(x.data_type, -greatest, greatest, spread=spread, ulps=2 * count)
    return drawer.call("reduce_product", x, known=known, **options)


def position(drawer):
    x = drawer.pick(ANY, exact=True, rank=(1, HIGHEST_RANK))
    axis = drawer.integer(0, x.rank - 1)
    types = [name for name in ("int32", "int64") if name in drawer.types]
    options = {"keep_dimensions": drawer.flag(), "output_data_type": drawer.choose(*types)}
    known = Known(0, x.shape[axis] - 1, 1)
    return drawer.call(drawer.choose("arg_max", "arg_min"), x, axis, known=known, **options)


def cumulative_sum(drawer):
    x = drawer.pick(NUMBERS, rank=(1, HIGHEST_RANK))
    axis = drawer.integer(0, x.rank - 1)
    terms = attrs.evolve(x.known, low=min(0, x.known.low), high=max(0, x.known.high))
    options = {"exclusive": drawer.flag(), "reversed": drawer.flag()}
    return drawer.call("cumulative_sum", x, axis, known=total(x.data_type, x.shape[axis], terms), **options)


# --- normalization -----------------------------------------------------------------------------------------------


def normalization(drawer):
    return drawer.choose(batch_normalization, instance_normalization, layer_normalization)(drawer)


EPSILON = 0.5
"""Added to variances, so that no small one is divided by."""

ROOT = math.sqrt(EPSILON)


def affine(drawer, data_type, shape):
    """Options scale and bias, or one, or none."""
    names = [name for name in ("scale", "bias") if drawer.flag()]
    return {name: drawer.operand(data_type, shape, Known(-2, 2, 2.0**-3)) for name in names}


def scaled(data_type, most, spread, options, ulps):
    """Return the bounds of normalized values, up to ``most`` and with this error, after scale and bias."""
    one = Known(1, 1, 1)
    scale = options["scale"].known if "scale" in options else one
    bias = options["bias"].known if "bias" in options else Known(0, 0, 1)
    spread = spread * scale.most + most * scale.error + bias.error
    most = most * scale.most + bias.most
    return rounded(data_type, -most, most, spread=spread, ulps=ulps)


def batch_normalization(drawer):
    x = drawer.pick(FLOATS, rank=(1, HIGHEST_RANK))
    axis = drawer.integer(0, x.rank - 1)
    features = [x.shape[axis]]
    mean = drawer.operand(x.data_type, features, Known(-2, 2, 2.0**-3))
    variance = drawer.operand(x.data_type, features, Known(0, 4, 2.0**-3))
    options = affine(drawer, x.data_type, features)
    distance = x.known.most + mean.known.most
    spread = (x.known.error + mean.known.error) / ROOT + distance * variance.known.error / (2 * ROOT**3)
    known = scaled(x.data_type, distance / ROOT, spread, options, SMOOTH)
    return drawer.call("batch_normalization", x, mean, variance, known=known, axis=axis, epsilon=EPSILON, **options)


def normalized(x, count, options):
    """Return the bounds of values normalized by their own mean and variance.

    With e how far the values are apart: their distances from the mean are 2e apart at most, and the root of the
    variance √count · e, of which a distance divided by the variance is a multiple of at most √count / √epsilon.
    """
    most = min(math.sqrt(count), 2 * x.known.most / ROOT)
    error = x.known.error + mean_of(x, count).error * (x.data_type == "float32")
    spread = error * (2 + math.sqrt(count)) / ROOT
    return scaled(x.data_type, most, spread, options, 2 * SMOOTH + 4 * math.sqrt(count))


def instance_normalization(drawer):
    x = drawer.pick(FLOATS, rank=4)
    layout = drawer.choose("nchw", "nhwc")
    channels = x.shape[1 if layout == "nchw" else 3]
    options = affine(drawer, x.data_type, [channels])
    known = normalized(x, x.size // channels // x.shape[0], options)
    return drawer.call("instance_normalization", x, known=known, epsilon=EPSILON, layout=layout, **options)


def layer_normalization(drawer):
    x = drawer.pick(FLOATS)
    axes = drawer.some(range(x.rank))
    shape = [x.shape[axis] for axis in axes]
    options = affine(drawer, x.data_type, shape)
    known = normalized(x, math.prod(shape), options)
    return drawer.call("layer_normalization", x, known=known, axes=axes, epsilon=EPSILON, **options)
