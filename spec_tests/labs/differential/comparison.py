"""Comparison of two results of a program: whether they agree, and which listed difference explains it if not."""

import math
import re
import tomllib
from pathlib import Path

import attrs
import numpy as np

from spec_tests.labs.differential.program import Step
from spec_tests.support.random_graphs.bounds import is_float

ULPS = {"float32": 64, "float16": 4}
"""How far functions of single numbers may be apart, where nothing else is known of a result."""
SUMS = {"cumulativeSum", "reduceSum", "reduceMean", "hardSigmoid"}
NEAR = 2.0**-8
"""Numbers that are no further apart, in proportion, are called near."""
LEAST = {"float32": 2.0**-126, "float16": 2.0**-14}
"""Numbers below may count as zero."""


@attrs.frozen
class Listed:
    """A known difference, with its reason.

    Attributes:
        name: what reports call it.
        kinds: the kinds of programs that it is about.
        operators: the operators; empty for all.
        features: what a step must have; with "!" in front what it must not have.
        ours: a pattern for what is said here, of the whole text.
        theirs: a pattern for what the browser says.
        right: who follows the text: "here", "browser", or "open" where the text leaves it open.
        reason: why.
    """

    name: str
    kinds: tuple[str, ...]
    operators: frozenset[str]
    features: frozenset[str]
    ours: str
    theirs: str
    right: str
    reason: str

    def explains(self, one):
        """Return whether a difference is this one."""
        if one.kind not in self.kinds:
            return False
        patterns = (self.ours, one.pair[0]), (self.theirs, one.pair[1])
        if self._is_about(one.operator, one.features):
            return all(re.fullmatch(pattern, said) for pattern, said in patterns)
        return any(self._is_about(step.operator, step.features) for step in one.hidden)

    def _is_about(self, operator, features):
        absent = {feature[1:] for feature in self.features if feature.startswith("!")}
        present = {feature for feature in self.features if not feature.startswith("!")}
        return (not self.operators or operator in self.operators) and present <= features and not absent & features


@attrs.frozen
class Difference:
    """A difference in one place of a program.

    Attributes:
        kind: the program's.
        place: the output, or "".
        operator: what has computed it.
        features: of the step.
        pair: what is said here and there; of values their kinds, of which the listed differences speak.
        text: in words.
        hidden: steps on the way to it whose results are no outputs: it may come from them.
    """

    kind: str
    place: str
    operator: str
    features: frozenset[str]
    pair: tuple[str, str]
    text: str
    hidden: tuple[Step, ...] = ()


def load():
    """Return the listed differences."""
    text = Path(__file__).with_name("differences.toml").read_text(encoding="utf-8")
    return [
        Listed(
            name,
            tuple(one["kinds"]),
            frozenset(one.get("operators", ())),
            frozenset(one.get("features", ())),
            one.get("ours", ".*"),
            one.get("theirs", ".*"),
            one["right"],
            one["reason"],
        )
        for name, one in tomllib.loads(text).items()
    ]


def differences(program, ours, theirs):
    """All differences of two results, without those that follow from one before."""
    if "outputs" in ours and "outputs" in theirs:
        return list(_of_values(program, ours["outputs"], theirs["outputs"]))
    if "outcomes" in ours and "outcomes" in theirs:
        return list(_of_events(program, ours, theirs))
    said = tuple(map(_said, (ours, theirs)))
    if said[0] == said[1]:
        return []
    operators = {step.operator for step in program.steps.values()}
    operator = operators.pop() if len(operators) == 1 else _named(theirs) or _named(ours)
    words = f"here: {said[0]}  {ours.get('message', '')}\nthere: {said[1]}  {theirs.get('message', '')}"
    return [Difference(program.kind, "", operator, _features(program.steps), said, words)]


def _features(steps):
    """Return the operators, features, and operators with features of some steps."""
    operators = {f"{step.operator} {feature}".strip() for step in steps.values() for feature in ("", *step.features)}
    return frozenset(operators).union(*(step.features for step in steps.values()))


def _of_events(program, ours, theirs):
    """Return the outcomes of calls, and the order of settlements: among those of a kind, or among all."""
    ((_, step),) = program.steps.items()
    ends = {"destroyTensor"} & step.features
    for name in sorted(ours["outcomes"].keys() | theirs["outcomes"].keys()):
        pair = tuple(result["outcomes"].get(name, "nothing") for result in (ours, theirs))
        if pair[0] != pair[1]:
            kind = name.lstrip("0123456789")
            features = step.features - (set() if name in step.operands else ends)
            yield Difference(program.kind, name, kind, features, pair, f"{name}: {pair[0]} here, {pair[1]} there")
    yield from _of_order(program, step, ours, theirs)


def _of_order(program, step, ours, theirs):
    """In what order promises are settled: those that are fulfilled, of each kind and of all; then all of them."""
    orders = [
        [name for name in result["order"] if name in other["order"]]
        for result, other in ((ours, theirs), (theirs, ours))
    ]
    words = f"here: {' '.join(orders[0])}\nthere: {' '.join(orders[1])}"
    rejected = {name for one in (ours, theirs) for name, said in one["outcomes"].items() if said.startswith("rejects")}
    fulfilled = [[name for name in order if name not in rejected] for order in orders]
    if fulfilled[0] == fulfilled[1] and orders[0] != orders[1]:
        yield Difference(program.kind, "order", "order", step.features, ("rejections", "rejections"), words)
    features = step.features - {"destroyTensor", "destroyContext"}  # an end changes the order of rejections alone
    for kind in ("read", "create", "build"):
        one, other = ([name for name in order if kind in name] for order in fulfilled)
        if one != other:
            yield Difference(program.kind, "order", "order", features, (kind, kind), words)
            fulfilled[1] = fulfilled[0]
    if fulfilled[0] != fulfilled[1]:
        yield Difference(program.kind, "order", "order", features, ("kinds", "kinds"), words)


