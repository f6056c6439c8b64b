import numpy as np

from spec_tests.onnx_models.single_node import compared, node

rng = np.random.default_rng(10)


def floats(*shape):
    return rng.uniform(0.5, 2, shape).astype(np.float32)


IMAGE, SEQUENCE, FEATURES = floats(2, 4, 5, 6), floats(2, 4, 7), floats(3, 4)
CHANNELS = IMAGE[0, :, 0, 0].copy()
COLUMN = CHANNELS[:, None, None]
NORMALIZED = (IMAGE - COLUMN) / np.sqrt(COLUMN + np.float32(1e-5)) * COLUMN + COLUMN
BEFORE_OPSET_7 = {"is_test": 1, "oracle": [NORMALIZED], "relative": 1e-4}


test_batch_normalization = compared(
    *(
        node("BatchNormalization", [7, 9, 14, 15], data, *(floats(4) for _ in range(4)), known=(1, 2, 3, 4))
        for data in (IMAGE, SEQUENCE, FEATURES)
    ),
    node("BatchNormalization", [7, 9, 14, 15], IMAGE, *(floats(4) for _ in range(4)), epsilon=0.1, momentum=0.5),
    node("BatchNormalization", 6, IMAGE, *[CHANNELS] * 4, **BEFORE_OPSET_7),
    node("BatchNormalization", 1, IMAGE, *[CHANNELS] * 4, consumed_inputs=[0] * 5, **BEFORE_OPSET_7),
)


test_batch_normalization_in_training = compared(
    *(
        node(
            "BatchNormalization",
            [14, 15],
            data,
            *(floats(4) for _ in range(4)),
            training_mode=1,
            momentum=0.7,
            outputs=3,
            wanted=(0, 1, 2),
            oracle="reference",
        )
        for data in (IMAGE, SEQUENCE)
    )
)


test_instance_normalization = compared(
    *(
        node("InstanceNormalization", [6, 22], data, floats(4), floats(4), absolute=1e-5)
        for data in (IMAGE, SEQUENCE, floats(1, 4, 2, 3, 2))
    ),
    node("InstanceNormalization", [6, 22], IMAGE, floats(4), floats(4), epsilon=0.1),
)


test_layer_normalization = compared(
    node("LayerNormalization", 17, IMAGE, floats(6), absolute=1e-5),
    node("LayerNormalization", 17, IMAGE, floats(6), floats(6), epsilon=0.1),
    node("LayerNormalization", 17, IMAGE, floats(5, 6), floats(5, 6), axis=2, absolute=1e-5),
    node("LayerNormalization", 17, IMAGE, floats(4, 5, 6), floats(4, 5, 6), axis=-3, absolute=1e-5),
    node("LayerNormalization", 17, IMAGE, floats(6), floats(1), axis=-2, oracle="reference", absolute=1e-5),
    node("LayerNormalization", 17, IMAGE, floats(5, 6), axis=2, outputs=3, wanted=(0, 1, 2), absolute=1e-5),
    node("LayerNormalization", 17, FEATURES, floats(4), outputs=3, wanted=(2,), epsilon=0.1),
)


test_other_normalizations = compared(
    node("GroupNormalization", 21, IMAGE, floats(4), floats(4), num_groups=2, absolute=1e-5),
    node("GroupNormalization", 18, IMAGE, floats(2), floats(2), num_groups=2, oracle="reference", absolute=1e-5),
    node("GroupNormalization", 21, SEQUENCE, floats(4), floats(4), num_groups=4, epsilon=0.1),
    *(
        node("LpNormalization", [1, 22], IMAGE, axis=axis, p=p, oracle="reference")
        for axis, p in ((-1, 2), (1, 1), (0, 2))
    ),
    node("LpNormalization", [1, 22], IMAGE * (IMAGE > 1.5), axis=0, oracle="reference"),
    node("LRN", [1, 13], IMAGE, size=3),
    node("LRN", [1, 13], floats(4, 4, 2, 3), size=2, alpha=0.1, beta=0.5, bias=0.3, oracle="reference"),
    node("LRN", 13, np.tile(SEQUENCE, (1, 3, 1))[..., np.newaxis], size=5, alpha=0.1),
    node("MeanVarianceNormalization", [9, 13], IMAGE, absolute=1e-5),
    node("MeanVarianceNormalization", [9, 13], IMAGE, axes=[0, 1, 2, 3], absolute=1e-5),
)
