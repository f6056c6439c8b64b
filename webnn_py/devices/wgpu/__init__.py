"""The WebGPU device: graphs become WGSL kernels on any adapter that wgpu finds."""
