"""Routines that several kernels share; they register nothing.

From the top:

* ``im2col``, with ``packed_filter``, ``im2col_columns``, ``im2col_tiles`` and ``conv_sizes``: convolutions as matrix
  products; ``depthwise`` and ``few_windows`` are faster ones.
* ``rows``: the rows of a reduction, and blocks of them.
* ``blocks``: elementwise work in blocks that stay in cache.
* ``blas``, with ``blas_threads``: matrix products, and the number of their threads.
* ``special``, ``float16``, ``widened``, ``tiling``: functions that numpy lacks, rounding to float16, products of
  float16 matrices, tiles.
"""
