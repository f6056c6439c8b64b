"""Decoders with random weights, laid out as onnxruntime-genai's model builder and as Hugging Face's optimum write them.

    python -m spec_tests.models.decoder_models FOLDER [--size tiny | half-billion] [--layout genai | optimum] [--bits 4]

A folder has the model, its configuration and ``tokenizer.json``. The two layouts of one size compute the same function.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from spec_tests.models.texts import TEXTS

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Array = NDArray[Any]
Layout = Literal["genai", "optimum"]
BLOCK = 32
MICROSOFT = "com.microsoft"


@attrs.frozen
class Size:
    """The numbers of a decoder.

    Attributes:
        layers: of attention and a perceptron.
        width: elements of a hidden state.
        heads: of queries.
        kv_heads: of keys and values.
        head: elements of a head.
        inner: elements within a perceptron.
        words: tokens that there are.
        context: positions that it knows.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    inner: int
    words: int
    context: int


SIZES = {
    "tiny": Size(2, 256, 4, 2, 64, 512, 384, 256),
    "half-billion": Size(24, 896, 14, 2, 64, 4864, 151936, 4096),  # Qwen 2.5's
}


@attrs.frozen
class Form:
    """How a decoder is written.

    Attributes:
        layout: whose layout.
        bits: 4 for weights of four bits in blocks, 32 for float32.
        is_packed: whether one product gives queries, keys and values; of ``genai`` alone.
        accuracy_level: of MatMulNBits: 4 lets onnxruntime multiply in int8.
        window: how many keys a query sees, -1 for all; of ``genai`` alone.
        softcap: bound of the scores, 0 for none; of ``genai`` alone.
        data_type: of all floats.
        attention: the operator that attends; of ``optimum`` alone: drawn operator by operator, MultiHeadAttention for
            as many heads of keys as of queries, Attention, or TensorScatter before an Attention.
        rotates: whether attention rotates queries and keys itself, or an operator before it; of ``genai`` alone.
        positions: whether they are an input, or counted: from the mask, or from the length of the past, by a Range or
            by a sum; of ``optimum`` alone.
        mask_type: of the input ``attention_mask``.
        is_smooth: whether the softmax has one score of 0 more; of ``genai`` alone.
        is_causal: whether the operator that attends hides later tokens, too; of ``optimum`` alone.
    """

    layout: Layout = "genai"
    bits: int = 32
    is_packed: bool = True
    accuracy_level: int = 0
    window: int = -1
    softcap: float = 0.0
    data_type: Literal["float32", "float16"] = "float32"
    attention: Literal["plain", "MultiHeadAttention", "Attention", "TensorScatter"] = "plain"
    rotates: Literal["inside", "outside"] = "inside"
    positions: Literal["input", "mask", "past", "sum"] = "input"
    mask_type: Literal["int64", "int32"] = "int64"
    is_smooth: bool = False
    is_causal: bool = False


