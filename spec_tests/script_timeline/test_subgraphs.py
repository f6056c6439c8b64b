"""The proposal "subgraph": definitions that are drawn once, and calls that run whole where a device has an operator."""

import math
import re

import numpy as np
import pytest

import webnn_py
from spec_tests.operators.decomposed import DECOMPOSITIONS
from spec_tests.support.backends import DEVICES, on_each
from spec_tests.support.cache_facts import COPYING
from spec_tests.support.cells import cells
from spec_tests.support.computing import compute_graph, results_of
from spec_tests.support.grouped_attention import Sizes, attention, define
from spec_tests.support.sampled_engine import owner
from webnn_py import InvalidStateError, MLGraphBuilder, NotSupportedError
from webnn_py.checking import check_finite
from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.core.operators.examples import examples_of
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.extensions.subgraph import MOST_OPERATORS, MLSubgraph, build_subgraph, subgraph, uses_of
from webnn_py.pictures import picture

HEADS = {"num_heads": 4, "kv_num_heads": 2}
CONFIG = {**HEADS, "do_rotary": True, "scale": 0.3}

TOLERANCE = {"float32": 2e-5, "float16": 5e-3}
X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)

backend = on_each(DEVICES)


@pytest.fixture
async def ml():
    async with webnn_py.open_ml(experimental={"subgraph"}) as opened:
        yield opened


@pytest.fixture
async def context(ml, backend):
    return await ml.create_context(backend=backend)


@pytest.fixture
async def on_numpy(ml):
    return await ml.create_context(backend="numpy")


async def built(context, sizes, name, draw=attention, config=CONFIG):
    builder = MLGraphBuilder(context)
    operands = sizes.inputs(builder)
    outputs = subgraph(builder, define(builder, operands, config, name, draw), operands, label="layer")
    return await builder.build(outputs, keep_source=True)


def tanh(builder, x):
    """The hyperbolic tangent by exponentials, as the discussion begins."""
    two, one = (builder.constant(number, data_type="float32") for number in (2, 1))
    power = builder.exp(builder.mul(x, two))
    return builder.div(builder.sub(power, one), builder.add(power, one))


def defined(builder, draw, name="f", shape=(2, 3), **options):
    """Define a sub-graph of one input "input" and one output "y"."""
    x = builder.input("input", data_type="float32", shape=shape)
    return build_subgraph(builder, {"y": draw(builder, x)}, name=name, inputs={"input": x}, **options)


# --- whole, or by the body ---------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("sizes", "begins"),
    [
        (Sizes(new=3), [0, 0]),
        (Sizes(), [4, 2]),
        (Sizes(batch=1, new=2, data_type="float16"), [3]),
        (Sizes(batch=1, new=8), [0]),
    ],
    ids=["a prompt", "a step", "float16", "a full cache"],
)
async def test_attention_is_equal_whole_and_by_its_body(context, backend, sizes, begins):
    results = []
    for name in ("GQA", "mine"):
        graph = await built(context, sizes, name)
        (use,) = uses_of(graph)
        assert (use.name, use.label) == (name, "layer")
        assert use.operators > 50
        is_whole = name == "GQA" and owner(backend) not in COPYING
        assert use.operator == ("groupQueryAttention" if is_whole else None)
        assert is_whole == (use.reason == "")
        results.append(await compute_graph(context, graph, sizes.feeds(begins)))
    for name, array in results[0].items():
        np.testing.assert_allclose(array, results[1][name], rtol=0, atol=TOLERANCE[sizes.data_type], err_msg=name)


async def test_a_device_that_has_no_kernel_runs_the_body(ml):
    context = await ml.create_context(backend="reference")
    (use,) = uses_of(await built(context, Sizes(), "GQA"))
    assert use.reason == "the device has no kernel for groupQueryAttention"


def other_scale(builder, inputs, config):
    return attention(builder, inputs, {**config, "scale": 0.2})


