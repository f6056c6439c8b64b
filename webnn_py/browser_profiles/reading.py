"""The profiles, from their tables."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import attrs

from webnn_py.browser_profiles.engines import ENGINES
from webnn_py.browser_profiles.profile import Allowed, BrowserProfile
from webnn_py.browser_profiles.rules import rules_of
from webnn_py.descriptors import DATA_TYPES
from webnn_py.operators.declaration import python_name_of
from webnn_py.operators.limits import RankRange
from webnn_py.operators.registry import BY_SPEC_NAME

NAMES: Final = ("chromium-153-litert",)
"""The names of the profiles that a table describes whole."""

ALL_NAMES: Final = (*NAMES, *ENGINES)
"""The names of all profiles, those whose engines are asked included."""

ENGINES_TABLE: Final = "chromium-145-onnxruntime"
"""The table with the limits of the profiles whose engines are asked."""


@cache
def find(name: str) -> BrowserProfile:
    """Return the profile of a name.

    Raises:
        KeyError: there is none.
    """
    engine = ENGINES.get(name)
    if engine is None and name not in NAMES:
        raise KeyError(name)
    table = name if engine is None else ENGINES_TABLE
    profile = read(name, (files(__package__) / "tables" / f"{table}.toml").read_text(encoding="utf-8"))
    return profile if engine is None else attrs.evolve(profile, title=f"{profile.title} {engine.title}", engine=engine)


def read(name: str, text: str) -> BrowserProfile:
    """Return a profile of a table's text.

    Raises:
        KeyError: a member is missing, or an operator, operand or rule is unknown.
        ValueError: the text is no TOML, or a row is not in the form ``input output: float32 int32, 0 to 8``.
    """
    table = tomllib.loads(text)
    return BrowserProfile(
        name=name,
        title=table["title"],
        preferred_input_layout=table["preferred_input_layout"],
        max_tensor_byte_length=table["max_tensor_byte_length"],
        tensors=_allowed(table["tensors"]),
        operators={BY_SPEC_NAME[operator].name: _rows(rows) for operator, rows in table["operators"].items()},
        rules=rules_of(table["rules"]),
        has_constant_tensors=table["has_constant_tensors"],
        survives_shared_outputs=table["survives_shared_outputs"],
        has_bigint_for_all=table["has_bigint_for_all"],
        has_accelerated=table["has_accelerated"],
        graph_devices=tuple(table["graph_devices"]) if "graph_devices" in table else None,
        compatibility=tuple(table["compatibility"]),
    )


def _rows(lines: list[str]) -> Mapping[str, Allowed]:
    rows: dict[str, Any] = {}
    for line in lines:
        operands, _, allowed = line.partition(": ")
        for operand in operands.split():
            rows[python_name_of(operand)] = _allowed(allowed)
    return rows


def _allowed(text: str) -> Allowed:
    """``float32 int32, 0 to 8``; data types that this package lacks are left out."""
    data_types, ranks = text.split(", ")
    lowest, highest = ranks.split(" to ")
    known = tuple(name for name in DATA_TYPES if name in data_types.split())
    return Allowed(known, RankRange(int(lowest), int(highest)))
