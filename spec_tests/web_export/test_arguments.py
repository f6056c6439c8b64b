"""Graphs with all kinds of arguments, constants and names give the bits of Python when they are saved as JavaScript."""

import re

import numpy as np
import pytest
import trio

import webnn_py
from spec_tests.support.saved_js import Player, differences, save_and_compute
from webnn_py import MLGraphBuilder
from webnn_py.core.descriptors import DATA_TYPES

RANDOM = np.random.default_rng(7)


def every_data_type(builder):
    """A short and a long constant of each data type, with the ends of its range, and what else has many digits."""
    outputs, given = {}, {}
    for data_type in DATA_TYPES:
        limits = np.finfo(data_type) if data_type.startswith("float") else np.iinfo(data_type)
        short = np.array([limits.min, limits.max, 0, 1, 3], data_type)
        if data_type.startswith("float"):
            short = np.array([limits.min, -0.0, 1 / 3, limits.smallest_subnormal, 16777216], np.float64)
            with np.errstate(over="ignore"):
                short = short.astype(data_type)
        long = np.resize(short, 37)
        if data_type.startswith("float"):
            long[5:8] = [np.nan, np.inf, -np.inf]
        x = builder.input(f"of {data_type}", data_type=data_type, shape=[1])
        given[f"of {data_type}"] = np.array([1], data_type)
        for name, array in {"short": short, "long": long}.items():
            outputs[f"{name} {data_type}"] = builder.concat([x, builder.constant(array)], 0)
        outputs[f"scalar {data_type}"] = builder.expand(builder.constant(short[0]), [2])
    return outputs, given


def every_kind_of_argument(builder):
    """Options of each type of the IDL, and labels and names that JavaScript needs to have changed."""
    x = builder.input("class", data_type="float32", shape=[1, 6, 6, 2])
    picture = RANDOM.normal(size=(1, 6, 6, 2)).astype(np.float32)
    kernel = builder.constant(RANDOM.normal(size=(4, 3, 3, 2)).astype(np.float32))
    y = builder.conv2d(
        x,
        kernel,
        padding=[1, 1, 1, 1],
        strides=[2, 2],
        dilations=[1, 1],
        input_layout="nhwc",
        filter_layout="ohwi",
        bias=builder.constant(RANDOM.normal(size=4).astype(np.float32)),
        label='"; </script> // \u2028 é\n`${weights}`',
    )
    integers = builder.input("1st", data_type="int64", shape=[3])
    parts = builder.split(y, [1, 3], axis=3, label="builder")
    sequence = builder.input("weights", data_type="float32", shape=[2, 1, 3])
    lstm = builder.lstm(
        sequence,
        builder.constant(RANDOM.normal(size=(2, 8, 3)).astype(np.float32)),
        builder.constant(RANDOM.normal(size=(2, 8, 2)).astype(np.float32)),
        2,
        2,
        direction="both",
        return_sequence=True,
        activations=["sigmoid", "relu", "tanh"],
        layout="ifgo",
    )
    outputs = {
        "a part": parts[0],
        "__proto__": builder.pad(parts[1], [0, 1, 0, 0], [0, 0, 1, 0], mode="constant", value=-0.0),
        "no bound": builder.clamp(y, min_value=float("-inf"), max_value=float("inf")),
        "clamped": builder.clamp(integers, min_value=-(2**63), max_value=2**53 + 1),
        "top": builder.arg_max(y, 3, keep_dimensions=True, output_data_type="int64"),
        "resampled": builder.resample2d(x, scales=[1.5, 2 / 3], axes=[1, 2], mode="linear"),
        "linear": builder.linear(y, alpha=1e-7, beta=0.1),
        "as integers": builder.cast(y, "int8", label="contentsOf"),
        **{f"lstm {index}": result for index, result in enumerate(lstm)},
    }
    given = {
        "class": picture,
        "1st": np.array([-(2**63), 2**53 + 3, 5]),
        "weights": RANDOM.normal(size=(2, 1, 3)).astype(np.float32),
    }
    return outputs, given


