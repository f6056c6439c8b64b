"""The faults, as text that stands once in the package and what replaces it; where, does not matter."""

import attrs

CASES = ("spec_tests/operators/test_cases.py",)
GPU = ("spec_tests/on_wgpu", "spec_tests/gpu")
SCRIPT = ("spec_tests/script_timeline",)
TIMELINES = ("spec_tests/device_timeline", "spec_tests/script_timeline")
TIMINGS = ("spec_tests/device/test_kernel_timings.py", "spec_tests/device/test_flops.py")
PROFILE = ("spec_tests/script_timeline/test_profile.py", "spec_tests/script_timeline/test_check_finite.py")
SHARED_DEVICES = ("spec_tests/on_wgpu/test_shared_devices.py",)
COPIES = ("spec_tests/device/test_copies.py", "spec_tests/on_wgpu/test_buffer_copies.py")
CONSTANTS = ("spec_tests/device/test_shared_constants.py",)
VALIDATION = ("spec_tests/operators/test_bad_operands.py", "spec_tests/operators/test_limits.py", *SCRIPT)
ONNX = ("spec_tests/onnx_models",)
RANKING = ("spec_tests/onnx_models/test_ranking.py",)
SAMPLING = ("spec_tests/onnx_models/test_sampling.py",)
VOLUMES = ("spec_tests/onnx_models/test_convolution.py",)
ENGINE = ("spec_tests/on_onnxruntime",)
EXPORT = ("spec_tests/onnx_models/export",)
SAVED = ("spec_tests/saved_graphs",)
SESSIONS = ("spec_tests/runtime",)
FLOAT16 = ("spec_tests/on_numpy/test_float16.py",)
EXAMPLES = ("spec_tests/examples/test_*.py",)
COMMAND = ("spec_tests/command",)
PICTURES = ("spec_tests/graph_pictures",)
SIMPLIFICATION = ("spec_tests/onnx_models/test_simplification.py",)
INTERLEAVINGS = ("spec_tests/testing",)
PAGE = ("spec_tests/tracing/test_page*.py",)
DOCUMENTS = ("spec_tests/documents",)
TRACING = ("spec_tests/tracing",)
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


