"""Element-wise arithmetic: all of it is primitives."""
