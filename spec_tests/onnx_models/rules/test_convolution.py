import numpy as np
import pytest

from spec_tests.onnx_models.single_node import assert_same, check, each, expected, node, run

rng = np.random.default_rng(8)


def floats(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


IMAGE, SEQUENCE, VOLUME = floats(2, 4, 9, 8), floats(2, 4, 11), floats(2, 4, 5, 4, 6)
VERSIONS = [1, 11, 22]


@each(
    node("Conv", VERSIONS, IMAGE, floats(6, 4, 3, 2)),
    node("Conv", VERSIONS, IMAGE, floats(6, 4, 3, 2), floats(6), kernel_shape=[3, 2]),
    node("Conv", VERSIONS, IMAGE, floats(6, 4, 3, 3), floats(6), known=(1, 2), pads=[1, 0, 2, 1]),
    node("Conv", VERSIONS, IMAGE, floats(6, 4, 3, 2), strides=[2, 3], dilations=[2, 1]),
    node("Conv", VERSIONS, IMAGE, floats(6, 2, 3, 3), group=2, pads=[1, 1, 1, 1]),
    node("Conv", VERSIONS, IMAGE, floats(4, 1, 3, 3), floats(4), group=4, strides=[2, 2]),
    *(
        node("Conv", VERSIONS, IMAGE, floats(3, 4, *kernel), auto_pad=auto_pad, strides=strides)
        for auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER")
        for kernel, strides in (([3, 2], [1, 1]), ([4, 3], [2, 3]), ([1, 1], [3, 2]))
    ),
)
async def test_conv_over_two_axes(context, case):
    await check(context, case)


@each(
    node("Conv", VERSIONS, SEQUENCE, floats(6, 4, 3)),
    node("Conv", VERSIONS, SEQUENCE, floats(6, 2, 3), floats(6), known=(1, 2), pads=[2, 1], strides=[2], group=2),
)
async def test_conv_over_one_axis(context, case):
    await check(context, case)


@each(
    node("Conv", VERSIONS, VOLUME, floats(6, 4, 2, 3, 2), floats(6), pads=[1, 0, 1, 0, 1, 2], strides=[2, 1, 2]),
    node("Conv", VERSIONS, VOLUME, floats(6, 2, 2, 2, 3), group=2, dilations=[2, 1, 1], pads=[1, 0, 0, 2, 1, 1]),
    node("Conv", VERSIONS, VOLUME, floats(6, 4, 2, 2, 3), auto_pad="SAME_LOWER", strides=[2, 2, 1]),
    node("ConvTranspose", VERSIONS, VOLUME, floats(4, 3, 2, 3, 2), floats(3), strides=[2, 1, 3]),
    node(
        "ConvTranspose",
        VERSIONS,
        VOLUME,
        floats(4, 3, 3, 2, 2),
        floats(6),
        group=2,
        strides=[2, 1, 2],
        dilations=[2, 1, 1],
        pads=[1, 0, 1, 2, 1, 0],
        output_padding=[1, 0, 1],
    ),
)
async def test_volumes(context, case):
    await check(context, case)


@each(
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 3, 2)),
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 3, 2), floats(3), strides=[2, 3], pads=[1, 0, 0, 1]),
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 3, 2), strides=[2, 3], output_padding=[1, 2]),
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 3, 3), floats(6), known=(1, 2), group=2, dilations=[2, 1]),
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 3, 2), auto_pad="VALID", strides=[2, 2]),
    *(
        node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 4, 3), auto_pad=auto_pad, strides=strides)
        for auto_pad in ("SAME_UPPER", "SAME_LOWER")
        for strides in ([1, 1], [2, 2], [2, 3])
    ),
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 3, 3), strides=[2, 2], output_shape=[18, 16]),
    node("ConvTranspose", VERSIONS, IMAGE, floats(4, 3, 4, 4), strides=[2, 2], output_shape=[17, 17]),
    node(
        "ConvTranspose",
        VERSIONS,
        IMAGE,
        floats(4, 3, 4, 4),
        strides=[2, 2],
        output_shape=[17, 17],
        auto_pad="SAME_UPPER",
    ),
)
async def test_conv_transpose_over_two_axes(context, case):
    await check(context, case)


@each(
    node("ConvTranspose", VERSIONS, SEQUENCE, floats(4, 3, 3)),
    node("ConvTranspose", VERSIONS, SEQUENCE, floats(4, 3, 3), floats(3), strides=[2], output_padding=[1], pads=[1, 0]),
)
async def test_conv_transpose_over_one_axis(context, case):
    await check(context, case)


@pytest.mark.parametrize(("auto_pad", "pads"), [("SAME_UPPER", [2, 1, 2, 2]), ("SAME_LOWER", [2, 2, 2, 1])])
async def test_same_padding_counts_dilations(context, auto_pad, pads):
    """Onnxruntime refuses this, so what is expected has its padding spelt out."""
    w = floats(3, 4, 3, 2)
    (case,) = node("Conv", 11, IMAGE, w, auto_pad=auto_pad, dilations=[2, 3])
    (spelt_out,) = node("Conv", 11, IMAGE, w, pads=pads, dilations=[2, 3])
    assert_same(await run(context, case.model(), case.feeds), expected(spelt_out))


@each(
    *(
        node(
            "CausalConvWithState",
            27,
            SEQUENCE,
            floats(4, 1, 3),
            *more,
            activation=activation,
            outputs=2,
            wanted=(0, 1),
            oracle="reference",
        )
        for activation in ("none", "silu")
        for more in ((), (floats(4), floats(2, 4, 2)))
    ),
    node("CausalConvWithState", 27, SEQUENCE, floats(4, 1, 1), outputs=2, oracle="reference"),
)
async def test_convolutions_with_a_state(context, case):
    await check(context, case)


@each(
    node("Col2Im", 18, floats(2, 12, 12), np.array([5, 4]), np.array([2, 2]), known=(1, 2)),
    node("Col2Im", 18, floats(1, 6, 3), np.array([7]), np.array([3]), known=(1, 2), strides=[2]),
    node(
        "Col2Im",
        18,
        floats(2, 12, 6),
        np.array([6, 7]),
        np.array([3, 2]),
        known=(1, 2),
        strides=[2, 3],
        pads=[1, 0, 0, 1],
        dilations=[1, 2],
        oracle="reference",
    ),
)
async def test_images_of_columns(context, case):
    await check(context, case)


async def test_a_stride_that_leads_out_of_the_volume_may_be_of_any_length(ml):
    x, w = np.ones([1, 1, 3, 4, 4], np.float32), np.ones([1, 1, 2, 2, 2], np.float32)
    for stride in (9, 2**31):
        (case,) = node("Conv", 11, x, w, strides=[stride, 2, 2])
        (y,) = await run(await ml.create_context(backend="numpy"), case.model(), case.feeds)
        np.testing.assert_array_equal(y, np.full([1, 1, 1, 2, 2], 8, np.float32))