def other_mask(builder, inputs, config):
    """All keys that any sample has are seen."""
    longest = builder.expand(builder.sub(inputs["total_sequence_length"], builder.constant(np.int32(1))), [2])
    drawn = attention(builder, {**inputs, "seqlens_k": longest}, config)
    return {**attention(builder, inputs, config), "output": drawn["output"]}


def more_outputs(builder, inputs, config):
    drawn = attention(builder, inputs, config)
    return {**drawn, "negative": builder.neg(drawn["output"])}


def fewer_rows(builder, inputs, config):
    drawn = attention(builder, inputs, config)
    return {**drawn, "output": builder.reshape(drawn["output"], [2, 64])}


@pytest.mark.parametrize(
    ("draw", "config", "reason"),
    [
        (other_scale, CONFIG, "its body is not the decomposition of 'GQA' with this config"),
        (other_mask, CONFIG, "its body is not the decomposition of 'GQA' with this config"),
        (attention, {**CONFIG, "softcap": 2}, "its body is not the decomposition of 'GQA' with this config"),
        (attention, {**CONFIG, "heads": 2}, "a member of config is 'heads'; it must be among \\['causal', "),
        (
            attention,
            {**CONFIG, "softcap": "no"},
            "config\\['softcap'\\] is 'no'; it must be a number of float32 or a boolean",
        ),
        (
            attention,
            {**CONFIG, "local_window_size": math.nan},
            "config\\['local_window_size'\\] is nan; it must be a num",
        ),
        (
            attention,
            {**CONFIG, "scale": 10**400},
            "config\\['scale'\\] is an integer of 1329 bits; it must be a number",
        ),
        (more_outputs, CONFIG, "an output is 'negative'; it must be among \\['output', 'present_key', 'present_value'"),
        (fewer_rows, CONFIG, "the output 'output' is float32 \\[2, 64\\]; it must be float32 \\[2, 1, 64\\]"),
    ],
)
async def test_a_body_that_is_something_else_runs_as_drawn(on_numpy, draw, config, reason):
    sizes = Sizes()
    named, plain = [await built(on_numpy, sizes, name, draw, config) for name in ("GQA", "mine")]
    (use,) = uses_of(named)
    assert use.operator is None
    assert re.match(reason, use.reason), use.reason
    feeds = sizes.feeds([4, 2])
    np.testing.assert_equal(*[await compute_graph(on_numpy, graph, feeds) for graph in (named, plain)])


def softmax(builder, x):
    """The softmax along the last axis, as it is decomposed."""
    greatest = builder.reduce_max(x, axes=[1], keep_dimensions=True)
    powers = builder.exp(builder.sub(x, greatest))
    return builder.div(powers, builder.reduce_sum(powers, axes=[1], keep_dimensions=True))


def constant(builder, value, data_type="float32"):
    return builder.constant(value, data_type=data_type)


def gated(builder, x):
    """The sum of the hard gate, with its operands in the other order, as hardSwish is decomposed."""
    gate = builder.min(builder.add(constant(builder, 3), x), constant(builder, 6))
    above = builder.mul(builder.div(gate, constant(builder, 6)), x)
    return builder.where(builder.lesser(x, constant(builder, -3)), constant(builder, 0), above)


@pytest.mark.parametrize(
    ("name", "draw", "config"),
    [
        ("softmax", softmax, {"axis": 1}),
        ("Relu", lambda b, x: b.max(x, constant(b, 0)), {}),
        ("RELU", lambda b, x: b.relu(x), {}),
        ("clamp", lambda b, x: b.min(b.max(x, constant(b, -1)), constant(b, 1.5)), {"minValue": -1, "maxValue": 1.5}),
        ("clamp", lambda b, x: b.clamp(x, min_value=-1.0, max_value=1), {"minValue": -1, "maxValue": 1.0}),
        ("hardSwish", gated, {}),
        ("tanh", lambda b, x: b.tanh(x), {}),
    ],
)
async def test_a_body_that_is_the_decomposition_runs_as_the_operator_of_its_name(context, name, draw, config):
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    outputs = {
        each: subgraph(builder, defined(builder, draw, called, config=config), {"input": x})["y"]
        for each, called in (("whole", name), ("drawn", "mine"))
    }
    graph = await builder.build(outputs)
    assert [use.operator and use.operator.casefold() for use in uses_of(graph)] == [name.casefold(), None]
    computed = await compute_graph(context, graph, {"x": X})
    np.testing.assert_allclose(computed["whole"], computed["drawn"], rtol=1e-5, atol=1e-6)


