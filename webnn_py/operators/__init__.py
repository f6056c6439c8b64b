"""What the operators are: declarations, limits and shape rules. No arrays, no devices, no tasks."""
