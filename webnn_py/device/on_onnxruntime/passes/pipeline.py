"""The passes that rewrite a graph for onnxruntime, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webnn_py.device.folding import folded
from webnn_py.device.on_onnxruntime.engine import TESTED_PROVIDER
from webnn_py.device.on_onnxruntime.lowering.fused_activations import fuse_activations
from webnn_py.device.on_onnxruntime.lowering.trees import with_trees
from webnn_py.device.on_onnxruntime.own_operators.quantized_lstm import QUANTIZED_LSTM
from webnn_py.device.on_onnxruntime.passes.convolution_layout import convolving
from webnn_py.device.on_onnxruntime.passes.dynamic_quantization import recognizing
from webnn_py.device.on_onnxruntime.passes.function_fusion import FUSIONS
from webnn_py.device.on_onnxruntime.passes.int8_networks import with_paired_networks
from webnn_py.device.on_onnxruntime.passes.integer_products import integer_products
from webnn_py.device.on_onnxruntime.passes.loop_rerolling import with_rolled_steps
from webnn_py.device.on_onnxruntime.passes.quantized_recurrence import with_quantized_networks
from webnn_py.device.on_onnxruntime.passes.reshapes import reshaping
from webnn_py.device.on_onnxruntime.passes.scalar_ranks import ranked
from webnn_py.device.on_onnxruntime.passes.stacked_extremes import stacked_extremes
from webnn_py.graph import Graph
from webnn_py.onnx_export.node_passes import EQUAL_NODES, UNUSED_NODES
from webnn_py.operators import conversion, convolution
from webnn_py.operators.composites import DYNAMIC_QUANTIZE_LSTM
from webnn_py.operators.tree_ensembles import TREE_ENSEMBLE
from webnn_py.rewriting.passes import GraphPass, NodePass, PassContext, PassManager, ReadConstant
from webnn_py.rewriting.walk import NodeRule, of_operators


def _with_contents(run: Callable[[Graph, ReadConstant], Graph]) -> Callable[[Graph, PassContext], Graph]:
    return lambda graph, context: run(graph, context.contents)


def _for_graph(make: Callable[[Graph], NodeRule | None]) -> Callable[[Graph, PassContext], NodeRule | None]:
    return lambda graph, _context: make(graph)


PASSES: Final = PassManager(
    GraphPass(
        name="int8-lstm",
        run=_with_contents(with_quantized_networks),
        needs=frozenset({DYNAMIC_QUANTIZE_LSTM}),
        is_required=True,
    ),
    GraphPass(
        name="int8-lstm-rows",
        run=_with_contents(with_paired_networks),
        after=("int8-lstm",),
        needs=frozenset({QUANTIZED_LSTM}),
        is_required=True,  # without VNNI sums of uint8 by int8 saturate
    ),
    GraphPass(name="trees", run=_with_contents(with_trees), needs=frozenset({TREE_ENSEMBLE}), is_required=True),
    NodePass(
        name="dynamic-quantization",
        make=_for_graph(recognizing),
        needs=frozenset({conversion.quantize_linear}),
    ),
    # Behind the recognition of dynamic quantization, by which the gates of quantized networks are known.
    GraphPass(
        name="loops", run=_with_contents(with_rolled_steps), after=("dynamic-quantization",), targets=(TESTED_PROVIDER,)
    ),
    *FUSIONS,
    NodePass(
        name="integer-products",
        make=lambda graph, context: integer_products(graph, context.contents),
        after=("dynamic-quantization",),
    ),
    NodePass(name="stacked-extremes", make=_for_graph(stacked_extremes)),
    NodePass(name="convolution-layout", make=lambda _graph, _context: of_operators(convolving, convolution.conv2d)),
    NodePass(name="reshapes", make=_for_graph(reshaping)),
    NodePass(
        name="ranks-of-numbers",
        make=lambda _graph, _context: NodeRule(ranked, lambda operator: operator.is_elementwise),
    ),
    GraphPass(name="convolution-folding", run=_with_contents(folded), needs=frozenset({convolution.conv2d})),
)

NODE_PASSES: Final = PassManager(
    EQUAL_NODES,
    UNUSED_NODES,
    GraphPass(name="fused-activations", run=fuse_activations, after=("unused-nodes",), targets=(TESTED_PROVIDER,)),
)
"""The passes over the ONNX nodes of what is left of a graph then."""
