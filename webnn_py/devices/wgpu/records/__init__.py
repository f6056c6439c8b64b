"""Terms that all other parts share: kernels, buffers, layouts, features, and the table of operators."""
