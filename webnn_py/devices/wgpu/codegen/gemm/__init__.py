"""Matrix products: tiled GEMM, and GEMV for a few vectors."""
