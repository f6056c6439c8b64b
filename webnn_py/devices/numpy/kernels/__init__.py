"""The numpy kernels, one module for each category of operators; ``table`` imports those that a graph needs."""
