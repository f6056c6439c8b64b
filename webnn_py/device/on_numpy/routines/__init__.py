"""Routines that kernels of several categories are made of; they register nothing.

From the top:

* ``im2col``, with ``packed_filter``, ``im2col_tiles`` and ``conv_sizes``: convolutions as matrix products.
* ``rows``: the rows of a reduction, and blocks of them.
* ``blocks``: element-wise work in blocks that stay in cache.
* ``blas``, with ``blas_threads``: matrix products, and on how many threads.
* ``special``, ``float16``, ``tiling``: functions that numpy lacks, float16 and back, tiles.
"""