EXAMPLES = [
    (name, example)
    for name in DECOMPOSITIONS
    for example in examples_of(
        OPERATORS[name],
        {
            row: "float32" if "float32" in limits.data_types else limits.data_types[0]
            for row, limits in OPERATORS[name].limits.items()
        },
        rank=3,
    )
    if not any(isinstance(value, list) and isinstance(value[0], MLOperandDescriptor) for value in example.values())
]


@cells(("name", "example"), EXAMPLES)
async def test_the_decomposition_of_each_operator_is_recognized(on_numpy, name, example):
    operator, builder = OPERATORS[name], MLGraphBuilder(on_numpy)
    spec_names = {parameter.name: parameter.spec_name for parameter in operator.parameters.values()}
    shapes = {each: value for each, value in example.items() if isinstance(value, MLOperandDescriptor)}
    formal, given = (
        {
            each: builder.input(f"{prefix}{spec_names[each]}", data_type=value.data_type, shape=value.shape)
            for each, value in shapes.items()
        }
        for prefix in ("", "given ")
    )
    drawn = DECOMPOSITIONS[name](builder, **{**example, **formal})
    outputs = {f"y{index}": item for index, item in enumerate(drawn if isinstance(drawn, list) else [drawn])}
    if not {*outputs.values()}.isdisjoint(formal.values()):
        return  # a clamp without limits draws nothing
    definition = build_subgraph(
        builder,
        outputs,
        name=operator.spec_name,
        inputs={spec_names[each]: item for each, item in formal.items()},
        config={spec_names[each]: value for each, value in example.items() if each not in shapes},
    )
    graph = await builder.build(subgraph(builder, definition, {spec_names[each]: item for each, item in given.items()}))
    assert [(use.operator, use.reason) for use in uses_of(graph)] == [(operator.spec_name, "")]


def cut_off(builder, x):
    return softmax(builder, builder.clamp(x, min_value=-100, max_value=100))


LARGE = np.array([[-1000, -3.5, 0], [3.5, 100, 1e30]], np.float32)

UNLIKE = {
    "relu6": ("relu", {"input": LARGE}, {}, lambda b, x: b.clamp(x, min_value=0, max_value=6)),
    "relu6 in parts": ("relu", {"input": LARGE}, {}, lambda b, x: b.min(b.max(constant(b, 0), x), constant(b, 6))),
    "clamped logits": ("softmax", {"input": LARGE}, {"axis": 1}, cut_off),
    "along another axis": ("softmax", {"input": LARGE}, {"axis": 0}, softmax),
    "a product of integers": (
        "min",
        {"a": np.array([3, 5], np.int32), "b": np.array([2, -7], np.int32)},
        {},
        lambda b, x, y: b.mul(x, y),
    ),
    "a conjunction of integers": (
        "mul",
        {"a": np.array([3, 5], np.uint8), "b": np.array([2, 7], np.uint8)},
        {},
        lambda b, x, y: b.logical_and(x, y),
    ),
    "operands in the other order": (
        "sub",
        {"a": np.array([3, 5], np.float32), "b": np.array([2, -7], np.float32)},
        {},
        lambda b, x, y: b.sub(y, x),
    ),
    "tanh by exponentials": ("tanh", {"input": LARGE}, {}, tanh),
    "a constant that differs in its sign": (
        "relu",
        {"input": LARGE},
        {},
        lambda b, x: b.max(constant(b, -0.0), x),
    ),
    "other limits": ("clamp", {"input": LARGE}, {"minValue": 0, "maxValue": 8}, lambda b, x: b.relu(x)),
    "an option that the name does not say": ("elu", {"input": LARGE}, {}, lambda b, x: b.elu(x, alpha=2)),
    "wrapped around": (
        "identity",
        {"input": np.array([3, 200], np.uint8)},
        {},
        lambda b, x: b.cast(b.cast(x, "int8"), "uint8"),
    ),
}


