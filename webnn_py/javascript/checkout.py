"""A checkout of web-platform-tests: its test files, what their META lines say, and the variants of each."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

FOLDER = "webnn"
TIMEOUTS = {"normal": 10.0, "long": 60.0}
"""Seconds, as web-platform-tests define them."""

ALIASES = {"resources/WebIDLParser.js": "resources/webidl2/lib/webidl2.js"}
"""Paths that the server of web-platform-tests rewrites."""

_META = re.compile(r"^//\s*META:\s*(\w+)=(.*?)\s*$")
_TEST = (".any.js", ".window.js", ".worker.js")


@attrs.frozen
class TestFile:
    """A test file, as one of its variants.

    Attributes:
        path: from the root of the checkout, with forward slashes.
        variant: the query string, "" for none.
        scripts: what its META lines load before it, as paths from the root.
        seconds: the time limit.
        isolated: whether its headers make it cross-origin isolated.
    """

    __test__ = False  # not for pytest

    path: str
    variant: str
    scripts: tuple[str, ...]
    seconds: float
    isolated: bool

    @property
    def id(self) -> str:
        """Path and variant: what results are filed under."""
        return self.path + self.variant


def read_meta(source: str) -> list[tuple[str, str]]:
    """Return the META lines at the top of a test file."""
    found = []
    for line in source.splitlines():
        if not line.startswith("//"):
            if line.strip():
                break
            continue
        match = _META.match(line)
        if match:
            found.append((match[1], match[2]))
    return found


def resolve(base: str, reference: str) -> str:
    """Return a reference in the file ``base`` as a path from the root, both with forward slashes.

    Raises:
        ValueError: it leaves the checkout.
    """
    names = [] if reference.startswith("/") else base.split("/")[:-1]
    for name in reference.split("/"):
        if name == ".." and not names:
            raise ValueError(f"{reference!r} in {base} leaves the checkout")
        if name == "..":
            names.pop()
        elif name not in {"", "."}:
            names.append(name)
    path = "/".join(names)
    return ALIASES.get(path, path)


def variants(root: Path, path: str) -> Iterator[TestFile]:
    """Yield a file, once for each of its variants."""
    meta = read_meta((root / path).read_text(encoding="utf-8"))
    names = [value for key, value in meta if key == "variant"] or [""]
    scripts = tuple(resolve(path, value) for key, value in meta if key == "script")
    seconds = TIMEOUTS["long" if ("timeout", "long") in meta else "normal"]
    headers = root / f"{path}.headers"
    isolated = headers.exists() and _isolates(headers.read_text(encoding="utf-8"))
    for name in names:
        yield TestFile(path, name, scripts, seconds, isolated)


def _isolates(headers: str) -> bool:
    given = {tuple(part.strip().lower() for part in line.split(":", 1)) for line in headers.splitlines() if ":" in line}
    return {
        ("cross-origin-embedder-policy", "require-corp"),
        ("cross-origin-opener-policy", "same-origin"),
    } <= given


def is_for(device: str, variant: str) -> bool:
    """Return whether a variant is meant for a device, ``?cpu`` or ``?op=add&device=cpu``."""
    words = re.split(r"[?&=]", variant)
    return device in words or not {"cpu", "gpu", "npu"} & set(words)


def find(root: Path, names: Sequence[str], device: str, *, missing: Sequence[TestFile] | None = None) -> list[TestFile]:
    """Return the test files of a checkout.

    Args:
        root: the checkout.
        names: files or folders, from the root or from ``webnn/``, with or without a variant; none means all.
        device: which variants: "cpu", "gpu" or "npu".
        missing: what a name stands for that has no file; without it that is an error.

    Raises:
        FileNotFoundError: there is no such file, or nothing at all.
    """
    chosen: dict[TestFile, None] = {}
    for name in names or [FOLDER]:
        path, mark, query = name.partition("?")
        found = [
            test
            for file in _files(root, path)
            for test in variants(root, file)
            if (test.variant == mark + query if mark else is_for(device, test.variant))
        ]
        if not found and missing is None:
            raise FileNotFoundError(f"{name}: no test file in {root}")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _files(root: Path, name: str) -> list[str]:
    for start in (root / name, root / FOLDER / name):
        if start.is_dir():
            return sorted(
                path.relative_to(root).as_posix() for path in start.rglob("*.js") if path.name.endswith(_TEST)
            )
        if start.is_file():
            return [start.relative_to(root).as_posix()]
    return []
