"""Operators expressed by others: for all options, the emulations of the specification or equivalent ones.

Each function is called as the operator of its name is, with a builder in front and without a label, and returns what
that operator's method would. Numbers take the data type of the input; float16 is computed in float32 and rounded once.
What they end in are the primitives, which have none: arithmetic, equal, greater, lesser, where, cast, abs, the
elementary functions, matmul, four reductions, concat, expand, reshape, slice, transpose, gather and scatter_nd.

A device has them run in the place of operators that it does not claim (``core/device/compiling/expansion.py``). There
is a module for each category of operators, which is imported when a decomposition of it is asked for.
"""
