"""Random graphs in several places: where their results disagree, and the smallest part of a graph that shows it."""

import attrs
import numpy as np

from spec_tests.labs.oracles.aims import aimed
from spec_tests.labs.oracles.places import Refused
from spec_tests.labs.oracles.seeded import drawn
from spec_tests.support.random_graphs.bounds import is_float
from spec_tests.support.random_graphs.program import ROUNDS, Program
from webnn_py.core.operators.registry import OPERATORS

FEW = 12
"""So many elements are printed."""


def graph(number, seed, aim=None):
    """The ``number``-th random graph of a seed; every other one has all that is computed as its outputs.

    ``aim`` is one of ``AIMS``, whose graphs have outputs of their own choice.
    """
    if aim is not None:
        return aimed(aim, number, seed)
    drawer = drawn(number, seed)
    computed = [value for call in drawer.calls for value in call.results]
    outputs = [value for value in computed if number % 2 == 0 or value.name not in drawer.read]
    return Program.of(drawer.sources, drawer.calls, outputs)


@attrs.frozen(eq=False)
class Given:
    """An input or a constant of known elements, in the place of what computes them."""

    value: object
    arrays: tuple[np.ndarray, ...]
    is_input: bool = True

    def data(self, number):
        """The elements in a round."""
        return self.arrays[number if self.is_input else 0]

    def __str__(self) -> str:
        value, array = self.value, self.arrays[0]
        of = f"data_type={value.data_type!r}, shape={list(value.shape)}"
        call = f'input("{value}", {of})' if self.is_input else f"constant(data, {of})"
        return f"{value} = builder.{call}  # {', '.join(map(str, array.ravel()[:FEW]))}{' …' * (array.size > FEW)}"


@attrs.frozen(eq=False)
class Disagreement:
    """Places that compute another value than others.

    Attributes:
        operator: what computes it, by its name in the specification.
        features: its data type.
        groups: the places that agree with each other, most of them first; where as many agree, numpy's first.
        text: the value in two places, and how far apart that is.
        program: what computes it.
    """

    operator: str
    features: frozenset[str]
    groups: tuple[tuple[str, ...], ...]
    text: str
    program: Program

    @property
    def odd(self):
        """The places that are not with the most."""
        return tuple(name for group in self.groups[1:] for name in group)


def apart(value, one, other):
    """Return by how much each element of two results differs beyond the bound."""
    kind = np.float64 if is_float(value.data_type) else object  # integers of 64 bits, without rounding
    one, other = one.astype(kind), other.astype(kind)
    with np.errstate(invalid="ignore"):
        away = np.abs(one - other)
    if kind is np.float64:
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        away = np.where(same, 0, np.where(np.isnan(away), np.inf, away))
        most = np.fmax(np.abs(one), np.abs(other))
        allowed = value.known.error + value.known.relative * np.where(np.isfinite(most), most, 0)
    else:
        allowed = value.known.error
    return np.where(away > allowed, away, 0).astype(np.float64)


def groups_of(value, results):
    """Places by what they agree on; ``results`` are the rounds of one output by place."""
    groups = []
    for name, rounds in results.items():
        alike = (
            group
            for group in groups
            if not any(apart(value, *pair).any() for pair in zip(results[group[0]], rounds, strict=True))
        )
        group = next(alike, None)
        if group is None:
            groups.append([name])
        else:
            group.append(name)
    return tuple(map(tuple, sorted(groups, key=len, reverse=True)))


def disagreements(program, results):
    """All of a program, without those that follow from one before."""
    there = {name: rounds for name, rounds in results.items() if not isinstance(rounds, Refused)}
    makers = {value.name: call for call in program.calls for value in call.results}
    wrong = set()
    places = {value.name: number for number, value in enumerate(program.outputs)}
    for value in sorted(program.outputs, key=lambda value: list(makers).index(value.name)):
        number = places[value.name]
        if wrong & needed_by(value, makers):
            continue
        of_value = {name: [outputs[number] for outputs in rounds] for name, rounds in there.items()}
        groups = groups_of(value, of_value)
        if len(groups) > 1:
            wrong.add(value.name)
            call = makers[value.name]
            data_types = {item.data_type for item in (*call.operands, *call.results)}
            part = Program.of(program.sources, program.calls, [value])
            text = told(value, of_value, groups)
            spec_name = OPERATORS[call.method].spec_name
            yield Disagreement(spec_name, frozenset(data_types), groups, text, part)


def needed_by(value, makers):
    """The names of all values that one is computed of."""
    waiting, found = [value.name], set()
    while waiting:
        for operand in makers[waiting.pop()].operands:
            if operand.name in makers and operand.name not in found:
                found.add(operand.name)
                waiting.append(operand.name)
    return found


def told(value, results, groups):
    """The element that is furthest apart between the first two groups."""
    one, other = groups[0][0], groups[1][0]
    away = [apart(value, *pair) for pair in zip(results[one], results[other], strict=True)]
    number = max(range(ROUNDS), key=lambda number: away[number].max(initial=0))
    at = np.unravel_index(np.argmax(away[number]), away[number].shape)
    numbers = ", ".join(f"{results[group[0]][number][at]!s} on {' and '.join(group)}" for group in groups)
    wrong = int((away[number] > 0).sum())
    return (
        f"at {[int(index) for index in at]}: {numbers} ({wrong} of {away[number].size}; may be {value.known.error:g})"
    )


async def smallest(places, found):
    """A disagreement of fewer calls, whose other operands are inputs with what numpy computes of them."""
    names = tuple(dict.fromkeys(["numpy", *(group[0] for group in found.groups)]))
    tried = True
    while tried:
        tried = False
        for call in found.program.calls[:-1]:
            less = await without(places, found.program, call)
            again = disagreements(less, await places.results(less, names))
            if smaller := next((one for one in again if len(one.program.calls) < len(found.program.calls)), None):
                found = attrs.evolve(smaller, groups=found.groups)
                tried = True
                break
    return found


async def without(places, program, call):
    """A program to which the results of a call are given."""
    computed = Program.of(program.sources, program.calls, call.results)
    (rounds,) = (await places.results(computed, ("numpy",))).values()
    given = [
        Given(value, tuple(np.asarray(outputs[number]) for outputs in rounds))
        for number, value in enumerate(call.results)
    ]
    calls = tuple(one for one in program.calls if one is not call)
    return Program.of((*program.sources, *given), calls, program.outputs)
