"""The rules, in the same rooms as the operators; ``webnn_py.onnx_models.registry`` has them all."""
