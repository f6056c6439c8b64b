"""Operators of the device's own, which passes make and lowering writes."""
