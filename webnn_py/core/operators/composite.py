"""Composites: operators that are not in the specification, with their decompositions into operators that are.

A device that has such an operator claims it, as any other; for all other devices a build replaces it by its
decomposition. It is declared anywhere, and drawn by ``builder.append(composite, …)`` (``docs/composites.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Unpack

from webnn_py.core.operators.declaration import Decomposition, Facts, Operator, OutputT, P
from webnn_py.core.operators.limits import LimitsRow
from webnn_py.core.operators.registry import OPERATORS

_DECLARED: Final[dict[str, Composite[..., Any]]] = {}

COMPOSITES: Final[Mapping[str, Composite[..., Any]]] = MappingProxyType(_DECLARED)
"""The composites that have been declared so far, by Python name: files name them so."""


class Composite(Operator[P, OutputT]):
    """An operator that is not in the specification.

    Args:
        function: its declaration, as those of all operators (:mod:`webnn_py.core.operators.declaration`).
        spec_name: its name in reports and messages.
        limits: the data types and ranks of its operands and outputs.
        decomposition: draws it: takes a builder, then what the function takes but ``label``, with operands for
            descriptors; returns an operand, or a list of them where the function does.
        tables: the operands that must be constants, which the decomposition is given as arrays.
        facts: what passes and devices may rely on.

    Raises:
        ValueError: an operator has its name already.
    """

    def __init__(
        self,
        function: Callable[P, OutputT],
        spec_name: str,
        limits: LimitsRow,
        decomposition: Decomposition,
        *,
        tables: Iterable[str] = (),
        **facts: Unpack[Facts],
    ) -> None:
        super().__init__(function, spec_name, limits, **facts)  # type: ignore[arg-type]
        if self.name in OPERATORS or self.name in COMPOSITES:
            raise ValueError(f"an operator called {self.name!r} is declared already; choose another name")
        self.decomposition: Decomposition = decomposition
        self.tables = frozenset(tables)
        _DECLARED[self.name] = self
