"""The rules, in the same categories as the operators; ``webnn_py.onnx_models.rule_table.registry`` has them all."""
