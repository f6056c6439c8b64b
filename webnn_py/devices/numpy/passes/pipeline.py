"""The passes that rewrite a graph for numpy, in their order.

Each of them gains at least 1.2 × on two real models (``python -m spec_tests.labs.benchmarks.passes --backend numpy``).
Their modules are imported for graphs that they may have work in.
"""

from __future__ import annotations

from typing import Final

from webnn_py.core.graph import Graph
from webnn_py.core.operators import matrix, normalization
from webnn_py.devices.numpy.table import constant_array
from webnn_py.devices.rewriting.node_rules import NodeRule
from webnn_py.devices.rewriting.passes import GraphPass, NodePass, PassContext, PassManager
from webnn_py.devices.rewriting.report import PassReport
from webnn_py.devices.rewriting.subnormal_constants import SUBNORMAL_CONSTANTS


def _widened_constants(graph: Graph, context: PassContext) -> NodeRule | None:
    if not any(node.operator is matrix.matmul and node.outputs[0].data_type == "float16" for node in graph.nodes):
        return None
    from webnn_py.devices.numpy.passes.widened_constants import (  # noqa: PLC0415 - imported when it is used
        widened_constants,
    )

    return widened_constants(graph, context)


def _folded(graph: Graph, context: PassContext) -> Graph:
    from webnn_py.devices.rewriting.convolution_folding import folded  # noqa: PLC0415 - imported when it is used

    return folded(graph, context.contents)


PASSES: Final = PassManager(
    GraphPass(name="convolution-folding", run=_folded, needs=frozenset({normalization.batch_normalization})),
    SUBNORMAL_CONSTANTS,
    NodePass(name="widened-constants", make=_widened_constants, needs=frozenset({matrix.matmul})),
)


def rewritten(graph: Graph, *, keep_subnormals: bool = False) -> tuple[Graph, tuple[PassReport, ...]]:
    """Run all passes; return the rewritten graph and a report for each walk."""
    context = PassContext(lambda constant: constant_array(constant.data), keeps_subnormals=keep_subnormals)
    return PASSES.run(graph, context)
