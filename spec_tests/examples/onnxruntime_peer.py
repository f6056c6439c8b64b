"""Results of onnxruntime."""

import numpy as np
import onnxruntime

LARGEST_DIFFERENCE = 1e-3
"""Of the output's largest value."""


def open_peer(path):
    """A session without onnxruntime's optimizations, which disagree with each other on quantized models."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_peer(peer, feeds):
    names = [item.name for item in peer.get_outputs()]
    return dict(zip(names, peer.run(names, feeds), strict=True))


def assert_near(found, expected, what):
    largest = np.abs(expected).max()
    difference = np.abs(found - expected).max() / largest
    assert difference <= LARGEST_DIFFERENCE, f"{what}: differs by {difference:.1e} of the largest value, {largest:.3g}"