def a_classifier(builder):
    """Draw a small network for pictures: convolutions with a shortcut, a mean, and classes in float16."""
    x = builder.input("pixels", data_type="float32", shape=[1, 3, 16, 16])

    def convolved(value, channels, **options):
        kernel = RANDOM.normal(size=(channels, value.shape[1], 3, 3)).astype(np.float32)
        made = builder.conv2d(value, builder.constant(kernel), padding=[1, 1, 1, 1], **options)
        ones = builder.constant(np.ones(channels, np.float32))
        return builder.batch_normalization(made, builder.constant(np.zeros(channels, np.float32)), ones, scale=ones)

    first = builder.relu(convolved(x, 8, strides=[2, 2]))
    second = builder.relu(builder.add(first, convolved(first, 8)))
    mean = builder.reshape(builder.reduce_mean(second, axes=[2, 3]), [1, 8])
    table = builder.constant(RANDOM.normal(size=(8, 5)).astype(np.float16))
    scores = builder.softmax(builder.matmul(builder.cast(mean, "float16"), table), 1)
    return {"scores": scores, "features": mean}, {"pixels": RANDOM.random((1, 3, 16, 16), np.float32)}


GRAPHS = {"data_types": every_data_type, "arguments": every_kind_of_argument, "classifier": a_classifier}


def test_saved_graphs_give_the_same_bits(tmp_path):
    given, expected = trio.run(save_and_compute, tmp_path, GRAPHS)
    assert not differences(Player(tmp_path).play(given), expected)


@pytest.fixture
def saved(tmp_path):
    """Save the drawing of a function, and return the module's text and the bytes of the weights."""

    def save(draw, **options):
        async def main():
            async with webnn_py.open_ml() as ml:
                context = await ml.create_context(backend="numpy")
                builder = MLGraphBuilder(context)
                outputs = await draw(context, builder)
                webnn_py.save_js(outputs, tmp_path / "saved", **options)

        trio.run(main)
        folder = tmp_path / "saved"
        return (folder / "model.js").read_text(encoding="utf-8"), (folder / "weights.bin").read_bytes()

    return save


def test_long_constants_of_equal_bytes_are_saved_once_and_begin_at_multiples_of_64(saved):
    async def draw(_context, builder):
        x = builder.input("x", data_type="float32", shape=[9])
        rows = [np.full(9, 1, np.float32), np.full(9, 2, np.float32), np.full(9, 1, np.float32)]
        for row in rows:
            x = builder.add(x, builder.constant(row))
        return {"y": x}

    source, weights = saved(draw)
    assert re.findall(r'constant\("float32", \[9\], (\d+)\)', source) == ["0", "64", "0"]
    assert np.frombuffer(weights[64:], "<f4").tolist() == [2] * 9


def test_defaults_of_the_specification_are_left_out(saved):
    async def draw(_context, builder):
        x = builder.input("x", data_type="float32", shape=[2, 2])
        return {"y": builder.gemm(x, x, alpha=1, beta=1.0, a_transpose=False, b_transpose=True)}

    source, _ = saved(draw)
    assert "builder.gemm(x, x, {bTranspose: true});" in source


def test_a_constant_buffer_is_refused_and_nothing_is_written(saved, tmp_path):
    async def draw(context, builder):
        buffer = await context.create_constant_buffer(np.ones(2, np.float32), data_type="float32", shape=[2])
        return {"y": builder.relu(builder.constant(buffer))}

    with pytest.raises(ValueError, match=r"save_js\(\): .*only its device has"):
        saved(draw)
    assert not (tmp_path / "saved").exists()


def test_weights_that_are_too_long_for_a_browser_are_refused(saved, monkeypatch):
    monkeypatch.setattr("webnn_py.web_export.weights.LARGEST_FILE", 100)

    async def draw(_context, builder):
        return {"y": builder.relu(builder.constant(np.ones(26, np.float32)))}

    with pytest.raises(ValueError, match="more than 100 bytes"):
        saved(draw)


def test_a_title_cannot_end_the_elements_of_the_page(saved, tmp_path):
    async def draw(_context, builder):
        return {"y": builder.relu(builder.input("x", data_type="float32", shape=[2]))}

    saved(draw, title="</title><script>alert(1)</script>\udc80")
    page = (tmp_path / "saved" / "index.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;?" in page
