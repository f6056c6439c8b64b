"""Matrix products: tiled ones, and those of a matrix and a few vectors."""
