"""Real models to be mutated: a trained one, and small ones that together use what the importer knows."""

from pathlib import Path

import magika
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.graph import Graph, Input
from webnn_py.core.graph_rewriting import RewriteBuilder
from webnn_py.onnx_export import model_of

TRAINED = Path(magika.__file__).parent / "models" / "standard_v3_3" / "model.onnx"


def _values(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def _model(nodes, inputs, outputs, *, opset=18, functions=(), domains=(), **initializers):
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(item), name) for name, item in initializers.items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def _node(operator, inputs, outputs, **attributes):
    """A node; its names stand in a text each, "-" for an absent one."""
    names = [name.replace("-", "") for name in inputs.split()]
    return helper.make_node(operator, names, outputs.split(), name=f"the {operator}", **attributes)


def images():
    """Convolutions, pooling, resizing and normalization."""
    return _model(
        [
            _node("Conv", "x w b", "c", pads=[1, 1, 1, 1], strides=[2, 2], kernel_shape=[3, 3]),
            _node("BatchNormalization", "c b b b one", "n"),
            _node("Clip", "n low high", "k"),
            _node("MaxPool", "k", "m", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
            _node("AveragePool", "m", "a", kernel_shape=[2, 2], auto_pad="SAME_UPPER"),
            _node("Resize", "a - scales", "r", mode="linear", coordinate_transformation_mode="align_corners"),
            _node("ConvTranspose", "r t", "u", strides=[2, 2], output_padding=[1, 1], group=2),
            _node("Pad", "u pads", "p", mode="reflect"),
            _node("InstanceNormalization", "p one one", "i", epsilon=1e-3),
            _node("GlobalAveragePool", "i", "g"),
            _node("Flatten", "g", "f"),
            _node("Gemm", "f v", "y", transB=1, alpha=0.5),
        ],
        {"x": ["batch", 3, 12, 12]},
        ["y"],
        w=_values(4, 3, 3, 3),
        b=_values(4),
        one=np.ones(4, np.float32),
        low=np.float32(0),
        high=np.float32(6),
        scales=np.array([1, 1, 2, 2], np.float32),
        t=_values(4, 2, 3, 3),
        pads=np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        v=_values(5, 4),
    )


def attention():
    """A block of a transformer whose shapes are computed from its input's."""
    return _model(
        [
            _node("LayerNormalization", "x scale bias", "n", axis=-1),
            _node("MatMul", "n w", "qkv"),
            _node("Split", "qkv", "q k v", axis=-1, num_outputs=3),
            _node("Shape", "x", "s"),
            _node("Slice", "s zero two", "head"),
            _node("Concat", "head parts", "apart", axis=0),
            *(_node("Reshape", f"{name} apart", f"{name}4") for name in "qkv"),
            *(_node("Transpose", f"{name}4", f"{name}t", perm=[0, 2, 1, 3]) for name in "qv"),
            _node("Transpose", "k4", "kt", perm=[0, 2, 3, 1]),
            _node("MatMul", "qt kt", "scores"),
            _node("Gather", "s one", "length", axis=0),
            _node("Range", "nought length step", "places"),
            _node("Unsqueeze", "places zero", "row"),
            _node("Unsqueeze", "places one", "column"),
            _node("LessOrEqual", "row column", "seen"),
            _node("Where", "seen none far", "mask"),
            _node("Expand", "mask ones4", "mask4"),
            _node("Add", "scores mask4", "masked"),
            _node("Softmax", "masked", "weights", axis=-1),
            _node("MatMul", "weights vt", "mixed"),
            _node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]),
            _node("Reshape", "back s", "joined"),
            _node("Tile", "joined ones3", "tiled"),
            _node("ReduceMean", "tiled one", "mean", keepdims=0),
            _node("CumSum", "mean last", "sums"),
            _node("TopK", "table most", "best index", axis=-1),
            _node("OneHot", "index depth onoff", "hot"),
            _node("ReduceSum", "hot", "total", keepdims=0),
            _node("Mul", "sums total", "y"),
        ],
        {"x": [2, "length", 12]},
        ["y"],
        scale=_values(12),
        bias=_values(12),
        w=_values(12, 36),
        zero=np.array([0]),
        one=np.array([1]),
        two=np.array([2]),
        parts=np.array([3, 4]),
        nought=np.array(0),
        step=np.array(1),
        none=np.float32(0),
        far=np.float32(-1e4),
        ones4=np.array([1, 1, 1, 1]),
        ones3=np.array([1, 1, 1]),
        last=np.array(1),
        table=_values(2, 5),
        most=np.array([2]),
        depth=np.array(6),
        onoff=np.array([0, 1], np.float32),
    )


