"""One meaning a word: a class name stands for one thing in all of the library."""

import ast
from pathlib import Path

import webnn_py

ROOT = Path(webnn_py.__file__).parent


def class_definitions():
    """The modules that define each class, by its name."""
    modules = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                modules.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    return modules


def test_no_class_name_is_defined_twice():
    definitions = class_definitions()
    assert len(definitions) > 200, "the package has moved"
    assert {name: where for name, where in definitions.items() if len(where) > 1} == {}
