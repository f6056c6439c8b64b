"""Rules that write WebNN's operators in ONNX, a module for each category."""
