"""Where the package does the specification's steps: the comments ``# spec: MLContext.dispatch 3-4; build 2``.

A comment is of the statement below it. It names algorithms (``MLGraphBuilder.`` is left out) and their steps, and means
the steps below those, too, unless another comment names these. ``# spec: * operand`` is of the steps of this form of
all operators. What an operator's algorithm says of its output is its declaration's shape rule, without a comment,
unless the step refuses something.
"""

import ast
import inspect
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import attrs

import webnn_py
from spec_tests.specification import steps
from spec_tests.specification.forms import FORMS
from webnn_py.core.operators.registry import BY_SPEC_NAME, OPERATORS

PACKAGE = Path(webnn_py.__file__).parent
_COMMENT = re.compile(r"^\s*# spec: (.+)$")
_REFERENCE = re.compile(r"^(?P<name>\* .+|.+?)(?: (?P<steps>[\d.]+[a-z]{0,2}(?:[-,][ ]?[\d.]+[a-z]{0,2})*))?$")

SHARED = {
    "argminmax-op": "arg_min",
    "element-wise-binary-op": "add",
    "element-wise-logical-op": "equal",
    "element-wise-unary-op": "abs",
    "pooling-op": "average_pool2d",
    "create reduction operation": "reduce_sum",
    "calculate reduction output sizes": "reduce_sum",
    "calculate conv output size": "conv2d",
    "calculate conv2d output sizes": "conv2d",
    "calculate convtranspose output size": "conv_transpose2d",
}
"""Algorithms that several operators share → one of these operators."""


@attrs.frozen(order=True)
class Place:
    """A statement of the package.

    Attributes:
        path: relative to the package.
        function: its qualified name within the module.
        line: the statement's first line.
    """

    path: str
    function: str
    line: int

    def __str__(self):
        return f"{self.path}:{self.line} {self.function}"


class UnknownStepError(ValueError):
    """A comment that names no algorithm, step or form."""


@cache
def _in_code():
    """Return the places of each reference that is written: of (algorithm, identifier), and of forms."""
    named = defaultdict(list)
    forms = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "# spec: " not in text:
            continue
        for line, function, reference in _references(text):
            place = Place(path.relative_to(PACKAGE).as_posix(), function, line)
            name, found = resolved(reference, f"{place.path}:{line}")
            for key in found:
                (forms if name.startswith("* ") else named)[key].append(place)
    return named, forms


def _references(text):
    """Yield the line, function and text of each reference of a module."""
    lines = text.splitlines()
    functions = list(_functions(ast.parse(text), ""))
    for index, line in enumerate(lines):
        if comment := _COMMENT.match(line):
            statement = next(at for at in range(index + 1, len(lines)) if not lines[at].lstrip().startswith("#")) + 1
            around = [name for name, first, last in functions if first <= statement <= last]
            for reference in comment[1].split("; "):
                yield statement, around[-1] if around else "", reference


def _functions(tree, within):
    """Yield the qualified name and the lines of each function and class, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}{node.name}"
            yield name, node.lineno, node.end_lineno
            yield from _functions(node, f"{name}.")
        else:
            yield from _functions(node, within)


def resolved(reference, place):
    """Return the name in a reference, and what it names: forms, or pairs of algorithm and identifier.

    Raises:
        UnknownStepError: there is no such thing.
    """
    parts = _REFERENCE.match(reference)
    name = parts["name"]
    if name.startswith("* "):
        if name[2:] not in FORMS:
            raise UnknownStepError(f"{place}: there is no form {name[2:]!r}; there are {', '.join(FORMS)}")
        return name, [name[2:]]
    algorithm = steps.algorithm(name)
    if algorithm is None or parts["steps"] is None:
        raise UnknownStepError(f"{place}: {reference!r} names no algorithm and its steps")
    try:
        return name, [(algorithm.name, step.identifier) for step in steps.selected(algorithm, parts["steps"])]
    except ValueError as error:
        raise UnknownStepError(f"{place}: {error}") from None


@cache
def declaration(algorithm):
    """Return the place of the declaration of the operator that an algorithm is of; None if it is none's."""
    name = SHARED.get(algorithm.name)
    operator = OPERATORS[name] if name else BY_SPEC_NAME.get(algorithm.name.removeprefix("MLGraphBuilder."))
    if operator is None or not (name or algorithm.name.startswith("MLGraphBuilder.")):
        return None
    path = Path(inspect.getsourcefile(operator.function)).relative_to(PACKAGE).as_posix()
    return Place(path, operator.function.__qualname__, inspect.getsourcelines(operator.function)[1])


def places(algorithm, step):
    """Return where a step is done; nothing if neither a comment nor a declaration says so."""
    named, forms = _in_code()
    if found := named.get((algorithm.name, step.identifier)):
        return found
    if step.form and (found := forms.get(step.form)):
        return found
    declared = declaration(algorithm)
    for identifier in steps.above(step.identifier):
        found = named.get((algorithm.name, identifier))
        if found and not (declared and step.refuses):
            return found
    return [declared] if declared and not step.refuses and not step.form else []
