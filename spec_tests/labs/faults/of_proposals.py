"""Faults of the proposals that can be asked for."""

from spec_tests.labs.faults.records import Fault

FOUR_BITS = ("spec_tests/operators/test_four_bits.py",)
SELECTION = ("spec_tests/script_timeline/test_device_selection.py",)

FAULTS = [
    Fault(
        "half-words",
        '>> 1u] >> ((({index}) & 1u) << 4u))"',
        '>> 1u] >> ((({index}) & 1u) << 3u))"',
        FOUR_BITS,
        "wgpu or packed",
    ),
    Fault("four-bits-folded", " and not _reads_four_bits(node)", "", FOUR_BITS, "packed or memory"),
    Fault(
        "four-bits-wrap",
        "builder.clamp(result, min_value=lowest, max_value=highest)",
        "builder.identity(result)",
        FOUR_BITS,
        "floats_are_quantized",
    ),
    Fault(
        "side-through-views",
        "return ComputedSide(node, layout, (node, *reversed(views)))",
        "return ComputedSide(node, Layout.dense(layout.shape), (node, *reversed(views)))",
        FOUR_BITS,
        "product",
    ),
    Fault(
        "fallback-in-any-order",
        "[choice for kind in self.fallback for choice in found if choice.kind == kind]",
        "[choice for choice in found if choice.kind in self.fallback]",
        SELECTION,
    ),
    Fault(
        "mistakes-fall-back",
        "except (UnwritableSizeError, CompilationError, UnknownSizeError):",
        "except (UnwritableSizeError, CompilationError, TypeError):",
        ("spec_tests/on_wgpu/test_dynamic_variants.py",),
    ),
]
