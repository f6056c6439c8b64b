"""Passes over a graph before it runs: which nodes are views, and which run together in one step."""
