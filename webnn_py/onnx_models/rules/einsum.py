"""Einsum: sums of products, each as a product of matrices where that is possible."""

import math
import re
from collections.abc import Iterable, Sequence

import attrs

from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.rules import refuse
from webnn_py.onnx_models.conversion.context import ConversionContext
from webnn_py.onnx_models.rule_table.declaration import rule

EQUATION = re.compile(
    r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*(?:,[A-Za-z]*(?:\.\.\.)?[A-Za-z]*)*(?:->[A-Za-z]*(?:\.\.\.)?[A-Za-z]*)?"
)
ELLIPSIS = "..."


@attrs.frozen
class _Term:
    """An operand whose axes have names; no name comes twice."""

    operand: MLOperand
    labels: tuple[str, ...]

    def sizes(self, labels: Iterable[str]) -> list[int]:
        """Return the sizes of axes; 1 for those that it lacks."""
        return [self.operand.shape[self.labels.index(label)] if label in self.labels else 1 for label in labels]


@rule("Einsum", 12, 28)
def einsum(context: ConversionContext, *inputs: MLOperand, equation: str) -> MLOperand:
    """Multiply all inputs, matching axes of the same letter, and sum over the axes that the output lacks."""
    given, output = parsed(equation, [operand.rank for operand in inputs])
    sizes: dict[str, int] = {}
    for operand, labels in zip(inputs, given, strict=True):
        for label, size in zip(labels, operand.shape, strict=True):
            if size != sizes.get(label, size) and 1 not in (size, sizes[label]):
                refuse(f"attribute equation {equation!r}: {label}", f"{sizes[label]} and {size}", "the same everywhere")
            sizes[label] = max(size, sizes.get(label, 1))
    terms = [_distinct(context, operand, labels, sizes) for operand, labels in zip(inputs, given, strict=True)]
    result = terms[0]
    for index, term in enumerate(terms[1:], start=1):
        needed = {*output, *(label for later in terms[index + 1 :] for label in later.labels)}
        result = _product(context, _summed(context, result, {*needed, *term.labels}), term, needed)
    result = _summed(context, result, set(output))
    return _arranged(context, result, output, [sizes[label] for label in output])


def parsed(equation: str, ranks: Sequence[int]) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the labels of the axes of inputs of these ranks, and of the output; an ellipsis has numbers."""
    text = equation.replace(" ", "")
    if not EQUATION.fullmatch(text):
        refuse("attribute equation", equation, "letters and at most one ... for each input, then -> and the output's")
    left, _, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        refuse("attribute equation", equation, f"of {len(ranks)} terms, as many as there are inputs")
    given = []
    for term, rank in zip(terms, ranks, strict=True):
        dots = rank - len(term.replace(ELLIPSIS, ""))
        if dots < 0 or (dots and ELLIPSIS not in term):
            refuse(f"attribute equation {equation!r}: {term}", f"of rank {rank}", "as many letters as axes")
        given.append(_labels(term, dots))
    dots = max((sum(label.isdigit() for label in labels) for labels in given), default=0)
    if "->" not in text:
        letters = left.replace(ELLIPSIS, "").replace(",", "")
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        right = ELLIPSIS * (ELLIPSIS in left) + "".join(once)
    output = _labels(right, dots)
    if len(set(output)) != len(output) or not {label for labels in given for label in labels} >= set(output):
        refuse(f"attribute equation {equation!r}: the output", right, "letters of the inputs, each once")
    return given, output


def _labels(term: str, dots: int) -> tuple[str, ...]:
    """Return the labels of a term; the axes of an ellipsis are counted from the last."""
    before, ellipsis, after = term.partition(ELLIPSIS)
    return (*before, *(map(str, reversed(range(dots))) if ellipsis else ()), *after)


def _distinct(context: ConversionContext, operand: MLOperand, labels: tuple[str, ...], sizes: dict[str, int]) -> _Term:
    """Return a term without broadcast axes of size 1, and with the diagonal of axes of the same name."""
    kept = [axis for axis, label in enumerate(labels) if operand.shape[axis] == sizes[label]]
    if len(kept) < operand.rank:
        operand = context.reshape(operand, [operand.shape[axis] for axis in kept])
    names = [labels[axis] for axis in kept]
    for label in dict.fromkeys(names):
        while names.count(label) > 1:
            first = names.index(label)
            second = names.index(label, first + 1)
            others = [axis for axis in range(len(names)) if axis not in (first, second)]
            size = sizes[label]
            last = context.transpose(operand, permutation=[*others, first, second])
            flat = context.reshape(last, [*last.shape[:-2], size * size])
            steps = [1] * len(others) + [size + 1]
            operand = context.slice(flat, [0] * flat.rank, flat.shape, strides=steps)
            names = [*(names[axis] for axis in others), label]
    return _Term(operand, tuple(names))


def _summed(context: ConversionContext, term: _Term, needed: set[str]) -> _Term:
    """Sum a term over the axes that are no longer needed."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in needed)
    return _Term(context.reduce_sum(term.operand, axes=axes), labels)


def _product(context: ConversionContext, a: _Term, b: _Term, needed: set[str]) -> _Term:
    """Multiply two terms, and sum over the axes that only they have."""
    b = _summed(context, b, {*needed, *a.labels})
    shared = [label for label in a.labels if label in b.labels]
    batch, inner = [label for label in shared if label in needed], [label for label in shared if label not in needed]
    rows = [label for label in a.labels if label not in b.labels]
    columns = [label for label in b.labels if label not in a.labels]
    labels = (*batch, *rows, *columns)
    shape = [*a.sizes(batch), *a.sizes(rows), *b.sizes(columns)]
    if inner and a.operand.data_type in ("float32", "float16"):
        batch_size, depth = math.prod(a.sizes(batch)), math.prod(a.sizes(inner))
        left = _arranged(context, a, (*batch, *rows, *inner), [batch_size, math.prod(a.sizes(rows)), depth])
        right = _arranged(context, b, (*batch, *inner, *columns), [batch_size, depth, math.prod(b.sizes(columns))])
        return _Term(context.reshape(context.matmul(left, right), shape), labels)
    order = (*batch, *rows, *columns, *inner)
    pair = [
        _arranged(context, term, tuple(filter(term.labels.__contains__, order)), term.sizes(order)) for term in (a, b)
    ]
    return _summed(context, _Term(context.mul(*pair), order), needed)


def _arranged(context: ConversionContext, term: _Term, labels: tuple[str, ...], shape: Sequence[int]) -> MLOperand:
    """Reorder the axes, then reshape."""
    if labels != term.labels:
        order = [term.labels.index(label) for label in labels]
        term = _Term(context.transpose(term.operand, permutation=order), labels)
    return term.operand if term.operand.shape == tuple(shape) else context.reshape(term.operand, shape)
