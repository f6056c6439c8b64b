"""Values that are computed while a graph is built, and what computing them may cost."""
