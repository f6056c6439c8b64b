"""transformers.js, unmodified, in ``webnn-py node --web-worker``, where a folder with it is named."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers

from webnn_py import cli

PROJECT = Path(os.environ.get("WEBNN_WEB_LIBRARIES", os.devnull))
LIBRARY = "node_modules/@huggingface/transformers"

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="needs Node on the PATH"),
    pytest.mark.skipif(not (PROJECT / LIBRARY).is_dir(), reason=f"WEBNN_WEB_LIBRARIES names no folder with {LIBRARY}"),
]

WORDS = ("[PAD]", "one", "two", "three")
PROGRAM = """
import {env, pipeline} from '@huggingface/transformers';
env.allowLocalModels = true;
env.localModelPath = './models/';
env.backends.onnx.wasm.wasmPaths = new URL('./node_modules/onnxruntime-web/dist/', import.meta.url).href;
let dispatches = 0;
const {dispatch} = MLContext.prototype;
MLContext.prototype.dispatch = function (...given) {
  dispatches += 1;
  return dispatch.apply(this, given);
};
const sizes = {batch_size: 1, sequence_length: 3};
const options = {device: 'webnn', dtype: 'fp32', session_options: {freeDimensionOverrides: sizes}};
const extractor = await pipeline('feature-extraction', 'features', options);
const features = await extractor('one two three', {pooling: 'mean'});
console.log(JSON.stringify({features: [...features.data], dispatches}));
process.exit(0);
"""


def test_a_pipeline_computes_on_webnn(tmp_path, capfd, monkeypatch):
    random = np.random.default_rng(0)
    vectors, layer = (random.standard_normal(shape, np.float32) for shape in ((len(WORDS), 4), (4, 4)))
    sizes = ["batch_size", "sequence_length"]
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["vectors", "input_ids"], ["embedded"]),
            helper.make_node("MatMul", ["embedded", "layer"], ["product"]),
            helper.make_node("Tanh", ["product"], ["last_hidden_state"]),
        ],
        "graph",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, sizes)],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sizes, 4])],
        [numpy_helper.from_array(vectors, "vectors"), numpy_helper.from_array(layer, "layer")],
    )
    folder = tmp_path / "models" / "features"
    (folder / "onnx").mkdir(parents=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "onnx" / "model.onnx")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(WORDS)}))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]"})
    )
    (tmp_path / "node_modules").symlink_to(PROJECT.resolve() / "node_modules")
    (tmp_path / "program.mjs").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command = ["node", "--backend", "numpy", "--web-worker", "--", "node", "--liftoff-only", "program.mjs"]
    assert cli.main(command) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["dispatches"] == 1
    np.testing.assert_allclose(result["features"], np.tanh(vectors[1:] @ layer).mean(0), rtol=1e-5, atol=1e-6)
