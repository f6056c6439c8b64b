"""The plan of a graph: nodes that are computed at build, lifetimes of intermediates, and their places in the arena."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Constant, Graph, Input, Node, Value
from webnn_py.core.operators import arithmetic, movement
from webnn_py.devices.arena import ALIGNMENT, Interval, lay_out, lifetimes, split_constant

SHAPE = MLOperandDescriptor("float32", (10,))


def add(a, b):
    return Node(arithmetic.add, {"a": a, "b": b}, {}, (SHAPE,)).results[0]


def transpose(a):
    return Node(movement.transpose, {"input": a}, {"permutation": None}, (SHAPE,)).results[0]


def split(a):
    return Node(movement.split, {"input": a}, {"splits": 2, "axis": 0}, (SHAPE, SHAPE)).results


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


@given(intervals)
def test_intermediates_that_are_needed_at_the_same_step_never_overlap(laid):
    offsets = lay_out(laid).offsets
    for a, one in laid.items():
        for b, other in laid.items():
            if a is not b and set(range(one.first, one.last + 1)) & set(range(other.first, other.last + 1)):
                apart = offsets[a] + one.byte_length <= offsets[b] or offsets[b] + other.byte_length <= offsets[a]
                assert apart, f"{one} at {offsets[a]} and {other} at {offsets[b]}"


@given(intervals, st.sampled_from([ALIGNMENT, 256]))
def test_every_intermediate_is_aligned_within_the_arena(laid, alignment):
    arena = lay_out(laid, alignment)
    assert arena.offsets.keys() == laid.keys()
    for value, interval in laid.items():
        assert arena.offsets[value] >= 0
        assert arena.offsets[value] % alignment == 0
        assert arena.offsets[value] + interval.byte_length <= arena.byte_length


@given(intervals)
def test_the_arena_takes_what_lives_together_at_least_and_all_together_at_most(laid):
    sizes = {value: aligned(interval.byte_length) for value, interval in laid.items()}
    together = [
        sum(size for value, size in sizes.items() if laid[value].first <= step <= laid[value].last)
        for step in range(30)
    ]
    assert max(together) <= lay_out(laid).byte_length <= sum(sizes.values())


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_intermediates_that_follow_one_another_share_the_memory_of_the_largest(sizes):
    laid = {Value(SHAPE): Interval(step, step, size) for step, size in enumerate(sizes)}
    assert lay_out(laid).byte_length == aligned(max(sizes))


def places(laid, alignment=ALIGNMENT):
    """Place intermediates, each compared with all that were placed before."""
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


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [((0, 2), (2, 3), True), ((0, 2), (3, 4), False), ((0, 9), (4, 5), True), ((3, 3), (3, 3), True)],
)
def test_two_are_needed_together_if_one_step_needs_both(one, other, together):
    a, b = Interval(*one, 1), Interval(*other, 1)
    assert a.overlaps(b) == b.overlaps(a) == together


def lifetimes_of(made, *, bases=None, outputs=(), elsewhere=()):
    """Return the first and last step of every intermediate of nodes, which are given by their results."""
    found = lifetimes([value.node for value in made], bases or {}, outputs, elsewhere)
    return {value: (interval.first, interval.last) for value, interval in found.items()}


def test_an_intermediate_is_needed_from_the_step_that_writes_it_to_the_last_that_reads_it():
    x, c = x_and_constant()
    first = add(x, c)
    second = add(first, c)
    third = add(second, first)
    last = add(third, third)
    found = lifetimes_of([first, second, third, last], elsewhere=[last])
    assert found == {first: (0, 2), second: (1, 2), third: (2, 3)}
    found = lifetimes_of([first, second], outputs=[first, second])
    assert found == {first: (0, 2), second: (1, 2)}, "an output is needed after the last step"
    assert lifetimes_of([first], outputs=[first], elsewhere=[first]) == {}, "a buffer needs no memory"
    assert lifetimes([first.node], {}, [], ())[first].byte_length == 40


def test_a_view_needs_no_memory_of_its_own_and_the_memory_of_its_base():
    x, c = x_and_constant()
    first = add(x, c)
    view = transpose(first)
    view_of_view = transpose(view)
    between = add(x, x)
    reader = add(view_of_view, between)
    found = lifetimes_of(
        [first, view, view_of_view, between, reader], bases={view: first, view_of_view: view}, elsewhere=[reader]
    )
    assert found == {first: (0, 4), between: (3, 4)}
    found = lifetimes_of([first, view, between], bases={view: first}, outputs=[view], elsewhere=[between])
    assert found == {first: (0, 3)}, "an output that is a view is needed to the end"
    view = transpose(x)
    assert lifetimes_of([view], bases={view: x}, outputs=[view]) == {}


def test_an_unused_output_of_a_node_is_needed_while_the_node_runs():
    x, _ = x_and_constant()
    unused, used = split(x)
    reader = add(used, used)
    assert lifetimes_of([unused, reader], elsewhere=[reader]) == {unused: (0, 0), used: (0, 1)}


def test_a_node_is_constant_if_all_its_operands_are():
    x, c = x_and_constant()
    constant = add(c, c)
    further = transpose(constant)
    live = add(x, further)
    later = add(live, c)
    graph = Graph.reaching({"y": later})
    assert split_constant(graph) == ([constant.node, further.node], [live.node, later.node])


@st.composite
def drawings(draw):
    """Draw a few nodes, with every unread value as an output."""
    x, c = x_and_constant()
    values = [x, c]
    for _ in range(draw(st.integers(1, 15))):
        operands = [values[draw(st.integers(0, len(values) - 1))] for _ in range(2)]
        values.extend([add(*operands)] if draw(st.booleans()) else split(operands[0]))
    return Graph.reaching({str(index): value for index, value in enumerate(values[2:])})


def depends_on_an_input(value):
    if isinstance(value, (Input, Constant)):
        return isinstance(value, Input)
    return any(depends_on_an_input(operand) for operand in value.node.inputs)


@given(drawings())
def test_nodes_are_constant_exactly_if_no_path_leads_to_them_from_an_input(graph):
    folded, live = split_constant(graph)
    for node in graph.nodes:
        assert (node in live) == any(depends_on_an_input(operand) for operand in node.inputs)
        assert (node in folded) != (node in live)
    order = list(graph.nodes)
    assert folded == sorted(folded, key=order.index)
    assert live == sorted(live, key=order.index)


@given(drawings())
def test_an_intermediate_lives_at_every_step_that_touches_it(graph):
    _, live = split_constant(graph)
    outputs = [value for value in graph.outputs.values() if value.node in live]
    found = lifetimes(live, {}, outputs, ())
    for step, node in enumerate(live):
        for value in (*node.results, *node.inputs):
            if value in found:
                assert found[value].first <= step <= found[value].last
    assert all(found[value].last == len(live) for value in outputs)
