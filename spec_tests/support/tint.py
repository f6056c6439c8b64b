"""Tint, the WGSL compiler of Chromium, in the package ``wgpudawn``.

On Dawn's null backend, which knows every feature, and needs neither a GPU nor a driver.
"""

import pytest


class Tint:
    """Checks WGSL modules; each text once.

    Args:
        dawn: the package.
    """

    def __init__(self, dawn):
        self._refusal = dawn.GPUValidationError
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WGPU_BACKEND_TYPE", "Null")
            adapter = dawn.gpu.request_adapter_sync()
        self._device = adapter.request_device_sync(required_features=["shader-f16", "subgroups"])
        self._accepted = set()

    def refusal(self, text):
        """Return Tint's message, with the line, where it refuses a module; otherwise ""."""
        if text not in self._accepted:
            try:
                self._device.create_shader_module(code=text)
            except self._refusal as error:
                return str(error)
            self._accepted.add(text)
        return ""