@pytest.mark.parametrize("case", UNLIKE)
async def test_a_name_does_not_change_what_another_body_computes(context, case):
    name, feeds, config, draw = UNLIKE[case]
    builder = MLGraphBuilder(context)
    descriptors = {each: {"data_type": array.dtype.name, "shape": array.shape} for each, array in feeds.items()}
    given = {each: builder.input(f"given {each}", **descriptor) for each, descriptor in descriptors.items()}
    outputs = {}
    for called in (name, "mine"):
        formal = {each: builder.input(each, **descriptor) for each, descriptor in descriptors.items()}
        body = {"y": draw(builder, *formal.values())}
        definition = build_subgraph(builder, body, name=called, inputs=formal, config=config)
        outputs[called] = subgraph(builder, definition, given)["y"]
    graph = await builder.build(outputs)
    assert [use.operator for use in uses_of(graph)] == [None, None]
    assert {use.reason.partition(" of ")[0] for use in uses_of(graph) if use.name == name} == {
        "its body is not the decomposition"
    }
    results = await compute_graph(context, graph, {f"given {each}": array for each, array in feeds.items()})
    np.testing.assert_equal(results[name], results["mine"])


def normalized(builder, x, epsilon=0.5):
    centred = builder.sub(x, builder.reduce_mean(x, axes=[1], keep_dimensions=True))
    variance = builder.reduce_mean(builder.mul(centred, centred), axes=[1], keep_dimensions=True)
    root = builder.sqrt(builder.add(variance, builder.constant(epsilon, data_type="float32")))
    return builder.div(centred, root)


@pytest.mark.parametrize(
    ("config", "operator", "reason"),
    [
        ({"axes": [1], "epsilon": 0.5}, "layerNormalization", ""),
        ({"axes": [1], "epsilon": 0.25}, None, "its body is not the decomposition of 'layerNormalization'"),
        ({"axes": [5]}, None, "axes [5]: 5 is 5; it must be less than the rank, 2, of the shape [2, 3]"),
        ({"axis": [1]}, None, "a member of config is 'axis'; it must be among ['axes', 'epsilon']"),
        ({"axes": "all"}, None, "axes is 'all'"),
    ],
)
async def test_its_options_are_in_config(on_numpy, config, operator, reason):
    builder = MLGraphBuilder(on_numpy)
    x = builder.input("x", data_type="float32", shape=X.shape)
    definition = defined(builder, normalized, "layerNormalization", config=config)
    graph = await builder.build(subgraph(builder, definition, {"input": x}))
    (use,) = uses_of(graph)
    assert use.operator == operator
    assert reason in use.reason


# --- definitions and calls ---------------------------------------------------------------------------------------


async def test_a_definition_is_called_many_times_and_within_others(context):
    def twice(builder, x):
        return subgraph(builder, inner, {"input": subgraph(builder, inner, {"input": x})["y"]}, label="inner")["y"]

    def draw(builder, x):
        nonlocal inner
        inner = defined(builder, lambda b, y: b.add(b.mul(y, y), b.constant(np.float32(0.5))), "square and a half")
        outer = defined(builder, twice, "twice")
        first = subgraph(builder, outer, {"input": x}, label="first")["y"]
        return subgraph(builder, outer, {"input": first}, label="second")["y"]

    inner = None
    expected = X
    for _ in range(4):
        expected = expected * expected + np.float32(0.5)
    np.testing.assert_allclose(await results_of(context, draw, [X]), expected, rtol=1e-5)


