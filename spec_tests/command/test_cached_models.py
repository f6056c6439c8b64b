"""Models in a Hugging Face cache, whose snapshots have links to the files and to their external weights."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from spec_tests.models.decoder_models import SIZES, Form, write_folder
from spec_tests.support.model_cache import cached, with_external_weights
from webnn_py.runtime import blocking


@pytest.fixture
def snapshot(doubled, tmp_path):
    """A cached model in a folder of its repository: y = x + w."""
    proto = onnx.load(doubled)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w"))
    proto.graph.node[0].input[1] = "w"
    folder = tmp_path / "fresh" / "onnx"
    folder.mkdir(parents=True)
    onnx.save(proto, folder / "model.onnx")
    with_external_weights(folder / "model.onnx", "model.onnx_data")
    return cached(tmp_path / "fresh", tmp_path / "hub")


@pytest.mark.parametrize("name", ["run", "info"])
def test_a_model_is_run_and_shown(command, snapshot, name):
    command(name, snapshot / "onnx" / "model.onnx", "--backend", "numpy", "--shape", "rows=2").succeeded()


def test_a_model_is_compared_with_onnxruntime(command, snapshot):
    pytest.importorskip("onnxruntime")
    path = snapshot / "onnx" / "model.onnx"
    command("run", path, "--backend", "numpy", "--shape", "rows=2", "--compare", "onnxruntime").succeeded()


def test_a_converted_model_has_its_weights(command, snapshot, tmp_path):
    command("convert", snapshot / "onnx" / "model.onnx", tmp_path / "out.onnx").succeeded()
    (weights,) = onnx.load(tmp_path / "out.onnx").graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(weights), [1, 2, 3])


def test_a_session_runs_it(snapshot):
    with blocking.Environment("numpy") as env, env.create_session(snapshot / "onnx" / "model.onnx") as session:
        y = session.run({"x": np.zeros((1, 3), np.float32)})["y"].data
    np.testing.assert_array_equal(y, [[1, 2, 3]])


@pytest.mark.parametrize("layout", ["genai", "optimum"])
def test_a_decoder_continues_a_text(command, tmp_path, layout):
    pytest.importorskip("tokenizers")
    folders = [write_folder(tmp_path / name, SIZES["tiny"], Form(layout)) for name in ("plain", "fresh")]
    with_external_weights(folders[1] / "model.onnx", "model.onnx_data")
    folders[1] = cached(folders[1], tmp_path / "hub")
    arguments = ("--backend", "numpy", "--max-new-tokens", "5", "--prompt", "hello world", "--json")
    plain, of_cache = (command("generate", folder, *arguments).report()["tokens"] for folder in folders)
    assert len(of_cache) == 5
    assert of_cache == plain