def _named(result):
    """The method that an error names."""
    found = re.search(r"execute '(\w+)'|^(?:build\(\): )?(\w+)\(", result.get("message", ""))
    return "" if found is None else found[1] or found[2]


def _said(result):
    """A result that is no values, as text: what a program says, or the error that ended it."""
    if "error" in result:
        return f"{result['stage']} {result['error']}"
    return "values" if "outputs" in result else str(result.get("said", "events"))


def array_of(output):
    """The elements of an output."""
    return np.frombuffer(bytes.fromhex(output["bytes"]), output["dataType"]).reshape(output["shape"])


def _of_values(program, ours, theirs):
    wrong = set()
    for name in sorted(ours.keys() | theirs.keys(), key=lambda name: (len(name), name)):
        step = program.steps[name]
        if wrong.intersection(step.operands):  # what follows from a wrong value says nothing new
            wrong.add(name)
            continue
        one = ours.get(name), theirs.get(name)
        if None in one or any(one[0][key] != one[1][key] for key in ("dataType", "shape")):
            text = f"here: {_signature(one[0])}\nthere: {_signature(one[1])}"
            pair = tuple(map(_signature, one))
            yield Difference(program.kind, name, step.operator, step.features, pair, text)
            continue
        away = apart(*map(array_of, one), step.known, _summed(step))
        if away.any():
            wrong.add(name)
        if away.any() and program.kind == "graphs" and _is_zero(one[1]):
            text = f"{name}: zeros there; here {array_of(one[0]).ravel()[:4]}"
            way = {name: step, **{one: program.steps[one] for one in _way(program, name)}}
            features = _features(way) | {f"anywhere {feature}" for feature in _features(program.steps)}
            yield Difference(program.kind, name, step.operator, features, ("values", "zeros"), text)
        elif away.any():
            hidden = _hidden(program, name, ours)
            yield from _by_kind(program, name, hidden, tuple(map(array_of, one)), away)


def _by_kind(program, name, hidden, arrays, away):
    """The elements that differ, one difference for those of each kind."""
    step = program.steps[name]
    given = [array for array in step.given if array.shape == away.shape]
    found = {}
    for index in np.argwhere(away):
        at = tuple(int(number) for number in index)
        pair = tuple(kind_of(array[at]) for array in arrays)
        if pair == ("number", "number") and abs(float(arrays[0][at]) - float(arrays[1][at])) < NEAR * abs(
            float(arrays[0][at])
        ):
            pair = ("number", "near")
        inputs = frozenset(f"in {kind_of(array[at])}" for array in given)
        found.setdefault((pair, inputs), []).append(at)
    for (pair, inputs), places in found.items():
        at = places[0]
        read = f" of {', '.join(str(array[at]) for array in given)}" if given else ""
        text = f"{name}{list(at)}{read}: {arrays[0][at]!s} here, {arrays[1][at]!s} there ({len(places)} of {away.size})"
        yield Difference(program.kind, name, step.operator, step.features | inputs, pair, text, hidden)


def _summed(step):
    """Return the summands of a step: its rounding error is in proportion to the largest."""
    return step.given[0].astype(np.float64) if step.given and step.operator in SUMS else None


def _is_zero(output):
    return not set(output["bytes"]) - {"0"}


def _way(program, name, shown=()):
    """The steps on the way to an output, up to those that are ``shown``."""
    waiting, found = [*program.steps[name].operands], {}
    while waiting:
        operand = waiting.pop()
        if operand in program.steps and operand not in shown and operand not in found:
            found[operand] = program.steps[operand]
            waiting += program.steps[operand].operands
    return found


def _hidden(program, name, shown):
    """The steps whose results only others read, on the way to an output."""
    return tuple(_way(program, name, shown).values())


def _signature(output):
    return "nothing" if output is None else f"{output['dataType']} {output['shape']}"


def apart(ours, theirs, known=None, sums=None):
    """Which elements differ by more than they may; ``sums`` are what has been summed up."""
    data_type = str(ours.dtype)
    if not is_float(data_type):
        return ours != theirs
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        sizes = np.abs(a) if sums is None else np.max(np.abs(sums[np.isfinite(sums)]), initial=0)
        allowed = known.error if known is not None else sizes * ULPS[data_type] * np.finfo(data_type).eps
        far = ~(np.abs(a - b) <= np.maximum(allowed, LEAST[data_type]))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if known is None:
        same &= np.signbit(a) == np.signbit(b)
        same |= np.isnan(a) & np.isnan(b)
        far |= (a == 0) & (b == 0)
    return far & ~same


def kind_of(item):
    """Return the kind of number that an element is, in the words of listed differences."""
    item = item.item()
    if not isinstance(item, float):
        return "0" if item == 0 else "number"
    if math.isnan(item):
        return "NaN"
    if math.isinf(item):
        return "Infinity" if item > 0 else "-Infinity"
    return "number" if item else "-0" if math.copysign(1, item) < 0 else "0"


def explained(one, listed):
    """The listed difference that a difference is, or None."""
    return next((item for item in listed if item.explains(one)), None)
