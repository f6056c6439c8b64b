"""Faults of timelines, promises, buffers and graphs."""

from spec_tests.labs.faults.records import Faults

DEVICE_TIMELINE = "spec_tests/device_timeline"
SCRIPT_TIMELINE = "spec_tests/script_timeline"

FAULTS = Faults()


@FAULTS.at(
    "webnn_py.core.timelines.timeline.Timeline.enqueue", DEVICE_TIMELINE, SCRIPT_TIMELINE, only="bytes or capacity"
)
def bytes_of_the_last_entry_alone(enqueue, timeline, entry):
    enqueue(timeline, entry)
    timeline._queued_bytes = entry.held_bytes


@FAULTS.at("webnn_py.core.timelines.timeline.Timeline.enqueue", SCRIPT_TIMELINE, only="order or reads or writ")
def entries_overtake(enqueue, timeline, entry):
    enqueue(timeline, entry)
    timeline._queue.rotate(1)


@FAULTS.at("webnn_py.core.timelines.timeline.Timeline.run_waiting", DEVICE_TIMELINE, SCRIPT_TIMELINE, only="paused")
def awaiting_runs_a_paused_timeline(run_waiting, timeline):
    permits, timeline._permits = timeline._permits, None
    timeline._is_woken = True
    run_waiting(timeline)
    timeline._permits = permits


@FAULTS.at(
    "webnn_py.core.timelines.device_timeline.DeviceTimeline._reads", DEVICE_TIMELINE, SCRIPT_TIMELINE, only="long"
)
def late_timeline_goes_on(reads, timeline, entry):
    return True


@FAULTS.at("webnn_py.core.timelines.device_timeline.DeviceTimeline.step", DEVICE_TIMELINE, SCRIPT_TIMELINE, only="step")
async def steps_one_too_many(step, timeline, count=1):
    return await step(timeline, count + 1 if isinstance(count, int) and count > 0 else count)


@FAULTS.at("webnn_py.core.timelines.device_timeline.DeviceTimeline.lose", f"{SCRIPT_TIMELINE}/test_destroy_table.py")
def loss_leaves_promises_pending(lose, timeline, why):
    for entry in timeline.entries():
        entry.aborted = None
    lose(timeline, why)


@FAULTS.at(
    "webnn_py.core.timelines.device_timeline.DeviceTimeline._run_entry", DEVICE_TIMELINE, SCRIPT_TIMELINE, only="los"
)
def lost_context_runs_what_is_queued(run, timeline, entry):
    lost, timeline._lost = timeline._lost, False
    try:
        return run(timeline, entry)
    finally:
        timeline._lost = lost


@FAULTS.at(
    "webnn_py.core.api.release_queue.ReleaseQueue._operation", DEVICE_TIMELINE, SCRIPT_TIMELINE, only="los or release"
)
def releases_are_dropped_on_loss(operation, releases, handle, **options):
    made = operation(releases, handle, **options)
    made.abortable = True
    return made


@FAULTS.at("webnn_py.core.api.buffer.MLBuffer._destroy", SCRIPT_TIMELINE, only="destroy")
def release_before_pending_reads_are_rejected(destroy, buffer):
    if not buffer._destroyed:
        buffer._pending_reads = {}
    destroy(buffer)


@FAULTS.at("webnn_py.core.api.context.MLContext._settle_read", SCRIPT_TIMELINE, only="destroy or out")
def read_settles_after_destroy(settle, context, promise, buffer, *given):
    if promise._state != "pending":
        promise._state = "pending"
        buffer._pending_reads[promise] = None
    settle(context, promise, buffer, *given)


@FAULTS.at("webnn_py.core.api.context.MLContext._lose", SCRIPT_TIMELINE, only="los or destroy")
def loss_is_resolved_twice_with_another_message(lose, context, message):
    context._lost_message = None
    lose(context, message)


@FAULTS.at("webnn_py.core.timelines.promise.MLPromise._settle", SCRIPT_TIMELINE + "/test_promise.py")
def promise_settles_twice(settle, promise, state, outcome):
    promise._state = "pending"
    return settle(promise, state, outcome)


@FAULTS.at("webnn_py.core.timelines.promise.MLPromise._error", SCRIPT_TIMELINE + "/test_promise.py")
def awaiters_share_an_error(error, promise):
    return promise._outcome


@FAULTS.at("webnn_py.core.timelines.promise.MLPromise._mark_reported", SCRIPT_TIMELINE, only="await or warn or unheard")
def awaited_rejection_is_reported(hear, promise):
    pass


@FAULTS.at("webnn_py.core.timelines.script_timeline.ScriptTimeline.answer", SCRIPT_TIMELINE, only="no_answer or paused")
def answers_while_the_script_is_paused(answer, timeline, entry):
    permits, timeline._permits = timeline._permits, None
    answer(timeline, entry)
    timeline._permits = permits


@FAULTS.at("webnn_py.core.api.argument_checks.storages", SCRIPT_TIMELINE, only="dispatch or constant")
def dispatch_accepts_any_buffer(storages, what, buffers, descriptors):
    return {name: buffer._storage for name, buffer in buffers.items()}


@FAULTS.at("webnn_py.core.api.argument_checks.check_buffer", SCRIPT_TIMELINE, only="destroy")
def destroyed_buffers_are_accepted(check, context, method, buffer):
    pass


@FAULTS.at("webnn_py.buffer_copies._check_range", "spec_tests/device/test_copies.py")
def copies_beyond_the_end(check, *given):
    pass


@FAULTS.at("webnn_py.core.api.buffer_source.host_copy", SCRIPT_TIMELINE, only="write or copied")
def written_data_are_not_copied(host_copy, data, descriptor, *given):
    return host_copy(data, descriptor, lambda array, *_: array)
