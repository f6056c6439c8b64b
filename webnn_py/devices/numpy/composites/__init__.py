"""The numpy kernels of composites, one module for each module that declares them."""
