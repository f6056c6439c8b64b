"""The core knows nothing of the layers, and layers use its public names alone: both are counted, place by place."""

import ast
from functools import cache
from pathlib import Path
from typing import NamedTuple

import webnn_py

ROOT = Path(webnn_py.__file__).parent

CORE = ("core",)
"""The folders of the core; every other module of the package is a layer's."""

OTHERS: dict[str, set[str]] = {
    "command/convert.py": {"_size"},
    "command/info.py": {"_size"},
    "command/loading.py": {"_size"},
    "command/to_javascript.py": {"_size"},
    "devices/wgpu/engines/engine.py": {"_device"},
    "runtime/bindings.py": {"_descriptor", "_hold"},
    "runtime/environment.py": {"_create"},
    "runtime/generation/conversation.py": {"_opened"},
    "runtime/generation/steps.py": {"_forget", "_opened"},
}
"""Underscore names that the core has by chance as well: of classes of another file of the layer, or of wgpu."""


PATHS = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py")}


class Read(NamedTuple):
    """A place where an underscore name of something else than ``self`` is read."""

    line: int
    name: str
    text: str


class Module(NamedTuple):
    """What is counted of a module: the layers and core modules that it imports, its underscore names, and reads."""

    imports: list[tuple[int, str]]
    defined: set[str]
    reads: list[Read]


@cache
def modules() -> dict[str, Module]:
    """Return the modules of the package by their paths in it."""
    return {path: module((ROOT / path).read_text(encoding="utf-8")) for path in sorted(PATHS)}


def module(source: str) -> Module:
    found = Module([], set(), [])
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found.imports.extend((node.lineno, item.name) for item in names if is_ours(item.name))
            case ast.ImportFrom(module=str(origin), names=names) if is_ours(origin):
                inner = {item.name: f"{origin}.{item.name}" for item in names}
                given = {name if file_of(name) in PATHS else origin for name in inner.values()}
                found.imports.extend((node.lineno, name) for name in sorted(given))
                if is_core(file_of(origin)):
                    found.reads.extend(Read(node.lineno, name, name) for name in inner if is_private(name))
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                found.defined.add(name)
            case ast.Attribute(attr=name) if is_private(name) and not is_self(node.value):
                found.reads.append(Read(node.lineno, name, ast.unparse(node)))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.defined.add(name)
            case ast.ClassDef(name=name, body=body):
                found.defined.update({name}, *map(assigned, body))
    return found


def assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_ours(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] == "webnn_py"


def is_core(path: str) -> bool:
    folder = Path(path).parent.as_posix()
    return any(path == place or f"{folder}/".startswith(f"{place}/") or f"{folder}/*.py" == place for place in CORE)


def file_of(name: str) -> str:
    """Return the file that a module of the package is."""
    path = "/".join(name.split(".")[1:])
    return f"{path}.py" if f"{path}.py" in PATHS else f"{path}/__init__.py".lstrip("/")


@cache
def names_of_the_core() -> frozenset[str]:
    """Return the underscore names that the core's classes and functions have."""
    defined = [module.defined for path, module in modules().items() if is_core(path)]
    return frozenset(filter(is_private, set().union(*defined)))


def test_the_core_is_there():
    core = {path for path in modules() if is_core(path)}
    assert {"core/api/context.py", "core/timelines/timeline.py", "core/graph.py", "core/device/device.py"} <= core
    assert len(core) < len(modules()) / 2
    assert {"_lost_message", "_values", "_draw", "_outcome"} <= names_of_the_core()


def test_the_core_imports_no_layer():
    places = [
        f"{path}:{line} imports {name}"
        for path, found in modules().items()
        if is_core(path)
        for line, name in found.imports
        if not is_core(file_of(name))
    ]
    assert not places, f"{len(places)} imports of layers in the core:\n" + "\n".join(places)


def test_no_layer_reads_an_underscore_name_of_the_core():
    places = []
    for path, found in modules().items():
        own = found.defined | OTHERS.get(path, set())
        others = () if is_core(path) else [read for read in found.reads if read.name not in own]
        places += [f"{path}:{read.line} reads {read.text}" for read in others if read.name in names_of_the_core()]
    assert not places, (
        f"{len(places)} underscore names of the core are read outside of it; use what is public, or add a documented"
        " name to the core. One of another class, whose name the core has by chance, belongs in OTHERS.\n"
        + "\n".join(places)
    )


def test_no_weak_reference_of_the_core_has_a_callback_in_python():
    """Trio raises a KeyboardInterrupt in such a callback, where Python prints it, and the program goes on for ever."""
    places = [
        f"{path}:{line} uses {name}"
        for path in modules()
        if is_core(path)
        for line, name in weak_collections((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert not places, "\n".join(places)


def weak_collections(source: str) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="weakref", names=names):
                found += [(node.lineno, item.name) for item in names if item.name.startswith("Weak")]
            case ast.Attribute(value=ast.Name(id="weakref"), attr=name) if name.startswith(("Weak", "finalize")):
                found.append((node.lineno, name))
    return found


def test_weak_collections_are_found_however_they_are_imported():
    source = "import weakref\nfrom weakref import WeakSet, ref\nweakref.finalize(1, 2)\nweakref.ref(3)"
    assert weak_collections(source) == [(2, "WeakSet"), (3, "finalize")]


SOURCE = """
from webnn_py.core.handle import Handle, _secret

class Layer:
    _own: int

    def read(self, context, other):
        import webnn_py.core.api.context
        self._kept = self._inherited
        return context._lost_message, other._own, self.context._device.backend
"""


def test_reads_and_imports_are_found_wherever_they_are():
    found = module(SOURCE)
    assert sorted(found.imports) == [(2, "webnn_py.core.handle"), (8, "webnn_py.core.api.context")]
    assert found.defined == {"Layer", "read", "_own", "_kept"}
    assert {read.text for read in found.reads} == {
        *("_secret", "context._lost_message", "other._own", "self.context._device"),
    }