FAULTS = [
    Fault(
        "public-name-nowhere",
        '    "TimelineStatistics",\n',
        '    "TimelineStatistics",\n    "__version__",\n',
        DOCUMENTS,
    ),
    Fault(
        "message-not-as-documented",
        "a buffer is given twice; each name needs a buffer of its own",
        "a buffer is given twice",
        DOCUMENTS,
        "troubleshooting",
    ),
    Fault(
        "step-tells-too-many",
        "        return self._done - before\n",
        "        return self._done\n",
        DOCUMENTS,
        "testing.md",
    ),
    Fault("narrow-without-sign", "is_signed = x.view(np.int32).min() < 0", "is_signed = x.min() < 0", FLOAT16),
    Fault("narrow-without-limit", "magnitude.clip(ZERO, OVERFLOW)", "magnitude.clip(ZERO, INFINITY)", FLOAT16),
    Fault("narrow-lost", "        np.copyto(y, halves)\n", "        y.copy()[...] = halves\n", FLOAT16),
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
    of_kernel("sub", 'return f"{a} - {b}"', 'return f"{b} - {a}"'),
    Fault("wgsl-mul", 'return f"zero_times({sign}({other}))"', 'return f"zero_times({other})"', GPU, "test_zero_times"),
    of_kernel("greater_or_equal", 'truth(f"is_less({b}, {a}) || is_equal({a}, {b})"', 'truth(f"is_less({b}, {a})"'),
    of_kernel("logical_xor", 'truth(f"({a} != 0u) != ({b} != 0u)")', 'truth(f"{a} != {b}")'),
    of_kernel("logical_and", 'truth(f"{a} != 0u && {b} != 0u")', 'truth(f"({a} & {b}) != 0u")'),
    of_kernel(
        "where",
        'f"select({false_value}, {true_value}, {condition} != 0u)"',
        'f"select({false_value}, {true_value}, {condition} == 1u)"',
    ),
    of_kernel("ceil", 'return f"ceil({x})"', 'return f"floor({x} + 1.0)"'),
    of_kernel("neg", '^ 0x80000000u)"', '| 0x80000000u)"'),
    of_kernel("sign", 'return f"select(f32(sign(order({x}))), 0.0, is_nan({x}))"', 'return f"f32(sign(order({x})))"'),
    of_kernel("leaky_relu", '{x}, order({x}) >= 0i)"', '{x}, order({x}) > 1i)"'),
    of_kernel("hard_swish", 'maximum({x}, -3.0)"', '{x}"'),
    of_kernel(
        "clamp",
        'return extreme("min", kind, extreme("max", kind, x, lowest), highest)',
        'return extreme("min", kind, x, highest)',
    ),
    Fault(
        "flipped",
        "{function}(flipped_{kind}(a), flipped_{kind}(b))",
        "{function}(flipped_{kind}(b), flipped_{kind}(b))",
        GPU,
        "test_integer_chains",
    ),
    of_kernel(
        "hard_sigmoid",
        'return f"minimum(maximum({straight_line(node, x)}, 0.0), 1.0)"',
        'return f"maximum({straight_line(node, x)}, 0.0)"',
    ),
    of_kernel(
        "prelu",
        """+ {slope} * {extreme('min', kind, x, zero)}\"""",
        """+ {extreme('min', kind, x, zero)}\"""",
    ),
    of_kernel(
        "cast",
        'return f"{wanted}(clamp(saturated_i32({x}), {lowest}i, {highest}i))"',
        'return f"{wanted}(saturated_i32({x}))"',
    ),
    of_kernel(
        "quantize_linear", 'steps = f"round(quotient({x}, {scale}))"', 'steps = f"floor(quotient({x}, {scale}))"'
    ),
    of_kernel(
        "dequantize_linear",
        'return f"f32(i32({x}) - i32({zero_point})) * {scale}"',
        'return f"f32(i32({x})) * {scale}"',
    ),
    of_kernel("gather", "i / {count * inner}u * {shape[axis]}u + found", "i / {count * inner}u * {count}u + found"),
    of_kernel(
        "scatter_elements",
        'f"({outer} + {found}) * {self.below}u + {number} % {self.below}u"',
        'f"({outer} + {found}) * {self.below}u"',
    ),
    of_kernel(
        "gather_nd",
        "moving.load(place, f'({found}) * {inner}u + i % {inner}u')",
        "moving.load(place, f'({found}) * {inner}u')",
    ),
    of_kernel(
        "pool2d",
        'lines += ["{", *self._look(f"{v}u", f"{u}u", add), "}"]',
        'lines += ["{", *self._look(f"{v}u", f"{v}u", add), "}"]',
    ),
    of_kernel(
        "average_pool2d", "{f'{self.taps}.0' if self.is_inside else 'f32(max(elements, 1u))'}", "{f'{self.taps}.0'}"
    ),
    of_kernel("max_pool2d", 'lowest = -inf if data_type.kind == "f" else', 'lowest = 0 if data_type.kind == "f" else'),
    of_kernel("layer_normalization", '{distance} * {distance}", distances', '{distance}", distances'),
    of_kernel(
        "resample2d",
        'mixed = "below * (1.0 - row_weight) + above * row_weight"',
        'mixed = "above * (1.0 - row_weight) + below * row_weight"',
    ),
    of_kernel("triangular", 'i32(i / {columns}u % {rows}u)"', 'i32(i / {columns}u)"'),
    of_kernel("pad", "u32({self.size - 1}i - abs({self.size - 1}i", "u32({self.size}i - abs({self.size - 1}i"),
    of_kernel("concat", "row * {units}u + (at - {start}u)", "row * {units}u + at"),
    of_kernel("reduce_product", 'folding(_kind(node, lowering), "*", 1)', 'folding(_kind(node, lowering), "*", 2)'),
    of_kernel("reduce_l1", 'absolute = "{}" if kind in ("u32", "u64") else "abs({})"', 'absolute = "{}"'),
    of_kernel(
        "reduce_mean",
        'folding("f32", "+", 0, finish=lambda variables: f"{variables[0]} / {count}")',
        'folding("f32", "+", 0, finish=lambda variables: f"{variables[0]}")',
    ),
    of_kernel(
        "reduce_log_sum",
        'finish=lambda variables: f"log_f32({variables[0]})"',
        'finish=lambda variables: f"{variables[0]}"',
    ),
    of_kernel("gemm", "scaled = total if alpha == 1 else f\"{total} * {literal(alpha, 'f32')}\"", "scaled = total"),
    Fault(
        "wgsl-conv2d",
        'f"({image} * {conv.output_channels}u + {channel}) * {conv.pixels}u + {pixel}"',
        'f"({image} * {conv.group_outputs}u + {channel}) * {conv.pixels}u + {pixel}"',
        GPU,
        "test_convolutions",
    ),
    Fault(
        "wgsl-conv_transpose2d",
        '{batch} / {phases[1]}u % {phases[0]}u)"',
        '{batch} / {phases[1]}u)"',
        GPU,
        "test_transposed_convolutions",
    ),
    of_kernel(
        "slice",
        'node.outputs[0].shape, node.options["strides"] or (1,) * len(starts))',
        "node.outputs[0].shape, (1,) * len(starts))",
    ),
    Fault(
        "packed-halves",
        '(({index}) & 1u))) & 0xffffu)"',
        '(({index}) & 1u))))"',
        CASES,
        "wgpu and (reshape or transpose or concat)",
    ),
    Fault(
        "fours-of-any-stride",
        "if not merged.shape or merged.shape[-1] % 4 or merged.strides[-1] != 1:",
        "if not merged.shape or merged.shape[-1] % 4:",
        CASES,
        "wgpu and (add or relu)",
    ),
    Fault(
        "fours-anywhere",
        "if any(number % 4 for number in (*merged.strides[:-1], merged.offset)):",
        "if any(number % 4 for number in merged.strides[:-1]):",
        CASES,
        "wgpu and (add or relu)",
    ),
    Fault(
        "arena-forgets-reads",
        'for buffer in (*kernel.reads, *kernel.writes):\n            if buffer.kind == "block"',
        'for buffer in kernel.writes:\n            if buffer.kind == "block"',
        GPU,
        "arena",
    ),
    Fault(
        "arena-too-small",
        "end = max(offset + intervals[buffer].byte_length",
        "end = max(offset + 0 * intervals[buffer].byte_length",
        GPU,
        "arena",
    ),
    Fault(
        "fuses-outputs",
        "if value in self._written or any(reader not in roots for reader in readers):",
        "if any(reader not in roots for reader in readers):",
        GPU,
        "fusion",
    ),
    Fault(
        "fuses-other-shapes",
        "if any(reader.outputs[0].shape != value.descriptor.shape for reader in readers):",
        "if False:",
        GPU,
        "fusion",
    ),
    Fault(
        "fuses-too-many-buffers",
        "if sizes[root] < MOST_FUSED and len(read) < self._max_buffers:",
        "if sizes[root] < MOST_FUSED:",
        GPU,
        "fusion or fused",
    ),
    Fault(
        "siblings-of-one-bias", 'axis = 0 if product.options.get("b_transpose") else 1', "axis = 1", GPU, "horizontal"
    ),
    Fault("wide-fours", "return self.offset == 0 and all(", "return all(", CASES, "wgpu and (softmax or matmul)"),
    Fault(
        "skinny-steps",
        "return -(-self.matrix.inner // WIDTH)",
        "return self.matrix.inner // WIDTH",
        CASES,
        "wgpu and (matmul or gemm)",
    ),
    Fault("tile-sum", "return waves * self.rows * self.columns / self.rate", "return -waves", GPU, "tiles or products"),
    Fault(
        "numpy-mul",
        "def mul(_node: Node) -> Kernel:\n    return np.multiply",
        "def mul(_node: Node) -> Kernel:\n    return np.divide",
        CASES,
        "numpy and mul",
    ),
    Fault(
        "numpy-div",
        "too_low = (remainder != 0) & ((a < 0) != (b < 0))",
        "too_low = (remainder != 0)",
        CASES,
        "numpy and div",
    ),
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
        "timeline-bytes",
        "_queued_bytes += self._byte_length(entry)",
        "_queued_bytes = self._byte_length(entry)",
        TIMELINES,
    ),
    Fault("trace-without-cause", "if instruments.answering is entry else instruments.call", "", TRACING, "points_to"),
    Fault(
        "trace-out-of-turn", "turn = min(max(since, self._lane_end.get(process, 0)), until)", "turn = since", TRACING
    ),
    Fault("trace-holds-work", "        entry.settled = entry.aborted = None\n", "", TRACING, "holds_neither"),
    Fault("instrument-stays", "        self.remove(instrument)\n        _LOGGER", "        _LOGGER", TRACING, "raises"),
    Fault("timeline-permits", "self._permits -= 1", "self._permits -= 2", TIMELINES),
    Fault(
        "timeline-in-flight",
        "self._answers.popleft()\n            self._in_flight -= 1",
        "self._answers.popleft()",
        TIMELINES,
    ),
    Fault(
        "loss-runs-entries",
        "if self._lost and entry.abortable:\n            return self._answer(entry, None)\n",
        "if self._lost and not entry.abortable:\n            return self._answer(entry, None)\n",
        TIMELINES,
    ),
    Fault(
        "promise-settles-twice",
        'state != "pending":\n            return False',
        'state == "":\n            return False',
        SCRIPT,
    ),
    Fault("accepts-constant-buffers", "if given.constant:", "if False:", SCRIPT),
    Fault("accepts-other-shapes", " or given.shape != wanted.shape:", ":", VALIDATION),
    Fault("accepts-names-twice", "if text in self._input_names:", "if False:", SCRIPT),
    Fault("accepts-foreign-constants", "if buffer._context is not self._context:", "if False:", SCRIPT),
    Fault(
        "words-every-axis",
        "        if axis >= operand.rank:\n            check_axis(",
        "        if True:\n            check_axis(",
        SCRIPT,
    ),
    Fault("words-long-lists", "shown(list(values[: _REPR.maxlist + 1]))", "str(list(values))", SCRIPT),
    Fault("reads-endless-sequences", "islice(values, MAX_ITEMS + 1)", "islice(values, 10 * MAX_ITEMS)", SCRIPT),
    Fault(
        "lets-foreign-errors-out",
        "    except Exception as error:\n        words = error.args",
        "    except TypeError as error:\n        words = error.args",
        SCRIPT,
    ),
    Fault(
        "believes-a-class",
        'if type(buffer) is not MLBuffer:\n            raise TypeError(f"{method}',
        'if not isinstance(buffer, MLBuffer):\n            raise TypeError(f"{method}',
        SCRIPT,
    ),
    Fault("reads-a-gpu", "if device is not None and device[0] == _CPU:", "if device is not None:", SCRIPT),
    Fault(
        "lets-memory-errors-out", "    except MemoryError as error:", "    except ZeroDivisionError as error:", SCRIPT
    ),
    Fault("writes-whole-labels", "{visible(shortened(text, LONGEST))}]", "{visible(text)}]", SCRIPT),
    Fault("asks-for-a-display", 'if has_orders or server.startswith("/"):', "if True:", GPU),
    Fault("always-loads-drivers", "if not _may_have_gpu():", "if False:", GPU),
    Fault("keeps-pending-reads", "pending, self._pending_reads = self._pending_reads, {}", "pending = {}", SCRIPT),
    Fault("shared-device-uncounted", "self._users[device] += 1", "self._users[device] += 0", SHARED_DEVICES),
    Fault("shared-device-lost", "if device is None or is_lost(device):", "if device is None:", SHARED_DEVICES),
    Fault("loss-wakes-nobody", "_LISTENER.wake(reason, device)", "_LISTENER.wake(reason, self)", SHARED_DEVICES),
    Fault(
        "adapter-ambiguous", "if len(fitting) > 1:", "if len(fitting) > 9:", ("spec_tests/on_wgpu/test_adapters.py",)
    ),
    Fault("copy-kernel-shift", "<< (32u - region.shift)", "<< region.shift", COPIES),
    Fault("copy-clears-mark", 'copy, "copy_buffer()", line, is_whole=is_whole)', 'copy, "copy_buffer()")', COPIES),
    Fault("copy-overlap", "begin < target + number and target < begin + number", "begin == target", COPIES),
    Fault("copy-own-buffer", "if source.buffer is target.buffer:", "if False:", COPIES),
    Fault("constant-options", "node.operator.name, operands, options,", "node.operator.name, operands,", CONSTANTS),
    Fault("constant-held-by-nobody", "held += compiled.shared", "held += ()", CONSTANTS),
    Fault("constant-dead", "memory is None or memory.data is None", "memory is None", CONSTANTS),
    Fault("device-reference-stale", "if self._current is lost:", "if False:", SESSIONS, "test_s0_5"),
    Fault("device-reference-wiped", "if self._current is lost:", "if True:", SESSIONS, "test_s0_9"),
    Fault("device-ended-by-any-session", "current.references or self._waiting", "self._waiting", SESSIONS, "test_s0_3"),
    Fault("device-always-preserved", "or self._waiting or self._preserve)", "or True)", SESSIONS, "test_s0_4"),
    Fault("released-graphs-kept", "self._model.release(plan.graph)", "pass", SESSIONS, "by_their_release"),
    Fault(
        "late-graph-kept",
        "promise._on_settled(partial(_destroy, promise))",
        "pass",
        SESSIONS,
        "cancelled_while_it_makes_its_graph",
    ),
    Fault("runs-overtake", "plan is None or self._line.locked() or", "plan is None or", SESSIONS, "overlap"),
    Fault("outputs-overlap", "if np.may_share_memory(place, array):", "if place is array:", SESSIONS, "test_s3_16"),
    Fault("names-unbound", "if known != value:", "if False:", SESSIONS, "one_name_is_one_size"),
    Fault("captures-disposed", "and not tensor.disposed\n        for name", "\n        for name", SESSIONS, "captured"),
    Fault("weights-of-equal-shape", "(value, _digest(value))", "(value, bytes(8))", SESSIONS, "told_apart"),
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
    Fault("saved-unsealed", "not compare_digest(_seal(text, secret), start[-DIGEST_BYTES:])", "False", SAVED),
    Fault(
        "saved-newest-goes", "for _, path, length in sorted(kept):", "for _, path, length in sorted(kept)[::-1]:", SAVED
    ),
    Fault("saved-place", "BufferRange(memory[index], offset, length)", "BufferRange(memory[index], 0, length)", SAVED),
    Fault("saved-constants-apart", "(plan.identity, plan.byte_length,", "(None, plan.byte_length,", SAVED),
    Fault("javascript-bigint", '{"bigint": int, "number": float}', '{"bigint": float, "number": float}', JAVASCRIPT),
    Fault("javascript-type-error", "name === 'TypeError' ? new", "name === 'RangeError' ? new", JAVASCRIPT),
    Fault("look-ends-early", "wait, ffi.NULL) & 0xFF)", "wait, ffi.NULL))", ("spec_tests/on_wgpu/test_threads.py",)),
    Fault("engine-optimizer", '"DivMulFusion": "It', '"NoSuchFusion": "It', ENGINE, "drawing"),
    Fault(
        "engine-negative-infinity", 'body.node("Max", body.cast(input, "float32"), LEAST_GELU)', "input", ENGINE, "gelu"
    ),
    Fault("engine-stale-binding", "if before is buffer:", "if before is not None:", ENGINE, "written_between"),
    Fault("engine-holds-buffers", "            data.unbind()\n", "            pass\n", ENGINE, "destroyed_buffer"),
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
    Fault("interleavings-forget-loss", "(device.done, device.done_when_lost)", "device.done", INTERLEAVINGS),
    Fault("interleavings-without-turns", "if self._clock() != since:", "if False:", INTERLEAVINGS),
    Fault(
        "interleavings-miss-hangs",
        "wrong = failed_action(execution) or hang(execution)",
        "wrong = failed_action(execution)",
        INTERLEAVINGS,
    ),
    Fault("label-ends-the-page", '.replace("<", "\\\\u003c")', "", PAGE),
    Fault(
        "merged-and-lost", "first = next;\n  }\n}\n\nfunction add", "first = next + 1;\n  }\n}\n\nfunction add", PAGE
    ),
    Fault(
        "rejected-by-itself", "partsOf(trace, item.args.cause)?.caused", "partsOf(trace, item.operation)?.caused", PAGE
    ),
    Fault(
        "interleavings-scopes-skip-turns",
        "with trio.CancelScope(shield=True):\n                await self._turn.wait()",
        "with trio.CancelScope():\n                await self._turn.wait()",
        INTERLEAVINGS,
    ),
    Fault(
        "places-lost",
        "node.options, node.outputs, node.label, node.drawn)",
        "node.options, node.outputs, node.label)",
        PICTURES,
    ),
    Fault(
        "kernels-unframed",
        "for node in nodes for place in node.drawn}))",
        "for node in nodes[:1] for place in node.drawn}))",
        PICTURES,
    ),
    Fault("boxes-overlap", "offset += vertex.size.width + (", "offset += (", PICTURES),
    Fault("entities-drawn", 'text.replace("&", "&amp;").replace', "text.replace", PICTURES),
    Fault("kernel-waits-counted", "began = max(begin, ended)", "began = begin - 1", TIMINGS, "one_clock"),
    Fault("epilogue-untold", "            self._fused.append(node)\n", "", TIMINGS, "told_once"),
    Fault("flops-twice", "attrs.evolve(node, flops=0)", "node", TIMINGS, "several_kernels"),
    Fault("flops-of-groups", 'filters.shape[node.options["filter_layout"].index("o")]', "filters.shape[0]", TIMINGS),
    Fault("profile-keeps-memory", "            await done(device.release(storage))", "            pass", PROFILE),
    Fault("finite-forgets", "if last_read.get(value, -1) >= begin", "if last_read.get(value, -1) > begin", PROFILE),
    Fault("javascript-timers", "if self._live.get(timer) == count:", "if True:", JAVASCRIPT),
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
    Fault("trace-without-cause", "if instruments.answering is entry else instruments.call", "", TRACING, "points_to"),
    Fault(
        "trace-out-of-turn", "turn = min(max(since, self._lane_end.get(process, 0)), until)", "turn = since", TRACING
    ),
    Fault("trace-holds-work", "        entry.settled = entry.aborted = None\n", "", TRACING, "holds_neither"),
    Fault("instrument-stays", "        self.remove(instrument)\n        _LOGGER", "        _LOGGER", TRACING, "raises"),
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
]
