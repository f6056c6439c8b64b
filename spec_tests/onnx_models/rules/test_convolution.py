import numpy as np
import pytest

from spec_tests.onnx_models.single_node import Random, assert_same, compared, expected, node, run

floats = Random(8).floats


IMAGE, SEQUENCE, VOLUME = floats(2, 4, 9, 8), floats(2, 4, 11), floats(2, 4, 5, 4, 6)
MOVED = {"strides": [2, 1, 2], "dilations": [2, 1, 1], "pads": [1, 0, 1, 2, 1, 0], "output_padding": [1, 0, 1]}


def conv(*inputs, versions=(1, 11, 22), **options):
    return node("Conv", versions, *inputs, **options)


def transposed(*inputs, **options):
    return node("ConvTranspose", [1, 11, 22], *inputs, **options)


test_conv_over_two_axes = compared(
    conv(IMAGE, floats(6, 4, 3, 2)),
    conv(IMAGE, floats(6, 4, 3, 2), floats(6), kernel_shape=[3, 2]),
    conv(IMAGE, floats(6, 4, 3, 3), floats(6), known=(1, 2), pads=[1, 0, 2, 1]),
    conv(IMAGE, floats(6, 4, 3, 2), strides=[2, 3], dilations=[2, 1]),
    conv(IMAGE, floats(6, 2, 3, 3), group=2, pads=[1, 1, 1, 1]),
    conv(IMAGE, floats(4, 1, 3, 3), floats(4), group=4, strides=[2, 2]),
    *(
        conv(IMAGE, floats(3, 4, *kernel), auto_pad=auto_pad, strides=strides)
        for auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER")
        for kernel, strides in (([3, 2], [1, 1]), ([4, 3], [2, 3]), ([1, 1], [3, 2]))
    ),
)


test_conv_over_one_axis = compared(
    conv(SEQUENCE, floats(6, 4, 3)),
    conv(SEQUENCE, floats(6, 2, 3), floats(6), known=(1, 2), pads=[2, 1], strides=[2], group=2),
)


test_volumes = compared(
    conv(VOLUME, floats(6, 4, 2, 3, 2), floats(6), pads=[1, 0, 1, 0, 1, 2], strides=[2, 1, 2]),
    conv(VOLUME, floats(6, 2, 2, 2, 3), group=2, dilations=[2, 1, 1], pads=[1, 0, 0, 2, 1, 1]),
    conv(VOLUME, floats(6, 4, 2, 2, 3), auto_pad="SAME_LOWER", strides=[2, 2, 1]),
    transposed(VOLUME, floats(4, 3, 2, 3, 2), floats(3), strides=[2, 1, 3]),
    transposed(VOLUME, floats(4, 3, 3, 2, 2), floats(6), group=2, **MOVED),
)


test_conv_transpose_over_two_axes = compared(
    transposed(IMAGE, floats(4, 3, 3, 2)),
    transposed(IMAGE, floats(4, 3, 3, 2), floats(3), strides=[2, 3], pads=[1, 0, 0, 1]),
    transposed(IMAGE, floats(4, 3, 3, 2), strides=[2, 3], output_padding=[1, 2]),
    transposed(IMAGE, floats(4, 3, 3, 3), floats(6), known=(1, 2), group=2, dilations=[2, 1]),
    transposed(IMAGE, floats(4, 3, 3, 2), auto_pad="VALID", strides=[2, 2]),
    *(
        transposed(IMAGE, floats(4, 3, 4, 3), auto_pad=auto_pad, strides=strides)
        for auto_pad in ("SAME_UPPER", "SAME_LOWER")
        for strides in ([1, 1], [2, 2], [2, 3])
    ),
    transposed(IMAGE, floats(4, 3, 3, 3), strides=[2, 2], output_shape=[18, 16]),
    transposed(IMAGE, floats(4, 3, 4, 4), strides=[2, 2], output_shape=[17, 17]),
    transposed(IMAGE, floats(4, 3, 4, 4), strides=[2, 2], output_shape=[17, 17], auto_pad="SAME_UPPER"),
)


test_conv_transpose_over_one_axis = compared(
    transposed(SEQUENCE, floats(4, 3, 3)),
    transposed(SEQUENCE, floats(4, 3, 3), floats(3), strides=[2], output_padding=[1], pads=[1, 0]),
)


@pytest.mark.parametrize(("auto_pad", "pads"), [("SAME_UPPER", [2, 1, 2, 2]), ("SAME_LOWER", [2, 2, 2, 1])])
async def test_same_padding_counts_dilations(context, auto_pad, pads):
    """Onnxruntime refuses this, so what is expected has its padding spelt out."""
    w = floats(3, 4, 3, 2)
    (case,) = conv(IMAGE, w, versions=11, auto_pad=auto_pad, dilations=[2, 3])
    (spelt_out,) = conv(IMAGE, w, versions=11, pads=pads, dilations=[2, 3])
    assert_same(await run(context, case.model(), case.feeds), expected(spelt_out))


def columns(x, image, block, **options):
    return node("Col2Im", 18, x, np.array(image), np.array(block), known=(1, 2), **options)


APART = {"strides": [2, 3], "pads": [1, 0, 0, 1], "dilations": [1, 2]}


test_images_of_columns = compared(
    columns(floats(2, 12, 12), [5, 4], [2, 2]),
    columns(floats(1, 6, 3), [7], [3], strides=[2]),
    columns(floats(2, 12, 6), [6, 7], [3, 2], oracle="reference", **APART),
)


async def test_a_stride_that_leads_out_of_the_volume_may_be_of_any_length(ml):
    x, w = np.ones([1, 1, 3, 4, 4], np.float32), np.ones([1, 1, 2, 2, 2], np.float32)
    for stride in (9, 2**31):
        (case,) = conv(x, w, versions=11, strides=[stride, 2, 2])
        (y,) = await run(await ml.create_context(backend="numpy"), case.model(), case.feeds)
        np.testing.assert_array_equal(y, np.full([1, 1, 1, 2, 2], 8, np.float32))
