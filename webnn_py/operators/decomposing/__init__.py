"""The operators said in terms of others, by what they do; :mod:`webnn_py.operators.decompositions` lists them."""
