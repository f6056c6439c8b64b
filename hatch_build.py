"""The build backend, hatchling's, with hooks: the README for indexes, the documentation and packed cases in wheels."""

import json
import lzma
import posixpath
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling import build
from hatchling.build import *  # noqa: F403 - the functions of a backend, of which one is another below
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PATH = r"\((?!\w+:|#)(?P<path>[^)]+)\)"
PICTURE = re.compile(r"!\[(?P<text>[^]]*)\]" + PATH)
LINK = re.compile(r"(?<!!)\[(?P<text>(?:!\[[^]]*\]\([^)]*\)|[^]])*)\]" + PATH)
"""Its text may be a picture."""


def for_package_index(text: str, source: str | None) -> str:
    """A document whose links lead to the repository at ``source``, or, where that is not known, are text."""
    if source is None:
        return LINK.sub(r"\g<text>", PICTURE.sub("", text))
    there = source.rstrip("/")
    text = PICTURE.sub(rf"![\g<text>]({there}/raw/HEAD/\g<path>)", text)
    return LINK.sub(rf"[\g<text>]({there}/blob/HEAD/\g<path>)", text)


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Called by installers; the package's requirements are for :func:`write_operator_pages`."""
    project = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*build.get_requires_for_build_wheel(config_settings), *project["dependencies"]]


class ReadmeHook(MetadataHookInterface):
    """Puts the README into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_package_index(text, source)}


INCLUDE = re.compile(r"^```\{include\} \.\./(?P<path>\w+\.md)\n(?:.*\n)*?```$", re.MULTILINE)
"""A page that is a document of the repository's root."""

ROOT_PAGES = {
    "CHANGELOG.md": "docs/changelog.md",
    "CONTRIBUTING.md": "docs/contributing.md",
    "README.md": "docs/index.md",
    "SECURITY.md": "docs/security.md",
}
"""The pages that documents of the repository's root are in the documentation."""

SHIPPED = frozenset({".md", ".svg"})
"""Photographs and pictures of the screen would take as much space as half of the pages, which describe them."""

OF_CHECKOUTS = ("docs/contributing.md", "docs/drift.md", "docs/proposed_tests.md", "docs/steps/")
"""Pages that are only of use with the tests and the history, which wheels lack: they are left out."""


OPERATORS = "docs/operators"
"""The folder of the pages that are written from the operators' declarations."""


def write_operator_pages(root: Path, folder: Path) -> None:
    """Write the pages of the operators, which takes the requirements of the package itself."""
    subprocess.run([sys.executable, root / "docs/make_operator_pages.py", folder], check=True)


def documentation(root: Path, operators: Path) -> Iterator[tuple[str, bytes]]:
    """The files of the documentation as wheels have them: paths below ``docs``, and contents.

    What pages include is in them, links lead to files that are shipped, too, and links to others are text. The pages
    in ``operators`` stand for those that a checkout may have.
    """
    paths = {path.relative_to(root).as_posix(): path for path in sorted((root / "docs").rglob("*"))}
    paths = {name: path for name, path in paths.items() if not name.startswith(f"{OPERATORS}/")}
    paths |= {f"{OPERATORS}/{path.name}": path for path in sorted(operators.iterdir())}
    paths = {
        name: path
        for name, path in paths.items()
        if path.suffix in SHIPPED and path.is_file() and not name.startswith(OF_CHECKOUTS)
    }
    for name, path in paths.items():
        content = path.read_bytes()
        if path.suffix == ".md":
            text = content.decode()
            included = INCLUDE.search(text)
            if included is None:
                text = _linked(text, posixpath.dirname(name), name, paths)
            else:
                text = _linked((root / included["path"]).read_text(encoding="utf-8"), "", name, paths)
            content = text.encode()
        yield name.removeprefix("docs/"), content


def _linked(text: str, folder: str, page: str, shipped: dict[str, Path]) -> str:
    """A page's text with links that lead to files of the documentation; its own are relative to ``folder``."""

    def target_of(path: str) -> str | None:
        target, hash_, heading = path.partition("#")
        there = posixpath.normpath(posixpath.join(folder, target))
        there = ROOT_PAGES.get(there, there)
        if there not in shipped:
            return None
        return posixpath.relpath(there, posixpath.dirname(page)) + hash_ + heading

    def link(match: re.Match[str]) -> str:
        target = target_of(match["path"])
        return match["text"] if target is None else f"[{match['text']}]({target})"

    def picture(match: re.Match[str]) -> str:
        target = target_of(match["path"])
        return match["text"] if target is None else f"![{match['text']}]({target})"

    return LINK.sub(link, PICTURE.sub(picture, text))


CASES = "webnn_py/testing/device_cases"


def packed_cases(root: Path) -> bytes:
    """The operators' cases in one compressed file; ``device_cases/files.py`` has the format."""
    paths = sorted((root / CASES).glob("*/*.json"))
    files = {f"{path.parent.name}/{path.stem}": json.loads(path.read_bytes()) for path in paths}
    return lzma.compress(json.dumps(files, separators=(",", ":")).encode(), preset=9 | lzma.PRESET_EXTREME)


class WheelHook(BuildHookInterface):
    """Puts the documentation into wheels, as ``webnn_py/docs``, where ``webnn-py docs`` finds it, and packed cases."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before a build; an editable install has the checkout's documentation and cases."""
        if version == "editable":
            return
        root = Path(self.root)
        self._folder = tempfile.TemporaryDirectory()
        operators = Path(self._folder.name, "operators")
        write_operator_pages(root, operators)
        files = {f"webnn_py/docs/{name}": content for name, content in documentation(root, operators)}
        files[f"{CASES}/cases.xz"] = packed_cases(root)
        for name, content in files.items():
            path = Path(self._folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            build_data["force_include"][str(path)] = name

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Called by hatchling after a build."""
        if version != "editable":
            self._folder.cleanup()
