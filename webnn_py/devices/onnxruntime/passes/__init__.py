"""Passes that rewrite a graph for onnxruntime; ``pipeline`` lists them in their order."""
