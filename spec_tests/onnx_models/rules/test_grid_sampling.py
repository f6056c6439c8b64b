import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

rng = np.random.default_rng(17)


def floats(*shape, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(np.float32)


IMAGE, GRID = floats(2, 3, 5, 6), floats(2, 4, 7, 2, low=-1.6, high=1.6)
VOLUME, PLACES = floats(2, 2, 3, 4, 5), floats(2, 3, 2, 4, 3, low=-1.6, high=1.6)
PADDING = ("zeros", "border", "reflection")


@each(
    *(
        node("GridSample", 16, IMAGE, GRID, mode=mode, padding_mode=padding, align_corners=corners, absolute=1e-5)
        for mode in ("nearest", "bilinear", "bicubic")
        for padding in PADDING
        for corners in (0, 1)
    ),
    *(
        node("GridSample", versions, IMAGE, GRID, mode=mode, padding_mode=padding, absolute=1e-5)
        for versions in ([20], [22])
        for mode in ("nearest", "linear", "cubic")
        for padding in PADDING
    ),
    *(
        node("GridSample", 22, VOLUME, PLACES, mode=mode, padding_mode=padding, absolute=1e-5, oracle="reference")
        for mode in ("nearest", "linear")
        for padding in PADDING
    ),
    node("GridSample", 22, (IMAGE * 90).astype(np.int32), GRID, mode="nearest", oracle="reference"),
    node("GridSample", 16, floats(1, 1, 1, 4), floats(1, 3, 3, 2), padding_mode="reflection", align_corners=1),
)
async def test_samples_at_the_places_of_a_grid(context, case):
    await check(context, case)


@each(
    *(
        node("AffineGrid", 20, theta, np.array(size), known=(1,), align_corners=corners)
        for theta, size in ((floats(2, 2, 3), [2, 3, 4, 5]), (floats(2, 3, 4), [2, 1, 3, 2, 4]))
        for corners in (0, 1)
    )
)
async def test_grids_of_affine_maps(context, case):
    await check(context, case)


SMALL = floats(2, 4, 4, 5)


@each(
    node("DeformConv", [19, 22], SMALL, floats(3, 4, 2, 2), floats(2, 8, 3, 4), oracle="reference", absolute=1e-5),
    node(
        "DeformConv",
        19,
        SMALL,
        floats(3, 4, 2, 2),
        floats(2, 8, 2, 3),
        dilations=[2, 2],
        oracle="reference",
        absolute=1e-5,
    ),
    node(
        "DeformConv",
        [19, 22],
        SMALL,
        floats(6, 2, 2, 3),
        floats(2, 24, 3, 2, low=-2.0, high=2.0),
        floats(6),
        floats(2, 12, 3, 2),
        group=2,
        offset_group=2,
        pads=[1, 0, 1, 1],
        strides=[2, 2],
        dilations=[1, 1],
        oracle="reference",
        absolute=1e-5,
    ),
)
async def test_windows_with_offsets(context, case):
    await check(context, case)


REGIONS = np.array([[0, 0, 4, 3], [1, 0.5, 9, 9], [-2, -3, 1, 2], [2, 2, 2.2, 2.1]], np.float32)
IMAGES = np.array([0, 1, 0, 1])


@each(
    *(
        node(
            "RoiAlign",
            version,
            IMAGE,
            REGIONS,
            IMAGES,
            mode=mode,
            output_height=2,
            output_width=3,
            sampling_ratio=2,
            spatial_scale=0.75,
            absolute=1e-5,
            oracle=16 if version == 22 else "onnxruntime",
            **attributes,
        )
        for mode in ("avg", "max")
        for version, attributes in (
            (10, {}),
            (16, {}),
            (16, {"coordinate_transformation_mode": "output_half_pixel"}),
            (22, {}),
        )
    )
)
async def test_regions_aligned(context, case):
    await check(context, case)
