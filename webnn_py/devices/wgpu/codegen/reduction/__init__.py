"""Reductions, scans, and kernels that process whole rows."""
