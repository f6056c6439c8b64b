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
        node(
            "Resize",
            19,
            IMAGE,
            None,
            None,
            sizes(1, 2, *size),
            known=(3,),
            mode="cubic",
            coordinate_transformation_mode=coordinates,
            exclude_outside=exclude_outside,
            absolute=1e-5,
        )
        for coordinates in COORDINATES
        for size in ([8, 12], [7, 5], [2, 3])
        for exclude_outside in (0, 1)
        if coordinates != "align_corners" or not exclude_outside
    ),
    node("Resize", [11, 13], IMAGE, NOTHING, scales(1, 1, 2, 3), known=(1, 2), mode="cubic", cubic_coeff_a=-0.5),
    *(
        node(
            "Resize",
            [18, 19],
            IMAGE,
            None,
            None,
            sizes(3, 4),
            known=(3,),
            axes=[2, 3],
            mode=mode,
            antialias=1,
            absolute=1e-5,
        )
        for mode in ("linear", "cubic")
    ),
    node(
        "Resize", 19, IMAGE, None, None, sizes(9, 2), known=(3,), axes=[2, 3], mode="linear", antialias=1, absolute=1e-5
    ),
    node("Resize", 19, IMAGE, None, None, sizes(3, 5, 4, 6), known=(3,), mode="linear", oracle="reference"),
    node("Resize", 19, SEQUENCE, None, None, sizes(3, 3, 9), known=(3,), mode="linear", oracle="reference"),
)
async def test_products_with_matrices(context, case):
    await check(context, case)


@each(
    *(
        node(
            "Resize",
            [18, 19],
            IMAGE,
            None,
            None,
            sizes(7, 8),
            known=(3,),
            axes=[2, 3],
            mode=mode,
            keep_aspect_ratio_policy=policy,
        )
        for mode in ("nearest", "linear")
        for policy in ("not_larger", "not_smaller")
    )
)
async def test_the_ratio_of_sides_kept(context, case):
    await check(context, case)


@each(
    *(
        node(
            "Resize",
            [11, 13],
            IMAGE,
            region,
            NOTHING,
            sizes(1, 2, *size),
            known=(1, 2, 3),
            mode=mode,
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=7.0,
        )
        for mode in ("nearest", "linear")
        for region in (scales(0, 0, 0.22, 0.31, 1, 1, 0.83, 0.74), scales(0, 0, -0.4, 0.28, 1, 1, 1.2, 1.6))
        for size in ([3, 5], [8, 1])
    )
)
async def test_a_region_resized(context, case):
    await check(context, case)


@each(
    *(
        node(operator, version, IMAGE, scales(1, 1, 2, 3), known=(1,), mode=mode)
        for operator, version in (("Upsample", 9), ("Resize", 10))
        for mode in ("nearest", "linear")
    ),
    *(node("Upsample", 7, IMAGE, scales=[1.0, 1.0, 2.0, 1.5], mode=mode) for mode in ("nearest", "linear")),
    *(
        node("Resize", 10, IMAGE, np.array(scales, np.float32), known=(1,), mode=mode)
        for scales in ([1, 1, 0.6, 0.5], [1, 1, 0.8, 1.5], [1, 1, 1 / 3, 1])
        for mode in ("nearest", "linear")
    ),
)
async def test_first_versions_do_not_shift_coordinates(context, case):
    await check(context, case)
