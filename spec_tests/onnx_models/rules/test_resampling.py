import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, int64s, node

floats = Random(12).floats
IMAGE, SEQUENCE = floats(1, 2, 4, 6), floats(1, 2, 6)
VERSIONS = [11, 13, 18, 19]
NOTHING = np.array([], np.float32)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
SIZES = ([8, 12], [7, 5], [2, 3])


def scales(*values):
    return np.array(values, np.float32)


def to_sizes(versions, sizes, data=IMAGE, **attributes):
    return node("Resize", versions, data, None, None, int64s(*sizes), known=(3,), **attributes)


def by_scales(versions, factors, data=IMAGE, **attributes):
    return node("Resize", versions, data, NOTHING, scales(*factors), known=(1, 2), **attributes)


def mapped(mode, coordinates, version, sizes, **attributes):
    return to_sizes(version, sizes, mode=mode, coordinate_transformation_mode=coordinates, **attributes)


test_nearest = compared(
    *(
        mapped("nearest", coordinates, 13, [1, 2, *size], nearest_mode=nearest)
        for coordinates in COORDINATES
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        for size in (*SIZES, [4, 6])
    ),
    *(by_scales(VERSIONS, factors, mode="nearest") for factors in ([1, 1, 2, 3], [1, 1, 0.5, 1.5], [2, 1, 2, 2])),
    by_scales(VERSIONS, [1, 1, 2], SEQUENCE, mode="nearest"),
    to_sizes(13, [2, 3, 4, 6], mode="nearest"),
    to_sizes(13, [2, 3, 8, 6], mode="nearest"),
    node("Resize", [18, 19], IMAGE, None, scales(2, 3), known=(2,), axes=[2, 3], mode="nearest"),
    to_sizes([18, 19], [9], axes=[-1], mode="nearest"),
    by_scales(13, [1, 1, 2, 2], (IMAGE * 99).astype(np.uint8), mode="nearest"),
)


test_linear = compared(
    *(mapped("linear", coordinates, 13, [1, 2, *size]) for coordinates in COORDINATES for size in (*SIZES, [1, 1])),
    *(by_scales(VERSIONS, factors, mode="linear") for factors in ([1, 1, 2, 3], [1, 1, 1, 1.5], [1, 1, 0.6, 0.7])),
    by_scales(VERSIONS, [1, 1, 2], SEQUENCE, mode="linear"),
    by_scales(19, [1, 1, 0.6, 0.7], mode="linear", coordinate_transformation_mode="half_pixel_symmetric"),
    to_sizes([18, 19], [9, 9], axes=[3, 2], mode="linear"),
)


test_products_with_matrices = compared(
    *(
        mapped("cubic", coordinates, 19, [1, 2, *size], exclude_outside=exclude_outside, absolute=1e-5)
        for coordinates in COORDINATES
        for size in SIZES
        for exclude_outside in (0, 1)
        if coordinates != "align_corners" or not exclude_outside
    ),
    by_scales([11, 13], [1, 1, 2, 3], mode="cubic", cubic_coeff_a=-0.5),
    *(to_sizes([18, 19], [3, 4], axes=[2, 3], mode=mode, antialias=1, absolute=1e-5) for mode in ("linear", "cubic")),
    to_sizes(19, [9, 2], axes=[2, 3], mode="linear", antialias=1, absolute=1e-5),
    to_sizes(19, [3, 5, 4, 6], mode="linear", oracle="reference"),
    to_sizes(19, [3, 3, 9], SEQUENCE, mode="linear", oracle="reference"),
)


test_the_ratio_of_sides_kept = compared(
    *(
        to_sizes([18, 19], [7, 8], axes=[2, 3], mode=mode, keep_aspect_ratio_policy=policy)
        for mode in ("nearest", "linear")
        for policy in ("not_larger", "not_smaller")
    )
)


REGIONS = scales(0, 0, 0.22, 0.31, 1, 1, 0.83, 0.74), scales(0, 0, -0.4, 0.28, 1, 1, 1.2, 1.6)
CROPPED = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.0}


test_a_region_resized = compared(
    *(
        node("Resize", [11, 13], IMAGE, region, NOTHING, int64s(1, 2, *size), known=(1, 2, 3), mode=mode, **CROPPED)
        for mode in ("nearest", "linear")
        for region in REGIONS
        for size in ([3, 5], [8, 1])
    )
)


test_first_versions_do_not_shift_coordinates = compared(
    *(
        cases
        for mode in ("nearest", "linear")
        for cases in (
            node("Upsample", 9, IMAGE, scales(1, 1, 2, 3), known=(1,), mode=mode),
            node("Upsample", 7, IMAGE, scales=[1.0, 1.0, 2.0, 1.5], mode=mode),
            *(
                node("Resize", 10, IMAGE, scales(1, 1, *factors), known=(1,), mode=mode)
                for factors in ([2, 3], [0.6, 0.5], [0.8, 1.5], [1 / 3, 1])
            ),
        )
    ),
)
