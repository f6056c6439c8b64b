"""The numpy device: the reference that all other devices are compared with.

From the top; each part uses only parts below it:

* ``backend``: the device, as the device timeline sees it.
* ``executable``: compiles a graph, and runs it.
* ``passes``: rewrites of a whole graph: folded convolutions, subnormal and widened constants.
* ``timed_kernel``: kernels that record how long they take.
* ``kernels``: the kernels of operators, one module for each category of operators; others are expanded into these.
* ``composites``: those of composites.
* ``routines``: routines that kernels of several categories share.
* ``scratch``: memory for the intermediates of kernels.
* ``table``: the table of kernels by operator.
"""
