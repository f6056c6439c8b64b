"""What runs behind the seam: devices, their plans and their kernels."""
