"""What backends and those who use them exchange: failures, kernels with their nodes and operations, memory."""
