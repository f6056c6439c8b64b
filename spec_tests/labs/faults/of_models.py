"""Faults of ONNX models: of reading, importing, simplifying and exporting them."""

import attrs

from spec_tests.labs.faults.records import Faults

ONNX = "spec_tests/onnx_models/**"
EXPORT = "spec_tests/onnx_models/export"
MODELS = "webnn_py.onnx_models"
RULES = "webnn_py.onnx_models.rules"
EXPORTER = "webnn_py.onnx_export"

FAULTS = Faults()


# --- reading -----------------------------------------------------------------------------------------------------


@FAULTS.at(f"{MODELS}.reading.external_data._inside", f"{ONNX}/test_external_data.py")
def external_data_lie_anywhere(inside, subject, location, folders):
    return (folders.searched[0] / location).resolve()


@FAULTS.at(f"{MODELS}.limits.Expenses.add_bytes", f"{ONNX}/test_limits.py", f"{ONNX}/test_external_data.py")
def bytes_that_were_spent_are_forgotten(add_bytes, expenses, spent):
    expenses.check_bytes(spent)


@FAULTS.at(f"{MODELS}.reading.functions.check_calls", f"{ONNX}/test_functions.py", f"{ONNX}/test_limits.py")
def functions_call_themselves(check_calls, model, limits):
    pass


# --- rules -------------------------------------------------------------------------------------------------------


@FAULTS.at(f"{RULES}.movement.reshape", f"{ONNX}/test_movement.py")
def reshape_takes_a_zero_for_a_size(reshape, context, data, shape, *, allowzero=0):
    return reshape(context, data, shape, allowzero=1)


@FAULTS.at(f"{RULES}.recurrent._own_lengths", f"{ONNX}/test_recurrent.py", f"{ONNX}/test_steps.py")
def lengths_of_sequences_are_ignored(own_lengths, context, x, sequence_lens):
    return None


@FAULTS.at(f"{MODELS}.rule_helpers.scaled_attention.window_bias", f"{ONNX}/test_attention.py")
def attention_forgets_the_past(window_bias, context, q, keys, *given):
    return window_bias(context, q, keys, 0, given[-1])


@FAULTS.at(f"{RULES}.quantized_products._per_row", f"{ONNX}/test_quantized_products.py")
def zero_points_of_rows_are_ignored(per_row, context, zero_point):
    return None


@FAULTS.at(f"{MODELS}.rule_helpers.integer_products.bounds", f"{ONNX}/test_quantized_products.py")
def last_terms_of_integer_sums_are_lost(bounds, length, largest_term, largest_sum):
    return bounds(max(1, length - 1), largest_term, largest_sum)


@FAULTS.at(f"{MODELS}.conversion.control_flow._sweep", f"{ONNX}/test_control_flow.py")
def scan_goes_forward_alone(sweep, call, count, directions):
    made = sweep(call, count, directions)
    return attrs.evolve(made, backwards=[0] * len(made.backwards), prepended=[0] * len(made.prepended))


@FAULTS.at(f"{MODELS}.conversion.loops._SortedBody._scanned", "spec_tests/on_onnxruntime/test_imported_loops.py")
def loops_go_forward_alone(scanned, body, node, indices):
    return scanned(body, node, indices)[0], 0


@FAULTS.at(f"{MODELS}.conversion.control_flow._chosen", f"{ONNX}/test_branches_at_run_time.py")
def branches_are_exchanged(chosen, context, truth, one, other):
    return chosen(context, truth, other, one)


# --- composites and simplification -------------------------------------------------------------------------------


@FAULTS.at("webnn_py.devices.composites.drawn_out.spelled_out", f"{ONNX}/test_composites.py")
def composites_are_written_down(spelled_out, graph):
    return graph


@FAULTS.at(f"{MODELS}.simplification.known_values.KnownValues._chosen_branch", f"{ONNX}/test_simplification.py")
def simplification_takes_the_other_branch(chosen, walk, node):
    other = type(node)()
    other.CopyFrom(node)
    for attribute in other.attribute:
        attribute.name = {"then_branch": "else_branch", "else_branch": "then_branch"}.get(
            attribute.name, attribute.name
        )
    return chosen(walk, other)


@FAULTS.at(f"{MODELS}.simplification.known_values.KEPT", f"{ONNX}/test_simplification.py")
def simplification_unpacks_weights(kept):
    return frozenset()


# --- exporting ---------------------------------------------------------------------------------------------------


@FAULTS.at(f"{EXPORTER}.rules.conversion._where_beyond", f"{EXPORT}/test_cases.py", only="oracle")
def exported_cast_wraps(where_beyond, *given):
    return given[-1]


@FAULTS.at(f"{EXPORTER}.rules.recurrent._in_order", f"{EXPORT}/test_cases.py", only="oracle")
def exported_gates_stay_in_order(in_order, *given):
    layout = given[-2]
    return in_order(*given[:-1], layout)


@FAULTS.at(f"{EXPORTER}.function_digests.digest_of", f"{ONNX}/test_webnn_operator_calls.py", only="was_changed")
def exported_functions_are_changed_unnoticed(digest_of, function):
    return "0" * 32


@FAULTS.at(f"{EXPORTER}.model_export.constant_key", EXPORT, only="constant or shared or weights or function")
def exported_constants_of_one_shape_are_one(constant_key, key, array):
    return str(array.dtype), array.shape


# --- generation ---------------------------------------------------------------------------------------------------

GENERATION = "spec_tests/runtime/generation"
ON_NUMPY = "numpy or conversations or choices"


@FAULTS.at("webnn_py.runtime.generation.steps.step_of", f"{GENERATION}/test_against_onnxruntime.py", only=ON_NUMPY)
def a_prompt_has_the_logits_of_what_fills_it_up(step_of, sequences, known, capacity):
    step = step_of(sequences, known, capacity)
    step[:, 1] = step.shape[1] - 3
    return step


@FAULTS.at(
    "webnn_py.runtime.generation.decoder.DecoderSource._mask",
    f"{GENERATION}/test_against_onnxruntime.py",
    f"{GENERATION}/test_conversations.py",
    only=ON_NUMPY,
)
def all_of_the_cache_is_seen(mask, source, builder, known, new):
    return builder.greater_or_equal(mask(source, builder, known, new), builder.constant(0, data_type="uint8"))


@FAULTS.at(
    "webnn_py.runtime.generation.growing_caches.PastLengths.replacing",
    f"{GENERATION}/test_encoder_decoders.py",
    only="tokens_are_those",
)
def positions_are_counted_from_the_capacity(replacing, lengths, builder, counted, begin):
    return {}


@FAULTS.at(
    "webnn_py.runtime.generation.growing_caches.cache_places",
    f"{GENERATION}/test_encoder_decoders.py",
    only="tokens_are_those",
)
def new_keys_are_written_to_the_first_row(cache_places, builder, counted, heads):
    return cache_places(builder, builder.mul(counted, builder.constant(0, data_type="int32")), heads)


@FAULTS.at("webnn_py.runtime.generation.tokens.TextStream._overlap", f"{GENERATION}/test_choices.py")
def stops_within_a_token_alone_end_a_text(overlap, stream, stop):
    return 0


@FAULTS.at("webnn_py.runtime.generation.sampling.Sampling.adjusted", GENERATION, only="penalt")
def penalties_are_forgotten(adjusted, sampling, logits, earlier, banned):
    return logits