async def test_a_definition_says_what_it_is(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    given = {"axes": [1], "nothing": None, "more": {"deep": (np.float32(1.5), np.True_, np.int64(2))}}
    definition = defined(builder, normalized, "layerNormalization", config=given)
    given["axes"].append(2)
    assert definition.name == "layerNormalization"
    assert dict(definition.config) == {"axes": [1], "more": {"deep": [1.5, True, 2]}}
    assert [type(one) for one in definition.config["more"]["deep"]] == [float, bool, int]
    assert str(definition.inputs["input"]) == str(definition.outputs["y"]) == "float32 [2, 3]"
    assert repr(definition) == ("<MLSubgraph 'layerNormalization': 7 operators, inputs ['input'], outputs ['y']>")
    with pytest.raises(TypeError, match=r"no public constructor; use webnn_py\.extensions\.subgraph\.build_subgraph"):
        MLSubgraph()


async def test_constants_are_captured_and_constant_buffers_are_held(context):
    buffer = await context.create_constant_buffer(X, data_type="float32", shape=X.shape)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=X.shape)
    definition = defined(builder, lambda b, y: b.add(y, b.constant(buffer)), "add")
    graph = await builder.build(subgraph(builder, definition, {"input": x}))
    assert uses_of(graph)[0].reason == "an input is 'input'; it must be among ['a', 'b']"
    buffer.destroy()
    np.testing.assert_allclose((await compute_graph(context, graph, {"x": X}))["y"], 2 * X)
    builder = MLGraphBuilder(context)
    gone = await context.create_constant_buffer(X, data_type="float32", shape=X.shape)
    x = builder.input("x", data_type="float32", shape=X.shape)
    outputs = subgraph(builder, defined(builder, lambda b, y: b.add(y, b.constant(gone)), "f"), {"input": x})
    gone.destroy()
    with pytest.raises(TypeError, match="destroyed"):
        await builder.build(outputs)


async def test_pictures_checks_and_exports_have_its_operators(on_numpy, tmp_path):
    builder = MLGraphBuilder(on_numpy)
    x = builder.input("x", data_type="float32", shape=X.shape)
    outputs = subgraph(builder, defined(builder, tanh, "tanh"), {"input": x}, label="squashed")
    assert "subgraph [squashed]" in str(picture(outputs))
    found = await check_finite(outputs, {"x": np.full_like(X, 1e3)})
    assert (found.operator, found.label) == ("exp", "squashed")
    webnn_py.save_js(outputs, tmp_path)
    text = (tmp_path / "model.js").read_text()
    assert "builder.exp(" in text
    assert "subgraph" not in text
    webnn_py.save_webnn(outputs, tmp_path / "model.webnn")
    graph = await builder.build(outputs, keep_source=True)
    assert "subgraph [squashed]" in str(picture(graph))


# --- what is refused ---------------------------------------------------------------------------------------------


