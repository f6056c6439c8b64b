"""Which steps of the specification run, and which refuse something, while a test runs.

A step of the text is a statement of the package (``references``). It is *reached* when the statement begins, and
*refuses* when an exception leaves it, or, if it is an ``if`` that returns or raises, when its body begins. What many
operators have in common counts for the operator that is being drawn, what many methods have in common for the method
that was called. An exception counts for the innermost statement of an algorithm that it leaves: not for a step that
only calls what does another step of the same algorithm.
"""

import ast
import sys
import threading
from collections import defaultdict
from functools import cache
from pathlib import Path

from spec_tests.specification import references, steps
from webnn_py.core.operators.registry import OPERATORS

METHODS = {
    "ML.createContext(options)": "create_context",
    "ML.createContext(gpuDevice)": "create_context other",
    "MLContext.dispatch": "dispatch",
    "MLContext.createTensor": "create_buffer",
    "MLContext.createConstantTensor": "create_constant_buffer",
    "MLContext.readTensor(tensor)": "read_buffer",
    "MLContext.readTensor(tensor, outputData)": "read_buffer other",
    "MLContext.writeTensor": "write_buffer",
    "MLGraphBuilder.build": "build",
    "MLGraphBuilder.input": "_input",
    "MLGraphBuilder.constant(descriptor, buffer)": "_constant_of_bytes",
    "MLGraphBuilder.constant(dataType, value)": "_constant_of_number",
    "MLGraphBuilder.constant(tensor)": "_constant_of_buffer",
}
"""Algorithms → the function that is called, for what several of them have in common."""

_CALLED = {name.partition(" ")[0] for name in METHODS.values()}


@cache
def _tags_of(name):
    """Return the operators or the method that an algorithm's steps are traced of; None if it does not matter."""
    if name in METHODS:
        return {METHODS[name]}
    declared = references.declaration(steps.ALGORITHMS[name])
    if declared is None:
        return None
    if name not in references.SHARED:
        return {name.removeprefix("MLGraphBuilder.")}
    function = OPERATORS[references.SHARED[name]].function
    family = {operator.spec_name for operator in OPERATORS.values() if operator.function is function}
    if name == "element-wise-logical-op":
        family |= {"logicalNot", "isNaN", "isInfinite"}
    if name == "calculate reduction output sizes":
        family |= {"argMin", "argMax"}
    if name.startswith("calculate conv"):
        family |= {"conv2d", "convTranspose2d", "averagePool2d", "l2Pool2d", "maxPool2d"}
    return family


class Statements:
    """The statements of the steps: by file and line, those that begin there, end there, or have their refusal there."""

    def __init__(self):
        self.begin = defaultdict(list)
        self.span = defaultdict(list)
        self.refusal = {}
        for number, place in enumerate(sorted(references.all_places())):
            file = str(references.PACKAGE / place.path)
            node = statement_at(file, place.line)
            self.begin[file, node.lineno].append(number)
            if isinstance(node, ast.If):
                self.refusal[file, node.body[0].lineno] = number
                last = node.body[-1].end_lineno
            else:
                last = node.end_lineno
            for line in range(node.lineno, last + 1):
                self.span[file, line].append(number)
        self.places = sorted(references.all_places())


@cache
def _nodes(file):
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]


def statement_at(file, line):
    """Return the outermost node that begins on a line; of a declared function the first statement of its body."""
    for node in _nodes(file):
        if getattr(node, "decorator_list", None) and node.decorator_list[0].lineno == line:
            return node.body[min(1, len(node.body) - 1) if ast.get_docstring(node) is not None else 0]
    return max((node for node in _nodes(file) if node.lineno == line), key=lambda node: node.end_lineno - node.lineno)


class Tracer:
    """Collects what each test reaches and refuses: of each test, (place, tag, whether it refused)."""

    def __init__(self):
        self._statements = Statements()
        self._files = {file for file, _ in self._statements.span}
        self._of_code = {}
        self._exception = None
        self._inner = ()
        self.test = None
        self.found = defaultdict(set)

    def start(self):
        """Begin to trace, in all threads that begin from now on."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self):
        """Trace no more."""
        sys.settrace(None)
        threading.settrace(None)

    def _call(self, frame, _event, _argument):
        code = frame.f_code
        if code not in self._of_code:
            lines = {line for _, _, line in code.co_lines() if line} if code.co_filename in self._files else set()
            self._of_code[code] = any((code.co_filename, line) in self._statements.span for line in lines)
        return self._line if self._of_code[code] and self.test is not None else None

    def _line(self, frame, event, argument):
        at = frame.f_code.co_filename, frame.f_lineno
        if event == "line":
            for number in self._statements.begin.get(at, ()):
                self._note(frame, number, refused=False)
            if at in self._statements.refusal:
                self._note(frame, self._statements.refusal[at], refused=True)
        elif event == "exception":
            if id(argument[1]) != self._exception:  # not itself: tests look at what becomes of exceptions
                self._exception, self._inner = id(argument[1]), ()
            for number in self._statements.span.get(at, ()):
                self._note(frame, number, refused=True, inner=self._inner)
            self._inner += tuple(self._statements.span.get(at, ()))
        return self._line

    def _note(self, frame, number, *, refused, inner=()):
        self.found[self.test].add((number, _tag(frame), refused, inner))

    def steps(self):
        """Return the tests that reach each step, and of a step that refuses something those where it does."""
        tests = defaultdict(set)
        doing = references.all_places()
        for test, notes in self.found.items():
            for number, tag, refused, inner in notes:
                within = {name for one in inner if one != number for name, _ in doing[self._statements.places[one]]}
                for name, identifier in doing[self._statements.places[number]]:
                    if name in within:
                        continue
                    wanted = _tags_of(name)
                    step = steps.ALGORITHMS[name].step(identifier)
                    if step.refuses == refused and (wanted is None or tag is None or tag in wanted):
                        tests[name, identifier].add(test)
        return tests


def _tag(frame):
    """Return the operator that is being drawn, or the method that was called; None for neither."""
    while frame is not None:
        name = frame.f_code.co_name
        if name in ("_draw", "append"):
            return frame.f_locals["operator"].spec_name
        if name in _CALLED and "self" in frame.f_locals:
            given = frame.f_locals.get("options") or {}
            is_other = frame.f_locals.get("out") is not None or given.get("gpu_device") is not None
            return f"{name} other" if is_other else name
        frame = frame.f_back
    return None
