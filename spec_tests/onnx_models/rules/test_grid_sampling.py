import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, node

floats, beyond = Random(17).floats, Random(18, -1.6, 1.6).floats
IMAGE, GRID = floats(2, 3, 5, 6), beyond(2, 4, 7, 2)
VOLUME, PLACES = floats(2, 2, 3, 4, 5), beyond(2, 3, 2, 4, 3)
PADDING = ("zeros", "border", "reflection")


test_samples_at_the_places_of_a_grid = compared(
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


test_grids_of_affine_maps = compared(
    *(
        node("AffineGrid", 20, theta, np.array(size), known=(1,), align_corners=corners)
        for theta, size in ((floats(2, 2, 3), [2, 3, 4, 5]), (floats(2, 3, 4), [2, 1, 3, 2, 4]))
        for corners in (0, 1)
    )
)


SMALL = floats(2, 4, 4, 5)
MOVES = {"group": 2, "offset_group": 2, "pads": [1, 0, 1, 1], "strides": [2, 2], "dilations": [1, 1]}


def deformed(versions, *inputs, **options):
    return node("DeformConv", versions, SMALL, *inputs, oracle="reference", absolute=1e-5, **options)


test_windows_with_offsets = compared(
    deformed([19, 22], floats(3, 4, 2, 2), floats(2, 8, 3, 4)),
    deformed(19, floats(3, 4, 2, 2), floats(2, 8, 2, 3), dilations=[2, 2]),
    deformed([19, 22], floats(6, 2, 2, 3), beyond(2, 24, 3, 2), floats(6), floats(2, 12, 3, 2), **MOVES),
)


REGIONS = np.array([[0, 0, 4, 3], [1, 0.5, 9, 9], [-2, -3, 1, 2], [2, 2, 2.2, 2.1]], np.float32)
OUTPUT = {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.75, "absolute": 1e-5}


def aligned(version, **options):
    return node("RoiAlign", version, IMAGE, REGIONS, np.array([0, 1, 0, 1]), **OUTPUT, **options)


test_regions_aligned = compared(
    *(
        cases
        for mode in ("avg", "max")
        for cases in (
            aligned([10, 16], mode=mode),
            aligned(16, mode=mode, coordinate_transformation_mode="output_half_pixel"),
            aligned(22, mode=mode, oracle=16),
        )
    )
)