REFUSED = {
    "no name": (lambda b, x, y: build_subgraph(b, {"y": y}, name="", inputs={"x": x}), "name is empty"),
    "no outputs": (lambda b, x, _y: build_subgraph(b, {}, name="f", inputs={"x": x}), "outputs is empty"),
    "an input as output": (
        lambda b, x, _y: build_subgraph(b, {"y": x}, name="f", inputs={"x": x}),
        r"outputs\['y'\] is an input; use identity\(\)",
    ),
    "an input left out": (
        lambda b, _x, y: build_subgraph(b, {"y": y}, name="f", inputs={}),
        r"build_subgraph\(\): outputs depend on the input 'x', which is not among inputs \[\]",
    ),
    "an output as input": (
        lambda b, _x, y: build_subgraph(b, {"y": b.neg(y)}, name="f", inputs={"y": y}),
        r"inputs\['y'\] is an operator's output; it must be what input\(\) returns",
    ),
    "one input twice": (
        lambda b, x, y: build_subgraph(b, {"y": y}, name="f", inputs={"x": x, "z": x}),
        r"inputs\['z'\] is an input that has another name already",
    ),
    "an input of another definition": (
        lambda b, x, y: [build_subgraph(b, {"y": y}, name="f", inputs={"x": x}) for _ in range(2)],
        r"inputs\['x'\] belongs to the sub-graph 'f'; make another input",
    ),
    "a function in config": (
        lambda b, x, y: build_subgraph(b, {"y": y}, name="f", inputs={"x": x}, config={"g": [len]}),
        r"build_subgraph\(\): config\['g'\]\[0\] is .*; it must be a boolean, a number, a string, None",
    ),
    "config that is no mapping": (
        lambda b, x, y: build_subgraph(b, {"y": y}, name="f", inputs={"x": x}, config=[1]),
        r"config is \[1\]; it must be a mapping",
    ),
    "another operand": (
        lambda b, x, _y: subgraph(b, defined(b, tanh), {"x": x}),
        r"subgraph\(\): operands are \['x'\]; those of 'f' are \['input'\]",
    ),
    "another shape": (
        lambda b, x, _y: subgraph(b, defined(b, tanh, shape=[3]), {"input": x}, label="l"),
        r"subgraph\(\) \[l\]: operands\['input'\] is float32 \[2, 3\]; it must be float32 \[3\]",
    ),
    "no definition": (
        lambda b, _x, _y: subgraph(b, "f", {}),
        r"subgraph\(\): definition is 'f'; it must be an MLSubgr",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_makes_no_sub_graph_is_refused(on_numpy, case):
    call, words = REFUSED[case]
    builder = MLGraphBuilder(on_numpy)
    x = builder.input("x", data_type="float32", shape=X.shape)
    with pytest.raises(TypeError, match=words):
        call(builder, x, builder.neg(x))
    await builder.build({"y": builder.neg(builder.input("z", data_type="float32", shape=[1]))})


async def test_a_definition_belongs_to_its_builder(on_numpy):
    builder, other = MLGraphBuilder(on_numpy), MLGraphBuilder(on_numpy)
    definition = defined(builder, tanh)
    with pytest.raises(TypeError, match="belongs to another builder"):
        subgraph(other, definition, {"input": other.input("x", data_type="float32", shape=X.shape)})
    x = builder.input("x", data_type="float32", shape=X.shape)
    await builder.build({"y": builder.neg(x)})
    with pytest.raises(InvalidStateError, match="has built"):
        subgraph(builder, definition, {"input": x})
    with pytest.raises(InvalidStateError, match="has built"):
        build_subgraph(builder, {"y": x}, name="f", inputs={})


async def test_definitions_that_double_each_other_are_bounded(on_numpy):
    builder = MLGraphBuilder(on_numpy)
    definition = defined(builder, lambda b, x: b.neg(x))

    def doubled(b, x):
        return subgraph(b, definition, {"input": subgraph(b, definition, {"input": x})["y"]})["y"]

    def many():
        nonlocal definition
        for _ in range(64):
            definition = defined(builder, doubled)

    with pytest.raises(TypeError, match=rf"stand for \d+ operators; they must be at most {MOST_OPERATORS}"):
        many()
    small = defined(builder, lambda b, x: b.neg(x))
    assert list(subgraph(builder, small, {"input": builder.input("x", data_type="float32", shape=(2, 3))})) == ["y"]


async def test_nothing_of_it_is_there_unless_it_is_asked_for():
    async with webnn_py.open_ml() as ml:
        context = await ml.create_context(backend="numpy")
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=X.shape)
        with pytest.raises(
            NotSupportedError, match=r'build_subgraph\(\): this is of an extension that .*\{"subgraph"\}'
        ):
            build_subgraph(builder, {"y": builder.neg(x)}, name="f", inputs={"x": x})
        with pytest.raises(NotSupportedError, match=r"subgraph\(\): this is of an extension"):
            subgraph(builder, None, {})
        with pytest.raises(TypeError, match="another input of this builder has it"):
            builder.input("x", data_type="float32", shape=[1])
        graph = await builder.build({"y": builder.neg(x)})
        with pytest.raises(NotSupportedError, match=r"uses_of\(\): this is of an extension"):
            uses_of(graph)
