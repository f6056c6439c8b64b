"""Faults of the devices that compute on the processor, beside their operators' cases: numpy and onnxruntime."""

from spec_tests.faults.records import DIRECTIONS, ENGINE, FLOAT16, OWN_NODES, ROWS, Fault

FAULTS = [
    Fault("engine-optimizer", '"DivMulFusion": "It', '"NoSuchFusion": "It', ENGINE, "drawing"),
    Fault(
        "engine-negative-infinity", 'body.node("Max", body.cast(input, "float32"), LEAST_GELU)', "input", ENGINE, "gelu"
    ),
    Fault("folding-mean", "bias + (doubles(convolution", "bias - (doubles(convolution", OWN_NODES, "folded_into"),
    Fault(
        "numpy-small-buffer",
        "MOST_UNBUFFERED or count < WORTH_UNBUFFERED:",
        "MOST_UNBUFFERED or count > WORTH_UNBUFFERED:",
        ROWS,
        "small_buffer",
    ),
    Fault("numpy-long-rows-bias", "np.add(result, bias, out=output)", "np.add(result, 0, out=output)", ROWS, "windows"),
    Fault("numpy-pixel-bias", "np.add(result, rest[0].reshape(-1, 1), out=result)", "pass", ROWS, "single_pixel"),
    Fault(
        "numpy-pooled-columns", "np.maximum(left, right, out=greatest)", "greatest[:] = left", OWN_NODES, "in_its_tiles"
    ),
    Fault("numpy-pooled-bias", "np.isfinite(constant_array(bias.data)).all()", "True", OWN_NODES, "other_pooling"),
    Fault("numpy-pooled-padding", "check(all(map(_has_elements, *_slides(pool))))", "", OWN_NODES, "other_pooling"),
    Fault("numpy-backward-input", "steps - start][::-1] if", "steps - start] if", DIRECTIONS, "both_directions"),
    Fault("numpy-backward-output", "self._sizes.steps - 1 - step if", "step if", DIRECTIONS, "both_directions"),
    Fault("numpy-rounding", "ROUNDING: Final = 3 * 2**22", "ROUNDING: Final = 3 * 2**22 + 1", OWN_NODES, "taking_back"),
    Fault("folding-key", 'digest("factors", key, factors.shape, factors.tobytes())', "key", OWN_NODES, "one_key"),
    Fault("folding-shared", ' or uses[node.operands["input"]] != 1:', ":", OWN_NODES, "normalization_stays"),
    Fault("engine-ends", '{"Transpose", "Cast", "MatMul"}', '{"Transpose", "Cast", "Gemm"}', ENGINE, "not_fused"),
    Fault("engine-doubts", "if self.run():", "if not self.run():", ENGINE, "quickly_again"),
    Fault("numpy-late-sign", " or bool(np.minimum.reduce(x.view(np.int32)) < 0)", "", FLOAT16, "comes_late"),
    Fault("engine-noticing", "slide.stride <= slide.window and", "", ENGINE, "same_as_on_numpy"),
    Fault("engine-stale-binding", "if before is buffer:", "if before is not None:", ENGINE, "written_between"),
    Fault(
        "engine-outputs-stay-bound",
        "((inputs, self.inputs), (outputs, self.outputs))",
        "((inputs, self.inputs),)",
        ENGINE,
        "same_inputs",
    ),
    Fault(
        "engine-means-of-several-as-one",
        'reduction.operand("input").element_count == reduction.outputs[0].element_count',
        "reduction.outputs[0].element_count > 0",
        ENGINE,
        "reshapes",
    ),
    Fault("engine-guards-not-joined", 'add("Concat", tensors,', 'add("Concat", tensors[:1],', ENGINE, "several_means"),
    Fault("engine-relu-in-float16", '        "Relu",\n        "Tile",\n', '        "Tile",\n', ENGINE, "was_rounded"),
    Fault("engine-idle-optimizers", " if there.isdisjoint(sought)}", "}", ENGINE, "idle"),
    Fault("engine-bounds-of-all", "wanted.isdisjoint(node.results) or ", "", ENGINE, "looked_at"),
    Fault(
        "engine-bounds-of-single-weights",
        "factors.sum(axis=others, dtype=np.float64)",
        "factors.max(axis=others)",
        ENGINE,
        "looked_at",
    ),
    Fault(
        "engine-inputs-not-looked-at",
        "for tensor, value in zip(tensors, node",
        "for tensor, value in zip(tensors[:1], node",
        ENGINE,
        "joins",
    ),
    Fault("engine-spare-memory-kept", "self._spares.drop(data)", "pass", ENGINE, "next_write_goes"),
    Fault("engine-holds-buffers", "            data.unbind()\n", "            pass\n", ENGINE, "destroyed_buffer"),
    Fault(
        "engine-broadcast-reshapes",
        "if origin is value or value.descriptor.shape != node.outputs[0].shape:",
        "if origin is value:",
        ENGINE,
        "reshapes_are",
    ),
    Fault(
        "engine-rounded-sums",
        "if _largest_column(b, contents) * LARGEST > EXACT_UP_TO:",
        "if False:",
        ENGINE,
        "not_known",
    ),
    Fault(
        "engine-zero-points", "if integers.descriptor.shape == value.descriptor.shape", "if True", ENGINE, "not_known"
    ),
    Fault(
        "engine-steps-of-zero",
        "    body.guard(results[1], Must.BE_ABOVE_ZERO, is_number=True)\n",
        "",
        ENGINE,
        "every_number",
    ),
    Fault("engine-gates-read-otherwise", '== "mul" for reader', "for reader", ENGINE, "only_gates"),
    Fault("engine-gates-returned", "        and value not in outputs\n", "", ENGINE, "gate_that_is_an_output"),
    Fault(
        "engine-quantizes-nan",
        "body.guard(input, Must.BE_FINITE)\n    results",
        "results",
        ENGINE,
        "every_number",
    ),
    Fault(
        "engine-any-steps",
        "value.data.tobytes() == np.asarray(other.data).tobytes()",
        "value.data.size == 1",
        ENGINE,
        "only_what_is_drawn",
    ),
    Fault(
        "differences-of-another-zero-point",
        "check(found.zero_point is zero_point and differences",
        "check(differences",
        OWN_NODES,
    ),
    Fault("narrow-without-sign", "np.minimum.reduce(x.view(np.int32)) < 0", "np.minimum.reduce(x) < 0", FLOAT16),
    Fault("narrow-without-limit", "magnitude.clip(ZERO, OVERFLOW", "magnitude.clip(ZERO, INFINITY", FLOAT16),
    Fault("narrow-beyond", "tiny_count > FEWEST or not np.maximum.reduce(magnitude) < OVERFLOW", "False", FLOAT16),
    Fault("narrow-half-up", "0xFFF - (112 << 23)", "0x1000 - (112 << 23)", FLOAT16),
    Fault("narrow-tiny", "    if tiny_count:\n", "    if False:\n", FLOAT16),
    Fault("widen-negative-infinity", "NEGATIVE_INFINITY_BITS = 0xFC00", "NEGATIVE_INFINITY_BITS = 0x10000", FLOAT16),
    Fault("narrow-lost", "np.copyto(y.transpose(axes), halves)", "y.transpose(axes).copy()[...] = halves", FLOAT16),
    Fault(
        "extremes-without-nan",
        "choose(a, b, out=output)",
        "{np.maximum: np.fmax, np.minimum: np.fmin}[choose](a, b, out=output)",
        FLOAT16,
    ),
    Fault(
        "pooled-rows-of-no-tile",
        "steps_of(row * height + i, ",
        "steps_of(i, ",
        ("spec_tests/on_numpy/test_pooling.py",),
    ),
    Fault("range-without-zero", "return ZERO if lowest > 0 else lowest,", "return lowest,", OWN_NODES, "positive"),
    Fault(
        "uncast-whatever-the-sum",
        "    check(magnitude(a) * magnitude(b) * a.descriptor.shape[-1] <= MOST)\n",
        "    magnitude(a), magnitude(b)\n",
        OWN_NODES,
        "may_not_hold",
    ),
    Fault(
        "cell-in-the-usual-order",
        "layout = tuple(part.index for part in parts if isinstance(part, Output))",
        "layout = (0, 1, 2, 3)",
        OWN_NODES,
        "single_operators",
    ),
    Fault(
        "taken-back-by-another-scale",
        " is matched.through_reshapes(quantized.operands[name]))",
        ")",
        OWN_NODES,
        "taken_back_otherwise",
    ),
    Fault(
        "constants-without-bound", " or 4 * count <= self._bytes_left)", " or count > 0)", OWN_NODES, "up_to_a_bound"
    ),
    Fault(
        "wide-factors", 'cast_number(node.options[name], "float16")', "7 * node.options[name]", OWN_NODES, "few_rows"
    ),
]
