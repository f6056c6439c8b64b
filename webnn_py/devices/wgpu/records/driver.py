"""The driver that all GPU devices of this process share."""

from typing import Final

from webnn_py.devices.forking import Driver

DRIVER: Final = Driver("WebGPU")
"""wgpu-native with the GPUs' drivers."""
