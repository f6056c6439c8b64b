"""Encoder-decoders with random weights, laid out as Hugging Face's optimum writes Whisper and Moonshine."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import attrs
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
FLOAT, WHOLE = TensorProto.FLOAT, TensorProto.INT64


@attrs.frozen
class Size:
    """The numbers of a model: layers, elements of a hidden state, heads, tokens, and the most of them in a sequence."""

    layers: int = 2
    width: int = 32
    heads: int = 4
    words: int = 384
    context: int = 40

    @property
    def head(self) -> int:
        """Return the elements of a head."""
        return self.width // self.heads


@attrs.frozen
class Form:
    """How a model is written.

    Attributes:
        is_merged: whether the first step and those with a cache are branches of one decoder.
        positions: how the length of the past makes positions: a part of a table, rows of it by numbers, or rotations.
        is_masked: whether a step with a cache hides later tokens itself; its caches then go through an Identity, too.
        hears: what the encoder reads.
        is_flat: whether attention is drawn with heads as a batch, [heads, length, size], as older exports have it.
    """

    is_merged: bool = True
    positions: Literal["slice", "gather", "rotary"] = "gather"
    is_masked: bool = False
    hears: Literal["samples", "spectra"] = "samples"
    is_flat: bool = False


SIZE = Size()
START, END, FORCED = SIZE.words - 2, SIZE.words - 1, 7
MELS = 8
PAST, PRESENT = "past_key_values.%d.%s.%s", "present.%d.%s.%s"


class Graph:
    """Nodes that are being gathered; weights are the same wherever they have the same name."""

    def __init__(self, size: Size, form: Form, *, has_past: bool) -> None:
        self.size, self.form, self.has_past = size, form, has_past
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def node(self, operator: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        """Add a node of one output."""
        self.nodes.append(helper.make_node(operator, inputs, [output], output, **attributes))
        return output

    def weight(self, name: str, array: Array) -> str:
        """Add an initializer."""
        self.weights[name] = array
        return name

    def whole(self, *numbers: int) -> str:
        """Add int64 numbers."""
        return self.weight(f"numbers_{'_'.join(map(str, numbers))}", np.array(numbers, np.int64))

    def normal(self, name: str, *shape: int, scale: float = 1.0) -> str:
        """Add random numbers that keep the size of what is multiplied with them."""
        random = np.random.default_rng(crc32(name.encode()))
        return self.weight(name, (scale * random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def product(self, x: str, columns: int, name: str, inner: int = 0) -> str:
        """Multiply with a matrix of random numbers."""
        weight = self.normal(f"{name}.weight", inner or self.size.width, columns, scale=1.5)
        return self.node("MatMul", [x, weight], f"{name}/output")

    def normalized(self, x: str, name: str) -> str:
        """Normalize each row."""
        factors = self.weight(f"{name}.weight", np.ones(self.size.width, np.float32))
        return self.node("LayerNormalization", [x, factors], f"{name}/output", axis=-1)


def _heads(graph: Graph, x: str, name: str) -> str:
    size = graph.size
    rows = graph.node("Reshape", [x, graph.whole(0, -1, size.heads, size.head)], f"{name}/heads")
    return graph.node("Transpose", [rows], f"{name}/split", perm=[0, 2, 1, 3])


def _attended(graph: Graph, q: str, k: str, v: str, name: str, *, mask: str = "") -> str:
    """Attend, and join the heads."""
    size = graph.size
    factor = graph.weight("factor", np.array(size.head**-0.5, np.float32))
    if graph.form.is_flat:
        shape = graph.whole(size.heads, -1, size.head)
        q, k, v = (
            graph.node("Reshape", [x, shape], f"{name}/{part}_flat") for part, x in zip("qkv", (q, k, v), strict=True)
        )
    keys = graph.node("Transpose", [k], f"{name}/keys", perm=[0, 2, 1] if graph.form.is_flat else [0, 1, 3, 2])
    scores = graph.node("MatMul", [graph.node("Mul", [q, factor], f"{name}/scaled"), keys], f"{name}/scores")
    if mask:
        scores = graph.node("Add", [scores, mask], f"{name}/masked")
    shares = graph.node("Softmax", [scores], f"{name}/shares", axis=-1)
    mixed = graph.node("MatMul", [shares, v], f"{name}/mixed")
    if graph.form.is_flat:
        mixed = graph.node("Reshape", [mixed, graph.whole(1, size.heads, -1, size.head)], f"{name}/mixed_heads")
    rows = graph.node("Transpose", [mixed], f"{name}/rows", perm=[0, 2, 1, 3])
    joined = graph.node("Reshape", [rows, graph.whole(0, 0, size.width)], f"{name}/joined")
    return graph.product(joined, size.width, f"{name}.out")


def _self_attention(graph: Graph, x: str, layer: int, prepared: dict[str, str]) -> str:
    name = f"layers.{layer}.self"
    q, k, v = (_heads(graph, graph.product(x, graph.size.width, f"{name}.{part}"), f"{name}/{part}") for part in "qkv")
    if graph.form.positions == "rotary":
        q, k = (_turned(graph, item, f"{name}/{part}") for item, part in ((q, "q"), (k, "k")))
    full = []
    for kind, rows in (("key", k), ("value", v)):
        present = PRESENT % (layer, "decoder", kind)
        if graph.has_past:
            whole = f"{name}/{kind}_whole" if graph.form.is_masked else present
            graph.node("Concat", [PAST % (layer, "decoder", kind), rows], whole, axis=2)
            if whole != present:
                graph.node("Identity", [whole], present)
        else:
            graph.node("Identity", [rows], present)
        full.append(present)
    return _attended(graph, q, *full, name, mask=prepared.get("mask", ""))


def _cross_attention(graph: Graph, x: str, layer: int) -> str:
    name = f"layers.{layer}.cross"
    q = _heads(graph, graph.product(x, graph.size.width, f"{name}.q"), f"{name}/q")
    if graph.has_past:
        k, v = (PAST % (layer, "encoder", kind) for kind in ("key", "value"))
        return _attended(graph, q, k, v, name)
    kept = []
    for kind in ("key", "value"):
        rows = _heads(
            graph, graph.product("encoder_hidden_states", graph.size.width, f"{name}.{kind}"), f"{name}/{kind}"
        )
        kept.append(graph.node("Identity", [rows], PRESENT % (layer, "encoder", kind)))
    return _attended(graph, q, *kept, name)


def _turned(graph: Graph, x: str, name: str) -> str:
    """Rotate queries or keys by their positions."""
    half = graph.size.head // 2
    parts = [(graph.whole(0), graph.whole(half)), (graph.whole(half), graph.whole(graph.size.head))]
    low, high = (
        graph.node("Slice", [x, *part, graph.whole(3)], f"{name}/{end}")
        for part, end in zip(parts, ("low", "high"), strict=True)
    )
    turned = graph.node("Concat", [graph.node("Neg", [high], f"{name}/negative"), low], f"{name}/turned", axis=3)
    level = graph.node("Mul", [x, "cos"], f"{name}/level")
    return graph.node("Add", [level, graph.node("Mul", [turned, "sin"], f"{name}/across")], f"{name}/rotated")


def _prepared(graph: Graph) -> dict[str, str]:
    """Compute how many tokens there are, the mask and the rotations."""
    one = graph.weight("one", np.array(1, np.int64))
    zero, two = graph.weight("zero", np.array(0, np.int64)), graph.weight("two", np.array(2, np.int64))
    new = graph.node("Gather", [graph.node("Shape", ["input_ids"], "shape"), one], "new")
    past = zero
    if graph.has_past:
        shape = graph.node("Shape", [PAST % (0, "decoder", "key")], "past_shape")
        past = graph.node("Gather", [shape, two], "past")
    total = graph.node("Add", [past, new], "total")
    prepared = {"past": past, "total": total}
    if graph.form.positions != "slice" or graph.form.is_masked or not graph.has_past:
        prepared["rows"] = graph.node("Range", [past, total, one], "rows")
    if graph.form.is_masked or not graph.has_past:
        columns = graph.node("Range", [zero, total, one], "columns")
        column = graph.node("Unsqueeze", [prepared["rows"], graph.whole(1)], "rows_column")
        is_later = graph.node("Greater", [columns, column], "is_later")
        lowest = graph.weight("lowest", np.array(-1e9, np.float32))
        none = graph.weight("none", np.array(0, np.float32))
        prepared["mask"] = graph.node("Where", [is_later, lowest, none], "mask")
    if graph.form.positions == "rotary":
        rates = 10000.0 ** -(np.arange(0, graph.size.head, 2) / graph.size.head)
        turns = graph.weight("rates", np.concatenate([rates, rates])[None].astype(np.float32))
        real = graph.node("Cast", [prepared["rows"]], "rows_real", to=FLOAT)
        angles = graph.node("Mul", [graph.node("Unsqueeze", [real, graph.whole(1)], "real_column"), turns], "angles")
        graph.node("Cos", [angles], "cos")
        graph.node("Sin", [angles], "sin")
    return prepared


def _embedded(graph: Graph, prepared: dict[str, str]) -> str:
    table = graph.normal("embed.weight", graph.size.words, graph.size.width, scale=np.sqrt(graph.size.words))
    state = graph.node("Gather", [table, "input_ids"], "embed/output")
    if graph.form.positions == "rotary":
        return state
    places = graph.normal("places.weight", graph.size.context, graph.size.width, scale=np.sqrt(graph.size.context))
    if graph.form.positions == "gather":
        return graph.node("Add", [state, graph.node("Gather", [places, prepared["rows"]], "places")], "embed/placed")
    ends = [graph.node("Unsqueeze", [prepared[end], graph.whole(0)], f"{end}_1") for end in ("past", "total")]
    rows = graph.node("Slice", [places, *ends, graph.whole(0)], "places")
    return graph.node("Add", [state, rows], "embed/placed")


def decoder(size: Size, form: Form, *, has_past: bool) -> Graph:
    """Return the nodes of a decoder's first step, or of one with a cache."""
    graph = Graph(size, form, has_past=has_past)
    prepared = _prepared(graph)
    state = _embedded(graph, prepared)
    for layer in range(size.layers):
        name = f"layers.{layer}"
        own = _self_attention(graph, graph.normalized(state, f"{name}.norm_1"), layer, prepared)
        state = graph.node("Add", [state, own], f"{name}/sum_1")
        heard = _cross_attention(graph, graph.normalized(state, f"{name}.norm_2"), layer)
        state = graph.node("Add", [state, heard], f"{name}/sum_2")
        inner = graph.product(graph.normalized(state, f"{name}.norm_3"), 48, f"{name}.up")
        made = graph.product(graph.node("Relu", [inner], f"{name}/relu"), size.width, f"{name}.down", 48)
        state = graph.node("Add", [state, made], f"{name}/sum_3")
    graph.node("Identity", [graph.product(graph.normalized(state, "norm"), size.words, "lm_head")], "logits")
    return graph


