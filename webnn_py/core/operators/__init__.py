"""Operators: declarations, limits and shape rules. No arrays, no devices, no tasks."""
