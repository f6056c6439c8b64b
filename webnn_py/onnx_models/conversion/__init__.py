"""Conversion of a model's nodes to operands of a builder, in the order in which they run."""
