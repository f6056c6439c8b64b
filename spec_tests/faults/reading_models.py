"""The faults of what reads ONNX models."""

from spec_tests.faults.faults import Fault

MODEL_FAULTS = [
    Fault(
        "branches-swapped",
        "return context.where(truth, context.operand(one), context.operand(other))\n    if",
        "return context.where(truth, context.operand(other), context.operand(one))\n    if",
        ("spec_tests/onnx_models/test_branches_at_run_time.py",),
    ),
    Fault(
        "filled-while-building",
        'name in {"ConstantOfShape", "DequantizeLinear", "QuantizeLinear"}',
        'name in {"DequantizeLinear", "QuantizeLinear"}',
        ("spec_tests/onnx_models/test_filling.py",),
    ),
    Fault(
        "halves-rounded-first",
        "product = context.mul(context.mul(*factors), ratio)",
        "product = context.round_even(context.mul(context.mul(*factors), ratio))",
        ("spec_tests/onnx_models/test_quantized.py",),
        "halves",
    ),
    Fault(
        "padded-inside-out",
        "return context.where(is_inside, zeros, context.reshape(value, []))",
        "return context.where(is_inside, context.reshape(value, []), zeros)",
        ("spec_tests/onnx_models/test_movement.py",),
    ),
    Fault(
        "reset-bias-twice",
        "input_bias = context.concat([context.slice(b, [0, 0], [count, 5 * hidden]), zeros], 1)",
        "input_bias = b",
        ("spec_tests/onnx_models/test_recurrent.py",),
        "own_lengths",
    ),
    Fault(
        "broadcast-from-the-end",
        "first = max(0, a.rank - b.rank) if axis is None else counted(axis, a.rank)",
        "first = max(0, a.rank - b.rank)",
        ("spec_tests/onnx_models/test_early.py",),
    ),
    Fault(
        "scattered-back-to-front",
        "permutation=np.argsort(order).tolist()",
        "permutation=order",
        ("spec_tests/onnx_models/test_indexing.py",),
        "scattering",
    ),
    Fault(
        "state-without-decay",
        "state = context.mul(state, decay)",
        "state = context.mul(state, context.number(1, decay))",
        ("spec_tests/onnx_models/test_linear_attention.py",),
    ),
]
