"""A trained model, quantized in four ways, against onnxruntime."""

from pathlib import Path

import magika
import numpy as np
import onnx
import pytest
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from spec_tests.onnx_models.single_node import assert_same, run, run_onnxruntime

TRAINED = Path(magika.__file__).parent / "models/standard_v3_3/model.onnx"
X = {"bytes": np.random.default_rng(1).integers(0, 256, [1, 2048]).astype(np.int32)}


class OneInput(CalibrationDataReader):
    """The input that a static quantization takes ranges from."""

    def __init__(self):
        self._inputs = iter([X])

    def get_next(self):
        return next(self._inputs, None)


def quantized(kind, path):
    if kind == "dynamic":
        quantize_dynamic(TRAINED, path, weight_type=QuantType.QInt8)
    elif kind == "QDQ of 16 bits":
        quantize_static(TRAINED, path, OneInput(), activation_type=QuantType.QUInt16, weight_type=QuantType.QInt8)
    else:
        quantize_static(TRAINED, path, OneInput(), quant_format=QuantFormat[kind], per_channel=kind == "QDQ")


@pytest.mark.parametrize("kind", ["dynamic", "QDQ", "QDQ of 16 bits", "QOperator"])
async def test_a_quantized_model_agrees(context, kind, tmp_path):
    path = tmp_path / "quantized.onnx"
    quantized(kind, path)
    data = path.read_bytes()
    operators = {node.op_type for node in onnx.load_model_from_string(data).graph.node}
    assert operators & {"MatMulInteger", "DequantizeLinear", "QLinearMatMul"}
    shapes = {"bytes": X["bytes"].shape}
    actual, expected = await run(context, data, X, input_shapes=shapes), run_onnxruntime(data, X)
    assert_same(actual, expected, relative=0, absolute=1e-3 * np.abs(expected[0]).max())
    assert actual[0].argmax() == expected[0].argmax()
