"""Operators expressed by others, by category; :mod:`webnn_py.operators.decompositions` lists them."""
