import numpy as np

from spec_tests.onnx_models.single_node import Random, compared, node

floats = Random(10, 0.5, 2).floats


IMAGE, SEQUENCE, FEATURES = floats(2, 4, 5, 6), floats(2, 4, 7), floats(3, 4)
CHANNELS = IMAGE[0, :, 0, 0].copy()
COLUMN = CHANNELS[:, None, None]
NORMALIZED = (IMAGE - COLUMN) / np.sqrt(COLUMN + np.float32(1e-5)) * COLUMN + COLUMN
BEFORE_OPSET_7 = {"is_test": 1, "oracle": [NORMALIZED], "relative": 1e-4}


def batch_normalization(versions, data, **options):
    return node("BatchNormalization", versions, data, *(floats(data.shape[1]) for _ in range(4)), **options)


test_batch_normalization = compared(
    *(batch_normalization([7, 9, 14, 15], data, known=(1, 2, 3, 4)) for data in (IMAGE, SEQUENCE, FEATURES)),
    batch_normalization([7, 9, 14, 15], IMAGE, epsilon=0.1, momentum=0.5),
    node("BatchNormalization", 6, IMAGE, *[CHANNELS] * 4, **BEFORE_OPSET_7),
    node("BatchNormalization", 1, IMAGE, *[CHANNELS] * 4, consumed_inputs=[0] * 5, **BEFORE_OPSET_7),
)


test_batch_normalization_in_training = compared(
    *(
        batch_normalization([14, 15], data, training_mode=1, momentum=0.7, outputs=3, oracle="reference")
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
    node("LayerNormalization", 17, IMAGE, floats(5, 6), axis=2, outputs=3, absolute=1e-5),
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


LARGE = (IMAGE * 1000).astype(np.float16)
"""Numbers whose squares are beyond float16."""

WIDE = LARGE.astype(np.float32)
STANDARDIZED = (WIDE - WIDE.mean((0, 2, 3), keepdims=True)) / WIDE.std((0, 2, 3), keepdims=True)
STANDARDIZED = STANDARDIZED.astype(np.float16)
OF_CHANNELS = floats(4, 4).astype(np.float16)


test_large_numbers_of_float16 = compared(
    node("BatchNormalization", [14, 15], LARGE, *OF_CHANNELS, training_mode=1, outputs=3, wanted=(0,)),
    node("LRN", 13, LARGE, size=3, alpha=0.01, relative=1e-3),
    node("MeanVarianceNormalization", 13, LARGE, axes=[0, 2, 3], oracle=[STANDARDIZED], relative=2e-3, absolute=2e-3),
    node("LayerNormalization", 17, LARGE, floats(6).astype(np.float16), relative=2e-3, absolute=2e-3),
    node("InstanceNormalization", 22, LARGE, *OF_CHANNELS[:2], relative=2e-3, absolute=2e-3),
    node("LpNormalization", 22, LARGE, axis=-1, p=2, relative=2e-3),
)
