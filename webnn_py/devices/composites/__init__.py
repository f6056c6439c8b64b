"""Composites of this package: operators that some of its devices, and other engines, have as one."""
