"""Random programs of all fourteen categories, as a strategy of hypothesis."""

from hypothesis import strategies as st

from spec_tests.support.random_graphs import elementwise, images, moving, networks, sums
from spec_tests.support.random_graphs.drawer import Drawer

CATEGORIES = {
    "arithmetic": elementwise.arithmetic,
    "logical": elementwise.logical,
    "unary": elementwise.unary,
    "activation": elementwise.activation,
    "conversion": elementwise.conversion,
    "indexing": moving.indexing,
    "movement": moving.movement,
    "matrix": sums.matrix,
    "reduction": sums.reduction,
    "normalization": sums.normalization,
    "convolution": images.convolution,
    "pooling": images.pooling,
    "resampling": images.resampling,
    "recurrent": networks.recurrent,
}


def with_epilogue(drawer):
    """An operator with kernels of its own, which may compute the element-wise ones behind it as well."""
    drawer.choose(sums.matrix, images.convolution, sums.reduction, sums.normalization, images.pooling)(drawer)
    elementwise.chain_from(drawer, drawer.calls[-1].results[0], drawer.integer(1, 3))


def with_prologue(drawer):
    """Element-wise operators, an operator that may compute them as it reads them, and perhaps others behind it."""
    elementwise.chain(drawer)
    drawer.following = drawer.calls[-1].results[0]
    drawer.choose(elementwise.softmax, sums.reduction, sums.normalization)(drawer)
    elementwise.chain_from(drawer, drawer.calls[-1].results[0], drawer.integer(0, 2))


FREQUENT = (
    *(elementwise.chain,) * 4,
    *(with_epilogue,) * 3,
    *(with_prologue,) * 2,
    elementwise.conversion,
    moving.movement,
)
"""Operators that stand between the others, are fused with them or makes views of them."""

MOST_CALLS = 12


@st.composite
def programs(draw, category, data_types):
    """Programs that begin with a call of a category and have more calls; ``data_types()`` are those of all devices."""
    drawer = Drawer(draw, data_types(), draw(st.sampled_from([200, 200, 1000, 8000])))
    CATEGORIES[category](drawer)
    for _ in range(draw(st.integers(0, MOST_CALLS - 1))):
        drawer.choose(*(CATEGORIES[category],) * 8, *CATEGORIES.values(), *FREQUENT)(drawer)
    return drawer.program()
