"""Faults of WebGPU's kernels, and of the passes and the run time that make and run them."""

import attrs

from spec_tests.labs.faults.records import Faults

CASES = "spec_tests/operators/test_cases.py"
GPU = "spec_tests/on_wgpu"
KERNELS = "webnn_py.devices.wgpu.kernels"
CODEGEN = "webnn_py.devices.wgpu.codegen"
PASSES = "webnn_py.devices.wgpu.passes"
RUNTIME = "webnn_py.devices.wgpu.runtime"
SNIPPETS = f"{CODEGEN}.snippets.SNIPPETS"

FAULTS = Faults()


# --- kernels -----------------------------------------------------------------------------------------------------


@FAULTS.at(f"{KERNELS}.arithmetic.sub", CASES, only="wgpu and sub")
def gpu_sub_is_reversed(sub, node, a, b):
    return sub(node, b, a)


@FAULTS.at(f"{KERNELS}.arithmetic.mul", f"{GPU}/test_snippets.py", only="zero_times")
def gpu_zero_times_infinity_is_zero(mul, node, a, b):
    return f"{a} * {b}"


@FAULTS.at(f"{KERNELS}.arithmetic.is_halved_by_inverse", f"{GPU}/test_rounding_once.py", GPU, only="quotients")
def gpu_quotients_are_rounded_twice(is_halved, divisor):
    return True


@FAULTS.at(f"{KERNELS}.activation.positive", CASES, only="wgpu and (relu or elu)")
def gpu_relu_propagates_no_nan(positive, x):
    return f"max({x}, 0.0)"


@FAULTS.at(f"{KERNELS}.indexing.CoordinateIndices.candidates", CASES, only="wgpu and scatter")
def gpu_first_update_wins(candidates, places):
    return candidates(places)[::-1]


@FAULTS.at(f"{CODEGEN}.reduction.combiners.extreme", CASES, only="wgpu and reduce_m")
def gpu_extreme_loses_nan(extreme, kind, function):
    combiner = extreme(kind, function)
    return attrs.evolve(combiner, finish=lambda variables: [variables[0]])


@FAULTS.at(f"{CODEGEN}.reduction.combiners.index_of_extreme", CASES, only="wgpu and arg_m")
def gpu_last_of_equal_extremes(place, kind, index_kind, *, highest):
    combiner = place(kind, index_kind, highest=highest)

    def absorb(variables, items, positions):
        more = ">" if highest else "<"
        return [line.replace(f"key {more} ", f"key {more}= ") for line in combiner.absorb(variables, items, positions)]

    return attrs.evolve(combiner, absorb=absorb)


@FAULTS.at(f"{CODEGEN}.gemm.tile_store.TileStore._put", GPU, only="tiled")
def gpu_last_column_of_a_tile_is_left_out(put, store, tag, row, column):
    return [f"if ({column} + 1u != {store._plan.columns}u) {{ {line} }}" for line in put(store, tag, row, column)]


@FAULTS.at(f"{CODEGEN}.gemm.gemv_tiling.GemvTiling.steps", GPU, CASES, only="gemv or (wgpu and matmul)")
def gpu_last_step_of_a_gemv_is_left_out(steps, plan):
    return max(1, steps(plan) - 1)


@FAULTS.at(f"{CODEGEN}.convolution.winograd.transform_products", f"{GPU}/test_winograd.py")
def gpu_winograd_results_change_places(transform, products):
    return transform(products)[::-1]


@FAULTS.at(f"{CODEGEN}.recurrence.problem.Recurrence.time", f"{GPU}/test_recurrence.py")
def gpu_backward_network_runs_forward(time, network, step, direction):
    return step


@FAULTS.at(f"{CODEGEN}.attention.operands.FusedOperands.factor", f"{GPU}/test_attention.py")
def gpu_attention_divides_by_too_much(factor, operands, bindings, row, *of_row):
    highest, total = of_row
    return factor(operands, bindings, row, highest, f"({total} + 0.5)")


@FAULTS.at(
    f"{CODEGEN}.attention.cached.CachedOperands.score_functions", f"{GPU}/test_cached_attention.py", only="prompts"
)
def gpu_queries_see_the_key_behind_their_own(functions, operands, bindings):
    return [text.replace("let last = begin", "let last = 1 + begin") for text in functions(operands, bindings)]


@FAULTS.at(f"{CODEGEN}.gemm.four_bit_tiling.FourBitTiling.common_point", f"{GPU}/test_four_bit_gemv.py")
def gpu_common_zero_point_is_that_of_other_bits(point, plan):
    return None if point(plan) is None else point(plan) ^ 1


@FAULTS.at("webnn_py.devices.wgpu.records.layout.Layout.vec4s", f"{GPU}/test_layout.py", CASES, only="layout or slice")
def gpu_vec4s_begin_anywhere(vec4s, layout):
    made = vec4s(attrs.evolve(layout, offset=0))
    return None if made is None else attrs.evolve(made, offset=layout.offset // 4)


@FAULTS.at("webnn_py.devices.wgpu.records.element.Element._half_byte", "spec_tests/operators/test_four_bits.py")
def gpu_four_bits_change_places(half_byte, element, word, shift):
    return half_byte(element, word, f"({shift} ^ 4u)")


# --- passes ------------------------------------------------------------------------------------------------------


@FAULTS.at(f"{PASSES}.arena._intervals", f"{GPU}/test_arena.py")
def gpu_arena_forgets_readers(intervals, kernels):
    return intervals([attrs.evolve(kernel, reads=()) for kernel in kernels])


@FAULTS.at("webnn_py.devices.arena.Interval.overlaps", "spec_tests/device/test_arena.py")
def intervals_end_too_soon(overlaps, interval, other):
    return interval.first < other.last and other.first < interval.last


@FAULTS.at(f"{PASSES}.kernel_groups.ElementwiseGroups._contains_readers", GPU, only="epilogue or fus or residual")
def gpu_epilogue_hides_what_others_read(contains, groups, node, value):
    return True


# --- run time ----------------------------------------------------------------------------------------------------


@FAULTS.at(f"{RUNTIME}.uploads.UploadRing.submitted", f"{GPU}/test_transfers.py")
def gpu_mapped_memory_is_not_used_again(submitted, ring, buffer):
    pass


@FAULTS.at(f"{RUNTIME}.uploads.sizes_of_slices", f"{GPU}/test_transfers.py")
def gpu_last_slice_of_an_upload_is_lost(sizes, byte_length):
    return sizes(byte_length)[:-1] or sizes(byte_length)


@FAULTS.at(
    f"{RUNTIME}.buffer_copies.BufferCopies.needs_kernel",
    f"{GPU}/test_buffer_copies.py",
    "spec_tests/device/test_copies.py",
)
def gpu_copies_of_single_bytes_go_by_words(needs_kernel, source, target):
    return False


@FAULTS.at(f"{RUNTIME}.shared_devices.SharedDevices.give_back", f"{GPU}/test_shared_devices.py")
def gpu_device_ends_with_its_first_context(give_back, shared, device):
    shared._users[device] = 1
    give_back(shared, device)


@FAULTS.at(f"{RUNTIME}.device_loss._Listener.wake", f"{GPU}/test_shared_devices.py", f"{GPU}/test_device_loss.py")
def gpu_loss_wakes_nobody(wake, listener, reason, device=None):
    pass


@FAULTS.at(f"{RUNTIME}.executable.identities_of_forms", "spec_tests/device/test_shared_constants.py")
def gpu_forms_of_constants_are_not_shared(identities, kernels, constants):
    return dict.fromkeys(identities(kernels, constants))
