"""The rules, in the same categories as the operators; ``webnn_py.onnx_models.registry`` has them all."""
