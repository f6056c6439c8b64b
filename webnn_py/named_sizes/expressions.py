"""Sizes that are known at dispatch only: whole-number expressions of named dimensions.

Part of the proposal "dynamic shapes" (docs/proposals/dynamic_shapes.md); graphs without it have plain integers. A
:class:`SymbolicSize` computes as an integer does and keeps what it is computed from. Where code asks something that
the bounds of its names do not decide (is it 1, does 4 divide it, is it less than 256), the answer is that for the sizes
of the tracing in force, which notes the question and the answer: what the code has made is right for all sizes with
the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, Literal, Self, cast, final

import attrs

from webnn_py.named_sizes.decisions import DECIDED, Relation, Sizes, UnknownSizeError, tracing_in_force


@attrs.frozen
class Atom:
    """The factors of products: a name, or a quotient or remainder that no sum of products is.

    Attributes:
        code: what identifies it: a Python expression of the sizes ``s``.
        text: how it is read.
        kind: a name, ``//``, ``%``, or "scaled": the product with a float, rounded down.
        parts: both sides; of a scaled one, the size and the factor; none of a name.
        low: the least value.
        high: the greatest.
    """

    code: str
    text: str = attrs.field(eq=False)
    kind: Literal["name", "//", "%", "scaled"] = attrs.field(eq=False)
    parts: tuple[Any, ...] = attrs.field(default=(), eq=False, repr=False)
    low: int = attrs.field(default=1, eq=False)
    high: int = attrs.field(default=1, eq=False)

    def value(self, sizes: Sizes) -> int:
        """Return the value for given sizes of the names."""
        if self.kind == "name":
            return sizes[self.text]
        left, right = (value_of(part, sizes) for part in self.parts)
        if self.kind == "scaled":
            return cast("int", math.floor(left * right))
        return cast("int", left // right if self.kind == "//" else left % right)


Terms = tuple[tuple[tuple[Atom, ...], int], ...]


@final
class SymbolicSize:
    """A sum of products of atoms; at least ``low`` and at most ``high`` for all sizes that its names may have."""

    __slots__ = ("_hash", "high", "low", "terms")

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._hash = hash(terms)
        self.low, self.high = _bounds(terms)

    # --- arithmetic ------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> Any:
        return _sum((*self.terms, *_terms(other))) if _is_whole(other) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __sub__(self, other: object) -> Any:
        return self + _negated(other) if _is_whole(other) else NotImplemented

    def __rsub__(self, other: object) -> Any:
        return -self + other if _is_whole(other) else NotImplemented

    def __mul__(self, other: object) -> Any:
        if type(other) is float:
            return ScaledSize(self, other)
        if not _is_whole(other):
            return NotImplemented
        pairs = product(self.terms, _terms(other))
        return _sum(((_ordered((*left, *right)), a * b) for (left, a), (right, b) in pairs))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        if not _is_whole(other):
            return NotImplemented
        exact = _exact_quotient(self, other)
        return SizeFraction(self, other) if exact is None else exact

    def __rtruediv__(self, other: object) -> Any:
        return SizeFraction(other, self) if _is_whole(other) else NotImplemented

    def __floordiv__(self, other: object) -> Any:
        return _quotient(self, other)[0] if _is_whole(other) else NotImplemented

    def __rfloordiv__(self, other: object) -> Any:
        return _quotient(other, self)[0] if _is_whole(other) else NotImplemented

    def __mod__(self, other: object) -> Any:
        return _quotient(self, other)[1] if _is_whole(other) else NotImplemented

    def __rmod__(self, other: object) -> Any:
        return _quotient(other, self)[1] if _is_whole(other) else NotImplemented

    def __divmod__(self, other: object) -> Any:
        return _quotient(self, other) if _is_whole(other) else NotImplemented

    # --- questions -------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return _is_whole(other) and _asked(self - other, "==")

    def __lt__(self, other: object) -> bool:
        return _asked(self - other, "<") if _is_whole(other) else SizeFraction(self, 1) < other

    def __gt__(self, other: object) -> bool:
        return _asked(_negated(self - other), "<") if _is_whole(other) else SizeFraction(self, 1) > other

    def __le__(self, other: object) -> bool:
        return not self > other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return not _asked(self, "==")

    def __hash__(self) -> int:
        return self._hash

    def __index__(self) -> int:
        tracing = tracing_in_force()
        if tracing is None or not tracing.may_specialize:
            raise UnknownSizeError(f"is {self}, which is known at dispatch only; it must be a number")
        value = self.value(tracing.sizes)
        if not tracing.ask(self - value, "=="):
            raise AssertionError(f"{self} is {value}, and is not")
        return value

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __ceil__(self) -> Self:
        return self

    __floor__ = __trunc__ = __ceil__

    def bit_length(self) -> int:
        """Return the number of binary digits, by questions that all sizes of one such range answer alike."""
        bits = 0
        while self >= 1 << bits:
            bits += 1
        return bits

    # --- values ----------------------------------------------------------------------------------------------

    def value(self, sizes: Sizes) -> int:
        """Return the value for given sizes of the names."""
        total = 0
        for atoms, coefficient in self.terms:
            total += coefficient * math.prod(atom.value(sizes) for atom in atoms)
        return total

    @property
    def names(self) -> frozenset[str]:
        """The names that it is computed from."""
        return frozenset(_names(self))

    @property
    def determines(self) -> str | None:
        """The name whose size follows from the value; None where none does."""
        (first, *others) = [atoms for atoms, _ in self.terms if atoms]
        return first[0].text if not others and len(first) == 1 and first[0].kind == "name" else None

    @property
    def is_name(self) -> bool:
        """Return whether it is a named dimension itself."""
        return len(self.terms) == 1 and self.terms[0][1] == 1 and [a.kind for a in self.terms[0][0]] == ["name"]

    def __repr__(self) -> str:
        text = " + ".join(_term_text(atoms, coefficient) for atoms, coefficient in self.terms)
        return text.replace("+ -", "- ")

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        tracing = tracing_in_force()
        if tracing is None or tracing.mark is None:
            return format(repr(self), how)
        if self.names <= tracing.determined:
            return format(self.value(tracing.sizes), how)
        return format(self.__index__(), how) if how else tracing.mark(self)


@attrs.frozen(eq=False)
class SizeFraction:
    """A quotient of sizes that is not rounded yet; the denominator is above 0."""

    numerator: Any
    denominator: Any

    def __add__(self, other: object) -> Any:
        if not _is_whole(other):
            return NotImplemented
        return SizeFraction(self.numerator + self.denominator * other, self.denominator)

    __radd__ = __add__

    def __floor__(self) -> Any:
        return self.numerator // self.denominator

    def __ceil__(self) -> Any:
        return -(-self.numerator // self.denominator)

    def __float__(self) -> float:
        return float(self.numerator) / float(self.denominator)

    def __lt__(self, other: object) -> bool:
        parts = _parts(other)
        return self.numerator * parts[1] < parts[0] * self.denominator if parts else NotImplemented

    def __gt__(self, other: object) -> bool:
        parts = _parts(other)
        return self.numerator * parts[1] > parts[0] * self.denominator if parts else NotImplemented


@attrs.frozen
class ScaledSize:
    """A size multiplied by a float, about to be rounded down."""

    size: Any
    factor: float

    def __floor__(self) -> Any:
        low, high = (int(end * self.factor // 1) for end in (self.size.low, self.size.high))
        text = "floor(" + str(self.size) + f" * {self.factor})"
        code = f"int(({code_of(self.size)}) * {self.factor!r} // 1)"
        return _of_atom(Atom(code, text, "scaled", (self.size, self.factor), low, high))


def _parts(value: object) -> tuple[Any, int] | None:
    """Return a number or fraction as numerator and denominator."""
    if isinstance(value, SizeFraction):
        return value.numerator, value.denominator
    if isinstance(value, float):
        return value.as_integer_ratio() if math.isfinite(value) else None
    return (value, 1) if _is_whole(value) else None


def _asked(expression: Any, relation: Relation) -> bool:
    """Return whether an expression is 0, or below 0: from its bounds, else as the tracing in force decides."""
    if type(expression) is int:
        return DECIDED[relation](expression)
    if relation == "==" and not expression.low <= 0 <= expression.high:
        return False
    if relation == "<" and (expression.high < 0 or expression.low >= 0):
        return bool(expression.high < 0)
    tracing = tracing_in_force()
    if tracing is not None:
        return tracing.ask(expression, relation)
    if relation == "==":
        return False  # equal are two sizes that are computed alike
    raise UnknownSizeError(f"is {expression}, whose sign is known at dispatch only; it must be a number")


# --- names and values ------------------------------------------------------------------------------------------


def named_size(name: str, low: int, high: int) -> SymbolicSize:
    """Return a named dimension, of at least ``low`` and at most ``high``."""
    return SymbolicSize((((Atom(f"s[{name!r}]", name, "name", (), low, high),), 1),))


def value_of(number: Any, sizes: Sizes) -> Any:
    """Return a number as it is; a size, when the names have these sizes."""
    return number.value(sizes) if type(number) is SymbolicSize else number


def _names(size: SymbolicSize) -> Iterator[str]:
    for atoms, _ in size.terms:
        for atom in atoms:
            if atom.kind == "name":
                yield atom.text
            yield from (name for part in atom.parts if type(part) is SymbolicSize for name in _names(part))


# --- sums of products ------------------------------------------------------------------------------------------


def _is_whole(value: object) -> bool:
    return type(value) is SymbolicSize or isinstance(value, int)


def _negated(value: Any) -> Any:
    return value * -1


def _terms(value: Any) -> Terms:
    return value.terms if type(value) is SymbolicSize else (((), int(value)),)


def _ordered(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    return tuple(sorted(atoms, key=lambda atom: atom.code))


def _sum(terms: Iterable[tuple[tuple[Atom, ...], int]]) -> Any:
    """Return the sum of products, as a number where it is always the same."""
    coefficients: dict[tuple[Atom, ...], int] = {}
    for atoms, coefficient in terms:
        coefficients[atoms] = coefficients.get(atoms, 0) + coefficient
    undivided = _undivided(coefficients)
    if undivided is not None:
        return undivided
    kept = [(atoms, coefficient) for atoms, coefficient in coefficients.items() if coefficient]
    if not kept or kept == [((), coefficients.get(()))]:
        return coefficients.get((), 0)
    # Names first, the number last.
    kept.sort(key=lambda term: (not term[0], [(atom.kind != "name", atom.code) for atom in term[0]]))
    size = SymbolicSize(tuple(kept))
    return size.low if size.low == size.high else size


def _undivided(coefficients: dict[tuple[Atom, ...], int]) -> Any:
    """Return a sum in which a remainder and the quotient's multiple are together what was divided; None for another."""
    for atoms, coefficient in coefficients.items():
        for atom in atoms:
            if atom.kind != "%" or type(atom.parts[1]) is not int or not coefficient:
                continue
            divided, divisor = atom.parts
            others = tuple(other for other in atoms if other is not atom)
            quotient = _of_atom(_quotient_atom(divided, divisor))
            ((pair, _),) = quotient.terms if type(quotient) is SymbolicSize else (((), 0),)
            whole = _ordered((*others, *pair))
            if pair and coefficients.get(whole) == coefficient * divisor:
                rest = [(own, number) for own, number in coefficients.items() if own not in (atoms, whole)]
                product_of_others = SymbolicSize(((others, coefficient),)) if others else coefficient
                return _sum((*rest, *_terms(divided * product_of_others)))
    return None


