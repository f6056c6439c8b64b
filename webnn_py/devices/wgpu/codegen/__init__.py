"""WGSL as text: what kernels of several operators have in common."""
