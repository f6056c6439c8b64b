"""The geometry of poolings."""
