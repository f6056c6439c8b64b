"""The passes that rewrite a graph for numpy, in their order.

Each of them gains at least 1.3 × on two real models (``python -m spec_tests.labs.benchmarks.passes --backend numpy``).
"""

from __future__ import annotations

from typing import Final

from webnn_py.core.graph import Graph
from webnn_py.core.operators import conversion, convolution
from webnn_py.devices.numpy.passes.dynamic_quantization import fused_dynamic_quantization
from webnn_py.devices.numpy.passes.widened_constants import widened_constants
from webnn_py.devices.numpy.table import constant_array
from webnn_py.devices.rewriting.convolution_folding import folded
from webnn_py.devices.rewriting.passes import GraphPass, NodePass, PassContext, PassManager
from webnn_py.devices.rewriting.report import PassReport
from webnn_py.devices.rewriting.subnormal_constants import SUBNORMAL_CONSTANTS

PASSES: Final = PassManager(
    GraphPass(
        name="convolution-folding",
        run=lambda graph, context: folded(graph, context.contents),
        needs=frozenset({convolution.conv2d}),
    ),
    NodePass(
        name="dynamic-quantization",
        make=fused_dynamic_quantization,
        needs=frozenset({conversion.quantize_linear}),
    ),
    SUBNORMAL_CONSTANTS,
    NodePass(name="widened-constants", make=widened_constants),
)


def rewritten(graph: Graph, *, keep_subnormals: bool = False) -> tuple[Graph, tuple[PassReport, ...]]:
    """Run all passes; return the rewritten graph and a report for each walk."""
    context = PassContext(lambda constant: constant_array(constant.data), keeps_subnormals=keep_subnormals)
    return PASSES.run(graph, context)
