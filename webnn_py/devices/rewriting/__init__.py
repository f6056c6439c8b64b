"""Rewriting graphs: other nodes in place of some, below the script's layer.

``rule.py`` is what most changes need: a pattern that is drawn with the builder's methods, and its replacement.
``passes.py`` orders passes, runs them and reports what each did. ``core/graph_rewriting.py`` is the
walk over a graph that they share.
"""