def quantized():
    """Types other than float32, indices, scattering and comparisons."""
    return _model(
        [
            _node("QuantizeLinear", "x scale zero", "q"),
            _node("DequantizeLinear", "q scale zero", "d"),
            _node("DequantizeLinear", "w8 scales", "w", axis=1),
            _node("MatMul", "d w", "m"),
            _node("Cast", "m", "h", to=TensorProto.FLOAT16),
            _node("ArgMax", "h", "i", axis=1, keepdims=1, select_last_index=1),
            _node("GatherElements", "m i", "g", axis=1),
            _node("ScatterElements", "m i g", "s", axis=1),
            _node("Pow", "s two", "p"),
            _node("ConstantOfShape", "shape", "c", value=numpy_helper.from_array(np.array([0.5], np.float32))),
            _node("Constant", "", "k", value_floats=[1.0, 2.0, 3.0]),
            _node("Concat", "c k k", "ck", axis=0),
            _node("Einsum", "k k", "outer", equation="i,j->ij"),
            _node("ReduceMax", "outer", "top", keepdims=0),
            _node("Pad", "ck pads half", "padded"),
            _node("GatherND", "padded places", "part"),
            _node("Trilu", "p", "l", upper=0),
            _node("Mul", "l top", "scaled"),
            _node("Sum", "scaled part", "y"),
            _node("Equal", "l g", "e"),
            _node("Not", "e", "different"),
        ],
        {"x": [3, 6]},
        ["y", "different"],
        scale=np.float32(0.1),
        zero=np.uint8(128),
        w8=np.arange(30, dtype=np.int8).reshape(6, 5),
        scales=np.full(5, 0.05, np.float32),
        two=np.array(2),
        shape=np.array([2]),
        pads=np.array([1, 1]),
        half=np.float32(0.5),
        places=np.array([[0], [1], [2], [3], [4]]),
        opset=19,
    )


def recurrent():
    """Recurrent networks, and slices with steps."""
    return _model(
        [
            _node("LSTM", "x wl rl bl", "s h c", hidden_size=4, direction="bidirectional"),
            _node("Squeeze", "h", "last"),
            _node("GRU", "x wg rg", "sg hg", hidden_size=4, linear_before_reset=1),
            _node("Slice", "sg starts ends axes steps", "cut"),
            _node("ReduceL2", "cut", "norm", keepdims=1),
            _node("Div", "last norm", "y"),
        ],
        {"x": [5, 1, 3]},
        ["y", "s"],
        wl=_values(2, 16, 3),
        rl=_values(2, 16, 4),
        bl=_values(2, 32),
        wg=_values(1, 12, 3),
        rg=_values(1, 12, 4),
        starts=np.array([-1, 0]),
        ends=np.array([-100, 4]),
        axes=np.array([0, 3]),
        steps=np.array([-2, 3]),
    )


