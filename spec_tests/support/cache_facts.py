"""How devices update caches of keys and values; execution providers by their names, see ``sampled_engine.owner``."""

COPYING = frozenset({"reference", "WebGpuExecutionProvider"})
"""Those that draw attention to a cache by its decomposition, and write each present into memory of its own."""

KEEPING = frozenset({"CUDAExecutionProvider"})
"""Those that leave what the past has behind the new rows also in a present with memory of its own; others clear it."""
