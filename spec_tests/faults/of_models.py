"""Faults of ONNX models: reading, writing, running them by a command or an example."""

from spec_tests.faults.records import COMMAND, EXAMPLES, EXPORT, ONNX, RANKING, SAMPLING, SIMPLIFICATION, VOLUMES, Fault

FAULTS = [
    Fault("onnx-noop-reduction", "if not given and noop_with_empty_axes:", "if not given:", ONNX),
    Fault(
        "onnx-last-index",
        "data.shape[axis] - 1, index), index) if last",
        "data.shape[axis], index), index) if last",
        ONNX,
    ),
    Fault("onnx-zero-size", "if size == 0 and not allowzero:", "if size == 0:", ONNX),
    Fault(
        "onnx-flatten-last", "first = data.rank if axis == data.rank else", "first = 0 if axis == data.rank else", ONNX
    ),
    Fault("onnx-data-of-bytes", "if external and path is None:", "if not external and path is None:", ONNX),
    Fault("onnx-links", "if not path.is_relative_to(root):", "if path == root:", ONNX),
    Fault("onnx-spent-bytes", "if self._spent_bytes + needed > self._bytes:", "if needed > self._bytes:", ONNX),
    Fault("onnx-calls-itself", "if name in self._open:", "if name in self._extents:", ONNX),
    Fault("onnx-split-evenly", "if sizes[-1] < 1:", "if sizes[-1] < 0:", ONNX),
    Fault("onnx-exact-sums", "EXACT: Final = 2**24", "EXACT: Final = 2**30", ONNX, "test_sums_of_integers"),
    Fault("onnx-known-sums", "int(high - zero.min()), int(zero.max() - low)", "0, int(zero.max() - low)", ONNX, "sums"),
    Fault(
        "onnx-quantize-nothing", "context.where(nothing, context.number(1, x), ", "context.max(span, ", ONNX, "one_step"
    ),
    Fault("onnx-causal-past", "return past.shape[2]\n", "return 0\n", ONNX, "attention"),
    Fault("onnx-drawn-known", "array = known_value(self._builder._values[value], self.expenses)", "array = None", ONNX),
    Fault("onnx-cell-seen", "context.mul(peepholes[1], following)", "context.mul(peepholes[1], cell)", ONNX, "lstm"),
    Fault("onnx-loop-once-more", "most is None or number < most)", "most is None or number <= most)", ONNX),
    Fault("onnx-scan-backwards", "stack[::-1] if is_prepended else stack", "stack", ONNX),
    Fault("onnx-cycle-of-names", "return used - own", "return used", ONNX),
    Fault("onnx-own-value-first", "and item.name not in self._scope:  # an input", "# an input", ONNX),
    Fault("onnx-empty-always", "if all(result is None or result.size == 0 for", "if any(True for", ONNX),
    Fault("onnx-sequence-place", "range(-count, count + 1))", "range(-count, count))", ONNX),
    Fault("onnx-backwards", "exclusive), reversed=bool(reverse)", "exclusive), reversed=False", ONNX),
    Fault(
        "onnx-equal-ranks", "context.logical_or(compare(others, own), is_equal_before)", "compare(others, own)", RANKING
    ),
    Fault("onnx-reflected-once", "context.sub(half, context.abs(context.sub(once, half)))", "once", SAMPLING),
    Fault("onnx-volume-dilation", " * np.int32(depth.dilations[0])", "", VOLUMES),
    Fault(
        "export-float-to-int",
        'body.node("Where", body.node("IsNaN", x, data_type=BOOL), np.array(0, np.float32), x, data_type="float32")',
        "x",
        EXPORT,
        "cast",
    ),
    Fault("export-shared-function", "if key not in self._functions:", "if not self._functions:", EXPORT, "functions"),
    Fault("export-known-indices", "np.all(known <= highest) and", "", EXPORT, "indices"),
    Fault("export-boolean", "self.made_truths[made.name] = truth.name", "pass", EXPORT, "boolean"),
    Fault("export-changed-function", "if sealed == digest_of(function) else None", "", ONNX, "was_changed"),
    Fault(
        "branch-names-clash", "    if name not in taken:\n        return name\n", "    return name\n", SIMPLIFICATION
    ),
    Fault("aliases-in-branches", "attribute in copy.attribute", "attribute in ()", SIMPLIFICATION, "is_not_known"),
    Fault(
        "weights-unpacked", 'KEPT: Final = frozenset({"DequantizeLinear", ', "KEPT: Final = frozenset({", SIMPLIFICATION
    ),
    Fault("shape-start-ignored", 'attributes.get("start", 0)', "0", SIMPLIFICATION, "of_shape"),
    Fault("dimension-of-two-sizes", "if known != size:", "if False:", COMMAND, "share"),
    Fault("lossy-conversion", "and not np.array_equal(converted, value)", "and False", COMMAND, "does_not_have"),
    Fault("mismatches-uncounted", "int(a.size - same.sum())", "0", COMMAND, "finite"),
    Fault("wav-without-sign", "wide[:, 4 - width :]", "wide[:, :width]", COMMAND, "test_samples"),
    Fault("picture-on-its-side", "operations.exif_transpose(opened)", "opened", COMMAND, "side"),
    Fault("model-unchecked", "if found != other.sha256:", "if False:", EXAMPLES, "other_content"),
    Fault("text-left-on-its-head", "if head_down > UPSIDE_DOWN:", "if False:", EXAMPLES, "drawn_lines"),
    Fault(
        "voice-forgotten",
        "before, after = after, before\n    before.dispose()",
        "pass\n    before.dispose()",
        EXAMPLES,
        "every_frame",
    ),
    Fault("fillings-heeded", "b.add(scores, absent)", "scores", EXAMPLES, "as_is_published"),
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
        "clip-one-way",
        "context.clamp(x, min_value=-self.clip, max_value=self.clip)",
        "context.clamp(x, max_value=self.clip)",
        ("spec_tests/onnx_models/test_recurrent.py",),
        "clips",
    ),
    Fault(
        "alphas-for-all",
        "[None if default is None else next(left, default) for default in defaults]",
        "[next(left, default) for default in defaults]",
        ("spec_tests/onnx_models/test_recurrent.py",),
        "clips",
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
