"""Routines that several kernels share; they register nothing.

From the top:

* ``im2col`` and ``conv_sizes``: convolutions as matrix products; ``depthwise`` is a faster one, ``long_windows``
  is for windows longer than images.
* ``blocks``: elementwise work in blocks that stay in cache.
* ``blas``, with ``blas_threads``: matrix products, and the number of their threads.
* ``special``, ``float16``, ``tiling``: functions that numpy lacks, rounding to float16, tiles.
"""
