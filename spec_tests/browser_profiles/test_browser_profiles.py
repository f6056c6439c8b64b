"""A browser profile reports and enforces a browser's limits, refuses by its errors, and computes as ever."""

import json
import tomllib
from importlib.resources import files

import attrs
import numpy as np
import pytest

from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder, NotSupportedError, UnknownError, open_ml
from webnn_py.core.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.core.operators.declaration import spec_name_of
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.drawn_graphs import drawing_of
from webnn_py.extensions.browser_limits import NAMES, BrowserLimits, find, read
from webnn_py.extensions.browser_rules import RULES

CHROMIUM = "chromium-153-litert"
CPU = "numpy"


def table(name=CHROMIUM):
    return tomllib.loads((files("webnn_py.extensions") / f"{name}.toml").read_text(encoding="utf-8"))


@pytest.fixture
async def context():
    async with open_ml(extensions=[BrowserLimits(CHROMIUM)]) as ml:
        yield await ml.create_context(backend=CPU)


def test_each_table_is_a_profile_and_each_profile_has_a_table():
    folder = files("webnn_py.extensions")
    assert {path.name for path in folder.iterdir() if path.name.endswith(".toml")} == {f"{name}.toml" for name in NAMES}
    for name in NAMES:
        profile = find(name)
        assert profile.name == name
        assert profile.title
        assert profile.operators.keys() == OPERATORS.keys()


async def test_the_reported_limits_are_those_of_the_table(context):
    limits, rows = context.op_support_limits(), table()
    assert limits["preferred_input_layout"] == rows["preferred_input_layout"] == "nhwc"
    assert limits["max_tensor_byte_length"] == rows["max_tensor_byte_length"]
    seen = 0
    for name, operator in OPERATORS.items():
        for line in rows["operators"][operator.spec_name]:
            operands, _, allowed = line.partition(": ")
            data_types, _, ranks = allowed.partition(", ")
            lowest, highest = map(int, ranks.split(" to "))
            for operand in operands.split():
                (member,) = [m for m in limits[name] if spec_name_of(m) == operand]
                said = limits[name][member]
                assert set(said["data_types"]) == set(data_types.split()) & set(DATA_TYPES), (name, operand)
                assert said["rank_range"] == {"min": lowest, "max": highest}, (name, operand)
                seen += 1
    assert seen == sum(len(operator.limits) for operator in OPERATORS.values())


@pytest.mark.parametrize(
    ("method", "shape", "data_type"),
    [("neg", [2], "int64"), ("ceil", [2], "float32"), ("softplus", [1] * 6, "float16"), ("sign", [2] * 8, "float32")],
)
async def test_data_types_and_ranks_of_the_table_are_accepted(context, method, shape, data_type):
    draw(MLGraphBuilder(context), method, shape, data_type=data_type)


@pytest.mark.parametrize(
    ("method", "shapes", "data_type"),
    [("add", [[2], [2]], "uint32"), ("softplus", [[1] * 7], "float32"), ("clamp", [[1] * 6], "float32")],
)
async def test_data_types_and_ranks_beyond_the_table_are_refused(ml, context, method, shapes, data_type):
    draw(MLGraphBuilder(await ml.create_context(backend=CPU)), method, *shapes, data_type=data_type)
    with pytest.raises(TypeError, match=rf"{method}\(\): the browser profile {CHROMIUM} refuses it: the "):
        draw(MLGraphBuilder(context), method, *shapes, data_type=data_type)


# --- what is refused beyond the limits ---------------------------------------------------------------------------


def draw(builder, method, *shapes, data_type="float32", **options):
    """A call on inputs of some shapes."""
    operands = [builder.input(f"x{i}", data_type=data_type, shape=shape) for i, shape in enumerate(shapes)]
    return getattr(builder, method)(*operands, **options)


def elements(method, *, computed):
    """``gather_elements()`` or ``scatter_elements()``, its indices an input or a constant."""

    def make(builder):
        x = builder.input("x", data_type="float32", shape=[2, 2])
        constant = builder.constant(np.zeros([2, 2], np.int32))
        indices = builder.input("indices", data_type="int32", shape=[2, 2]) if computed else constant
        return getattr(builder, method)(x, indices, *([x] if method == "scatter_elements" else []), axis=1)

    return make


def scatter(method, data_type):
    """A scatter with constant indices, which are all the same for both operators."""

    def make(builder):
        x = builder.input("x", data_type=data_type, shape=[2, 2])
        if method == "scatter_elements":
            return builder.scatter_elements(x, builder.constant(np.zeros([2, 2], np.int32)), x)
        return builder.scatter_nd(x, builder.constant(np.zeros([2, 1], np.int32)), x)

    return make


def joined(data_type):
    def make(builder):
        x = builder.input("x", data_type=data_type, shape=[2])
        return builder.concat([x, x], 0)

    return make


def drawn(method, *shapes, **options):
    return lambda builder: draw(builder, method, *shapes, **options)


