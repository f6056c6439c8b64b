"""Random graphs that are aimed at something: long chains, products of odd sizes, quantized ones, windows."""

import itertools
import math

import attrs
import numpy as np

from spec_tests.labs.oracles.drawn_matrices import GRID, matrix, turned
from spec_tests.labs.oracles.hostile import HostileSource
from spec_tests.labs.oracles.seeded import SeededDrawer, UnwantedError
from spec_tests.support.random_graphs import elementwise, images, moving, sums
from spec_tests.support.random_graphs.bounds import INTEGER_RANGES, Known
from spec_tests.support.random_graphs.drawer import ANY
from spec_tests.support.random_graphs.program import Program
from spec_tests.support.random_graphs.programs import CATEGORIES


@attrs.define(eq=False)
class AimedDrawer(SeededDrawer):
    """Draws sources that may have special elements.

    Attributes:
        kinds: of special elements.
    """

    kinds: tuple[str, ...] = ()

    def call(self, method, *args, known, **options):
        if method == "sub" and self.kinds and args[0] is args[1]:
            raise UnwantedError  # which of NaN and 0 it is, is the driver's choice: docs/differences.md
        return super().call(method, *args, known=known, **options)

    def operand(self, data_type, shape, known=None, *, within=None):
        if known is not images.FILTER:
            return super().operand(data_type, shape, known, within=within)
        # Finite: of a transposed convolution no other would do (docs/differences.md).
        kinds, self.kinds = self.kinds, ()
        filters = self.source(data_type, shape, known)
        self.kinds = kinds
        return filters

    def source(self, data_type, shape, known=None, *, is_input=None):
        value = super().source(data_type, shape, known, is_input=is_input)
        if self.kinds:
            made = self.sources[-1]
            self.sources[-1] = HostileSource(value, made.is_input, made.seed, self.kinds)
        return value

    def choose(self, *items):
        if not items:
            raise UnwantedError
        return super().choose(*items)

    def loosely(self, method, *args, error=0.0, relative=0.0, **options):
        """A call of whose results nothing is known but how far apart they may be."""
        return self.call(method, *args, known=Known(-math.inf, math.inf, 0, error, relative), **options)


def aimed(name, number, seed):
    """The ``number``-th random graph of an aim."""
    for attempt in itertools.count():
        rng = np.random.default_rng([seed, number, attempt, *name.encode()])
        drawer = AimedDrawer(None, ANY, 4000, rng=rng)
        outputs = AIMS[name](drawer)
        if drawer.calls:
            computed = [value for call in drawer.calls for value in call.results]
            if outputs is None:
                outputs = [value for value in computed if rng.random() < 0.3 or value.name not in drawer.read]
            return Program.of(drawer.sources, drawer.calls, outputs)
    raise AssertionError


# --- chains ------------------------------------------------------------------------------------------------------


def chains(drawer):
    """Many small calls behind each other, with what they share, and views in between."""
    drawer.most_elements = drawer.choose(40, 130, 600)
    drawer.types = drawer.choose(
        ANY, ("float32", "float16", "int32"), ("float32", "int32"), ("int8", "uint8", "float16", "int32")
    )
    few = (
        *(elementwise.arithmetic,) * 3,
        *(elementwise.unary, elementwise.activation, elementwise.logical, elementwise.conversion) * 2,
        *(moving.movement,) * 4,
        moving.indexing,
        *(sums.reduction,) * 3,
        sums.normalization,
        sums.matrix,
    )
    for _ in range(drawer.integer(10, 40)):
        drawer.grow(drawer.choose(*few))


def everything(drawer):
    """Many small calls of all categories."""
    drawer.most_elements = drawer.choose(60, 200, 1000)
    for _ in range(drawer.integer(8, 25)):
        drawer.grow(drawer.choose(*CATEGORIES.values()))


# --- products ----------------------------------------------------------------------------------------------------

BORDERS = sorted({max(1, size + away) for size in (1, 4, 8, 16, 32, 64, 128) for away in (-1, 0, 1)})
MOST_PRODUCTS = 2**18


def sides(drawer):
    """Rows, columns and depth of a product."""
    while True:
        rows, columns, inner = (drawer.choose(*BORDERS, 2, 3, 5, 12, 20, 48, 100, 130) for _ in range(3))
        if rows * columns * inner <= MOST_PRODUCTS:
            return rows, columns, inner


