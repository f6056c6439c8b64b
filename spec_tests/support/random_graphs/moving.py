"""Random calls of the categories that move elements: movement and indexing."""

import attrs

from spec_tests.support.random_graphs.bounds import Known, is_float, moved, number
from spec_tests.support.random_graphs.drawer import HIGHEST_RANK

# --- movement ----------------------------------------------------------------------------------------------------


def movement(drawer):
    views = (reshape, transpose, transpose, slice_, reverse, expand)
    return drawer.choose(*views, split, concat, pad, tile, triangular)(drawer)


def reshape(drawer):
    return drawer.reshaped(drawer.pick(), drawer.integer(1, HIGHEST_RANK))


def transpose(drawer):
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    return drawer.move("transpose", x, permutation=drawer.permutation(range(x.rank)))


def slice_(drawer):
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    starts = [drawer.integer(0, size - 1) for size in x.shape]
    sizes = [drawer.integer(1, size - start) for size, start in zip(x.shape, starts, strict=True)]
    return drawer.move("slice", x, starts, sizes, strides=[drawer.choose(1, 1, 2, 3) for _ in sizes])


def reverse(drawer):
    x = drawer.pick()
    return drawer.move("reverse", x, axes=drawer.some(range(x.rank)))


def expand(drawer):
    x = drawer.pick()
    shape = [drawer.choose(2, 3, 5) if size == 1 and drawer.flag() else size for size in x.shape]
    if x.rank < HIGHEST_RANK and drawer.flag():
        shape = [drawer.choose(1, 2, 3), *shape]
    return drawer.move("expand", x, shape if drawer.room(shape) else list(x.shape))


def split(drawer):
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    axis = drawer.integer(0, x.rank - 1)
    size = x.shape[axis]
    if size == 1 or drawer.flag():
        return drawer.move("split", x, drawer.choose(*(n for n in (1, 2, 3, 4) if size % n == 0)), axis=axis)[0]
    first = drawer.integer(1, size - 1)
    return drawer.move("split", x, [first, size - first], axis=axis)[0]


def concat(drawer):
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    axis = drawer.integer(0, x.rank - 1)
    items = [x]
    for _ in range(drawer.integer(1, 3)):
        shape = list(x.shape)
        shape[axis] = drawer.choose(size := shape[axis], 1, 2, 3, 2 * size)
        if drawer.room(shape, sum(item.size for item in items) + shape[axis] * x.size // size):
            items.append(drawer.operand(x.data_type, shape))
    known = moved(*(item.known for item in items))
    return drawer.call("concat", drawer.permutation(items), axis, known=known)


def pad(drawer):
    x = drawer.pick()
    mode = drawer.choose("constant", "edge", "reflection")
    most = [size - 1 if mode == "reflection" else 3 for size in x.shape]
    begin, end = ([drawer.integer(0, min(3, each)) for each in most] for _ in range(2))
    if not drawer.room([b + size + e for b, size, e in zip(begin, x.shape, end, strict=True)]):
        begin = end = [0] * x.rank
    value = drawer.choose(0, 1, 7) if mode == "constant" else 0
    known = moved(x.known, number(value)) if mode == "constant" else x.known
    known = known if is_float(x.data_type) else attrs.evolve(known, step=1)
    return drawer.call("pad", x, begin, end, known=known, mode=mode, value=value)


def tile(drawer):
    x = drawer.pick()
    repetitions = [drawer.choose(1, 1, 2, 3) for _ in x.shape]
    fits = drawer.room([size * count for size, count in zip(x.shape, repetitions, strict=True)])
    return drawer.move("tile", x, repetitions if fits else [1] * x.rank)


def triangular(drawer):
    x = drawer.pick(rank=(2, HIGHEST_RANK))
    known = attrs.evolve(x.known, low=min(0, x.known.low), high=max(0, x.known.high))
    diagonal = drawer.integer(-3, 3)
    return drawer.call("triangular", x, known=known, upper=drawer.flag(), diagonal=diagonal)


# --- indexing ----------------------------------------------------------------------------------------------------


def indexing(drawer):
    return drawer.choose(gather, gather_elements, gather_nd, scatter_elements, scatter_nd)(drawer)


def indices(drawer, shape, size):
    """Indices, some of them negative or out of range; any integers will do."""
    data_type = drawer.choose(*(name for name in ("int32", "uint32", "int64") if name in drawer.types))
    low = 0 if data_type == "uint32" else -size - 1
    return drawer.operand(data_type, shape, Known(low, size, 1))


def indexed(drawer):
    """An operand and one of its axes."""
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    return x, drawer.integer(0, x.rank - 1)


def gather(drawer):
    x, axis = indexed(drawer)
    rest = x.size // x.shape[axis]
    rank = drawer.integer(0, min(2, HIGHEST_RANK + 1 - x.rank))
    shape = drawer.shape(rank, max(1, min(drawer.usual_elements, drawer.most_elements // rest)))
    return drawer.move("gather", x, indices(drawer, shape, x.shape[axis]), axis=axis)


def element_indices(drawer, x, axis):
    shape = list(x.shape)
    shape[axis] = drawer.length(min(8, drawer.most_elements * shape[axis] // x.size))
    return indices(drawer, shape, x.shape[axis])


def gather_elements(drawer):
    x, axis = indexed(drawer)
    return drawer.move("gather_elements", x, element_indices(drawer, x, axis), axis=axis)


def scatter_elements(drawer):
    x, axis = indexed(drawer)
    places = element_indices(drawer, x, axis)
    updates = drawer.operand(x.data_type, places.shape)
    known = moved(x.known, updates.known)
    return drawer.call("scatter_elements", x, places, updates, known=known, axis=axis)


def coordinates(drawer, x):
    """Indices for the leading axes, and the shape of what they select."""
    depth = drawer.integer(1, x.rank)
    rest = x.shape[depth:]
    slice_size = 1
    for size in rest:
        slice_size *= size
    outer = drawer.shape(drawer.integer(0, min(2, HIGHEST_RANK - len(rest))), max(1, 200 // slice_size))
    return indices(drawer, (*outer, depth), max(x.shape)), (*outer, *rest)


def gather_nd(drawer):
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    return drawer.move("gather_nd", x, coordinates(drawer, x)[0])


def scatter_nd(drawer):
    x = drawer.pick(rank=(1, HIGHEST_RANK))
    places, shape = coordinates(drawer, x)
    updates = drawer.operand(x.data_type, shape)
    return drawer.call("scatter_nd", x, places, updates, known=moved(x.known, updates.known))
