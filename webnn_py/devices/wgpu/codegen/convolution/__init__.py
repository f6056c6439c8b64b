"""Convolutions: their geometry, and the kernels that are not a plain matrix product."""