def encoder(size: Size, form: Form) -> onnx.ModelProto:
    """Return an encoder of samples, or of spectra."""
    graph = Graph(size, form, has_past=False)
    value = helper.make_tensor_value_info
    if form.hears == "samples":
        inputs = [value("input_values", FLOAT, ["batch_size", "num_samples"])]
        rows, depth = graph.node("Unsqueeze", ["input_values", graph.whole(1)], "channel"), 1
    else:
        inputs = [value("input_features", FLOAT, ["batch_size", MELS, "frames"])]
        rows, depth = "input_features", MELS
    filters = graph.normal("filters", size.width, depth, 8, scale=4.0)
    found = graph.node("Conv", [rows, filters], "found", strides=[8])
    state = graph.node("Transpose", [graph.node("Tanh", [found], "tanh")], "state", perm=[0, 2, 1])
    graph.node("Identity", [graph.normalized(state, "norm")], "last_hidden_state")
    outputs = [value("last_hidden_state", FLOAT, ["batch_size", "heard", size.width])]
    return _model([graph], graph.nodes, inputs, outputs)


def _model(graphs: Sequence[Graph], nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    weights = {name: array for graph in graphs for name, array in graph.weights.items()}
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    made = helper.make_graph(nodes, "model", inputs, outputs, tensors)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def _caches(size: Size, template: str, length: str, parts: Sequence[str]) -> list[Any]:
    return [
        helper.make_tensor_value_info(
            template % (layer, part, kind),
            FLOAT,
            ["batch_size", size.heads, length if part == "decoder" else "heard", size.head],
        )
        for layer in range(size.layers)
        for part in parts
        for kind in ("key", "value")
    ]


def decoders(size: Size, form: Form) -> dict[str, onnx.ModelProto]:
    """Return the decoder's models by file."""
    value = helper.make_tensor_value_info
    tokens = value("input_ids", WHOLE, ["batch_size", "new"])
    hidden = value("encoder_hidden_states", FLOAT, ["batch_size", "heard", size.width])
    logits = value("logits", FLOAT, ["batch_size", "new", size.words])
    pasts = _caches(size, PAST, "past", ["decoder", "encoder"])
    both = _caches(size, PRESENT, "total", ["decoder", "encoder"])
    own = _caches(size, PRESENT, "total", ["decoder"])
    first, later = (decoder(size, form, has_past=has_past) for has_past in (False, True))
    if not form.is_merged:
        return {
            "decoder_model.onnx": _model([first], first.nodes, [tokens, hidden], [logits, *both]),
            "decoder_with_past_model.onnx": _model([later], later.nodes, [tokens, *pasts], [logits, *own]),
        }
    for layer in range(size.layers):
        for kind in ("key", "value"):  # as optimum's merging does it: what was heard is not handed out again
            empty = numpy_helper.from_array(np.zeros([0, size.heads, 1, size.head], np.float32))
            name = PRESENT % (layer, "encoder", kind)
            later.nodes.append(helper.make_node("Constant", [], [name], value=empty))
    outputs = [logits, *both]
    branches = {
        f"{branch}_branch": helper.make_graph(graph.nodes, branch, [], outputs)
        for branch, graph in (("then", later), ("else", first))
    }
    names = [item.name for item in outputs]
    chosen = helper.make_node("If", ["use_cache_branch"], names, "branches", **branches)
    inputs = [tokens, hidden, *pasts, value("use_cache_branch", TensorProto.BOOL, [1])]
    return {"decoder_model_merged.onnx": _model([first, later], [chosen], inputs, outputs)}


def write_folder(folder: Path, form: Form, size: Size = SIZE) -> Path:
    """Write a model with its configuration; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in {"encoder_model.onnx": encoder(size, form), **decoders(size, form)}.items():
        onnx.save(model, folder / name)
    config = {
        "decoder_layers": size.layers,
        "decoder_start_token_id": START,
        "eos_token_id": END,
        "is_encoder_decoder": True,
        "max_target_positions": size.context,
        "model_type": "whisper",
    }
    generation = {"begin_suppress_tokens": [END], "forced_decoder_ids": [[1, FORCED]], "suppress_tokens": [3, START]}
    sound = {"feature_size": MELS, "hop_length": 16, "n_fft": 40, "nb_max_frames": 24, "sampling_rate": 1600}
    for name, content in (("config", config), ("generation_config", generation), ("preprocessor_config", sound)):
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    return folder
