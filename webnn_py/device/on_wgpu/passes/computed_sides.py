"""Sides of products that the product's kernel computes as it reads them: weights of four bits, which so stay packed."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from webnn_py.descriptors import FOUR_BITS
from webnn_py.device.on_wgpu.passes.elementwise_fusion import ElementwiseFusion
from webnn_py.device.on_wgpu.records.computed_side import ComputedSide
from webnn_py.device.on_wgpu.records.layout import Layout, is_gemm_readable
from webnn_py.device.on_wgpu.records.table import entry_of
from webnn_py.device.on_wgpu.records.variants import Variant
from webnn_py.graph import Graph, Node, Output, Value
from webnn_py.operators import conversion, matrix


def computed_sides(
    graph: Graph, fusion: ElementwiseFusion, written: Collection[Value], taken: Collection[Node]
) -> Mapping[Value, ComputedSide]:
    """The sides of a graph's products that are read packed.

    Args:
        graph: the graph.
        fusion: its element-wise nodes.
        written: values that have to be written to memory, whatever reads them.
        taken: nodes whose kernels are other ones.
    """
    found = {}
    for node in graph.nodes:
        if node.operator in (matrix.matmul, matrix.gemm) and node not in taken:
            for value in (node.operands["a"], node.operands["b"]):
                side = _side(value, fusion, written) if isinstance(value, Output) else None
                if side is not None:
                    found[value] = side
    return {value: side for value, side in found.items() if isinstance(value, Output)}


def _side(value: Output, fusion: ElementwiseFusion, written: Collection[Value]) -> ComputedSide | None:
    views: list[Node] = []
    current: Value = value
    while isinstance(current, Output) and current not in written and len(fusion.readers.get(current, ())) == 1:
        node = current.node
        if node.operator is conversion.dequantize_linear:
            return _packed(node, views)
        if entry_of(node).layout is None:
            return None
        views.append(node)
        current = next(iter(node.inputs))
    return None


def _packed(node: Node, views: list[Node]) -> ComputedSide | None:
    """What is dequantized, seen through views, the last of them first."""
    if node.operand("input").data_type not in FOUR_BITS or node.outputs[0].data_type != "float32":
        return None
    layout = Layout.dense(node.outputs[0].shape)
    for view in reversed(views):
        rule = entry_of(view).layout
        seen = None if rule is None else rule(view, layout)
        if not isinstance(seen, Layout):
            return None
        layout = seen
    is_read = is_gemm_readable(layout) and Variant.GEMM_COMPUTED_SIDES.is_on
    return ComputedSide(node, layout, (node, *reversed(views))) if is_read else None
