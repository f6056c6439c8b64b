"""Facts about values of a graph that lowering and rewriting decide by."""
