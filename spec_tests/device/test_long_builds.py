"""Builds that compute for long run in a thread, so that timeouts and other tasks go on."""

import importlib
import threading

import numpy as np
import pytest

from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder

BACKENDS = ["numpy", "onnxruntime"]
SIZE = 400


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request):
    if request.param == "onnxruntime":
        pytest.importorskip("onnxruntime")
    return request.param


def products(b, x):
    """Multiply constants, which is done while the graph is built."""
    matrix = b.constant(np.ones((SIZE, SIZE), np.float32))
    return b.add(b.matmul(matrix, matrix), x)


def filters(b, x):
    """Convolve by a long filter, which onnxruntime packs while the graph is built."""
    return b.conv2d(x, b.constant(np.ones((1, 1, 1000, 1000), np.float32)), padding=[500] * 4)


def pools(b, x):
    """Pool by windows longer than the image, which onnxruntime is given as slices."""
    return b.max_pool2d(x, window_dimensions=[500, 500], padding=[250] * 4)


GRAPHS = {"numpy": "NumpyGraph", "onnxruntime": "OnnxruntimeGraph"}
LONG = {
    "numpy": {"products": (products, [SIZE, SIZE])},
    "onnxruntime": {
        "products": (products, [SIZE, SIZE]),
        "filters": (filters, [1, 1, 9, 9]),
        "pools": (pools, [1, 1, 40, 40]),
    },
}


@pytest.mark.parametrize("case", ["products", "filters", "pools"])
async def test_long_builds_run_in_a_thread(context, backend, case, monkeypatch):
    if case not in LONG[backend]:
        pytest.skip(f"{backend} does little for {case} while it builds")
    draw, shape = LONG[backend][case]
    graph_class = getattr(importlib.import_module(f"webnn_py.devices.{backend}.executable"), GRAPHS[backend])
    threads = noted(monkeypatch, graph_class, "__init__")
    builder = MLGraphBuilder(context)
    graph = await builder.build({"y": draw(builder, builder.input("x", data_type="float32", shape=shape))})
    graph.destroy()
    assert len(threads) == 1
    assert threads[0] != threading.get_ident(), f"{case} was built in the event loop's thread"
