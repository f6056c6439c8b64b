"""The WGSL expressions of a layout give, for every element, that of numpy's view."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from webnn_py.devices.wgpu.records.layout import Layout


def evaluate(expression, **variables):
    """A WGSL expression of u32 numbers."""
    code = re.sub(r"(\d)u\b", r"\1", expression).replace("/", "//")
    return eval(code, {}, variables) % 2**32  # noqa: S307 - the layout's own text


def elements(layout, source):
    """Return the elements at the places of a layout, in order."""
    count = int(np.prod(layout.shape))
    return [int(source[evaluate(layout.index("i"), i=i)]) for i in range(count)]


@st.composite
def views(draw):
    """A layout and numpy's view of the same memory, and that memory."""
    shape = draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))
    layout, source = Layout.dense(shape), np.arange(np.prod(shape))
    view = source.reshape(shape)
    for _ in range(draw(st.integers(0, 3))):
        way = draw(st.sampled_from(["permute", "window", "broadcast"]))
        if way == "permute":
            permutation = draw(st.permutations(range(view.ndim)))
            layout, view = layout.permute(permutation), view.transpose(permutation)
        elif way == "window":
            steps = [draw(st.sampled_from([1, 2, -1])) for _ in view.shape]
            starts = [0 if step > 0 else size - 1 for size, step in zip(view.shape, steps, strict=True)]
            sizes = [-(-size // abs(step)) for size, step in zip(view.shape, steps, strict=True)]
            layout = layout.window(starts, sizes, steps)
            view = view[tuple(slice(None, None, step) for step in steps)]
        elif view.ndim < 4:
            wide = (draw(st.integers(1, 4)), *view.shape)
            layout, view = layout.broadcast(wide), np.broadcast_to(view, wide)
    return layout, view, source


@given(views())
def test_the_index_of_every_element_is_where_numpy_has_it(given_view):
    layout, view, source = given_view
    assert elements(layout, source) == view.ravel().tolist()


@given(views())
def test_a_dense_layout_is_where_element_i_lies_at_i(given_view):
    layout, view, _source = given_view
    assert layout.is_dense == (view.ravel().tolist() == list(range(view.size)))


@given(views())
def test_merging_axes_moves_no_element(given_view):
    layout, _view, source = given_view
    merged = layout.merged()
    assert len(merged.shape) <= len(layout.shape)
    assert elements(merged, source) == elements(layout, source)


@given(views(), st.data())
def test_a_reshaped_layout_has_the_same_elements_in_the_same_order(given_view, data):
    layout, view, source = given_view
    divisor = data.draw(st.sampled_from([size for size in range(1, view.size + 1) if view.size % size == 0]))
    reshaped = layout.reshape((divisor, view.size // divisor))
    if layout.is_dense:
        assert reshaped is not None
    if reshaped is not None:
        assert elements(reshaped, source) == view.ravel().tolist()


@given(views())
def test_vec4s_are_four_elements_side_by_side_and_aligned(given_view):
    layout, view, _source = given_view
    groups = view.ravel().reshape(-1, 4) if view.size % 4 == 0 else np.empty((0, 4), int)
    vec4s, repeats, spaced = layout.vec4s(), layout.repeats(), layout.spaced("k")
    for k, group in enumerate(groups.tolist()):
        if vec4s is not None:
            first = 4 * evaluate(vec4s.index("k"), k=k)
            assert group == [first, first + 1, first + 2, first + 3]
        if repeats is not None:
            assert group == [evaluate(repeats.index("k"), k=k)] * 4
        if spaced is not None:
            assert group == [evaluate(expression, k=k) for expression in spaced]
    whole = len(groups) and all(
        group[0] % 4 == 0 and group == list(range(group[0], group[0] + 4)) for group in groups.tolist()
    )
    if view.ndim and view.shape[-1] % 4 == 0 and view.shape[-1] > 0:
        assert (vec4s is not None) == bool(whole)
