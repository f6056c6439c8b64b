"""How WebNN's operators are written in ONNX, a module for each category."""
