"""The engine wgpu-native, behind wgpu-py: private parts of one release of wgpu-py are used here alone."""

from __future__ import annotations

import re
from logging import getLogger
from time import perf_counter, sleep
from typing import Any, Final

import wgpu
from cffi import model  # type: ignore[import-untyped]
from wgpu.backends.wgpu_native import _api, _helpers, extras
from wgpu.backends.wgpu_native._ffi import ffi, lib

from webnn_py.devices.wgpu.engines.engine import BACKENDS, Checked, Engine, Ticket

NO_CHECKS: Final = 0

NOT_IN_NAGA: Final = ("enable subgroups;\n", "diagnostic(off, subgroup_uniformity);\n")
"""Directives of standard WGSL that naga refuses or warns of: it has the functions without them (wgpu issue 5555)."""

LEAST_PAUSE, MOST_PAUSE = 5e-5, 1e-3
PAUSE_SHARE: Final = 0.02
"""Seconds between two looks for an answer, and how much of the time that it has taken they may add."""

_NO_BINDINGS: Final = ffi.new("WGPUBindGroupLayoutDescriptor *")
_CREATE_TRUSTED: Final = getattr(_api.libf, "wgpuDeviceCreateShaderModuleTrusted", None)


class WgpuNative(Engine):
    """wgpu-native."""

    title = f"wgpu {wgpu.__version__}"
    log = getLogger("wgpu")
    features = ("shader-f16", "shader-int64", "subgroup", "subgroup-barrier", "timestamp-query")
    subgroups = "subgroup"

    def __init__(self) -> None:
        super().__init__(ffi, lib, wgpu)

    def checked(self) -> Checked:
        # wgpu-py leaves an error with what lies on top of the thread's stack, as it does for its own calls.
        return Checked(_api.error_handler._get_proxy_stack)

    def _find_adapters(self) -> tuple[wgpu.GPUAdapter, ...]:
        if _helpers._the_instance is None:  # else a program uses wgpu-py by itself
            extras.set_instance_extras(backends=BACKENDS)
        return tuple(wgpu.gpu.enumerate_adapters_sync())

    def open(self, adapter: wgpu.GPUAdapter, features: list[str], limits: dict[str, int | None]) -> wgpu.GPUDevice:
        return adapter.request_device_sync(label="webnn_py", required_features=features, required_limits=limits)

    def is_lost(self, device: wgpu.GPUDevice) -> bool:
        # Only a lost device refuses a layout without bindings.
        layout = ffi.NULL
        try:
            with self.checked():
                layout = lib.wgpuDeviceCreateBindGroupLayout(device._internal, _NO_BINDINGS)
        except wgpu.GPUError as error:
            return "lost" in str(error).lower()
        finally:
            if layout != ffi.NULL:
                lib.wgpuBindGroupLayoutRelease(layout)
        return False

    def is_destroyed(self, buffer: wgpu.GPUBuffer, layout: wgpu.GPUBindGroupLayout) -> bool:
        binding = {"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
        try:
            self.device_of(buffer).create_bind_group(label="import_buffer", layout=layout, entries=[binding])
        except wgpu.GPUValidationError:
            return True
        return False

    def trusted_pipeline(
        self, device: wgpu.GPUDevice, code: str, label: str, layout: wgpu.GPUPipelineLayout
    ) -> wgpu.GPUComputePipeline:
        compute = {"module": self._trusted_module(device, code, label), "entry_point": "main"}
        return device.create_compute_pipeline(label=label, layout=layout, compute=compute)

    @staticmethod
    def _trusted_module(device: wgpu.GPUDevice, code: str, label: str) -> wgpu.GPUShaderModule:
        for directive in NOT_IN_NAGA:
            code = code.replace(directive, "", 1)
        if _CREATE_TRUSTED is None:
            return device.create_shader_module(label=label, code=code)
        text, name = ffi.new("char[]", code.encode()), ffi.new("char[]", label.encode())
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
        source.code.data, source.code.length = text, len(text) - 1
        descriptor = ffi.new("WGPUShaderModuleDescriptor *")
        descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
        descriptor.label.data, descriptor.label.length = name, len(name) - 1
        return _api.GPUShaderModule(label, _CREATE_TRUSTED(device._internal, descriptor, NO_CHECKS), device)

    def timestamp_period(self, device: wgpu.GPUDevice) -> float:
        return float(lib.wgpuQueueGetTimestampPeriod(device.queue._internal))

    def poll(self, device: wgpu.GPUDevice) -> None:
        self._is_done(device)

    def wait(self, device: wgpu.GPUDevice, ticket: Ticket, *, is_shared: bool) -> None:
        if not is_shared:
            self._is_done(device, wait=True)
            return
        # A wait would keep all others from submitting to the device until it ends (gfx-rs/wgpu#9470, in wgpu 29).
        began = perf_counter()
        while ticket.done is None and not self._is_done(device):
            sleep(min(max(LEAST_PAUSE, PAUSE_SHARE * (perf_counter() - began)), MOST_PAUSE))

    @staticmethod
    def _is_done(device: wgpu.GPUDevice, *, wait: bool = False) -> bool:
        """Let finished work say so; return whether everything submitted has finished, for which it may wait."""
        # wgpu-native 29 sets the lowest byte of the 32 bits that its header declares; the others are left as they were.
        return bool(lib.wgpuDevicePoll(device._internal, wait, ffi.NULL) & 0xFF)


# --- C types by their names --------------------------------------------------------------------------------------

# wgpu-py asks for some thirty types of the form "WGPUName *" or "WGPUName[]" until a graph runs. For each, cffi's
# parser reads all 400 names of wgpu-native's types again, which takes 10 ms with other threads standing still: a third
# of a second of a process's first inference. What the names stand for it has known since it read the header.

_PLAIN: Final = re.compile(r"(WGPU\w+) ?(?:(\*)|\[(\d*)\]) ?")


def find_by_name(parser: Any, text: str) -> Any:
    """Return the type that ``text`` names, as cffi's parser would; None if it is no plain name."""
    match = _PLAIN.fullmatch(text)
    declared = match and parser._declarations.get(f"typedef {match[1]}")
    if not (match and declared):
        return None
    named, qualifiers = declared
    if match[2]:
        return parser._get_type_pointer(named, qualifiers)
    return model.ArrayType(named, int(match[3]) if match[3] else None)


def _find_types_by_name() -> None:
    parser = getattr(ffi, "_parser", None)
    if parser is None or not hasattr(parser, "_declarations") or not hasattr(parser, "_get_type_pointer"):
        return  # another version of cffi: everything is as right, and slower
    parse = parser.parse_type

    def parse_type(text: str) -> Any:
        found = find_by_name(parser, text)
        return parse(text) if found is None else found

    parser.parse_type = parse_type


_find_types_by_name()

ENGINE: Final = WgpuNative()
