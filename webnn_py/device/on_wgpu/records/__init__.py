"""What all other parts speak of: kernels, buffers, layouts, features, and the table of operators."""
