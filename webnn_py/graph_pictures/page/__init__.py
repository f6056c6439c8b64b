"""The page of a graph: pan, zoom, search, attributes, statistics of weights, what the device fused."""

from webnn_py.graph_pictures.page.filling import page_of

__all__ = ["page_of"]
