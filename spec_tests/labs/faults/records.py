"""What a fault is: text that stands once in the package and what replaces it; where, does not matter."""

import attrs

CASES = ("spec_tests/operators/test_cases.py",)
GPU = ("spec_tests/on_wgpu", "spec_tests/gpu")
ATTENTION = ("spec_tests/on_wgpu/test_attention.py",)
SCRIPT = ("spec_tests/script_timeline",)
TIMELINES = ("spec_tests/device_timeline", "spec_tests/script_timeline")
TIMINGS = ("spec_tests/device/test_kernel_timings.py", "spec_tests/device/test_flops.py")
PROFILE = ("spec_tests/script_timeline/test_profile.py", "spec_tests/script_timeline/test_check_finite.py")
SHARED_DEVICES = ("spec_tests/on_wgpu/test_shared_devices.py",)
LENDING = ("spec_tests/on_wgpu/test_buffer_sharing.py",)
COPIES = ("spec_tests/device/test_copies.py", "spec_tests/on_wgpu/test_buffer_copies.py")
OWN_THREAD = ("spec_tests/device/test_own_thread.py",)
CONSTANTS = ("spec_tests/device/test_shared_constants.py",)
VALIDATION = ("spec_tests/operators/test_bad_operands.py", "spec_tests/operators/test_limits.py", *SCRIPT)
ONNX = ("spec_tests/onnx_models",)
COMPOSITES = ("spec_tests/onnx_models/conversion/test_composites.py",)
ORACLES = ("spec_tests/labs/oracles", "spec_tests/on_onnxruntime/test_optimizations.py")
RANKING = ("spec_tests/onnx_models/rules/test_top_k.py",)
SAMPLING = ("spec_tests/onnx_models/rules/test_grid_sampling.py",)
VOLUMES = ("spec_tests/onnx_models/rules/test_convolution.py",)
DYNAMIC = ("spec_tests/script_timeline/test_dynamic_shapes.py", "spec_tests/device/test_sizes.py")
ENGINE = ("spec_tests/on_onnxruntime",)
EXPORT = ("spec_tests/onnx_models/export",)
SAVED = ("spec_tests/saved_graphs",)
SESSIONS = ("spec_tests/runtime",)
DIRECTIONS = ("spec_tests/on_numpy/test_directions.py",)
ROWS = ("spec_tests/on_numpy/test_rows.py",)
NUMPY_PASSES = ("spec_tests/on_numpy/test_passes.py",)
FLOAT16 = ("spec_tests/on_numpy/test_float16.py",)
DEPTHWISE = ("spec_tests/on_numpy/test_depthwise.py",)
SPREAD = ("spec_tests/on_numpy/test_spread_windows.py",)
EXAMPLES = ("spec_tests/examples/test_*.py",)
COMMAND = ("spec_tests/command",)
PICTURES = ("spec_tests/graph_pictures",)
SIMPLIFICATION = ("spec_tests/onnx_models/test_simplification.py",)
INTERLEAVINGS = ("spec_tests/testing",)
PAGE = ("spec_tests/tracing/test_page*.py",)
DOCUMENTS = ("spec_tests/documents",)
BROWSERS = ("spec_tests/browser_profiles", "spec_tests/javascript/test_browser_profiles.py")
NEWER = ("spec_tests/wpt/test_newer_files.py",)
TRACING = ("spec_tests/tracing",)
WEB_EXPORT = ("spec_tests/web_export",)
JAVASCRIPT = ("spec_tests/javascript", "spec_tests/wpt/test_known_answers.py", "spec_tests/wpt/test_own_files.py")


@attrs.frozen
class Fault:
    """A fault, and the tests that concern it: patterns of paths, and pytest's ``-k``."""

    name: str
    old: str
    new: str
    tests: tuple[str, ...]
    only: str = ""


def of_kernel(operator, old, new, name=""):
    """A fault of one operator on the GPU."""
    return Fault(name or f"wgsl-{operator}", old, new, CASES, f"wgpu and {operator}")