def products(drawer):
    """A product or two of sizes at the borders of tiles, with something before and behind."""
    drawer.most_elements = 40_000
    data_type = drawer.choose("float32", "float32", "float16")
    rows, columns, inner = sides(drawer)
    batch = drawer.choose((), (), (2,), (3, 1), (1, 2), (2, 3))
    small = rows * columns * inner * math.prod(batch) <= MOST_PRODUCTS
    batch = batch if small else ()
    if drawer.flag() and not batch:
        y = gemm(drawer, data_type, rows, columns, inner)
    else:
        left, right = (
            [size if drawer.flag() else 1 for size in batch][drawer.choose(0, 0, len(batch)) :] for _ in "ab"
        )
        a = matrix(drawer, data_type, (*left, rows, inner))
        b = matrix(drawer, data_type, (*right, inner, columns), is_input=drawer.choose(True, False))
        y = sums.product_of(drawer, a, b)
    for _ in range(drawer.choose(0, 0, 1, 2, 3)):
        y = behind(drawer, y)


def gemm(drawer, data_type, rows, columns, inner):
    a_transpose, b_transpose = drawer.flag(), drawer.flag()
    a = matrix(drawer, data_type, (inner, rows) if a_transpose else (rows, inner))
    b = matrix(drawer, data_type, (columns, inner) if b_transpose else (inner, columns), is_input=drawer.flag())
    options = {"a_transpose": a_transpose, "b_transpose": b_transpose}
    terms, plus = sums.bounds.product(a.known, b.known), Known(0, 0, 1)
    if drawer.flag():
        shape = drawer.choose((rows, columns), (1, columns), (rows, 1), (columns,), (1,), ())
        c = options["c"] = drawer.source(data_type, shape, GRID)
        options["beta"] = beta = drawer.choose(1, 0.5, -0.25, 0)
        plus = sums.bounds.product(c.known, Known(beta, beta, 0.25))
    known = sums.total(data_type, inner, terms, plus=plus, ulps=4)
    return drawer.call("gemm", a, b, known=known, **options)


def behind(drawer, y):
    """An element-wise operator, a view or a reduction of a product."""
    drawer.following = y
    way = drawer.choose("add", "add", "relu", "cast", "view", "reduce", "where", "clamp")
    if way == "add":
        shape = [size if drawer.flag() else 1 for size in y.shape][drawer.choose(0, 0, y.rank - 1) :]
        other = drawer.source(y.data_type, shape, GRID)
        y = drawer.call("add", y, other, known=sums.of_sum(y.data_type, y.known, other.known))
    elif way == "relu":
        y = elementwise.relu(drawer)
    elif way == "cast":
        target = "float16" if y.data_type == "float32" else "float32"
        known = y.known
        if target == "float16" and known.most > 2**15:
            y = drawer.clamped(y, -(2**14), 2**14)
            known = y.known
        error = known.error + (elementwise.float16_unit(target, known.most) if target == "float16" else 0)
        y = drawer.call("cast", y, target, known=attrs.evolve(known, error=error))
    elif way == "view":
        y = drawer.viewed(y)
    elif way == "reduce":
        y = drawer.call("reduce_max", y, known=y.known, axes=[drawer.integer(0, y.rank - 1)], keep_dimensions=True)
    elif way == "clamp":
        y = drawer.clamped(y, -drawer.integer(0, 9), drawer.integer(0, 9))
    else:
        condition = drawer.source("uint8", [size if drawer.flag() else 1 for size in y.shape], Known(0, 1, 1))
        zero = drawer.source(y.data_type, (), Known(0, 0, 1), is_input=False)
        y = drawer.call("where", condition, y, zero, known=sums.bounds.moved(y.known, zero.known))
    drawer.following = None
    return y


# --- quantized ---------------------------------------------------------------------------------------------------

EXACT = Known(-math.inf, math.inf, 0, 0)


def scale(drawer, shape, data_type="float32", *, odd=True):
    exponent = drawer.integer(-5, -1)
    one = Known(2.0**exponent, 2.0**exponent * drawer.choose(1, 4), 2.0**exponent)
    return drawer.source(data_type, shape, one, is_input=drawer.choose(False, False, True))


def quantized(drawer):
    """Quantized and dequantized numbers around products, all of them exact."""
    drawer.most_elements = 40_000
    data_type = "float32" if drawer.choose(True, True, True, False) else "float16"
    rows, columns, inner = sides(drawer)
    batch = drawer.choose((), (), (2,))
    byte = drawer.choose("int8", "uint8")
    a = drawer.source(data_type, (*batch, rows, inner), Known(-16, 16, 2.0**-4))
    a = through(drawer, a, byte)
    if drawer.choose(True, True, True, False):
        b = weights(drawer, data_type, inner, columns)
    else:
        b = through(drawer, drawer.source(data_type, (inner, columns), GRID), drawer.choose("int8", "uint8"))
    known = Known(
        -math.inf, math.inf, 0, 0 if data_type == "float32" else 2.0, 2.0**-9 if data_type != "float32" else 0
    )
    y = drawer.call("matmul", a, b, known=known)
    if drawer.flag():
        bias = drawer.source(data_type, (columns,), GRID)
        y = drawer.call("add", y, bias, known=y.known)
    if drawer.flag():
        y = drawer.call("relu", y, known=y.known)
    if data_type == "float32":
        y = through(drawer, y, drawer.choose("int8", "uint8"), large=True)
        if drawer.flag():
            y = drawer.call("add", y, through(drawer, drawer.source(data_type, y.shape, GRID), byte), known=EXACT)


