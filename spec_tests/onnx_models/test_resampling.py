import numpy as np

from spec_tests.onnx_models.single_node import check, each, node

rng = np.random.default_rng(12)
IMAGE = rng.uniform(-1, 1, [1, 2, 4, 6]).astype(np.float32)
SEQUENCE = rng.uniform(-1, 1, [1, 2, 6]).astype(np.float32)
VERSIONS = [11, 13, 18, 19]
NOTHING = np.array([], np.float32)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def scales(*values):
    return np.array(values, np.float32)


def sizes(*values):
    return np.array(values, np.int64)


@each(
    *(
        node(
            "Resize",
            13,
            IMAGE,
            NOTHING,
            NOTHING,
            sizes(1, 2, *size),
            known=(1, 2, 3),
            mode="nearest",
            coordinate_transformation_mode=coordinates,
            nearest_mode=nearest,
        )
        for coordinates in COORDINATES
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for size in ([8, 12], [7, 5], [2, 3], [4, 6])
    ),
    *(
        node("Resize", VERSIONS, data, NOTHING, scales(*factors), known=(1, 2), mode="nearest")
        for data, factors in (
            (IMAGE, [1, 1, 2, 3]),
            (IMAGE, [1, 1, 0.5, 1.5]),
            (SEQUENCE, [1, 1, 2]),
            (IMAGE, [2, 1, 2, 2]),
        )
    ),
    node("Resize", 13, IMAGE, None, None, sizes(2, 3, 4, 6), known=(3,), mode="nearest"),
    node("Resize", 13, IMAGE, None, None, sizes(2, 3, 8, 6), known=(3,), mode="nearest"),
    node("Resize", [18, 19], IMAGE, None, scales(2, 3), known=(2,), axes=[2, 3], mode="nearest"),
    node("Resize", [18, 19], IMAGE, None, None, sizes(9), known=(3,), axes=[-1], mode="nearest"),
    node("Resize", 13, (IMAGE * 99).astype(np.uint8), None, scales(1, 1, 2, 2), known=(2,), mode="nearest"),
)
async def test_nearest(context, case):
    await check(context, case)


@each(
    *(
        node(
            "Resize",
            13,
            IMAGE,
            NOTHING,
            NOTHING,
            sizes(1, 2, *size),
            known=(1, 2, 3),
            mode="linear",
            coordinate_transformation_mode=coordinates,
        )
        for coordinates in COORDINATES
        for size in ([8, 12], [7, 5], [2, 3], [1, 1])
    ),
    *(
        node("Resize", VERSIONS, data, NOTHING, scales(*factors), known=(1, 2), mode="linear")
        for data, factors in (
            (IMAGE, [1, 1, 2, 3]),
            (IMAGE, [1, 1, 1, 1.5]),
            (SEQUENCE, [1, 1, 2]),
            (IMAGE, [1, 1, 0.6, 0.7]),
        )
    ),
    node(
        "Resize",
        19,
        IMAGE,
        None,
        scales(1, 1, 0.6, 0.7),
        known=(2,),
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
    ),
    node("Resize", [18, 19], IMAGE, None, None, sizes(9, 9), known=(3,), axes=[3, 2], mode="linear"),
)
async def test_linear(context, case):
    await check(context, case)


@each(
    *(
        node(operator, version, IMAGE, scales(1, 1, 2, 3), known=(1,), mode=mode)
        for operator, version in (("Upsample", 9), ("Resize", 10))
        for mode in ("nearest", "linear")
    ),
    *(node("Upsample", 7, IMAGE, scales=[1.0, 1.0, 2.0, 1.5], mode=mode) for mode in ("nearest", "linear")),
)
async def test_first_versions_do_not_shift_coordinates(context, case):
    await check(context, case)
