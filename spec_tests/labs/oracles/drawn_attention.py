"""Attention as programs draw it: heads, groups, scales, masks by addition and by choice, casts, zeros for NaN."""

import math

import attrs

from spec_tests.labs.oracles.drawn_matrices import matrix, turned
from spec_tests.support.random_graphs.bounds import Known

LENGTHS = (1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100)
SIZES = (1, 3, 4, 8, 16, 17, 32, 40, 64)
UNIT = Known(-1, 1, 2.0**-4)


@attrs.frozen
class Drawing:
    """The choices of a drawing.

    Attributes:
        drawer: the program.
        data_type: of queries, keys and values.
        large: the greatest query and key; with large ones one key of a row may get all of the power, and another one
            where scores are rounded otherwise.
        error: how far scores of numbers up to 1 may be apart.
    """

    drawer: object
    data_type: str
    large: int
    error: float

    def scores(self, method, *operands, **options):
        """A call that returns scores."""
        error = 4 * self.error * self.large**2
        return self.drawer.loosely(method, *operands, error=error, relative=self.error, **options)

    def probabilities(self, method, *operands, **options):
        """A call that returns shares of 1."""
        return self.drawer.loosely(method, *operands, error=self.shifted(1, 4 * self.error), **options)

    def results(self, method, *operands, **options):
        """A call that returns values."""
        return self.drawer.loosely(method, *operands, error=self.shifted(2, 8 * self.error), **options)

    def shifted(self, whole, error):
        """Return the allowed error of weights whose rows have this sum."""
        if self.large == 1:
            return error
        return whole if self.data_type == "float16" else 0.05 * whole

    def number(self, value, like):
        """A constant."""
        return self.drawer.source(like.data_type, (), Known(value, value, 2.0**-3), is_input=False)


def attention(drawer):
    """Attention in one of many forms, masked rows and large scores included; the outputs."""
    drawer.most_elements = 60_000
    data_type = drawer.choose("float32", "float32", "float16")
    error = 2.0**-7 if data_type == "float16" else 2e-4
    drawing = Drawing(drawer, data_type, drawer.choose(1, 1, 1, 30), error)
    q, k, v = operands(drawing)
    scores = masked(drawing, scaled(drawing, q, k))
    if drawer.choose(True, False, False):
        scores = masked(drawing, scores)
    mixed = drawing.results("matmul", probabilities(drawing, scores), v)
    return [behind(drawing, mixed), *([scores] if drawer.choose(True, False, False, False) else [])]


def operands(drawing):
    """Queries, keys and values."""
    drawer, data_type = drawing.drawer, drawing.data_type
    rows, keys = drawer.choose(*LENGTHS), drawer.choose(*LENGTHS)
    size, columns = drawer.choose(*SIZES), drawer.choose(*SIZES)
    batch = drawer.choose((), (1,), (2,), (2, 2), (1, 4))
    groups = drawer.choose(1, 1, 2) if len(batch) == 2 else 1
    key_batch = (*batch[:-1], batch[-1] // groups) if batch else ()
    known = Known(-drawing.large, drawing.large, 2.0**-4)
    q = matrix(drawer, data_type, (*batch, rows, size), known)
    k = matrix(drawer, data_type, (*key_batch, keys, size), known)
    v = matrix(drawer, data_type, (*key_batch, keys, columns), UNIT)
    return (q, k, v) if groups == 1 else (q, *(repeated(drawer, x, groups) for x in (k, v)))


def repeated(drawer, x, groups):
    """Each head as often as there are heads of queries for it."""
    batch, heads, length, size = x.shape
    x = drawer.move("reshape", x, [batch, heads, 1, length, size])
    x = drawer.move("expand", x, [batch, heads, groups, length, size])
    return drawer.move("reshape", x, [batch, heads * groups, length, size])


def scaled(drawing, q, k):
    """Products of queries and keys, scaled before or behind, and perhaps wider than these."""
    drawer = drawing.drawer
    way = drawer.choose("before", "behind", "turned", "divided", "none")
    factor = drawing.number(0.25, q)
    if way == "before":
        q = drawer.call("mul", q, factor, known=Known(-drawing.large, drawing.large, 2.0**-8))
    scores = drawing.scores("matmul", q, turned(drawer, k))
    if way in {"behind", "turned"}:
        scores = drawing.scores("mul", *((scores, factor) if way == "behind" else (factor, scores)))
    elif way == "divided":
        scores = drawing.scores("div", scores, drawing.number(4, q))
    return drawing.scores("cast", scores, "float32") if drawing.data_type == "float16" and drawer.flag() else scores


def masked(drawing, scores):
    """Scores with a mask, of which perhaps a row hides all keys; or with a cap."""
    drawer = drawing.drawer
    way = drawer.choose("none", "added", "added", "chosen", "chosen behind", "compared", "capped")
    shape = [size if drawer.flag() else 1 for size in scores.shape]
    shape = shape[drawer.choose(0, 0, scores.rank - 2, scores.rank - 1) :]
    if way == "none":
        return scores
    if way == "capped":
        return drawing.scores("mul", drawing.scores("tanh", scores), drawing.number(5, scores))
    if way == "added":
        drawer.kinds = drawer.choose((), ("minus",), ("minus",), ("nan",))
        mask = drawer.source(scores.data_type, shape, Known(-2, 2, 2.0**-3))
        drawer.kinds = ()
        return drawing.scores("add", *([scores, mask] if drawer.flag() else [mask, scores]))
    if way == "compared":
        one, other = (drawer.source("int32", shape if drawer.flag() else (), Known(0, 9, 1)) for _ in range(2))
        condition = drawer.call("greater", one, other, known=Known(0, 1, 1))
    else:
        condition = drawer.source("uint8", shape, Known(0, 1, 1))
    hidden = hiding(drawing, scores, shape)
    return drawing.scores("where", condition, *((hidden, scores) if way == "chosen behind" else (scores, hidden)))


def hiding(drawing, scores, shape):
    """Draw what replaces the scores of hidden keys."""
    drawer = drawing.drawer
    way = drawer.choose("lowest", "low", "given")
    if way == "given":
        return drawer.source(scores.data_type, shape if drawer.flag() else (), Known(-9, 0, 1))
    if way == "low":
        return drawing.number(-1e4, scores)
    return drawer.call("log", drawing.number(0, scores), known=Known(-math.inf, 0))


def probabilities(drawing, scores):
    """The softmax, perhaps with zeros for NaN, in the data type of the values."""
    drawer = drawing.drawer
    p = drawing.probabilities("softmax", scores, scores.rank - 1)
    if drawer.choose(True, False, False):
        is_nan = drawer.call("is_nan", p, known=Known(0, 1, 1))
        p = drawing.probabilities("where", is_nan, drawing.number(0, p), p)
    return p if p.data_type == drawing.data_type else drawing.probabilities("cast", p, drawing.data_type)


def behind(drawing, mixed):
    """Draw what follows: heads merged again, or an element-wise operator."""
    drawer = drawing.drawer
    way = drawer.choose("none", "heads", "heads", "relu", "add")
    if way == "heads" and mixed.rank == 4:
        mixed = drawing.results("transpose", mixed, permutation=[0, 2, 1, 3])
        batch, rows, heads, size = mixed.shape
        return drawing.results("reshape", mixed, [batch, rows, heads * size])
    if way == "relu":
        return drawing.results("relu", mixed)
    if way == "add":
        return drawing.results("add", mixed, drawer.source(drawing.data_type, (mixed.shape[-1],), UNIT))
    return mixed
