"""What several files of tests of the onnxruntime device need."""

from collections import Counter

import pytest


@pytest.fixture
async def contexts(ml):
    return await ml.create_context(backend="onnxruntime", threads=1), await ml.create_context(backend="numpy")


@pytest.fixture
def written(monkeypatch):
    """How often each operator of ONNX is in the models that were written."""
    import onnx  # noqa: PLC0415 - an extra

    from webnn_py.device.on_onnxruntime import engine  # noqa: PLC0415 - an extra

    counts = Counter()

    class Session(engine.onnxruntime.InferenceSession):
        def __init__(self, model, *arguments, **options):
            counts.update(node.op_type for node in onnx.load_model_from_string(model).graph.node)
            super().__init__(model, *arguments, **options)

    monkeypatch.setattr(engine.onnxruntime, "InferenceSession", Session)
    return counts


@pytest.fixture
def written_nodes(monkeypatch):
    """The nodes of each model of which a session is made, in the order in which they are written."""
    from webnn_py.device.on_onnxruntime import executable  # noqa: PLC0415 - an extra

    found, passes = [], executable.NODE_PASSES

    class Noted:
        @staticmethod
        def run(nodes, context):
            written, reports = passes.run(nodes, context)
            found.append(written.nodes)
            return written, reports

    monkeypatch.setattr(executable, "NODE_PASSES", Noted)
    return found


@pytest.fixture
def exact_runs(monkeypatch):
    """One item for each run by the rules for all numbers."""
    from webnn_py.device.on_onnxruntime import executable  # noqa: PLC0415 - an extra

    runs, run = [], executable.OnnxruntimeGraph.run_exactly

    def observed(graph):
        runs.append(graph)
        run(graph)

    monkeypatch.setattr(executable.OnnxruntimeGraph, "run_exactly", observed)
    return runs
