"""Lowering: how each operator is written in ONNX for this device, and which numbers need an exact variant."""
