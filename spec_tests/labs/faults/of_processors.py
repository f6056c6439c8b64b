"""Faults of the devices that compute on the processor, and of the rewriting that they share: numpy and onnxruntime."""

from functools import partial

import numpy as np

from spec_tests.labs.faults.records import Faults
from webnn_py.onnx_export.guards import Must

CASES = "spec_tests/operators/test_cases.py"
NUMPY = "spec_tests/on_numpy"
ENGINE = "spec_tests/on_onnxruntime"
FOLDING = "spec_tests/rewriting/test_convolution_folding.py"
KERNELS = "webnn_py.devices.numpy.kernels"
ROUTINES = "webnn_py.devices.numpy.routines"
ANALYSES = "webnn_py.devices.onnxruntime.analyses"
PASSES = "webnn_py.devices.onnxruntime.passes"
REWRITING = "webnn_py.devices.rewriting"
GUARD = "webnn_py.onnx_export.body.Body.guard"

FAULTS = Faults()


# --- numpy -------------------------------------------------------------------------------------------------------


@FAULTS.at(f"{KERNELS}.arithmetic.truncated_division", CASES, only="numpy and div")
def numpy_integers_are_divided_down(divide, a, b, output, remainder):
    np.floor_divide(a, b, out=output)


@FAULTS.at(f"{KERNELS}.arithmetic.choose_into", CASES, only="numpy and (max or min)")
def numpy_extreme_loses_nan(choose_into, choose, a, b, output):
    choose_into({np.maximum: np.fmax, np.minimum: np.fmin}[choose], a, b, output)


@FAULTS.at(f"{KERNELS}.indexing.positions", CASES, only="numpy and gather")
def numpy_index_does_not_count_from_the_end(positions, indices, size, counted):
    return positions(np.maximum(indices, 0), size, counted)


@FAULTS.at(f"{KERNELS}.normalization.Normalization._means", CASES, only="numpy and layer_normalization")
def numpy_means_are_those_of_all_groups(means, normalization, groups):
    return np.full_like(means(normalization, groups), groups.mean())


@FAULTS.at(f"{ROUTINES}.im2col.blanked", CASES, NUMPY, only="numpy and conv2d or windows")
def numpy_padding_keeps_what_was_there(blanked, *parts):
    return [partial(part.fill, 1) for part in parts]


@FAULTS.at(f"{ROUTINES}.float16._narrow", f"{NUMPY}/test_float16.py")
def numpy_float16_is_cut_off(narrow, x, y):
    narrow((x.view(np.int32) & ~0x1FFF).view(np.float32), y)


# --- both, and rewriting -----------------------------------------------------------------------------------------


@FAULTS.at("webnn_py.devices.rewriting.convolution_folding._affine_map", FOLDING)
def folding_adds_the_mean(affine_map, node, contents):
    affine = affine_map(node, contents)
    return None if affine is None else (affine[0], -affine[1])


@FAULTS.at("webnn_py.devices.shared_constants.SharedConstants.find", "spec_tests/device/test_shared_constants.py")
def constants_are_shared_after_their_release(find, shared, identity):
    return None if identity is None else shared._memory.get(identity)


@FAULTS.at(f"{REWRITING}.pattern.is_number", f"{ENGINE}/test_function_fusion.py")
def rules_match_any_number(is_number, value, expected):
    return True


@FAULTS.at(f"{REWRITING}.rule.RewriteRule.refusal", f"{ENGINE}/test_function_fusion.py")
def rules_apply_whatever_else_reads(refusal, rule, node, match, uses):
    return None


@FAULTS.at(f"{REWRITING}.passes.PassManager._chosen", f"{ENGINE}/test_passes.py", f"{ENGINE}/test_lines.py")
def passes_run_for_every_target(chosen, manager, target):
    return list(manager.passes)


# --- onnxruntime -------------------------------------------------------------------------------------------------


@FAULTS.at("webnn_py.devices.onnxruntime.session.BoundSession.is_doubtful", ENGINE, only="guard or quickly_again")
def guards_are_always_passed(is_doubtful, session):
    return False


def _without_guard(must, guard, body, x, given=Must.BE_NUMBERS, **more):
    if given is not must:
        guard(body, x, given, **more)


for _must, _name, _only in (
    (Must.BE_FINITE, "guards-let-infinities-pass", "every_number or exp_is_summed_up or not_be_finite"),
    (Must.BE_ABOVE_ZERO, "guards-let-steps-of-zero-pass", "every_number or too_large"),
    (Must.BE_NONE_OR_SOME, "guards-let-tiny-amounts-pass", "so_small"),
):
    FAULTS.at(GUARD, ENGINE, only=_only, name=_name)(partial(_without_guard, _must))


@FAULTS.at("webnn_py.onnx_export.guards._whole", ENGINE, only="several_means or joins")
def guard_of_the_first_tensor_alone(whole, tensors, axis, add):
    return tensors[0]


@FAULTS.at(
    f"{ANALYSES}.unneeded_guards.nodes_with_indices_in_range",
    f"{ENGINE}/test_index_ranges.py",
    f"{ENGINE}/test_checked_indices.py",
)
def indices_are_taken_to_be_in_range(in_range, graph, ranges):
    return frozenset(node for node in graph.nodes if "indices" in node.operands)


@FAULTS.at(f"{ANALYSES}.quantized_gates.quantized_gates", f"{ENGINE}/test_quantized_gates.py")
def every_sigmoid_is_a_gate(gates, graph):
    return frozenset(node.results[0] for node in graph.nodes if node.operator.name == "sigmoid")


@FAULTS.at(f"{ANALYSES}.unneeded_guards.finite_nodes", ENGINE, only="bounded or may_not_be_finite or every_number")
def operands_are_taken_to_be_bounded(finite, graph, ranges, contents):
    return frozenset(graph.nodes)


@FAULTS.at(f"{PASSES}.integer_products._largest_column", ENGINE, only="not_known or integer or mean_something")
def integer_products_round_their_sums(largest, shifted, contents, most):
    return 0


@FAULTS.at(f"{PASSES}.int8_row_order.MOST", f"{ENGINE}/test_int8_networks.py")
def pairs_of_weights_saturate(most):
    return 140


@FAULTS.at(f"{PASSES}.loop_steps._waits_for", f"{ENGINE}/test_loop_rerolling.py")
def loops_wait_for_themselves(waits_for, values, nodes):
    return False


@FAULTS.at(f"{PASSES}.reductions_before_reshapes.broadcast_shape", ENGINE, only="reshape")
def reshapes_pass_whatever_is_broadcast(broadcast_shape, small, shape, before):
    return small


@FAULTS.at("webnn_py.devices.onnxruntime.session.Binding.holds", ENGINE, only="written_between or same_inputs")
def stale_buffers_stay_bound(holds, binding, inputs, outputs):
    return bool(binding.outputs) or holds(binding, inputs, outputs)


@FAULTS.at("webnn_py.devices.onnxruntime.session.HostBuffer.unbind", ENGINE, only="destroyed_buffer or spare")
def destroyed_buffers_stay_bound(unbind, buffer):
    pass


@FAULTS.at("webnn_py.devices.composites.tree_ensemble.TREE_ENSEMBLE.decomposition", f"{ENGINE}/test_tree_ensembles.py")
def trees_pass_over_nan(by_levels, builder, input, *, nodes, **others):
    return by_levels(builder, input, nodes=nodes * [1, 1, 1, 1, 0], **others)


@FAULTS.at("webnn_py.devices.worker_thread._is_quiet", "spec_tests/device/test_worker_thread.py")
def runs_block_other_tasks(is_quiet):
    return True
