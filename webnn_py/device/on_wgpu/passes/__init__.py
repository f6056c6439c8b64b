"""What is decided over a whole graph: rewrites, fusion, and where intermediates lie."""
