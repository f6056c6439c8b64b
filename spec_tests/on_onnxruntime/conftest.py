"""Fixtures of several files of tests of the onnxruntime device."""

from collections import Counter

import pytest

from spec_tests.support.stand_ins import noted, returned


@pytest.fixture
async def context(ml):
    return await ml.create_context(backend="onnxruntime", threads=1)


@pytest.fixture
async def contexts(context, numpy_context):
    return context, numpy_context


class Models(list):
    """The graphs of the models of which sessions are made, and how often each operator of ONNX is in all of them."""

    def __init__(self):
        super().__init__()
        self.operators = Counter()


@pytest.fixture
def models(monkeypatch):
    import onnx  # noqa: PLC0415 - an extra

    from webnn_py.devices.onnxruntime import engine  # noqa: PLC0415 - an extra

    models = Models()

    class Session(engine.onnxruntime.InferenceSession):
        def __init__(self, model, *arguments, **options):
            models.append(onnx.load_model_from_string(model).graph)
            models.operators.update(node.op_type for node in models[-1].node)
            super().__init__(model, *arguments, **options)

    monkeypatch.setattr(engine.onnxruntime, "InferenceSession", Session)
    return models


@pytest.fixture
def written_models(monkeypatch):
    """The models of which sessions are made, as the device writes them."""
    from webnn_py.devices.onnxruntime.engine import EngineOptions  # noqa: PLC0415 - an extra

    return noted(monkeypatch, EngineOptions, "session", lambda _options, model, _values: model)


@pytest.fixture
def written(models):
    """Count the operators of ONNX in the models of which sessions are made."""
    return models.operators


@pytest.fixture
def written_nodes(monkeypatch):
    """The nodes of each model of which a session is made, in the order in which they are written."""
    from webnn_py.devices.onnxruntime import executable  # noqa: PLC0415 - an extra

    return returned(monkeypatch, executable.NODE_PASSES, "run", lambda result, *_: result[0].nodes)


@pytest.fixture
def exact_runs(monkeypatch):
    """One item for each run by the rules for all numbers."""
    from webnn_py.devices.onnxruntime import executable  # noqa: PLC0415 - an extra

    return noted(monkeypatch, executable.OnnxruntimeGraph, "run_exactly", lambda graph: graph)