def functions():
    """Functions that call each other with attributes, and branches of a known condition."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    leaky = _node("LeakyRelu", "a", "b")
    leaky.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    inner = helper.make_function("own", "Leaky", ["a"], ["b"], [leaky], opsets, ["slope"])
    call = helper.make_node("Leaky", ["s"], ["z"], domain="own", name="inner", slope=0.25)
    sizes = _node("Shape", "s", "n")
    reshape = _node("Reshape", "z n", "t")
    outer = helper.make_function(
        "own", "Block", ["a", "w", "c"], ["t"], [_node("Add", "a w", "s"), call, sizes, reshape], opsets
    )
    branches = {
        name: helper.make_graph(nodes, name, [], [onnx.ValueInfoProto(name=f"{name}y")], [])
        for name, nodes in {
            "then_branch": [helper.make_node("Block", ["x", "w"], ["then_branchy"], domain="own", name="outer")],
            "else_branch": [_node("Neg", "x", "else_branchy")],
        }.items()
    }
    nodes = [
        _node("Size", "w", "size"),
        _node("Greater", "size limit", "large"),
        _node("If", "large", "r", **branches),
        helper.make_node("Block", ["r", "w"], ["y"], domain="own", name="another"),
    ]
    return _model(
        nodes, {"x": [2, 3]}, ["y"], functions=[inner, outer], domains=["own"], w=_values(3), limit=np.array(2)
    )


LOOPS = """<ir_version: 8, opset_import: ["": 16]>
g (float[3,4] x) => (float[3,4] v, float[n,m,3,4] s, float[4] t, float[3,3] z)
<int64 three = {3}, bool yes = {1}, float[4] row = {1, 2, 3, 4}, int64 one = {1}> {
  turned = ReverseSequence (x, lengths)
  v, s = Loop (three, yes, turned)
    <body = outer (int64 i, bool c, float[3,4] a) => (bool c, float[3,4] ao, float[m,3,4] so)
  {
    two = Add (one, one)
    ao, so = Loop (two, c, a)
      <body = inner (int64 j, bool d, float[3,4] b) => (bool d, float[3,4] bo, float[3,4] so1)
    {
      f = Cast <to = 1> (j)
      g = Mul (row, f)
      first = Equal (j, i)
      bo = If (first) <then_branch = t () => (float[3,4] p) { p = Add (b, g) },
        else_branch = e () => (float[3,4] q) { q = Sub (x, g) }>
      so1 = Identity (bo)
    }>
  }>
  t, u = Scan <num_scan_inputs = 2, scan_input_directions = [1, 0], scan_output_axes = [-1],
    body = steps (float[4] k, float[4] l, float[4] m) => (float[4] ko, float[4] o)
  {
    o = Mul (l, m)
    ko = Add (k, o)
  }> (row, x, v)
  lengths = Constant <value_ints = [3, 1, 2, 0]> ()
  parts = SplitToSequence <axis = 1> (x, one)
  place = Constant <value_int = -2> ()
  fewer = SequenceErase (parts, place)
  more = SequenceInsert (fewer, w, place)
  w = ConcatFromSequence <axis = 1> (fewer)
  z = SequenceAt (more, place)
}"""


def loops():
    """Loops in loops, a branch in them, sequences of both kinds, and nodes out of order."""
    return parser.parse_model(LOOPS)


def written():
    """One that this package wrote, with functions that stand for operators."""
    builder = RewriteBuilder("label")
    x = builder.operand(Input(MLOperandDescriptor("float32", [2, 3]), "x"))
    line = builder.linear(x, alpha=0.5, beta=1)
    places = builder.cast(builder.clamp(line, min_value=0), "int32")
    largest = builder.reduce_max(builder.gather(x, places, axis=1), axes=[1])
    chosen = builder.where(builder.not_equal(places, builder.constant(1, data_type="int32")), line, x)
    summed = builder.reduce_sum(builder.reverse(places), axes=[0])
    outputs = {"y": builder.concat([largest, chosen], 0), "z": summed}
    return model_of(Graph.reaching({name: builder.value(operand) for name, operand in outputs.items()}))


def trained():
    """Magika's."""
    return onnx.load(TRAINED)


MODELS = {make.__name__: make for make in (images, attention, quantized, recurrent, functions, loops, written, trained)}
