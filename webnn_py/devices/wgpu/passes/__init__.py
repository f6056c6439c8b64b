"""Decisions over a whole graph: rewrites, fusion, and the memory of intermediates."""
