"""The table of WGSL kernels: four ways in which an operator can run on a GPU.

``expression``
    Element-wise: a WGSL expression of the operands' elements. Those that follow one another become one kernel.
``layout``
    Only looks at its operand in another way: a function of layouts. No kernel, unless the layout cannot say it.
``kernels``
    Writes its kernels itself.
``composite``
    Is expanded into other operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from webnn_py.core.graph import Node, Value
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.core.operators.declaration import Operator
from webnn_py.devices.wgpu.records.layout import Layout
from webnn_py.devices.wgpu.records.lowering import Lowering

F = TypeVar("F", bound=Callable[..., Any])

Expression = Callable[..., str]
"""(node, one variable's name for each operand) → a WGSL expression of the output's computing type."""

LayoutRule = Callable[[Node, Layout], "Layout | Sequence[Layout] | None"]
"""(node, the operand's layout) → the output's layout, or each output's, or None where only a copy can say it."""

Kernels = Callable[[Node, "Lowering"], None]
"""(node, lowering): emits kernels that write all outputs of the node."""

Composite = Callable[[Node, "RewriteBuilder"], "list[Value] | None"]
"""(node, builder) → the values, made by other operators, that take the place of the node's outputs.

None where the node is to run as it is, in the operator's other way."""


@attrs.define
class WgslEntry:
    """An operator's implementation: one of these, or ``layout`` or ``composite`` and another where it does not apply.

    Attributes:
        expression: the element-wise operator's.
        layout: the view's.
        kernels: writes them.
        composite: makes it of others.
        fuses: of ``kernels``, the operand that they may compute as they read it, from what its element-wise nodes
            read; they ask for it by ``read_or_fuse``.
    """

    expression: Expression | None = None
    layout: LayoutRule | None = None
    kernels: Kernels | None = None
    composite: Composite | None = None
    fuses: str | None = None


_TABLE: dict[Operator[..., Any], WgslEntry] = {}


def _register(operator: Operator[..., Any], way: str) -> Callable[[F], F]:
    def register(function: F) -> F:
        entry = _TABLE.setdefault(operator, WgslEntry())
        if getattr(entry, way) is not None:
            raise RuntimeError(f"{operator.spec_name} already has {way}")
        setattr(entry, way, function)
        return function

    return register


def expression(operator: Operator[..., Any]) -> Callable[[F], F]:
    """Register an element-wise operator's expression."""
    return _register(operator, "expression")


def expressions(texts: Mapping[Operator[..., Any], str]) -> None:
    """Register element-wise operators by the texts of their expressions, in which {0} and {1} are the operands."""
    for operator, text in texts.items():
        expression(operator)(lambda _node, *operands, text=text: text.format(*operands))


def layout(operator: Operator[..., Any]) -> Callable[[F], F]:
    """Register a view's layout rule."""
    return _register(operator, "layout")


def kernels(operator: Operator[..., Any], *, fuses: str | None = None) -> Callable[[F], F]:
    """Register the writer of an operator's own kernels, and which operand they may compute as they read it."""
    register = _register(operator, "kernels")
    _TABLE.setdefault(operator, WgslEntry()).fuses = fuses
    return register


def composite(operator: Operator[..., Any]) -> Callable[[F], F]:
    """Register an operator that is expanded into others."""
    return _register(operator, "composite")


def find(operator: Operator[..., Any]) -> WgslEntry | None:
    """Return the operator's entry, or None when this device cannot run it."""
    return _TABLE.get(operator)


def entry_of(node: Node) -> WgslEntry:
    """Return the entry of a node's operator.

    Raises:
        NotImplementedError: there is none; validation lets no such operator through.
    """
    entry = find(node.operator)
    if entry is None:
        raise NotImplementedError(f"{node} has no WGSL kernel")
    return entry
