"""onnxruntime-web, unmodified, in ``webnn-py node``, where a folder with it is named."""

import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from webnn_py import cli

PROJECT = os.environ.get("WEBNN_WEB_LIBRARIES")

pytestmark = pytest.mark.skipif(
    PROJECT is None, reason="WEBNN_WEB_LIBRARIES names no folder with node_modules/onnxruntime-web"
)

PROGRAM = """
import fs from 'node:fs';
import ort from 'onnxruntime-web/all';
ort.env.wasm.numThreads = 1;
const context = await navigator.ml.createContext();
const options = {executionProviders: [{name: 'webnn', context}], freeDimensionOverrides: {batch: 1}};
const kept = await ort.InferenceSession.create('model.onnx', {
  ...options, preferredOutputLocation: 'ml-tensor', externalData: [{path: 'data', data: 'data'}]});
const read = await ort.InferenceSession.create(fs.readFileSync('model.onnx'), {
  ...options, externalData: [{path: 'data', data: new Uint8Array(fs.readFileSync('data'))}]});
const tensor = await context.createTensor({dataType: 'float32', shape: [1, 4], readable: true, writable: true});
context.writeTensor(tensor, new Float32Array([1, 2, 3, 4]));
const x = ort.Tensor.fromMLTensor(tensor, {dataType: 'float32', dims: [1, 4]});
const {y} = await kept.run({x});
const {y: z} = await read.run({x: y});
console.log(y.location, y.mlTensor instanceof MLTensor, ...await y.getData());
console.log(z.location, ...z.data);
y.dispose();
await Promise.all([kept.release(), read.release()]);
process.exit(0);
"""


X = np.array([1, 2, 3, 4], np.float32)
WEIGHTS = np.arange(16, dtype=np.float32).reshape(4, 4) / 16


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Work in a folder with a model whose weights are in a file of their own."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(WEIGHTS, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="data", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(printed):
    y = X @ WEIGHTS
    (where, is_tensor, *kept), (read_where, *read) = map(str.split, printed.splitlines())
    assert (where, is_tensor, read_where) == ("ml-tensor", "true", "cpu")
    assert list(map(float, kept)) == y.tolist()
    assert list(map(float, read)) == (y @ WEIGHTS).tolist()


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node on the PATH")
@pytest.mark.parametrize("browser", [(), ("--browser", "chromium-153-litert")])
def test_sessions_of_mltensors_external_data_and_free_dimensions(folder, capfd, browser):
    (folder / "node_modules").symlink_to(Path(PROJECT).resolve() / "node_modules")
    (folder / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    assert cli.main(["node", "--backend", "numpy", *browser, "--", "node", "--liftoff-only", "program.mjs"]) == 0
    check(capfd.readouterr().out)
