"""Matrices for random products: sources, views of them, and what is computed of them."""

from spec_tests.support.random_graphs.bounds import Known

GRID = Known(-4, 4, 2.0**-3)


def turned(drawer, x):
    """The last two axes the other way round."""
    return drawer.move("transpose", x, permutation=[*range(x.rank - 2), x.rank - 1, x.rank - 2])


def matrix(drawer, data_type, shape, known=GRID, *, is_input=None):
    """A matrix, or several, made in one of many ways."""
    way = drawer.choose(_source, _source, _turned, _cut, _reversed, _computed, _cast, _of_heads)
    return way(drawer, data_type, tuple(shape), known, is_input)


def _source(drawer, data_type, shape, known, is_input):
    return drawer.source(data_type, shape, known, is_input=is_input)


def _turned(drawer, data_type, shape, known, is_input):
    return turned(drawer, _source(drawer, data_type, (*shape[:-2], shape[-1], shape[-2]), known, is_input))


def _cut(drawer, data_type, shape, known, is_input):
    more = [size + drawer.choose(0, 1, 3) for size in shape]
    starts = [drawer.integer(0, size - wanted) for size, wanted in zip(more, shape, strict=True)]
    return drawer.move("slice", _source(drawer, data_type, more, known, is_input), starts, list(shape))


def _reversed(drawer, data_type, shape, known, is_input):
    x = _source(drawer, data_type, shape, known, is_input)
    return drawer.move("reverse", x, axes=drawer.some(range(x.rank)))


def _computed(drawer, data_type, shape, known, is_input):
    x = _source(drawer, data_type, shape, known, is_input)
    return drawer.call(drawer.choose("neg", "abs"), x, known=Known(-known.most, known.most, known.step))


def _cast(drawer, data_type, shape, known, is_input):
    integers = Known(0, max(1, int(known.most)), 1)
    x = _source(drawer, drawer.choose("int8", "uint8", "int32"), shape, integers, is_input)
    return drawer.call("cast", x, data_type, known=x.known)


def _of_heads(drawer, data_type, shape, known, is_input):
    """Draw a matrix of heads, which is transposed from rows as a layer returns them."""
    if len(shape) == 2:
        return _source(drawer, data_type, shape, known, is_input)
    *batch, heads, rows, columns = shape
    x = _source(drawer, data_type, (*batch, rows, heads, columns), known, is_input)
    return drawer.move("transpose", x, permutation=[*range(len(batch)), *(len(batch) + n for n in (1, 0, 2))])
