"""Faults of sessions, saved graphs, proposals, JavaScript, the command, traces, profiles and tools."""

from contextlib import suppress

import attrs

from spec_tests.labs.faults.records import Faults

RUNTIME = "spec_tests/runtime"
SAVED = "spec_tests/saved_graphs/test_folder.py"
JAVASCRIPT = "spec_tests/javascript"
COMMAND = "spec_tests/command"
TRACING = "spec_tests/tracing"
SUBGRAPHS = "spec_tests/script_timeline/test_subgraphs.py"
BINDINGS = "webnn_py.javascript.node_files.own_source"

FAULTS = Faults()


# --- sessions ----------------------------------------------------------------------------------------------------


@FAULTS.at("webnn_py.runtime.contexts.ContextOwner.end_unused", f"{RUNTIME}/test_s0_device_lifetime.py")
def device_is_never_ended(end_unused, owner):
    pass


@FAULTS.at("webnn_py.runtime.contexts.ContextReference.release", f"{RUNTIME}/test_s0_device_lifetime.py")
def device_ends_with_any_session(release, hold):
    hold.opened.references = 1
    release(hold)


@FAULTS.at("webnn_py.runtime.contexts.ContextOwner._forget", f"{RUNTIME}/test_s0_device_lifetime.py")
def lost_device_is_used_again(forget, owner, lost):
    pass


@FAULTS.at("webnn_py.runtime.runs.BoundGraph.is_ready", RUNTIME, only="overlap or session")
def bound_graph_is_always_ready(is_ready, bound, request):
    return True


@FAULTS.at(
    "webnn_py.runtime.bindings.check_distinct", f"{RUNTIME}/test_s3_binding.py", f"{RUNTIME}/test_s3_refusals.py"
)
def outputs_lie_where_inputs_do(check, feeds, targets, in_place):
    pass


@FAULTS.at("webnn_py.runtime.graph_cache._contents", RUNTIME, only="cache or kept or told_apart")
def kept_graphs_have_the_values_of_others(contents, value):
    return ""


@FAULTS.at("webnn_py.runtime.loop_thread.LoopThread.keep", f"{RUNTIME}/test_program_end.py", in_processes=True)
def program_leaves_environments_open(keep, loop, thing):
    pass


# --- saved graphs ------------------------------------------------------------------------------------------------


@FAULTS.at("webnn_py.saved_graphs.sealed._seal", SAVED)
def saved_graphs_are_not_sealed(seal, text, secret):
    return bytes(32)


@FAULTS.at("webnn_py.saved_graphs.sealed.Label.check", SAVED)
def saved_graphs_are_of_any_device(check, label, device):
    pass


@FAULTS.at("webnn_py.saved_graphs.folder.GraphFolder._make_room", SAVED)
def saved_graphs_take_any_room(make_room, folder, size, target):
    pass


# --- sub-graphs --------------------------------------------------------------------------------------------------


@FAULTS.at("webnn_py.extensions.subgraph_calls._structure", SUBGRAPHS)
def names_of_sub_graphs_are_trusted(structure, graph):
    return {}


@FAULTS.at("webnn_py.extensions.subgraph_calls._option", SUBGRAPHS)
def options_of_sub_graphs_are_not_compared(option, value):
    return ""


@FAULTS.at("webnn_py.extensions.subgraph_calls._DeviceBuilder._check", SUBGRAPHS)
def every_device_has_every_named_operator(check, builder, operator, arguments):
    pass


# --- JavaScript --------------------------------------------------------------------------------------------------

FAULTS.in_text(
    "javascript-type-error-is-another",
    BINDINGS,
    ("calls.js",),
    "name === 'TypeError' ? new own.TypeError",
    "name === 'RangeError' ? new own.TypeError",
    f"{JAVASCRIPT}/test_conversions.py",
    "spec_tests/wpt/test_known_answers.py",
    "spec_tests/wpt/test_own_files.py",
)


@FAULTS.at("webnn_py.javascript.allowed_calls.AllowedCalls.check", f"{JAVASCRIPT}/test_hostile_messages.py")
def javascript_calls_anything(check, allowed, *call):
    pass


# --- the command -------------------------------------------------------------------------------------------------


@FAULTS.at("webnn_py.command.pictures._read", f"{COMMAND}/test_pictures.py")
def pictures_are_stretched(read, path, mode, size):
    picture, own = read(path, mode, ("width", "height"))
    wanted = (given if isinstance(given, int) else its for given, its in zip(size, own, strict=True))
    return picture.resize(tuple(wanted)), own


@FAULTS.at("webnn_py.command.comparison.difference", COMMAND, only="finite")
def mismatches_are_not_counted(difference, name, ours, theirs):
    return attrs.evolve(difference(name, ours, theirs), mismatches=0)


@FAULTS.at("webnn_py.written_files._place", f"{COMMAND}/test_written_files.py")
def data_stay_without_their_model(place, replaced):
    for part, path in replaced.items():
        part.replace(path)


@FAULTS.at("webnn_py.command.declared.Shapes._set", COMMAND, only="share or dimension or sizes")
def one_dimension_has_two_sizes(set_, shapes, dimension, size, what):
    shapes._sizes[dimension] = size, what


# --- traces, profiles and pictures -------------------------------------------------------------------------------


@FAULTS.at("webnn_py.core.unreported_errors.user_line", TRACING, only="line")
def trace_shows_lines_of_the_library(user_line, frame):
    return None if frame is None else (frame.f_code, frame.f_lasti)


@FAULTS.at("webnn_py.tracing.operation.Operations.ended", TRACING, only="tracked")
def trace_holds_what_has_ended(ended, operations, operation):
    pass


@FAULTS.at("webnn_py.core.api.observers.Observers.notify", "spec_tests/script_timeline/test_observers.py")
def observer_that_raises_stays(notify, observers, hook, *what):
    for _, method in observers.hooks[hook]:
        with suppress(Exception):
            method(*what)


@FAULTS.at("webnn_py.tracing.chrome._placed", TRACING, only="kernel")
def kernels_begin_before_their_operation(placed, kernels, since, until):
    for kernel, start, length in placed(kernels, since, until):
        yield kernel, start - since, length


@FAULTS.at("webnn_py.devices.flops.flops", "spec_tests/device/test_flops.py")
def flops_are_counted_twice(flops, node):
    return 2 * flops(node)


@FAULTS.at("webnn_py.extensions.browser_rules._strides_beyond_sizes", "spec_tests/browser_profiles")
def browser_refuses_a_stride_as_long_as_a_slice(strides, node):
    pairs = zip(node.options["strides"] or (), node.options["sizes"], strict=False)
    return any(stride >= size for stride, size in pairs)


@FAULTS.at("webnn_py.testing.ending.hang", "spec_tests/testing")
def interleavings_miss_what_hangs(hang, execution):
    return None


@FAULTS.at("webnn_py.web_export.literals.number", "spec_tests/web_export")
def exported_page_loses_negative_zero(number, value):
    return number(value + 0)