def _bounds(terms: Terms) -> tuple[int, int]:
    low = high = 0
    for atoms, coefficient in terms:
        least = most = coefficient
        for atom in atoms:
            corners = (least * atom.low, least * atom.high, most * atom.low, most * atom.high)
            least, most = min(corners), max(corners)
        low, high = low + least, high + most
    return low, high


def _of_atom(atom: Atom) -> Any:
    return atom.low if atom.low == atom.high else SymbolicSize((((atom,), 1),))


def _quotient(left: Any, right: Any) -> tuple[Any, Any]:
    """Return the quotient, rounded down, and the remainder."""
    if isinstance(right, int) and right == 0:
        raise ZeroDivisionError("division of a size by zero")
    exact = _exact_quotient(left, right)
    if exact is not None:
        return exact, 0
    whole, rest = _split(left, right) if type(right) is int else (0, left)
    if type(rest) is int and type(right) is int:
        return whole + rest // right, rest % right
    undivided = _without_remainders(rest, right) if type(right) is int else None
    if undivided is not None:
        quotient, remainder = _quotient(undivided, right)
        return whole + quotient, remainder
    atom = _quotient_atom(rest, right)
    rounded = _of_atom(atom)
    if type(rounded) is int:
        return whole + rounded, rest - rounded * right
    text, code = atom.text.replace("//", "%"), f"({code_of(rest)}) % ({code_of(right)})"
    low, high = _ends(right)
    remainder = _of_atom(Atom(code, text, "%", (rest, right), min(low + 1, 0), max(high - 1, 0)))
    return whole + rounded, remainder


