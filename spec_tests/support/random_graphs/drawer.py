"""Drawing random programs: fitting operands, existing or new, and calls of the builder."""

import math

import attrs
from hypothesis import strategies as st

from spec_tests.support.random_graphs import bounds
from spec_tests.support.random_graphs.bounds import Known, Value, is_float
from spec_tests.support.random_graphs.program import Call, Program, Source
from webnn_py.core.operators.registry import OPERATORS

FLOATS = ("float32", "float16")
INTEGERS = ("int32", "uint32", "int64", "uint64", "int8", "uint8")
ANY = FLOATS + INTEGERS
NUMBERS = (*FLOATS, "int32", "uint32", "int64", "uint64")
SIGNED = ("float32", "float16", "int32", "int64", "int8")

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 31, 32, 33, 64, 100, 257)
HIGHEST_RANK = 5
MOST_OUTPUTS = 5
MODERATE = 8
"""Floats that are operands lie between -8 and 8 (where an operator has no domain of its own)."""

MOST_APART = {"float32": 2.0**-13, "float16": 2.0**-5}
"""Values that may be further apart are not read any more."""


@attrs.define(eq=False)
class Drawer:
    """A program that grows.

    Attributes:
        draw: hypothesis' function.
        types: the data types that all devices have.
        most_elements: how large values may become.
        sources: what it has drawn so far, as are the calls and the values of both.
        read: the names of the values that calls have read.
        following: the value that the next operand is, if it may be.
    """

    draw: object
    types: tuple[str, ...]
    most_elements: int
    sources: list[Source] = attrs.field(factory=list)
    calls: list[Call] = attrs.field(factory=list)
    values: list[Value] = attrs.field(factory=list)
    read: set[str] = attrs.field(factory=set)
    following: Value | None = None

    # --- choices ---------------------------------------------------------------------------------------------

    def choose(self, *items):
        return self.draw(st.sampled_from(items))

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def flag(self):
        return self.draw(st.booleans())

    def some(self, items):
        """Some of the items, in any order."""
        return self.draw(st.lists(st.sampled_from(items), unique=True)) if items else []

    def permutation(self, items):
        return list(self.draw(st.permutations(items)))

    def length(self, most):
        """The length of an axis."""
        return self.choose(*[length for length in LENGTHS if length <= max(1, most)])

    def shape(self, rank, most=None):
        most, shape = most or self.most_elements, []
        for _ in range(rank):
            shape.append(self.length(most // math.prod(shape)))
        return tuple(self.permutation(shape)) if rank > 1 else tuple(shape)

    # --- calls -----------------------------------------------------------------------------------------------

    def call(self, method, *args, known, **options):
        """Append a call of the builder's ``method``; ``known`` is of its result, or a list of those of all."""
        operator = OPERATORS[method]
        inferred = operator.function(*args, **options)
        described = inferred if operator.returns_sequence else [inferred]
        knowns = known if isinstance(known, list) else [known] * len(described)
        results = tuple(
            Value(f"v{len(self.values) + number}", descriptor.data_type, tuple(descriptor.shape), item)
            for number, (descriptor, item) in enumerate(zip(described, knowns, strict=True))
        )
        self.values += results
        call = Call(method, args, options, results, operator.returns_sequence)
        self.calls.append(call)
        self.read.update(value.name for value in call.operands)
        return results if operator.returns_sequence else results[0]

    def room(self, *shapes_or_sizes):
        """Return whether results of all these sizes may be computed."""
        sizes = (item if isinstance(item, int) else math.prod(item) for item in shapes_or_sizes)
        return all(size <= self.most_elements for size in sizes)

    def program(self):
        return Program.of(self.sources, self.calls, self.outputs())

    def outputs(self):
        """Values that are to be outputs: what nothing reads, or some of it, and perhaps what is read as well."""
        computed = [value for call in self.calls for value in call.results]
        unread = [value for value in computed if value.name not in self.read]
        way = self.choose("last", "unread", "unread", "some")
        outputs = {"last": computed[-1:], "unread": unread[-MOST_OUTPUTS:], "some": []}[way]
        more = self.integer(1 if way == "some" else 0, MOST_OUTPUTS)
        return outputs + [self.choose(*reversed(computed)) for _ in range(more)]

    # --- operands --------------------------------------------------------------------------------------------

    def source(self, data_type, shape, known=None, *, is_input=None):
        """A new input or constant."""
        if known is None:
            known = self.choose(*usual_data(data_type))
        is_input = self.choose(True, True, False) if is_input is None else is_input
        value = Value(f"{'x' if is_input else 'c'}{len(self.values)}", data_type, tuple(shape), known)
        self.values.append(value)
        self.sources.append(Source(value, is_input, self.integer(0, 99)))
        return value

    def pick(self, types=ANY, *, exact=False, rank=(0, HIGHEST_RANK), within=None, grid=False, most=None):
        """An operand.

        Args:
            types: its data type is one of these.
            exact: both devices have computed the same.
            rank: the rank, or the lowest and the highest.
            within: the least and the greatest that floats may be.
            grid: whether floats have to be multiples of 1/8; only when exact.
            most: how many elements it may have.
        """
        types = [data_type for data_type in types if data_type in self.types]
        most = most or self.most_elements
        fitting = [
            value
            for value in self.values
            if value.data_type in types and value.size <= most and is_good(value, exact=exact or grid)
        ]
        lowest, highest = (rank, rank) if isinstance(rank, int) else rank
        if self.following in fitting:
            value = self.following
        elif fitting and self.choose(True, True, True, True, True, False):
            unread = [value for value in fitting if value.name not in self.read]
            value = self.choose(*reversed(unread if unread and self.choose(True, True, True, False) else fitting))
        else:
            wanted = self.integer(lowest, min(highest, HIGHEST_RANK))
            value = self.source(self.choose(*types), self.shape(wanted, min(most, self.usual_elements)))
        if not lowest <= value.rank <= highest:
            value = self.reshaped(value, self.integer(lowest, min(highest, HIGHEST_RANK)))
        if value.rank and self.choose(False, False, False, False, True):
            value = self.viewed(value)
        return self.on_grid(value) if grid else self.within(value, within)

    @property
    def usual_elements(self):
        """The largest number of elements of a source."""
        return max(60, self.most_elements // 4)

    def operand(self, data_type, shape, known=None, *, within=None):
        """An operand of a data type and a shape.

        Args:
            data_type: its data type.
            shape: its shape.
            known: what a new source is to be like.
            within: as in :meth:`pick`; those of ``known`` when absent.
        """
        shape, size = tuple(shape), math.prod(shape)
        there = [v for v in self.values if v.data_type == data_type and is_good(v)]
        alike = [v for v in there if v.shape == shape]
        larger = [v for v in there if v.size >= size]
        way = self.choose("new", *["alike"] * bool(alike), *["cut"] * bool(larger))
        if way == "new":
            return self.source(data_type, shape, known)
        value = self.choose(*alike) if way == "alike" else self.cut(self.choose(*larger), shape)
        if within is None and known is not None:
            within = known.low, known.high
        return self.within(value, within)

    def broadcastable(self, value, known=None, *, within=None):
        """An operand whose shape broadcasts to that of ``value``, or to which, perhaps, that broadcasts."""
        shape = [size if self.choose(True, True, False) else 1 for size in value.shape]
        shape = shape[self.integer(0, len(shape)) :] if self.choose(False, False, True) else shape
        if value.rank < HIGHEST_RANK and self.choose(False, False, True) and self.room(2 * value.size):
            shape = [2, *[1] * (value.rank - len(shape)), *shape]
        return self.operand(value.data_type, shape, known, within=within)

    def cut(self, value, shape):
        """The first elements of a value, in a shape."""
        size = math.prod(shape)
        if value.size > size or value.shape == ():
            value = self.move("reshape", value, [value.size])
        if value.size > size:
            value = self.move("slice", value, [self.integer(0, value.size - size)], [size])
        return value if value.shape == shape else self.move("reshape", value, list(shape))

    def move(self, method, value, *args, **options):
        """A call that moves the elements of one operand."""
        return self.call(method, value, *args, known=value.known, **options)

    def reshaped(self, value, rank):
        """The same elements in a shape of another rank; the first of them where that is 0."""
        if rank == 0:
            return self.cut(value, ())
        shape = [1] * rank
        for factor in prime_factors(value.size):
            shape[self.integer(0, rank - 1)] *= factor
        return self.move("reshape", value, shape)

    def viewed(self, value):
        """The same elements, or some of them, in another order: kernels are to read views as well."""
        way = self.choose("transpose", "reverse", "slice")
        if way == "transpose":
            return self.move("transpose", value, permutation=self.permutation(range(value.rank)))
        if way == "reverse":
            return self.move("reverse", value, axes=self.some(range(value.rank)))
        starts = [self.choose(0, 0, min(1, size - 1)) for size in value.shape]
        sizes = [size - start for size, start in zip(value.shape, starts, strict=True)]
        return self.move("slice", value, starts, sizes, strides=[self.choose(1, 1, 2) for _ in sizes])

    def within(self, value, within=None):
        """A float's values in a range, by clamping or scaling; integers as they are."""
        if not is_float(value.data_type):
            return value
        low, high = within or (-MODERATE, MODERATE)
        known = value.known
        if known.low >= low and known.high <= high:
            return value
        if low < 0 < high and self.flag():
            factor = 2.0 ** -math.ceil(math.log2(max(known.low / low, known.high / high)))
            step, spread = known.step * factor, known.error * factor
            scaled = bounds.rounded(value.data_type, known.low * factor, known.high * factor, step=step, spread=spread)
            return self.call("linear", value, known=scaled, alpha=factor)
        return self.clamped(value, low, high)

    def clamped(self, value, low, high):
        """A value between two multiples of 1/64."""
        known = value.known
        least, greatest = min(max(known.low, low), high), max(min(known.high, high), low)
        step = known.step if known.step and not (low % known.step or high % known.step) else min(known.step, 2.0**-6)
        clamped = attrs.evolve(known, low=least, high=greatest, step=step)
        return self.call("clamp", value, known=clamped, min_value=low, max_value=high)

    def on_grid(self, value):
        """A float's values as multiples of 1/8, between -8 and 8; integers as they are."""
        value = self.within(value)
        if not is_float(value.data_type) or value.known.step >= 1 / 8:
            return value
        for method, factor in (("linear", 8.0), ("round_even", 1.0), ("linear", 1 / 8)):
            known = value.known
            step = max(known.step * factor, 1.0 if method == "round_even" else 0)
            low, high = known.low * factor, known.high * factor
            scaled = Known(math.floor(low), math.ceil(high), step) if factor == 1 else Known(low, high, step)
            value = self.call(method, value, known=scaled, **({"alpha": factor} if factor != 1 else {}))
        return value


def is_good(value, *, exact=False):
    """Return whether a value may be read."""
    apart = value.known.error
    return apart == 0 or (not exact and apart <= MOST_APART[value.data_type])


def usual_data(data_type):
    """Return usual bounds of sources: short floats, and some of full precision."""
    if is_float(data_type):
        # Products of those of float16 are exact in float32, and then rounded.
        return Known(-4, 4, 2.0**-3), Known(-4, 4, 2.0**-20 if data_type == "float32" else 2.0**-7)
    low = 0 if data_type.startswith("u") else -9
    lowest, highest = bounds.INTEGER_RANGES[data_type]
    return Known(low, 9, 1), Known(max(lowest, -(2**62)), min(highest, 2**62), 1)


def prime_factors(size):
    for factor in range(2, math.isqrt(size) + 1):
        if size % factor == 0:
            return [factor, *prime_factors(size // factor)]
    return [size] if size > 1 else []
