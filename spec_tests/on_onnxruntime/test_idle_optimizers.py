"""Optimizers that are left out because they would find nothing in a model would indeed change nothing in it."""

from collections import Counter

import pytest

from spec_tests.on_onnxruntime.meaning import DRAWINGS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
engine = pytest.importorskip("webnn_py.devices.onnxruntime.engine", exc_type=ImportError)
idle_optimizers = pytest.importorskip("webnn_py.devices.onnxruntime.idle_optimizers", exc_type=ImportError)


def optimized(model, left_out, path):
    """Count the nodes of each operator, and the constants, of a model that onnxruntime has optimized."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.optimized_model_filepath = str(path)
    for name, value in engine.CONFIGURATION.items():
        options.add_session_config_entry(name, value)
    values = [*map(onnxruntime.OrtValue.ortvalue_from_numpy, model.beside.values())]
    options.add_external_initializers(list(model.beside), values)
    providers = [engine.CPU.name]
    onnxruntime.InferenceSession(model.encoded, options, providers, disabled_optimizers=left_out)
    graph = onnx.load(path, load_external_data=False).graph
    return Counter((node.domain, node.op_type) for node in graph.node), len(graph.initializer)


async def test_no_drawing_is_optimized_otherwise(context, written_models, tmp_path):
    for drawing in DRAWINGS:
        written_models.clear()
        await drawing.compute(context)
        for model in written_models:
            left_out = engine.left_out(model)
            idle = idle_optimizers.idle(model.operators)
            with_all, without = (
                optimized(model, names, tmp_path / "optimized.onnx")
                for names in (left_out - idle | engine.DISABLED.keys(), left_out)
            )
            assert without == with_all, drawing.name


@pytest.mark.parametrize(
    ("operators", "is_idle"), [(("Conv", "Relu"), True), (("MatMul",), False), (("MatMul", "Conv"), False)], ids=str
)
def test_an_optimizer_is_idle_where_no_operator_that_it_looks_for_is_there(operators, is_idle):
    assert ("MatMulAddFusion" in idle_optimizers.idle(set(operators))) == is_idle
