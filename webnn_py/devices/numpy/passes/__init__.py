"""The passes that rewrite a graph before it is compiled; ``pipeline.py`` has their order."""
