"""Lets cffi find the C types that wgpu-py asks for by their names, which it parses otherwise.

wgpu-py asks for some thirty types of the form ``WGPUName *`` or ``WGPUName[]`` until a graph runs. For each, cffi's
parser reads all 400 names of wgpu-native's types again, which takes 10 ms with other threads standing still: a third of
a second of a process's first inference. What the names stand for it has known since it read the header.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cffi import model  # type: ignore[import-untyped]
from wgpu.backends.wgpu_native._ffi import ffi

_PLAIN: Final = re.compile(r"(WGPU\w+) ?(?:(\*)|\[(\d*)\]) ?")


def find_by_name(parser: Any, text: str) -> Any:
    """Return the type that ``text`` names, as cffi's parser would; None if it is no plain name."""
    match = _PLAIN.fullmatch(text)
    declared = match and parser._declarations.get(f"typedef {match[1]}")
    if not (match and declared):
        return None
    named, qualifiers = declared
    if match[2]:
        return parser._get_type_pointer(named, qualifiers)
    return model.ArrayType(named, int(match[3]) if match[3] else None)


def _find_types_by_name() -> None:
    parser = getattr(ffi, "_parser", None)
    if parser is None or not hasattr(parser, "_declarations") or not hasattr(parser, "_get_type_pointer"):
        return  # another version of cffi: everything is as right, and slower
    parse = parser.parse_type

    def parse_type(text: str) -> Any:
        found = find_by_name(parser, text)
        return parse(text) if found is None else found

    parser.parse_type = parse_type


_find_types_by_name()
