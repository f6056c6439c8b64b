"""Operators expressed by others, by category; :mod:`webnn_py.core.decompositions.table` lists them."""
