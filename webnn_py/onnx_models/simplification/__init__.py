"""Simplification of ONNX models: passes over their nodes."""
