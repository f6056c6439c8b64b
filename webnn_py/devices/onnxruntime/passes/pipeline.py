"""The passes that rewrite a graph for onnxruntime, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from webnn_py.core.graph import Graph
from webnn_py.core.operators import activation, convolution, matrix, movement, normalization
from webnn_py.devices.composites.dynamic_quantization import DYNAMIC_QUANTIZE_LSTM
from webnn_py.devices.composites.loops import LOOP
from webnn_py.devices.onnxruntime.own_operators.quantized_lstm import QUANTIZED_LSTM
from webnn_py.devices.onnxruntime.passes.convolution_layout import relayout_convolution
from webnn_py.devices.onnxruntime.passes.function_fusion import FUSIONS
from webnn_py.devices.onnxruntime.passes.int8_networks import use_signed_weights
from webnn_py.devices.onnxruntime.passes.integer_products import integer_products
from webnn_py.devices.onnxruntime.passes.loop_rerolling import reroll_loops, unroll_loops
from webnn_py.devices.onnxruntime.passes.quantized_recurrence import use_quantized_lstms
from webnn_py.devices.onnxruntime.passes.reshapes import move_reshapes
from webnn_py.devices.onnxruntime.passes.scalar_ranks import give_numbers_ranks
from webnn_py.devices.onnxruntime.passes.split_sigmoids import sigmoids_before_splits
from webnn_py.devices.onnxruntime.passes.stacked_extremes import stacked_extremes
from webnn_py.devices.onnxruntime.providers import CPU, CUDA
from webnn_py.devices.rewriting.convolution_folding import folded
from webnn_py.devices.rewriting.node_rules import NodeRule, of_operators
from webnn_py.devices.rewriting.passes import GraphPass, NodePass, PassContext, PassManager, ReadConstant
from webnn_py.devices.rewriting.subnormal_constants import SUBNORMAL_CONSTANTS
from webnn_py.onnx_export.node_passes import EQUAL_NODES, UNUSED_NODES


def _with_contents(run: Callable[[Graph, ReadConstant], Graph]) -> Callable[[Graph, PassContext], Graph]:
    return lambda graph, context: run(graph, context.contents)


def _for_graph(make: Callable[[Graph], NodeRule | None]) -> Callable[[Graph, PassContext], NodeRule | None]:
    return lambda graph, _context: make(graph)


PASSES: Final = PassManager(
    GraphPass(
        name="int8-lstm",
        run=_with_contents(use_quantized_lstms),
        needs=frozenset({DYNAMIC_QUANTIZE_LSTM}),
        is_required=True,
    ),
    GraphPass(
        name="int8-lstm-rows",
        run=_with_contents(use_signed_weights),
        after=("int8-lstm",),
        needs=frozenset({QUANTIZED_LSTM}),
        is_required=True,  # without VNNI sums of uint8 by int8 saturate
    ),
    GraphPass(name="unrolled-loops", run=unroll_loops, needs=frozenset({LOOP}), is_required=True),
    GraphPass(
        name="loops",
        run=_with_contents(reroll_loops),
        targets=(CPU.name,),
        needs=frozenset({matrix.gemm, matrix.matmul}),
    ),
    *FUSIONS,
    NodePass(
        name="integer-products",
        make=lambda graph, context: integer_products(graph, context.contents),
        targets=(CPU.name,),
    ),
    NodePass(
        name="split-sigmoids",
        make=_for_graph(sigmoids_before_splits),
        targets=(CUDA.name,),
        needs=frozenset({activation.sigmoid, movement.split}),
    ),
    NodePass(name="stacked-extremes", make=_for_graph(stacked_extremes), targets=(CPU.name,)),
    NodePass(
        name="convolution-layout",
        make=lambda _graph, _context: of_operators(relayout_convolution, convolution.conv2d),
        targets=(CPU.name,),
    ),
    NodePass(name="reshapes", make=_for_graph(move_reshapes)),
    NodePass(
        name="ranks-of-numbers",
        make=lambda _graph, _context: NodeRule(give_numbers_ranks, lambda operator: operator.is_elementwise),
        targets=(CPU.name,),
    ),
    GraphPass(
        name="convolution-folding", run=_with_contents(folded), needs=frozenset({normalization.batch_normalization})
    ),
    attrs.evolve(SUBNORMAL_CONSTANTS, targets=(CPU.name,)),
)

NODE_PASSES: Final = PassManager(EQUAL_NODES, UNUSED_NODES)
"""The passes over the ONNX nodes that the rewritten graph is written as."""
