"""The engines that browsers run graphs on, of which it can be asked which operators they take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs


@attrs.frozen
class BrowserEngine:
    """An execution provider of onnxruntime, as Chromium uses it on Windows.

    Attributes:
        provider: onnxruntime's name of it.
        title: the words for it.
        options: the options that Chromium's ``services/webnn/public/cpp/execution_providers_info.h`` gives it, and
            those without which it needs the hardware: QNN compiles for the NPU of a Snapdragon X Elite.
        install: how it comes to where it is asked.
        resamples_last_axes_only: whether Chromium transposes images around ``resample2d`` of other axes than the last.
    """

    provider: str
    title: str
    options: Mapping[str, str] = attrs.field(factory=dict)
    install: str = ""
    resamples_last_axes_only: bool = False


ENGINES: Final[Mapping[str, BrowserEngine]] = {
    "chromium-windows-cpu": BrowserEngine("CPUExecutionProvider", "on the CPU"),
    "chromium-windows-dml": BrowserEngine(
        "DmlExecutionProvider",
        "on DirectML",
        install="pip install onnxruntime-directml, which there is for Windows alone",
    ),
    "chromium-windows-openvino": BrowserEngine(
        "OpenVINOExecutionProvider",
        "on OpenVINO",
        install="pip install onnxruntime-ep-openvino, on a machine with a device of Intel",
        resamples_last_axes_only=True,
    ),
    "chromium-windows-qnn": BrowserEngine(
        "QNNExecutionProvider",
        "on QNN",
        options={"backend_type": "htp", "soc_model": "60", "htp_arch": "73"},
        install="pip install onnxruntime-qnn==2.7.0",
    ),
    "chromium-windows-webgpu": BrowserEngine(
        "WebGpuExecutionProvider",
        "on WebGPU",
        options={"enableInt64": "1", "enableRobustness": "1"},
        install="pip install onnxruntime-ep-webgpu==0.4.0",
    ),
}
"""The engines by the names of the browser profiles that have them."""
