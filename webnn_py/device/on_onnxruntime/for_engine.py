"""A graph as onnxruntime runs it best: what is looked for in it, in which order."""

from __future__ import annotations

from typing import Final

from webnn_py.device.folding import folded
from webnn_py.device.on_onnxruntime.biased_products import biased_products
from webnn_py.device.on_onnxruntime.convolving import convolving
from webnn_py.device.on_onnxruntime.cut_sigmoids import cut_sigmoids
from webnn_py.device.on_onnxruntime.cutting import cutting
from webnn_py.device.on_onnxruntime.drawn_gelus import drawn_gelus
from webnn_py.device.on_onnxruntime.drawn_hard_swishes import with_hard_swishes
from webnn_py.device.on_onnxruntime.dynamic_quantization import recognizing
from webnn_py.device.on_onnxruntime.engine import TESTED_PROVIDER
from webnn_py.device.on_onnxruntime.integer_products import integer_products
from webnn_py.device.on_onnxruntime.joined_convolutions import joined_convolutions
from webnn_py.device.on_onnxruntime.joined_sigmoids import joined_sigmoids
from webnn_py.device.on_onnxruntime.paired_networks import with_paired_networks
from webnn_py.device.on_onnxruntime.quantized_networks import with_quantized_networks
from webnn_py.device.on_onnxruntime.ranked_numbers import ranked
from webnn_py.device.on_onnxruntime.reshaping import reshaping
from webnn_py.device.on_onnxruntime.rms_norms import with_rms_norms
from webnn_py.device.on_onnxruntime.rolled_steps import with_rolled_steps
from webnn_py.device.on_onnxruntime.silus import with_silus
from webnn_py.device.on_onnxruntime.stacked_extremes import stacked_extremes
from webnn_py.device.on_onnxruntime.trees import with_trees
from webnn_py.graph import Graph
from webnn_py.onnx_export.model_export import ReadConstant
from webnn_py.operators import convolution
from webnn_py.rewriting import RewriteRule, first_of, of_operators, rewrite

CONVOLVING: Final = of_operators(convolving, convolution.conv2d)

RANKED: Final = RewriteRule(ranked, lambda operator: operator.is_elementwise)


def for_engine(graph: Graph, contents: ReadConstant, provider: str) -> Graph:
    """The graph in operators that onnxruntime has, or that are fewer, of the same results.

    Args:
        graph: what to rewrite.
        contents: gives the values of constants.
        provider: of onnxruntime's, which is to run it; what others may lack is for the tested one alone.
    """
    graph = with_paired_networks(with_quantized_networks(graph, contents), contents)
    if provider == TESTED_PROVIDER:
        graph = with_rolled_steps(graph, contents)
    there = {node.operator.name for node in graph.nodes}  # once, since each walk over a graph takes its time
    if provider == TESTED_PROVIDER and {"sqrt", "reduce_mean"} <= there:
        graph = with_rms_norms(graph)
    if "tree_ensemble" in there:
        graph = with_trees(graph, contents)
    if "clamp" in there:
        graph = with_hard_swishes(graph)
    if "conv2d" in there:
        graph = joined_convolutions(graph)
    if "sigmoid" in there:
        graph = joined_sigmoids(cut_sigmoids(graph))
    integers = integer_products(graph, contents)
    biased = biased_products(graph) if {"add", "matmul"} <= there else None
    reshapes = reshaping(graph, will_have=biased is not None and biased.has_reshapes)
    extremes, cuts = stacked_extremes(graph), cutting(graph)
    sums = None if biased is None else biased.rule
    dynamic = recognizing(graph) if "quantize_linear" in there else None
    rules = (dynamic, integers, extremes, sums, cuts, CONVOLVING, reshapes, RANKED)
    # Together, since each makes anew what is behind what it replaces.
    replace = drawn_gelus(graph, first_of(*rules))
    graph = folded(graph if replace is None else rewrite(graph, replace), contents)
    return with_silus(graph, contents)
