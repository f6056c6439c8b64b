"""Faults that only special numbers, scalars and outputs in odd places show."""

from spec_tests.labs.faults.records import ENGINE, Fault

FOUND = ("spec_tests/device/test_found_at_random.py",)

FAULTS = [
    Fault("scalar-condition", "np.asarray(np.equal(condition, ZERO)).view", "np.equal(condition, ZERO).view", FOUND),
    Fault(
        "quotient-not-rounded",
        "float32(scale), out=quotient, dtype=np.float32)",
        "float32(scale), out=quotient, dtype=precision)",
        FOUND,
    ),
    Fault(
        "gemm-zero-dropped",
        '    if factor == 0:\n        return f"zero_times',
        '    if False:\n        return f"zero_times',
        FOUND,
    ),
    Fault("padding-passed-over", "return has_padding(conv) and is_finite(conv.filter) is False", "return False", FOUND),
    Fault(
        "transposed-operand-removed",
        "        names.add(FUSES_INTO_GEMM)\n",
        "        pass\n",
        ENGINE,
        "transposed_operand",
    ),
]
