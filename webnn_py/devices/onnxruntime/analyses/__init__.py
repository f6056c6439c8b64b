"""Facts about values of a graph on which lowering and rewriting decisions are based."""
