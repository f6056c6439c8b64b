"""The documentation as a site: ``sphinx-build -W --keep-going docs build/site``.

The pages are the Markdown files of this folder, which are read on a code host as they are; those in ``api`` come from
docstrings.
"""

import pkgutil
import re
import sys
import tempfile
import zlib
from pathlib import Path

from docutils.nodes import Element
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]

import make_operator_pages  # noqa: E402

from spec_tests.specification import make_pages  # noqa: E402
from webnn_py import __version__  # noqa: E402

project = "webnn_py"
author = "the authors of webnn_py"
project_copyright = "the authors of webnn_py, Apache License 2.0"
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.intersphinx", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
nitpicky = True
nitpick_ignore = [
    # Type variables have no page.
    *(("py:class", f"webnn_py.core.{name}") for name in ("timelines.promise.T", "api.context.T", "extension.LeafT")),
    ("py:class", "webnn_py.extensions.subgraph._Definitions"),
    ("py:class", "webnn_py.tracing.accesses.Accesses"),
    # Annotations of classes whose public module is another one than theirs are texts, with names of their own module.
    *(("py:class", name) for name in ("Layout", "NDArray", "Path", "Tokenizer", "np.float32")),
    *(("py:class", name) for name in ("Descriptors", "Device", "GraphHandle", "LeafT")),
]
highlight_language = "text"
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = [
    "misc.highlighting_failure",  # signatures of operators are no whole statements
]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    "ExportsArray": "webnn_py.core.api.buffer_source.ExportsArray",
    "MLComputePolicy": "webnn_py.extensions.compute_policy.MLComputePolicy",
    "MLNumber": "webnn_py.MLNumber",
    "MLOperandDataType": "webnn_py.MLOperandDataType",
    "MLOperandDataTypeLike": "webnn_py.MLOperandDataTypeLike",
    "MLPowerPreference": "webnn_py.MLPowerPreference",
    "Policy": "webnn_py.core.api.ml.Policy",
    "Progress": "webnn_py.runtime.models.Progress",
    "PromiseState": "webnn_py.PromiseState",
    "TensorLocation": "webnn_py.runtime.TensorLocation",
}
autodoc_class_signature = "mixed"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"webnn_py {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

INVENTORY_HEADER = (
    b"# Sphinx inventory version 2\n# Project: none\n# Version: none\n# The rest is compressed by zlib.\n"
)


def empty_inventory() -> str:
    """An inventory without entries: what intersphinx falls back on where there is no network."""
    path = Path(tempfile.mkdtemp(prefix="webnn_py_docs")) / "objects.inv"
    path.write_bytes(INVENTORY_HEADER + zlib.compress(b""))
    return str(path)


intersphinx_timeout = 5
NO_NETWORK = empty_inventory()
intersphinx_mapping = {
    "numpy": ("https://numpy.org/doc/stable/", (None, NO_NETWORK)),
    "python": ("https://docs.python.org/3/", (None, NO_NETWORK)),
    "trio": ("https://trio.readthedocs.io/en/stable/", (None, NO_NETWORK)),
}
OUTSIDE = {"attrs", "numpy", "onnx", "trio", "wgpu"} | sys.stdlib_module_names
"""Packages of other projects that docstrings and annotations name."""


def find_alias(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> Element | None:
    """Annotations name aliases of types, which are data, as if they were classes."""
    if node.get("refdomain") != "py" or node["reftype"] != "class":
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", node["reftarget"], node, content)


def is_known_elsewhere(_app: Sphinx, _domain: object, node: pending_xref) -> bool | None:
    """Whether the name is one of another package, which is asked itself when there is no inventory."""
    target = node["reftarget"]
    if target.partition(".")[0] not in OUTSIDE:
        return None
    try:
        pkgutil.resolve_name(target)
    except (ImportError, AttributeError, ValueError):
        return None
    return True


NO_CONSTRUCTOR = "(*args: object, **kwargs: object)"
DATA_TYPE = re.compile(r"~typing\.Literal\['float32', [^]]*'uint8'\]")
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[~typing\.Any\]\]")
DEFAULT = re.compile(r"<function (?:[^<>]|<\w+>)*>|NOTHING")


def shorten_signature(
    _app: Sphinx, _what: str, _name: str, _thing: object, _options: object, signature: str | None, returns: str | None
) -> tuple[str, str] | None:
    """Omit the constructors of what only the library makes; shorten types and defaults."""
    if signature is None:
        return None
    if signature == NO_CONSTRUCTOR:
        return "", ""

    def shortened(text: str) -> str:
        text = ARRAY.sub("numpy.ndarray", DATA_TYPE.sub("~webnn_py.MLOperandDataType", text))
        return DEFAULT.sub("...", text)

    return shortened(signature), shortened(returns or "")


def keep_colon(_app: Sphinx, what: str, _name: str, _thing: object, _options: object, lines: list[str]) -> None:
    """Put back what napoleon has taken for a type: what stands before a colon in an attribute's docstring."""
    for line in [line for line in lines if line.startswith(":type: ")]:
        if what in {"attribute", "data", "property"}:
            lines.remove(line)
            lines[0] = f"{line.removeprefix(':type: ')}: {lines[0]}"


PAGES_OF_THE_ROOT = {
    "CHANGELOG": "changelog",
    "CONTRIBUTING": "contributing",
    "README": "index",
    "SECURITY": "security",
}


FILE_NAME_AS_TEXT = re.compile(r"\[[\w/.]+\.md\]\(([\w/.]+\.md(?:#[\w-]+)?)\)")


def link_pages(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Documents beside this folder are pages of the site, too; links show titles, not names of files."""
    for name, page in PAGES_OF_THE_ROOT.items():
        source[0] = source[0].replace(f"](../{name}.md", f"]({page}.md")
    source[0] = FILE_NAME_AS_TEXT.sub(r"[](\1)", source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx, before it looks for pages."""
    make_operator_pages.write(make_operator_pages.FOLDER)
    make_pages.write()
    app.connect("source-read", link_pages)
    app.connect("autodoc-process-docstring", keep_colon, priority=600)  # after napoleon
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("missing-reference", find_alias)
    app.connect("warn-missing-reference", is_known_elsewhere)
