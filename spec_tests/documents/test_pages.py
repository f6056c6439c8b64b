"""Pages are found from the site's first one, links lead somewhere, and every public name is in the reference."""

import ast
import fnmatch
import importlib.util
import inspect
import pkgutil
import re
from functools import cache

import pytest

import webnn_py
from spec_tests.specification import make_pages
from spec_tests.support.documents import FENCE, PAGES, ROOT

DOCS = ROOT / "docs"
WRITTEN = DOCS / "operators", DOCS / "steps"
"""The folders of pages that builds write: a checkout may have none, or old ones."""
SITE = sorted(path for suffix in ("md", "rst") for path in DOCS.rglob(f"*.{suffix}") if path.parent not in WRITTEN)
LINK = re.compile(r"!?\[[^]]*\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTED = re.compile(r"^\.\. (?:auto\w+|py:\w+):: ([\w.]+)", re.MULTILINE)
WHOLE_MODULE = re.compile(r"^\.\. automodule:: (\S+) :members:$")
CURRENT_MODULE = re.compile(r"^\.\. py:currentmodule:: (\S+)$", re.MULTILINE)
OF_THIS_PACKAGE_ALONE = {
    "webnn_py.errors",
    "webnn_py.extensions.browser_limits",
    "webnn_py.pictures.page",
    "webnn_py.onnx_export",
    "webnn_py.onnx_models.export",
    "webnn_py.tracing.page",
}
"""Packages whose names are public under another one's, or not at all."""


def name_of(path):
    return path.relative_to(DOCS).with_suffix("").as_posix()


def listed():
    """The pages that toctrees name, those of patterns included."""
    names = {name_of(path) for path in (*SITE, *written())}
    found = set()
    for path in SITE:
        folder = path.parent.relative_to(DOCS)
        for body in TOCTREE.findall(path.read_text(encoding="utf-8")):
            entries = [line for line in body.splitlines() if line and not line.startswith(":")]
            for entry in entries:
                found |= set(fnmatch.filter(names, (folder / entry).as_posix()))
    return found


def test_every_page_is_in_a_toctree():
    missing = {name_of(path) for path in (*SITE, *written())} - listed() - {"index"}
    assert not missing, "name them in a toctree of docs/index.md"


@cache
def written():
    """The pages that builds write, by their paths."""
    spec = importlib.util.spec_from_file_location("make_operator_pages", DOCS / "make_operator_pages.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    of_each = zip(WRITTEN, (script, make_pages), strict=True)
    return {folder / name: text for folder, module in of_each for name, text in module.pages().items()}


@cache
def anchors(path):
    """The anchors that a code host gives to the headings of a document."""
    text = FENCE.sub("", written()[path] if path.parent in WRITTEN else path.read_text(encoding="utf-8"))
    found = set()
    for heading in re.findall(r"^#{1,6} (.+?)\s*#*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = next(n for n in range(1000) if (f"{slug}-{n}" if n else slug) not in found)
        found.add(f"{slug}-{number}" if number else slug)
    return found


def check_links(path, text, may_lead_to):
    """Check the links of a document, of which ``may_lead_to`` says of those to pages that builds write."""
    for target, anchor in LINK.findall(FENCE.sub("", text)):
        found = (path.parent / target).resolve() if target else path
        assert may_lead_to(found) if found.parent in WRITTEN else found.exists(), target
        assert found.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(found), f"{target}#{anchor}"


DOCUMENTS = sorted({*PAGES, *(path for path in SITE if path.suffix == ".md")})


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(path):
    is_read_in_the_site_alone = path.parent == DOCS / "api"
    check_links(path, path.read_text(encoding="utf-8"), lambda found: is_read_in_the_site_alone and found in written())


def test_links_of_the_pages_that_builds_write_lead_to_files_and_headings_that_are_there():
    assert len(written()) > 30
    for path, text in written().items():
        check_links(path, text, written().__contains__)


def test_links_of_the_readme_are_absolute_or_text_on_a_package_index():
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert LINK.findall(readme)
    for source in (None, "https://example.org/webnn_py/"):
        shown = module.for_package_index(readme, source)
        assert LINK.findall(shown) == []
        assert ("https://example.org/webnn_py/blob/HEAD/CONTRIBUTING.md" in shown) == (source is not None)
    assert "https://example.org/webnn_py/raw/HEAD/docs/pictures/timeline.png" in shown
    linked = "[![seen](a.png)](b.md) [web](https://example.org)"
    there = "https://example.org/raw/HEAD/a.png", "https://example.org/blob/HEAD/b.md"
    assert module.for_package_index(linked, None) == " [web](https://example.org)"
    assert module.for_package_index(linked, "https://example.org") == (
        f"[![seen]({there[0]})]({there[1]}) [web](https://example.org)"
    )


def public_names():
    """Every name in an ``__all__``, by its module."""
    for path in sorted((ROOT / "webnn_py").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "\n__all__ = " not in text:
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        names = next(node.value for node in ast.parse(text).body if is_all(node))
        if module not in OF_THIS_PACKAGE_ALONE:
            yield module, ast.literal_eval(names)


def is_all(node):
    return isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "__all__"


def reference():
    """The names that pages of the reference document, in full."""
    for path in DOCS.glob("api/*.rst"):
        module = "webnn_py"
        for line in re.sub(r"\n {3}:members:$", " :members:", path.read_text("utf-8"), flags=re.MULTILINE).splitlines():
            if current := CURRENT_MODULE.match(line):
                module = current[1]
            if whole := WHOLE_MODULE.match(line):
                yield from (f"{whole[1]}.{name}" for name in dict(public_names())[whole[1]])
            elif told := DOCUMENTED.match(line):
                yield told[1] if told[1].partition(".")[0] == "webnn_py" else f"{module}.{told[1]}"


def test_every_public_name_is_in_the_reference():
    documented = set(reference())
    names = {f"{module}.{name}" for module, names in public_names() for name in names}
    assert len(names) > 40
    assert not names - documented, "document them in a page of docs/api"


OF_THE_SPECIFICATION = (
    webnn_py.ML,
    webnn_py.MLBuffer,
    webnn_py.MLContext,
    webnn_py.MLGraph,
    webnn_py.MLGraphBuilder,
    webnn_py.MLOperand,
)


@pytest.mark.parametrize("interface", OF_THE_SPECIFICATION, ids=lambda interface: interface.__name__)
def test_interfaces_and_their_methods_say_the_section_of_the_specification_or_that_there_is_none(interface):
    methods = [thing for name, thing in vars(interface).items() if inspect.isfunction(thing) and name[0] != "_"]
    for thing in (interface, *methods):
        said = " ".join(inspect.getdoc(thing).split())
        assert re.search(r'\([Ss]ection "|; section "|[Nn]ot in the specification', said), thing


def test_the_reference_has_no_name_that_is_gone():
    for name in reference():
        pkgutil.resolve_name(name)
