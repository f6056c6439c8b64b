"""The numpy device: the reference that every other device is compared with.

From the top; each part uses only parts below it:

* ``backend``: the device, as the device timeline sees it.
* ``executable``: a graph made ready, and run.
* ``passes``: what is decided of a graph as a whole: which nodes are views, which are fused.
* ``kernels``: how each operator is computed, one module for each category of operators.
* ``routines``: what kernels of several categories have in common.
* ``scratch``: memory for what kernels compute on the way.
* ``table``: which kernel belongs to which operator.
"""
