"""Arrays that steps access as elements of different types: accesses become calls of load and store functions."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

import attrs

BYTES: Final = {"f16": 2, "f32": 4, "i32": 4, "u32": 4, "i64": 8, "u64": 8}

_KIND: Final = re.compile(r"(?:vec([24])<(\w+)>|(\w+))")
_STORE: Final = re.compile(r"\s*=(?!=)\s*")
_OTHER_STORE: Final = re.compile(r"\s*(?:\.[xyzw]\s*=(?!=)|[-+*/%&|^]=|<<=|>>=)")


@attrs.frozen
class Kind:
    """An element type: a scalar, or a vector of 2 or 4."""

    scalar: str
    width: int

    @classmethod
    def from_text(cls, text: str) -> Kind | None:
        """Parse a WGSL type; None if arrays here do not have it."""
        match = _KIND.fullmatch(text)
        scalar = (match[2] or match[3]) if match else None
        return cls(scalar, int(match[1] or 1)) if match and scalar in BYTES else None

    @property
    def byte_length(self) -> int:
        """The bytes of an element."""
        return BYTES[self.scalar] * self.width

    @property
    def text(self) -> str:
        """The type in WGSL."""
        return self.scalar if self.width == 1 else f"vec{self.width}<{self.scalar}>"

    @property
    def word(self) -> str:
        """The type as part of a name."""
        return self.scalar if self.width == 1 else f"vec{self.width}_{self.scalar}"


def common(kinds: Collection[Kind]) -> Kind | None:
    """Return the kind by which an array can be stored that is accessed by these kinds; None if there is none."""
    if len(kinds) == 1:
        return next(iter(kinds))
    scalars = {kind.scalar for kind in kinds}
    if len(scalars) == 1:
        return Kind(scalars.pop(), 1)
    return Kind("u32", 1) if {BYTES[scalar] for scalar in scalars} == {BYTES["u32"]} else None


@attrs.frozen
class View:
    """An array of scalars, accessed as elements of another kind."""

    array: str
    scalar: str
    kind: Kind

    @property
    def load(self) -> str:
        """The name of the function that loads an element."""
        return f"load_{self.array}_{self.kind.word}"

    @property
    def store(self) -> str:
        """The name of the function that stores one."""
        return f"store_{self.array}_{self.kind.word}"

    def functions(self, text: str) -> list[str]:
        """Return those of the two functions that a text calls."""
        called = {self.load: self._load, self.store: self._store}
        return [write() for name, write in called.items() if f"{name}(" in text]

    @property
    def _places(self) -> list[str]:
        return ["at", *(f"at + {component}u" for component in range(1, self.kind.width))]

    def _load(self) -> str:
        items = ", ".join(f"{self.array}[{place}]" for place in self._places)
        words = f"{Kind(self.scalar, self.kind.width).text}({items})"
        result = words if self.scalar == self.kind.scalar else f"bitcast<{self.kind.text}>({words})"
        return f"fn {self.load}(i: u32) -> {self.kind.text} {{ let at = i * {self.kind.width}u; return {result}; }}"

    def _store(self) -> str:
        held = Kind(self.scalar, self.kind.width)
        words = "value" if self.scalar == self.kind.scalar else f"bitcast<{held.text}>(value)"
        parts = [""] if held.width == 1 else [".x", ".y", ".z", ".w"]
        stores = [f"{self.array}[{place}] = words{part};" for place, part in zip(self._places, parts, strict=False)]
        return (
            f"fn {self.store}(i: u32, value: {self.kind.text}) {{\n"
            f"  let at = i * {held.width}u;\n  let words = {words};\n  {' '.join(stores)}\n}}"
        )


def can_be_viewed(text: str, names: Collection[str]) -> bool:
    """Return whether all accesses of these arrays load or store whole elements."""
    for match in re.finditer(rf"(?<![.\w])(?:{'|'.join(map(re.escape, names))})\b", text):
        if text[match.end() : match.end() + 1] != "[":
            return False
        if _OTHER_STORE.match(text, _closing(text, match.end()) + 1):
            return False
    return True


def viewed(text: str, views: Mapping[str, View]) -> str:
    """Return a text with accesses of these arrays as calls."""
    if not views:
        return text
    pattern = re.compile(rf"(?<![.\w])({'|'.join(map(re.escape, views))})\[")
    parts, position = [], 0
    while match := pattern.search(text, position):
        view, end = views[match[1]], _closing(text, match.end() - 1)
        index = f"u32({viewed(text[match.end() : end], views)})"
        parts.append(text[position : match.start()])
        position = end + 1
        stored = _STORE.match(text, position)
        if stored is None:
            parts.append(f"{view.load}({index})")
            continue
        position = text.index(";", stored.end())
        parts.append(f"{view.store}({index}, {viewed(text[stored.end() : position], views)})")
    return "".join([*parts, text[position:]])


def _closing(text: str, opening: int) -> int:
    """Return the position of the bracket that closes the one at ``opening``."""
    depth = 0
    for match in re.compile(r"[\[\]]").finditer(text, opening):
        depth += 1 if match[0] == "[" else -1
        if depth == 0:
            return match.start()
    raise ValueError(f"a bracket is never closed: {text[opening : opening + 40]!r}")