class Graph:
    """Nodes and weights that are being gathered."""

    def __init__(self, size: Size, form: Form, seed: int) -> None:
        self.size, self.form = size, form
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def node(self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Add a node of one output."""
        self.nodes.append(helper.make_node(operator, inputs, [output], output, domain=domain, **attributes))
        return output

    def weight(self, name: str, array: Array) -> str:
        """Add an initializer; floats are of the form's data type."""
        with np.errstate(under="ignore"):
            self.weights[name] = array.astype(self.form.data_type) if array.dtype.kind == "f" else array
        return name

    def whole(self, name: str, numbers: Sequence[int]) -> str:
        """Add int64 numbers."""
        return self.weight(name, np.array(numbers, np.int64))

    def normal(self, *shape: int) -> Array:
        """Return random numbers that keep the size of what is multiplied with them."""
        return self.random.standard_normal(shape, np.float32) / np.float32(np.sqrt(shape[0]))

    def product(self, x: str, weight: Array, name: str) -> str:
        """Multiply with a matrix, [inner, columns]."""
        if self.form.bits == 32:
            return self.node("MatMul", [x, self.weight(f"{name}.weight", weight)], f"{name}/output")
        packed, scales = quantized(weight.T)
        inner, columns = weight.shape
        inputs = [x, self.weight(f"{name}.qweight", packed), self.weight(f"{name}.scales", scales.reshape(-1))]
        sizes = {"K": inner, "N": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": self.form.accuracy_level}
        return self.node("MatMulNBits", inputs, f"{name}/output", MICROSOFT, **sizes)

    def embedded(self) -> str:
        """Look up the tokens."""
        table = self.random.standard_normal((self.size.words, self.size.width), np.float32)
        if self.form.bits == 32:
            return self.node("Gather", [self.weight("embed.weight", table), "input_ids"], "embed/output")
        packed, scales = quantized(table)
        inputs = [self.weight("embed.qweight", packed.reshape(len(table), -1)), "input_ids"]
        inputs.append(self.weight("embed.scales", scales))
        axes = {"bits": 4, "block_size": BLOCK, "gather_axis": 0, "quantize_axis": 1}
        return self.node("GatherBlockQuantized", inputs, "embed/output", MICROSOFT, **axes)


def quantized(rows: Array) -> tuple[Array, Array]:
    """Return rows in four bits, [rows, blocks, bytes], and the scale of each block, [rows, blocks]."""
    blocks = rows.reshape(len(rows), -1, BLOCK)
    scales = np.abs(blocks).max(2) / np.float32(7.5)
    numbers = np.clip(np.rint(blocks / scales[..., None]) + 8, 0, 15).astype(np.uint8)
    return numbers[..., ::2] | numbers[..., 1::2] << 4, scales


def angles(size: Size) -> tuple[Array, Array]:
    """Return the cosines and sines of the rotations of each position, [positions, half a head]."""
    rates = 10000.0 ** -(np.arange(0, size.head, 2) / size.head)
    turns = np.outer(np.arange(size.context), rates)
    return np.cos(turns).astype(np.float32), np.sin(turns).astype(np.float32)


# --- layers ------------------------------------------------------------------------------------------------------


def make_model(size: Size, form: Form, seed: int = 7) -> onnx.ModelProto:
    """Return a decoder with random weights."""
    graph = Graph(size, form, seed)
    state = graph.embedded()
    prepared = _prepare_genai(graph) if form.layout == "genai" else _prepare_optimum(graph)
    residual, first = state, True
    for layer in range(size.layers):
        residual, normal = _normalized(graph, state, residual, f"layers.{layer}.attention_norm", is_first=first)
        state = _attention(graph, normal, layer, prepared)
        residual, normal = _normalized(graph, state, residual, f"layers.{layer}.mlp_norm", is_first=False)
        state, first = _perceptron(graph, normal, f"layers.{layer}.mlp"), False
    _, normal = _normalized(graph, state, residual, "final_norm", is_first=False)
    graph.node("Identity", [graph.product(normal, graph.normal(size.width, size.words) * 4, "lm_head")], "logits")
    return _assembled(graph)


def _normalized(graph: Graph, state: str, residual: str, name: str, *, is_first: bool) -> tuple[str, str]:
    """Add what a layer has made to what it was made of, and normalize the sum; return both."""
    factors = graph.weight(f"{name}.weight", 1 + graph.normal(graph.size.width) / 8)
    if graph.form.layout == "genai" and not is_first:
        outputs = [f"{name}/output", "", "", f"{name}/sum"]
        inputs = [residual, state, factors]
        node = helper.make_node("SkipSimplifiedLayerNormalization", inputs, outputs, name, domain=MICROSOFT)
        node.attribute.append(helper.make_attribute("epsilon", 1e-6))
        graph.nodes.append(node)
        return outputs[3], outputs[0]
    total = state if is_first else graph.node("Add", [residual, state], f"{name}/sum")
    if graph.form.layout == "genai":
        options = {"axis": -1, "epsilon": 1e-6, "stash_type": 1}
        return total, graph.node("SimplifiedLayerNormalization", [total, factors], f"{name}/output", **options)
    two = graph.weight("two", np.array(2, np.float32))
    squares = graph.node("Pow", [total, two], f"{name}/squares")
    mean = graph.node("ReduceMean", [squares, graph.whole("last", [-1])], f"{name}/mean", keepdims=1)
    safe = graph.node("Add", [mean, graph.weight("epsilon", np.array(1e-6, np.float32))], f"{name}/safe")
    scaled = graph.node("Div", [total, graph.node("Sqrt", [safe], f"{name}/root")], f"{name}/scaled")
    return total, graph.node("Mul", [factors, scaled], f"{name}/output")


def _perceptron(graph: Graph, x: str, name: str) -> str:
    width, inner = graph.size.width, graph.size.inner
    gate = graph.product(x, graph.normal(width, inner), f"{name}.gate")
    up = graph.product(x, graph.normal(width, inner), f"{name}.up")
    gate = graph.node("Mul", [gate, graph.node("Sigmoid", [gate], f"{name}/sigmoid")], f"{name}/gated")
    return graph.product(graph.node("Mul", [gate, up], f"{name}/mul"), graph.normal(inner, width), f"{name}.down")


def _attention(graph: Graph, x: str, layer: int, prepared: dict[str, str]) -> str:
    size, name = graph.size, f"layers.{layer}.attention"
    wide, narrow = size.heads * size.head, size.kv_heads * size.head
    parts = {
        part: graph.normal(size.width, width) * 2 for part, width in zip("qkv", (wide, narrow, narrow), strict=True)
    }
    out = graph.normal(wide, size.width)
    if graph.form.layout == "optimum":
        projected = {part: graph.product(x, weight, f"{name}.{part}_proj") for part, weight in parts.items()}
        return graph.product(_plain_attention(graph, projected, layer, prepared), out, f"{name}.o_proj")
    if graph.form.is_packed:
        packed = np.concatenate(list(parts.values()), axis=1)
        inputs = [graph.product(x, packed, f"{name}.qkv_proj"), "", ""]
    else:
        inputs = [graph.product(x, weight, f"{name}.{part}_proj") for part, weight in parts.items()]
    is_inside = graph.form.rotates == "inside"
    if not is_inside:
        inputs[:2] = [_turned_by_operator(graph, part, f"{part}/rotated") for part in inputs[:2]]
    inputs += [f"past_key_values.{layer}.key", f"past_key_values.{layer}.value"]
    inputs += [prepared[item] for item in ("lengths", "total", *(("cos", "sin") if is_inside else ()))]
    outputs = [f"{name}/attended", f"present.{layer}.key", f"present.{layer}.value"]
    node = helper.make_node(
        "GroupQueryAttention",
        inputs,
        outputs,
        name,
        domain=MICROSOFT,
        num_heads=size.heads,
        kv_num_heads=size.kv_heads,
        scale=size.head**-0.5,
        local_window_size=graph.form.window,
        softcap=graph.form.softcap,
        do_rotary=int(is_inside),
        rotary_interleaved=0,
        smooth_softmax=int(graph.form.is_smooth),
    )
    graph.nodes.append(node)
    return graph.product(outputs[0], out, f"{name}.o_proj")


def _turned_by_operator(graph: Graph, x: str, output: str) -> str:
    inputs = [x, "position_ids", "cos_cache", "sin_cache"]
    return graph.node("RotaryEmbedding", inputs, output, MICROSOFT)


# --- onnxruntime-genai's layout ----------------------------------------------------------------------------------


def _prepare_genai(graph: Graph) -> dict[str, str]:
    """Compute the lengths from the attention mask, as the builder does."""
    path = "attn_mask_reformat"
    one = graph.whole("one", [1])
    long = graph.node("Cast", ["attention_mask"], f"{path}/long", to=TensorProto.INT64)
    total = graph.node("ReduceSum", [long, one], f"{path}/sum", keepdims=1)
    less = graph.node("Sub", [total, one], f"{path}/sub")
    lengths = graph.node("Cast", [less], f"{path}/seqlens_k", to=TensorProto.INT32)
    shape = graph.node("Shape", ["attention_mask"], f"{path}/shape")
    index = graph.weight("index", np.array(1, np.int64))
    gathered = graph.node("Gather", [shape, index], f"{path}/gather", axis=0)
    total = graph.node("Cast", [gathered], f"{path}/total_sequence_length", to=TensorProto.INT32)
    cos, sin = angles(graph.size)
    caches = {"cos": graph.weight("cos_cache", cos), "sin": graph.weight("sin_cache", sin)}
    return {"lengths": lengths, "total": total, **caches}


# --- optimum's layout --------------------------------------------------------------------------------------------


def _prepare_optimum(graph: Graph) -> dict[str, str]:
    """Compute the mask of all layers, and the rotations of the positions."""
    lowest = graph.weight("lowest", np.array(np.finfo(graph.form.data_type).min))
    zero, one = graph.weight("zero", np.array(0, np.int64)), graph.weight("index", np.array(1, np.int64))
    length = graph.node("Gather", [graph.node("Shape", ["input_ids"], "shape"), one], "length")
    positions = "position_ids"
    two = graph.weight("third", np.array(2, np.int64))
    past = graph.node("Gather", [graph.node("Shape", ["past_key_values.0.key"], "past_shape"), two], "past")
    total = graph.node("Add", [past, length], "total")
    if graph.form.attention == "TensorScatter":  # its cache has a fixed length
        total = past
        past = graph.node("ReduceMin", ["position_ids"], "begin", keepdims=0)
        graph.node("Slice", ["position_ids", *(graph.whole(f"begin_{at}", [at]) for at in (0, 1, 1))], "begin_column")
        graph.node("Reshape", ["begin_column", graph.whole("flat", [-1])], "begins")
    if graph.form.positions == "past":
        positions = graph.node("Unsqueeze", [graph.node("Range", [past, total, one], "counted"), "row_1"], "numbers")
        graph.whole("row_1", [0])
    elif graph.form.positions == "sum":
        counted = graph.node("Add", [graph.node("Range", [zero, length, one], "from_0"), past], "counted")
        positions = graph.node("Unsqueeze", [counted, graph.whole("row_1", [0])], "numbers")
    elif graph.form.positions == "mask":
        long = graph.node("Cast", ["attention_mask"], "mask_long", to=TensorProto.INT64)
        summed = graph.node("Sub", [graph.node("CumSum", [long, one], "summed"), one], "summed_before")
        ends = [graph.node("Unsqueeze", [end, graph.whole("row_1", [0])], f"{end}_1") for end in (past, total)]
        positions = graph.node("Slice", [summed, *ends, graph.whole("one", [1])], "numbers")
    rows = graph.node("Add", [graph.node("Range", [zero, length, one], "new"), past], "rows")
    rows = graph.node("Unsqueeze", [rows, graph.whole("one", [1])], "rows_column")
    is_seen = graph.node("LessOrEqual", [graph.node("Range", [zero, total, one], "columns"), rows], "is_seen")
    is_token = graph.node("Cast", ["attention_mask"], "is_token", to=TensorProto.BOOL)
    is_token = graph.node("Unsqueeze", [is_token, graph.whole("middle", [1, 2])], "is_token_row")
    both = graph.node("And", [is_seen, is_token], "is_visible")
    mask = graph.node("Where", [both, graph.weight("none", np.array(0, np.float32)), lowest], "mask")
    for name, table in zip(("cos", "sin"), angles(graph.size), strict=True):
        graph.weight(f"{name}_cache", np.concatenate([table, table], 1))
        gathered = graph.node("Gather", [f"{name}_cache", positions], f"{name}_gathered")
        graph.node("Unsqueeze", [gathered, "one"], name)
    return {"mask": mask}


def _plain_attention(graph: Graph, projected: dict[str, str], layer: int, prepared: dict[str, str]) -> str:
    size, name = graph.size, f"layers.{layer}.attention"
    heads = {"q": size.heads, "k": size.kv_heads, "v": size.kv_heads}
    split = {}
    for part, x in projected.items():
        shape = graph.whole(f"{part}_shape", [0, 0, heads[part], size.head])
        rows = graph.node("Reshape", [x, shape], f"{name}/{part}_heads")
        split[part] = graph.node("Transpose", [rows], f"{name}/{part}", perm=[0, 2, 1, 3])
    for part in "qk":
        split[part] = _turned(graph, split[part], f"{name}/{part}")
    if graph.form.attention != "plain":
        return _whole_attention(graph, split, layer, prepared)
    full = {}
    for part, kind in (("k", "key"), ("v", "value")):
        past, present = f"past_key_values.{layer}.{kind}", f"present.{layer}.{kind}"
        full[part] = _repeated(graph, graph.node("Concat", [past, split[part]], present, axis=-2), f"{name}/{part}")
    keys = graph.node("Transpose", [full["k"]], f"{name}/keys", perm=[0, 1, 3, 2])
    scores = graph.node("MatMul", [split["q"], keys], f"{name}/scores")
    scores = graph.node("Mul", [scores, graph.weight("scale", np.array(size.head**-0.5, np.float32))], f"{name}/scaled")
    scores = graph.node("Add", [scores, prepared["mask"]], f"{name}/masked")
    shares = graph.node("Softmax", [scores], f"{name}/shares", axis=-1)
    mixed = graph.node("MatMul", [shares, full["v"]], f"{name}/mixed")
    mixed = graph.node("Transpose", [mixed], f"{name}/mixed_rows", perm=[0, 2, 1, 3])
    return graph.node("Reshape", [mixed, graph.whole("joined", [0, 0, size.heads * size.head])], f"{name}/attended")


def _whole_attention(graph: Graph, split: dict[str, str], layer: int, prepared: dict[str, str]) -> str:
    """Attend by one operator, which appends to its past itself."""
    size, name = graph.size, f"layers.{layer}.attention"
    pasts = [f"past_key_values.{layer}.key", f"past_key_values.{layer}.value"]
    outputs = [f"{name}/mixed", f"present.{layer}.key", f"present.{layer}.value"]
    if graph.form.attention in {"Attention", "TensorScatter"}:
        options = {"softcap": graph.form.softcap, "is_causal": int(graph.form.is_causal)}
        inputs = [*split.values(), prepared["mask"], *pasts]
        if graph.form.attention == "TensorScatter":
            for part, past, present in zip("kv", pasts, outputs[1:], strict=True):
                graph.node("TensorScatter", [past, split[part], "begins"], present, axis=2)
            inputs, outputs = [split["q"], *outputs[1:], prepared["mask"]], outputs[:1]
        graph.nodes.append(helper.make_node("Attention", inputs, outputs, name, **options))
        rows = graph.node("Transpose", [outputs[0]], f"{name}/mixed_rows", perm=[0, 2, 1, 3])
        return graph.node("Reshape", [rows, graph.whole("joined", [0, 0, size.heads * size.head])], f"{name}/attended")
    query = graph.node("Transpose", [split["q"]], f"{name}/q_rows", perm=[0, 2, 1, 3])
    flat = [graph.node("Reshape", [query, graph.whole("joined", [0, 0, size.heads * size.head])], f"{name}/q_flat")]
    for part in "kv":
        rows = graph.node("Transpose", [split[part]], f"{name}/{part}_rows", perm=[0, 2, 1, 3])
        flat.append(graph.node("Reshape", [rows, "joined"], f"{name}/{part}_flat"))
    inputs = [*flat, "", "", prepared["mask"], *pasts]
    options = {"num_heads": size.heads, "scale": size.head**-0.5, "unidirectional": int(graph.form.is_causal)}
    graph.nodes.append(helper.make_node("MultiHeadAttention", inputs, outputs, name, domain=MICROSOFT, **options))
    return outputs[0]


def _turned(graph: Graph, x: str, name: str) -> str:
    half = graph.size.head // 2
    first = [graph.whole("zero_1", [0]), graph.whole("half", [half]), graph.whole("last", [-1])]
    second = ["half", graph.whole("end", [np.iinfo(np.int64).max]), "last"]
    low, high = (graph.node("Slice", [x, *at], f"{name}_{part}") for part, at in (("low", first), ("high", second)))
    turned = graph.node("Concat", [graph.node("Neg", [high], f"{name}_negative"), low], f"{name}_turned", axis=-1)
    level = graph.node("Mul", [x, "cos"], f"{name}_level")
    return graph.node("Add", [level, graph.node("Mul", [turned, "sin"], f"{name}_across")], f"{name}_rotated")


def _repeated(graph: Graph, x: str, name: str) -> str:
    """Repeat heads of keys or values, one for each head of queries."""
    size = graph.size
    shape = graph.node("Shape", [x], f"{name}_shape")
    start = graph.node("Slice", [shape, "zero_1", graph.whole("two_1", [2])], f"{name}_start")
    rest = graph.node("Slice", [shape, "two_1", graph.whole("four", [4])], f"{name}_rest")
    groups = graph.whole("groups", [size.heads // size.kv_heads])
    wide = graph.node("Concat", [start, groups, rest], f"{name}_wide", axis=0)
    lone = graph.node("Unsqueeze", [x, "two_1"], f"{name}_lone")
    repeated = graph.node("Expand", [lone, wide], f"{name}_expanded")
    joined = graph.node("Concat", ["zero_1", graph.whole("heads", [size.heads]), rest], f"{name}_joined", axis=0)
    return graph.node("Reshape", [repeated, joined], f"{name}_repeated")


# --- files -------------------------------------------------------------------------------------------------------


def _assembled(graph: Graph) -> onnx.ModelProto:
    size = graph.size
    whole, real = TensorProto.INT64, helper.np_dtype_to_tensor_dtype(np.dtype(graph.form.data_type))
    inputs = [
        helper.make_tensor_value_info("input_ids", whole, ["batch_size", "sequence_length"]),
        helper.make_tensor_value_info(
            "attention_mask",
            TensorProto.INT32 if graph.form.mask_type == "int32" else whole,
            ["batch_size", "total_sequence_length"],
        ),
    ]
    if graph.form.rotates == "outside" or (graph.form.layout == "optimum" and graph.form.positions == "input"):
        inputs.append(helper.make_tensor_value_info("position_ids", whole, ["batch_size", "sequence_length"]))
    outputs = [helper.make_tensor_value_info("logits", real, ["batch_size", "sequence_length", size.words])]
    for layer in range(size.layers):
        for kind in ("key", "value"):
            past = ["batch_size", size.kv_heads, "past_sequence_length", size.head]
            present = ["batch_size", size.kv_heads, "total_sequence_length", size.head]
            inputs.append(helper.make_tensor_value_info(f"past_key_values.{layer}.{kind}", real, past))
            outputs.append(helper.make_tensor_value_info(f"present.{layer}.{kind}", real, present))
    weights = [numpy_helper.from_array(array, name) for name, array in graph.weights.items()]
    opset = {"Attention": 23, "TensorScatter": 24}.get(graph.form.attention, 18)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    made = helper.make_graph(graph.nodes, "decoder", inputs, outputs, weights)
    return helper.make_model(made, opset_imports=opsets, ir_version=10)


def make_tokenizer(words: int) -> "Tokenizer":
    """Return a tokenizer of bytes and of pairs of them, trained on some texts; the last two words are special."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - of an extra

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=min(words - 2, 2000), initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS.values(), trainer)
    missing = words - 2 - tokenizer.get_vocab_size()
    tokenizer.add_tokens([f"<word {number}>" for number in range(missing)])
    tokenizer.add_special_tokens(["<|start|>", "<|end|>"])
    return tokenizer


def genai_config(size: Size, form: Form, file: str) -> dict[str, Any]:
    """Return what onnxruntime-genai's builder writes about a model."""
    names = {"past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value"}
    presents = {"present_key_names": "present.%d.key", "present_value_names": "present.%d.value"}
    return {
        "model": {
            "bos_token_id": size.words - 2,
            "context_length": size.context,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": file,
                "head_size": size.head,
                "hidden_size": size.width,
                "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", **names},
                "outputs": {"logits": "logits", **presents},
                "num_attention_heads": size.heads,
                "num_hidden_layers": size.layers,
                "num_key_value_heads": size.kv_heads,
            },
            "eos_token_id": [size.words - 1],
            "pad_token_id": size.words - 1,
            "type": "qwen2",
            "vocab_size": size.words,
        },
        "search": {
            "diversity_penalty": 0.0,
            "do_sample": False,
            "early_stopping": True,
            "length_penalty": 1.0,
            "max_length": size.context,
            "min_length": 0,
            "no_repeat_ngram_size": 0,
            "num_beams": 1,
            "num_return_sequences": 1,
            "past_present_share_buffer": True,
            "repetition_penalty": 1.0,
            "temperature": 1.0,
            "top_k": 50,
            "top_p": 1.0,
        },
    }


def optimum_configs(size: Size) -> dict[str, dict[str, Any]]:
    """Return what optimum writes about a model, by file."""
    ends = {"bos_token_id": size.words - 2, "eos_token_id": size.words - 1}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "head_dim": size.head,
        "hidden_size": size.width,
        "max_position_embeddings": size.context,
        "model_type": "llama",
        "num_attention_heads": size.heads,
        "num_hidden_layers": size.layers,
        "num_key_value_heads": size.kv_heads,
        "vocab_size": size.words,
    }
    return {"config.json": {**config, **ends}, "generation_config.json": {"do_sample": False, **ends}}


def write_folder(folder: Path, size: Size, form: Form, seed: int = 7) -> Path:
    """Write a model with all that belongs to it; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    model = make_model(size, form, seed)
    onnx.save(model, folder / "model.onnx", save_as_external_data=size.words > 10000, location="model.onnx.data")
    configs = {"genai_config.json": genai_config(size, form, "model.onnx")}
    for name, config in (configs if form.layout == "genai" else optimum_configs(size)).items():
        (folder / name).write_text(json.dumps(config, indent=4), encoding="utf-8")
    make_tokenizer(size.words).save(str(folder / "tokenizer.json"))
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--layout", choices=("genai", "optimum"), default="genai")
    parser.add_argument("--bits", type=int, choices=(4, 32), default=4)
    parser.add_argument("--data-type", choices=("float32", "float16"), default="float32")
    parser.add_argument("--accuracy-level", type=int, choices=range(5), default=0)
    given = parser.parse_args()
    form = Form(given.layout, given.bits, accuracy_level=given.accuracy_level, data_type=given.data_type)
    write_folder(given.folder, SIZES[given.size], form)
