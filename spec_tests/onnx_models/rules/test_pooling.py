import numpy as np

from spec_tests.onnx_models.single_node import compared, node

rng = np.random.default_rng(9)
IMAGE = rng.uniform(-1, 1, [2, 3, 9, 8]).astype(np.float32)
SEQUENCE = rng.uniform(-1, 1, [2, 3, 11]).astype(np.float32)
VOLUME = rng.uniform(-1, 1, [2, 3, 4, 5, 6]).astype(np.float32)
ANY_RANK = rng.uniform(-1, 1, [2, 3, 2, 3, 4]).astype(np.float32)
ALL = (("MaxPool", [1, 8, 10, 11, 12, 22]), ("AveragePool", [7, 10, 11, 19, 22]), ("LpPool", [2, 11, 18, 22]))


test_windows_over_two_axes = compared(
    *(
        node(operator, versions, IMAGE, **attributes)
        for operator, versions in ALL
        for attributes in (
            {"kernel_shape": [3, 2]},
            {"kernel_shape": [3, 2], "strides": [2, 3]},
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 2, 1]},
            *(
                {"kernel_shape": [3, 2], "strides": strides, "auto_pad": auto_pad}
                for auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER")
                for strides in ([1, 1], [2, 3])
            ),
        )
    ),
)


test_windows_over_three_axes = compared(
    *(
        node(operator, versions, VOLUME, **attributes)
        for operator, versions in ALL
        for attributes in (
            {"kernel_shape": [2, 3, 2]},
            {"kernel_shape": [2, 2, 3], "strides": [2, 1, 2], "pads": [1, 0, 1, 0, 1, 2]},
            {"kernel_shape": [2, 3, 2], "strides": [2, 2, 1], "auto_pad": "SAME_UPPER"},
        )
    ),
    *(
        node(
            operator, versions[-1:], VOLUME, kernel_shape=[2, 2, 2], dilations=[2, 1, 2], strides=[1, 2, 2], ceil_mode=1
        )
        for operator, versions in ALL
    ),
    node("AveragePool", [19, 22], VOLUME, kernel_shape=[2, 2, 3], pads=[1, 0, 1, 0, 1, 2], count_include_pad=1),
)


test_other_norms = compared(
    *(
        node("LpPool", [2, 11, 18, 22], IMAGE, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1], p=p)
        for p in (1, 3)
    ),
    node("LpPool", [18, 22], SEQUENCE, kernel_shape=[3], strides=[2], ceil_mode=1, p=1),
)


test_windows_over_one_axis = compared(
    *(node(operator, versions, SEQUENCE, kernel_shape=[3], strides=[2], pads=[1, 0]) for operator, versions in ALL),
    *(node(operator, versions[-2:], SEQUENCE, kernel_shape=[4], auto_pad="SAME_UPPER") for operator, versions in ALL),
)


test_dilations_and_types = compared(
    node("MaxPool", [10, 11, 12, 22], IMAGE, kernel_shape=[3, 2], dilations=[2, 3]),
    node("MaxPool", [10, 11, 12, 22], IMAGE, kernel_shape=[3, 2], dilations=[2, 1], pads=[2, 0, 1, 1]),
    node("AveragePool", 1, IMAGE, kernel_shape=[2, 2], pads=[0, 1, 1, 0], strides=[1, 2], oracle=7),
    node("AveragePool", [19, 22], IMAGE, kernel_shape=[3, 2], dilations=[2, 3]),
    node("AveragePool", [19, 22], IMAGE, kernel_shape=[3, 3], dilations=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1),
    node("LpPool", [18, 22], IMAGE, kernel_shape=[3, 2], dilations=[2, 3]),
    node("MaxPool", [12, 22], (IMAGE * 100).astype(np.int8), kernel_shape=[3, 2]),
    node("MaxPool", [8, 12], IMAGE, kernel_shape=[2, 2], storage_order=0, outputs=2),
)


ROUNDED = (
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [2, 3], "strides": [3, 3], "pads": [0, 1, 1, 0]},
    {"kernel_shape": [1, 1], "strides": [2, 3]},
    {"kernel_shape": [2, 2], "strides": [4, 4], "pads": [1, 1, 1, 1]},
)


test_output_sizes_rounded_up = compared(
    *(node("MaxPool", [10, 11, 12, 22], IMAGE, ceil_mode=1, **attributes) for attributes in ROUNDED),
    *(
        node("AveragePool", [10, 11, 19, 22], IMAGE, ceil_mode=1, count_include_pad=counted, **attributes)
        for attributes in ROUNDED
        for counted in (0, 1)
    ),
    *(node("LpPool", [18, 22], IMAGE, ceil_mode=1, **attributes) for attributes in ROUNDED),
)


test_padding_that_counts = compared(
    node("AveragePool", [7, 10, 11, 19, 22], IMAGE, kernel_shape=[3, 3], pads=[1, 2, 0, 1], count_include_pad=1),
    node("AveragePool", [7, 11], SEQUENCE, kernel_shape=[3], pads=[1, 2], count_include_pad=1),
    node("AveragePool", [7, 11, 19], IMAGE, kernel_shape=[3, 3], auto_pad="SAME_UPPER", count_include_pad=1),
)


test_all_spatial_axes = compared(
    *(
        node(operator, [1, 22], data)
        for operator in ("GlobalAveragePool", "GlobalMaxPool")
        for data in (SEQUENCE, IMAGE, ANY_RANK)
    ),
    *(node("GlobalLpPool", 2, IMAGE, p=p) for p in (1, 2, 3)),
    *(node("GlobalLpPool", 22, IMAGE, p=p, oracle=2) for p in (1, 2, 3)),
)


test_places_of_the_greatest = compared(
    *(
        node("MaxPool", versions, data, outputs=2, wanted=(0, 1), **attributes)
        for data, versions, attributes in (
            (IMAGE, [8, 10, 11, 12, 22], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
            (IMAGE, [8, 12], {"kernel_shape": [2, 2], "storage_order": 1}),
            (IMAGE, [12, 22], {"kernel_shape": [2, 3], "strides": [2, 2], "dilations": [2, 1], "ceil_mode": 1}),
            (SEQUENCE, [12], {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
            (VOLUME, [12], {"kernel_shape": [2, 3, 2], "pads": [1, 0, 1, 0, 1, 1]}),
            ((IMAGE * 9).astype(np.int8), [12], {"kernel_shape": [3, 2], "pads": [1, 1, 0, 0]}),
        )
    ),
)


PLACES = np.array([[[[5, 7], [13, 15]]]])
OF_PLACES = np.array([[[[1, 2], [3, 4]]]], np.float32)


test_elements_put_back = compared(
    node("MaxUnpool", [9, 11], OF_PLACES, PLACES, kernel_shape=[2, 2], strides=[2, 2]),
    node("MaxUnpool", 11, OF_PLACES, PLACES % 4, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]),
    node("MaxUnpool", 22, OF_PLACES, PLACES, kernel_shape=[2, 2], strides=[2, 2], oracle="reference"),
    node(
        "MaxUnpool",
        11,
        OF_PLACES,
        PLACES,
        np.array([1, 1, 5, 6]),
        known=(2,),
        kernel_shape=[2, 2],
        strides=[2, 2],
        oracle="reference",
    ),
)
