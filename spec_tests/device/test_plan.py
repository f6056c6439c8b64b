"""The plan of a graph: what is computed at build, how long intermediates are needed, and where they lie."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webnn_py.descriptors import MLOperandDescriptor
from webnn_py.device import plan
from webnn_py.device.plan import ALIGNMENT, Interval, are_few_together, lay_out, lifetimes, split_constant
from webnn_py.graph import Constant, Graph, Input, Node, Value
from webnn_py.operators import arithmetic, movement

SHAPE = MLOperandDescriptor("float32", (10,))


def add(a, b):
    return Node(arithmetic.add, {"a": a, "b": b}, {}, (SHAPE,))


def transpose(a):
    return Node(movement.transpose, {"input": a}, {"permutation": None}, (SHAPE,))


def split(a):
    return Node(movement.split, {"input": a}, {"splits": 2, "axis": 0}, (SHAPE, SHAPE))


def x_and_constant():
    return Input(SHAPE, "x"), Constant(SHAPE, None)


intervals = st.lists(
    st.builds(
        lambda first, length, size: Interval(first, first + length, size),
        st.integers(0, 20),
        st.integers(0, 8),
        st.integers(1, 1000),
    ),
    max_size=25,
).map(lambda given: {Value(SHAPE): interval for interval in given})


def aligned(byte_length):
    return (byte_length + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


@settings(deadline=None)
@given(intervals)
def test_intermediates_that_are_needed_at_the_same_step_never_overlap(laid):
    offsets = lay_out(laid).offsets
    for a, one in laid.items():
        for b, other in laid.items():
            if a is not b and set(range(one.first, one.last + 1)) & set(range(other.first, other.last + 1)):
                apart = offsets[a] + one.byte_length <= offsets[b] or offsets[b] + other.byte_length <= offsets[a]
                assert apart, f"{one} at {offsets[a]} and {other} at {offsets[b]}"


@settings(deadline=None)
@given(intervals, st.sampled_from([ALIGNMENT, 256]))
def test_every_intermediate_lies_aligned_within_the_arena(laid, alignment):
    arena = lay_out(laid, alignment)
    assert arena.offsets.keys() == laid.keys()
    for value, interval in laid.items():
        assert arena.offsets[value] >= 0
        assert arena.offsets[value] % alignment == 0
        assert arena.offsets[value] + interval.byte_length <= arena.byte_length


@settings(deadline=None)
@given(intervals)
def test_the_arena_takes_what_lives_together_at_least_and_all_together_at_most(laid):
    sizes = {value: aligned(interval.byte_length) for value, interval in laid.items()}
    together = [
        sum(size for value, size in sizes.items() if laid[value].first <= step <= laid[value].last)
        for step in range(30)
    ]
    assert max(together) <= lay_out(laid).byte_length <= sum(sizes.values())


@settings(deadline=None)
@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_intermediates_that_follow_one_another_share_the_memory_of_the_largest(sizes):
    laid = {Value(SHAPE): Interval(step, step, size) for step, size in enumerate(sizes)}
    assert lay_out(laid).byte_length == aligned(max(sizes))


def places(laid, alignment=ALIGNMENT):
    """Where intermediates lie, each compared with all that were placed before."""
    offsets = {}
    for value, interval in sorted(laid.items(), key=lambda item: -item[1].byte_length):
        size = -(-interval.byte_length // alignment) * alignment
        offset = 0
        for other in sorted(offsets, key=offsets.get):
            taken = laid[other]
            if taken.first <= interval.last and interval.first <= taken.last:
                if offsets[other] - offset >= size:
                    break
                offset = max(offset, offsets[other] + -(-taken.byte_length // alignment) * alignment)
        offsets[value] = offset
    return offsets


spread = st.lists(
    st.builds(
        lambda first, length, size: Interval(first, first + length, size),
        st.integers(0, 100),
        st.integers(0, 3) | st.integers(0, 100),
        st.integers(0, 300) | st.integers(0, 3).map(lambda count: count * ALIGNMENT),
    ),
    max_size=60,
).map(lambda given: dict(enumerate(given)))


@pytest.mark.parametrize("few", [True, False], ids=["found by their time", "compared with all"])
@settings(deadline=None)
@given(laid=spread)
def test_the_largest_comes_first_and_each_into_the_lowest_gap(few, laid):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(plan, "are_few_together", lambda _: few)
        arena = lay_out(laid)
    assert arena.offsets == places(laid)


def test_where_many_are_needed_together_each_is_compared_with_all():
    assert are_few_together([Interval(step, step + 2, 1) for step in range(300)])
    assert not are_few_together([Interval(0, step, 1) for step in range(300)])


class Counted:
    """An interval that counts how often somebody asks when it begins."""

    asked = 0

    def __init__(self, step):
        self._first, self.last, self.byte_length = step, step + step % 3, 100 + step % 7

    @property
    def first(self):
        Counted.asked += 1
        return self._first


def test_each_is_compared_with_few_others_however_many_there_are(monkeypatch):
    monkeypatch.setattr(Counted, "asked", 0)
    count = 3000
    lay_out({step: Counted(step) for step in range(count)})
    assert count < Counted.asked < 20 * count


def test_a_gap_between_two_that_live_on_is_used_again():
    left, gone, right, late = (Value(SHAPE) for _ in range(4))
    arena = lay_out(
        {left: Interval(0, 9, 300), gone: Interval(0, 1, 250), right: Interval(0, 9, 200), late: Interval(5, 9, 150)}
    )
    assert arena.offsets[left] < arena.offsets[gone] < arena.offsets[right]
    assert arena.offsets[late] == arena.offsets[gone]
    assert arena.byte_length == aligned(300) + aligned(250) + aligned(200)


def test_without_intermediates_the_arena_takes_nothing():
    assert lay_out({}).byte_length == 0


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [((0, 2), (2, 3), True), ((0, 2), (3, 4), False), ((0, 9), (4, 5), True), ((3, 3), (3, 3), True)],
)
def test_two_are_needed_together_if_one_step_needs_both(one, other, together):
    a, b = Interval(*one, 1), Interval(*other, 1)
    assert a.overlaps(b) == b.overlaps(a) == together


def lifetimes_of(nodes, *, bases=None, outputs=(), elsewhere=()):
    """First and last step of every intermediate; nodes that stand in a tuple run together, the others one by one."""
    steps = [node if isinstance(node, tuple) else (node,) for node in nodes]
    found = lifetimes(steps, bases or {}, outputs, lambda value: value in elsewhere)
    return {value: (interval.first, interval.last) for value, interval in found.items()}


def test_an_intermediate_is_needed_from_the_step_that_writes_it_to_the_last_that_reads_it():
    x, c = x_and_constant()
    first = add(x, c)
    second = add(first.results[0], c)
    third = add(second.results[0], first.results[0])
    last = add(third.results[0], third.results[0])
    assert lifetimes_of([first, second, third, last], elsewhere=last.results) == {
        first.results[0]: (0, 2),
        second.results[0]: (1, 2),
        third.results[0]: (2, 3),
    }


def test_what_lies_between_nodes_that_run_together_is_needed_in_their_step_only():
    x, c = x_and_constant()
    first = add(x, c)
    second = add(first.results[0], c)
    third = add(second.results[0], first.results[0])
    last = add(third.results[0], c)
    found = lifetimes_of([first, (second, third), last], elsewhere=last.results)
    assert found == {first.results[0]: (0, 1), second.results[0]: (1, 1), third.results[0]: (1, 2)}


def test_an_output_is_needed_after_the_last_step():
    x, c = x_and_constant()
    first = add(x, c)
    second = add(first.results[0], c)
    found = lifetimes_of([first, second], outputs=[first.results[0], second.results[0]])
    assert found == {first.results[0]: (0, 2), second.results[0]: (1, 2)}


def test_what_is_written_straight_into_a_buffer_needs_no_memory():
    x, c = x_and_constant()
    first = add(x, c)
    assert lifetimes_of([first], outputs=first.results, elsewhere=first.results) == {}


def test_a_view_keeps_what_it_looks_at_alive_and_has_no_memory_of_its_own():
    x, c = x_and_constant()
    first = add(x, c)
    view = transpose(first.results[0])
    view_of_view = transpose(view.results[0])
    between = add(x, x)
    reader = add(view_of_view.results[0], between.results[0])
    nodes = [first, view, view_of_view, between, reader]
    bases = {view.results[0]: first.results[0], view_of_view.results[0]: view.results[0]}
    found = lifetimes_of(nodes, bases=bases, elsewhere=reader.results)
    assert found == {first.results[0]: (0, 4), between.results[0]: (3, 4)}


def test_an_output_that_is_a_view_keeps_what_it_looks_at_to_the_end():
    x, c = x_and_constant()
    first = add(x, c)
    view = transpose(first.results[0])
    other = add(x, x)
    bases = {view.results[0]: first.results[0]}
    found = lifetimes_of([first, view, other], bases=bases, outputs=view.results, elsewhere=other.results)
    assert found == {first.results[0]: (0, 3)}


def test_a_view_of_an_input_needs_nothing():
    x, _ = x_and_constant()
    view = transpose(x)
    assert lifetimes_of([view], bases={view.results[0]: x}, outputs=view.results) == {}


def test_an_unused_output_of_a_node_is_needed_while_the_node_runs():
    x, _ = x_and_constant()
    pieces = split(x)
    reader = add(pieces.results[1], pieces.results[1])
    found = lifetimes_of([pieces, reader], elsewhere=reader.results)
    assert found == {pieces.results[0]: (0, 0), pieces.results[1]: (0, 1)}


def test_the_size_of_an_interval_is_that_of_the_value():
    x, c = x_and_constant()
    first = add(x, c)
    assert lifetimes([[first]], {}, [], lambda _: False)[first.results[0]].byte_length == 40


def test_a_node_is_constant_if_all_it_reads_is():
    x, c = x_and_constant()
    constant = add(c, c)
    further = transpose(constant.results[0])
    live = add(x, further.results[0])
    later = add(live.results[0], c)
    graph = Graph.reaching({"y": later.results[0]})
    assert split_constant(graph) == ([constant, further], [live, later])


@st.composite
def drawings(draw):
    """A drawing of a few nodes, with every value that nobody reads as an output."""
    x, c = x_and_constant()
    values = [x, c]
    for _ in range(draw(st.integers(1, 15))):
        operands = [values[draw(st.integers(0, len(values) - 1))] for _ in range(2)]
        node = add(*operands) if draw(st.booleans()) else split(operands[0])
        values.extend(node.results)
    return Graph.reaching({str(index): value for index, value in enumerate(values[2:])})


def depends_on_an_input(value):
    if isinstance(value, (Input, Constant)):
        return isinstance(value, Input)
    return any(depends_on_an_input(operand) for operand in value.node.inputs)


@settings(deadline=None)
@given(drawings())
def test_nodes_are_constant_exactly_if_no_path_leads_to_them_from_an_input(graph):
    folded, live = split_constant(graph)
    for node in graph.nodes:
        assert (node in live) == any(depends_on_an_input(operand) for operand in node.inputs)
        assert (node in folded) != (node in live)
    order = list(graph.nodes)
    assert folded == sorted(folded, key=order.index)
    assert live == sorted(live, key=order.index)


@settings(deadline=None)
@given(drawings())
def test_an_intermediate_lives_at_every_step_that_touches_it(graph):
    _, live = split_constant(graph)
    outputs = [value for value in graph.outputs.values() if value.node in live]
    found = lifetimes([[node] for node in live], {}, outputs, lambda _: False)
    for step, node in enumerate(live):
        for value in (*node.results, *node.inputs):
            if value in found:
                assert found[value].first <= step <= found[value].last
    assert all(found[value].last == len(live) for value in outputs)