def _quotient_atom(left: Any, right: Any) -> Atom:
    low, high = _quotient_bounds(left, right)
    text = f"{_operand_text(left)} // {_operand_text(right)}"
    return Atom(f"({code_of(left)}) // ({code_of(right)})", text, "//", (left, right), low, high)


def _without_remainders(left: Any, divisor: int) -> Any:
    """Return a sum with ``x - x // divisor * divisor`` for each ``x % divisor``, if the divisor then divides it."""
    expanded = left
    for atoms, coefficient in _terms(left):
        if len(atoms) == 1 and atoms[0].kind == "%" and atoms[0].parts[1] == divisor:
            divided = atoms[0].parts[0]
            quotient = _of_atom(_quotient_atom(divided, divisor))
            # Added one by one: all at once they would be put together again.
            rest = expanded - SymbolicSize(((atoms, coefficient),))
            expanded = rest + divided * coefficient - quotient * (divisor * coefficient)
    return expanded if expanded is not left and _exact_quotient(expanded, divisor) is not None else None


def _quotient_bounds(left: Any, right: Any) -> tuple[int, int]:
    lows, rights = (_ends(left), [end for end in _ends(right) if end])
    corners = [a // b for a in lows for b in rights]
    return min(corners), max(corners)


def _ends(value: Any) -> tuple[int, int]:
    return (value.low, value.high) if type(value) is SymbolicSize else (value, value)


def _split(left: Any, divisor: int) -> tuple[Any, Any]:
    """Divide a sum by a number: return the part that it divides, and the rest with the smallest coefficients."""
    parts = [(atoms, _toward_zero(coefficient, divisor)) for atoms, coefficient in _terms(left)]
    whole = _sum(parts)
    return whole, left - whole * divisor


def _toward_zero(number: int, divisor: int) -> int:
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def _exact_quotient(left: Any, right: Any) -> Any:
    """Return the quotient where it is a sum of products by its terms; None where it is not."""
    if left is right or (type(left) is SymbolicSize and type(right) is SymbolicSize and left.terms == right.terms):
        return 1
    divisor = _terms(right)
    if len(divisor) != 1:
        return None
    atoms, coefficient = divisor[0]
    terms = []
    for own, number in _terms(left):
        rest = list(own)
        for atom in atoms:
            if atom not in rest:
                return None
            rest.remove(atom)
        if number % coefficient:
            return None
        terms.append((tuple(rest), number // coefficient))
    return _sum(terms)


# --- texts -----------------------------------------------------------------------------------------------------


def _term_text(atoms: tuple[Atom, ...], coefficient: int) -> str:
    factors = [atom.text if atom.kind == "name" else f"({atom.text})" for atom in atoms]
    if coefficient == -1 and factors:
        return "-" + " * ".join(factors)
    return " * ".join(([] if coefficient == 1 and factors else [str(coefficient)]) + factors)


def _operand_text(value: Any) -> str:
    return str(value) if type(value) is not SymbolicSize or value.is_name else "(" + str(value) + ")"


def code_of(value: Any) -> str:
    """Return a key that equal numbers and sizes share."""
    if type(value) is not SymbolicSize:
        return str(value)
    return " + ".join("*".join([str(number), *(f"({atom.code})" for atom in atoms)]) for atoms, number in value.terms)
