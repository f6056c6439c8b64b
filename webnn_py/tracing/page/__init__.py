"""The page that shows a trace."""

from webnn_py.tracing.page.filling import page_of

__all__ = ["page_of"]