def through(drawer, x, byte, *, large=False):
    """Values quantized and dequantized."""
    shape = [1] * x.rank
    if drawer.choose(True, False, False):
        axis = drawer.integer(0, x.rank - 1)
        shape[axis] = x.shape[axis]
    step = 2.0 ** drawer.integer(*((-1, 4) if large else (-3, 0)))
    known = Known(step, step * drawer.choose(1, 1, 3), step)
    lowest, highest = INTEGER_RANGES[byte]
    is_input = drawer.choose(False, False, False, True)
    by = drawer.source(x.data_type, shape, known, is_input=is_input)
    zero = drawer.choose(Known(0, 0, 1), Known(lowest, highest, 1), Known(max(lowest, -3), 3, 1))
    zero_point = drawer.source(byte, shape, zero, is_input=is_input)
    q = drawer.call("quantize_linear", x, by, zero_point, known=Known(lowest, highest, 1))
    if not drawer.flag():
        return drawer.call("dequantize_linear", q, by, zero_point, known=EXACT)
    # As other programs write it: casts, a difference and a product.
    if drawer.flag():
        q = drawer.move("transpose", q, permutation=[*range(q.rank)])
    left, right = (drawer.call("cast", item, x.data_type, known=EXACT) for item in (q, zero_point))
    difference = drawer.call("sub", left, right, known=EXACT)
    return drawer.call("mul", difference, by, known=EXACT)


def weights(drawer, data_type, inner, columns):
    """Constant integers, dequantized, a scale for all, for each column, for each row, or for blocks of rows."""
    byte = drawer.choose("int8", "uint8", "int8", "uint8", "int32")
    is_turned = drawer.choose(False, False, True)
    lowest, highest = INTEGER_RANGES[byte] if byte != "int32" else (-300, 300)
    known = drawer.choose(Known(lowest, highest, 1), Known(max(lowest, -8), 15, 1))
    w = drawer.source(byte, (columns, inner) if is_turned else (inner, columns), known, is_input=False)
    first, second = w.shape
    block = [n for n in (2, 4, 8, 16, 32) if first % n == 0]
    ways = [(1, 1), (1, second), (first, 1), *([(first // block[-1], second)] if block else [])]
    shape = drawer.choose(*ways)
    zero_point = drawer.source(byte, shape, drawer.choose(Known(0, 0, 1), known), is_input=False)
    by = scale(drawer, shape, data_type)
    if drawer.flag():
        w = drawer.call("dequantize_linear", w, by, zero_point, known=EXACT)
    else:
        left = drawer.call("cast", w, data_type, known=EXACT)
        if zero_point.known.most and shape[0] in (1, first):
            left = drawer.call("sub", left, drawer.call("cast", zero_point, data_type, known=EXACT), known=EXACT)
        w = drawer.call("mul", left, by, known=EXACT) if shape[0] in (1, first) else left
    return turned(drawer, w) if is_turned else w


# --- windows and special numbers ---------------------------------------------------------------------------------

KINDS = (("nan",), ("inf",), ("nan", "inf"), ("minus",), ("inf", "zero"))


def windows(drawer):
    """A convolution or a pool of odd windows over images that have special elements."""
    drawer.most_elements = drawer.choose(300, 1000, 4000)
    drawer.kinds = drawer.choose(*KINDS)
    drawer.grow(drawer.choose(images.convolution, images.convolution, images.pooling))
    if drawer.calls and drawer.flag():
        drawer.grow(lambda drawer: elementwise.chain_from(drawer, drawer.calls[-1].results[0], 1))


def special(drawer):
    """One to four calls of any category, of operands that have special elements."""
    drawer.most_elements = drawer.choose(40, 200, 600)
    drawer.kinds = drawer.choose(*KINDS)
    # An infinite pixel beside one that is met exactly makes NaN of it on onnxruntime: docs/onnxruntime.md.
    categories = [begin for name, begin in CATEGORIES.items() if name not in {"recurrent", "resampling"}]
    for _ in range(drawer.integer(1, 4)):
        drawer.grow(drawer.choose(*categories))


AIMS = {function.__name__: function for function in (chains, everything, products, quantized, windows, special)}
"""By name."""
