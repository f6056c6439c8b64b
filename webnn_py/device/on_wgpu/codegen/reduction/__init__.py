"""Reductions, scans, and what reads and writes whole rows."""
