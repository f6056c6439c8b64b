"""The table of WGSL kernels: four ways in which an operator can run on a GPU.

``expression``
    Element-wise: a WGSL expression of the operands' elements. Chains of these become one kernel.
``layout``
    Only looks at its operand in another way: a function of layouts. No kernel, unless the layout cannot say it.
``kernels``
    Writes its kernels itself.
``composite``
    Is drawn with other operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

from webnn_py.device.on_wgpu.records.layout import Layout
from webnn_py.device.on_wgpu.records.lowering import Lowering
from webnn_py.device.rewriting import RewriteBuilder
from webnn_py.graph import Node, Value
from webnn_py.operators.declaration import Operator

F = TypeVar("F", bound=Callable[..., Any])

Expression = Callable[..., str]
"""(node, one variable's name for each operand) → a WGSL expression of the output's computing type."""

LayoutRule = Callable[[Node, Layout], "Layout | Sequence[Layout] | None"]
"""(node, the operand's layout) → the output's layout, or each output's, or None where only a copy can say it."""

Kernels = Callable[[Node, "Lowering"], None]
"""(node, lowering): emits kernels that write all outputs of the node."""

Composite = Callable[[Node, "RewriteBuilder"], "list[Value] | None"]
"""(node, builder) → the values, drawn with other operators, that take the place of the node's outputs.

None where the node is to run as it is, in the operator's other way."""


@attrs.define
class Entry:
    """How one operator runs: exactly one of these, or ``layout`` or ``composite`` with another for when it cannot.

    Attributes:
        expression: the element-wise operator's.
        layout: the view's.
        kernels: writes them.
        composite: draws with others.
        computes: of ``kernels``, the operand that they may compute as they read it, from what its element-wise nodes
            read; they ask for it by ``read_or_compute``.
    """

    expression: Expression | None = None
    layout: LayoutRule | None = None
    kernels: Kernels | None = None
    composite: Composite | None = None
    computes: str | None = None


_TABLE: dict[Operator[..., Any], Entry] = {}


def _register(operator: Operator[..., Any], way: str) -> Callable[[F], F]:
    def register(function: F) -> F:
        entry = _TABLE.setdefault(operator, Entry())
        if getattr(entry, way) is not None:
            raise RuntimeError(f"{operator.spec_name} already has {way}")
        setattr(entry, way, function)
        return function

    return register


def expression(operator: Operator[..., Any]) -> Callable[[F], F]:
    """Register an element-wise operator's expression."""
    return _register(operator, "expression")


def layout(operator: Operator[..., Any]) -> Callable[[F], F]:
    """Register a view's layout rule."""
    return _register(operator, "layout")


def kernels(operator: Operator[..., Any], *, computes: str | None = None) -> Callable[[F], F]:
    """Register the writer of an operator's own kernels, and which operand they may compute as they read it."""
    register = _register(operator, "kernels")
    _TABLE.setdefault(operator, Entry()).computes = computes
    return register


def composite(operator: Operator[..., Any]) -> Callable[[F], F]:
    """Register an operator that is drawn with others."""
    return _register(operator, "composite")


def find(operator: Operator[..., Any]) -> Entry | None:
    """The operator's entry, or None when this device cannot run it."""
    return _TABLE.get(operator)


def entry_of(node: Node) -> Entry:
    """The entry of a node's operator.

    Raises:
        NotImplementedError: there is none; validation lets no such operator through.
    """
    entry = find(node.operator)
    if entry is None:
        raise NotImplementedError(f"{node} has no WGSL kernel")
    return entry
