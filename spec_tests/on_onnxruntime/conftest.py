"""What several files of tests of the onnxruntime device need."""

import pytest


@pytest.fixture
async def contexts(ml):
    return await ml.create_context(backend="onnxruntime", threads=1), await ml.create_context(backend="numpy")


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