IMAGE, FILTER = [1, 1, 5, 5], [1, 1, 2, 2]
CASES = [
    ("pool-dilations", drawn("max_pool2d", IMAGE, dilations=[1, 2], window_dimensions=[2, 2])),
    ("pool-dilations", drawn("average_pool2d", IMAGE, dilations=[2, 1], window_dimensions=[2, 2])),
    ("pool-dilations", drawn("l2_pool2d", IMAGE, dilations=[2, 2], window_dimensions=[2, 2])),
    ("pad-edge", lambda builder: draw_pad(builder, "edge")),
    ("gather-elements-computed-indices", elements("gather_elements", computed=True)),
    ("scatter-elements-computed-indices", elements("scatter_elements", computed=True)),
    ("scatter-uint32", scatter("scatter_elements", "uint32")),
    ("scatter-uint32", scatter("scatter_nd", "uint32")),
    ("concat-uint64", joined("uint64")),
    ("prelu-wider-slope", drawn("prelu", [3], [2, 3])),
    ("conv-transpose-dilations-and-groups", drawn("conv_transpose2d", IMAGE, FILTER, dilations=[2, 2])),
    ("conv-transpose-dilations-and-groups", drawn("conv_transpose2d", [1, 2, 5, 5], [2, 1, 2, 2], groups=2)),
    ("conv-transpose-padding", drawn("conv_transpose2d", IMAGE, FILTER, padding=[1, 1, 1, 1])),
    (
        "conv-transpose-padding",
        drawn("conv_transpose2d", IMAGE, FILTER, padding=[0, 1, 0, 0], strides=[1, 2], output_padding=[0, 1]),
    ),
    ("slice-strides-beyond-sizes", drawn("slice", [4], starts=[0], sizes=[2], strides=[3])),
]
ACCEPTED = [
    drawn("max_pool2d", IMAGE, window_dimensions=[2, 2], padding=[0, 1, 0, 1]),
    lambda builder: draw_pad(builder, "reflection"),
    elements("gather_elements", computed=False),
    elements("scatter_elements", computed=False),
    scatter("scatter_nd", "float32"),
    joined("float32"),
    lambda builder: builder.pad(builder.input("x", data_type="float32", shape=[]), [], [], mode="edge"),
    drawn("prelu", [2, 3], [3]),
    drawn("conv_transpose2d", IMAGE, FILTER),
    drawn("conv_transpose2d", [1, 1, 2, 2], FILTER, padding=[0, 1, 0, 1]),
    drawn("slice", [4], starts=[0], sizes=[2], strides=[2]),
    drawn("conv2d", IMAGE, FILTER, dilations=[3, 1], padding=[1, 0, 2, 1]),
]


def draw_pad(builder, mode):
    x = builder.input("x", data_type="float32", shape=[3])
    return builder.pad(x, [1], [1], mode=mode)


def test_every_rule_has_a_case():
    assert {name for name, _ in CASES} == set(RULES)
    assert set(table()["rules"]) == set(RULES)


@pytest.mark.parametrize(("rule", "make"), CASES, ids=[f"{rule}-{index}" for index, (rule, _) in enumerate(CASES)])
async def test_each_rule_refuses_by_its_error(ml, context, rule, make):
    free = MLGraphBuilder(await ml.create_context(backend=CPU))
    (await free.build({"y": make(free)})).destroy()
    builder = MLGraphBuilder(context)
    if RULES[rule].when == "call":
        with pytest.raises(TypeError, match=RULES[rule].reason):
            make(builder)
        return
    operand = make(builder)
    error = {"NotSupportedError": NotSupportedError, "UnknownError": UnknownError}[RULES[rule].error]
    with pytest.raises(error, match=RULES[rule].reason) as caught:
        await builder.build({"y": operand})
    assert any(f"build(): {name}(): the browser profile" in str(caught.value) for name in RULES[rule].operators)
    assert repr(builder) == "<MLGraphBuilder destroyed>"


@pytest.mark.parametrize("index", range(len(ACCEPTED)))
async def test_accepted_graphs_compute_the_same(index):
    results = []
    for extensions in ([], [BrowserLimits(CHROMIUM)]):
        async with open_ml(extensions=extensions) as ml:
            context = await ml.create_context(backend=CPU)
            random = np.random.default_rng(index)
            builder = MLGraphBuilder(context)
            operand = ACCEPTED[index](builder)
            inputs = drawing_of("test", {"y": operand}).inputs
            data = {name: random.random(inputs[name].descriptor.shape, np.float32) for name in inputs}
            results.append(await compute(context, builder, data, {"y": operand}))
    np.testing.assert_array_equal(*[result["y"] for result in results], strict=True)


async def test_constant_buffers_are_refused(context):
    with pytest.raises(NotSupportedError, match=r"create_constant_buffer\(\): the browser profile"):
        await context.create_constant_buffer(np.zeros(2, np.float32), data_type="float32", shape=[2])


async def test_one_operand_as_two_outputs_loses_the_context(context):
    builder = MLGraphBuilder(context)
    x = draw(builder, "neg", [2])
    with pytest.raises(Exception, match="one operand is two outputs") as caught:
        await builder.build({"y": x, "z": x})
    assert caught.value.name == "InvalidStateError"
    assert "one operand is two outputs" in (await context.lost).message


@pytest.mark.parametrize("name", ["netscape-4", None])
def test_an_unknown_profile_is_refused(name):
    with pytest.raises(TypeError, match=f"name is {name!r}; it must be one of {CHROMIUM}"):
        BrowserLimits(name)


def test_a_tensor_may_be_as_long_as_the_limit_of_the_browser():
    profile = read("small", tables_text(max_tensor_byte_length=8))
    two, three = (attrs.evolve(FLOATS, shape=(size,)) for size in (2, 3))
    assert profile.refusal_of_tensor("the tensor", two) is None
    assert profile.refusal_of_tensor("the tensor", three).reason == "the tensor has 12 bytes; it must have at most 8"


FLOATS = MLOperandDescriptor("float32", ())


def tables_text(**changes):
    """The table with other values of some keys."""
    lines = (files("webnn_py.extensions") / f"{CHROMIUM}.toml").read_text(encoding="utf-8").splitlines()
    replaced = {key: f"{key} = {json.dumps(value)}" for key, value in changes.items()}
    return "\n".join(replaced.get(line.partition(" = ")[0], line) for line in lines)
