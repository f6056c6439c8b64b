"""The device's own operators, which passes create and lowering writes."""
