"""Records that backends and their callers exchange: failures, kernels with their nodes and operations, memory."""
