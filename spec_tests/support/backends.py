"""The backends that cases run on: numpy, and WebGPU where an adapter is found, be it a software one."""

from webnn_py.device.on_wgpu.adapters import adapters

HAS_ADAPTER = bool(adapters())
NO_ADAPTER = "WebGPU not tested: no adapter found (Debian and Ubuntu: apt install mesa-vulkan-drivers)"
BACKENDS = ["numpy", "wgpu"] if HAS_ADAPTER else ["numpy"]
