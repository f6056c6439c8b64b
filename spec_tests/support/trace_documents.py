"""Traces as Chrome's trace-event JSON, made by hand: what the page is tested and pictured with, without a recorder."""

import attrs

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
"""A label that would be seen in the page if it were read as HTML."""


@attrs.define
class Writer:
    """Collects events; times are microseconds."""

    events: list = attrs.Factory(list)
    operations: int = 0

    def add(self, ph, cat, name, ts, pid, **more):
        self.events.append({"ph": ph, "cat": cat, "name": name, "ts": ts, "pid": pid, **more})

    def name(self, pid, tid, words, **args):
        kind = "process" if tid is None else "thread"
        lane = {} if tid is None else {"tid": tid}
        order = pid if tid is None else tid
        self.events.append({"ph": "M", "name": f"{kind}_name", "pid": pid, **lane, "args": {"name": words, **args}})
        self.events.append({"ph": "M", "name": f"{kind}_sort_index", "pid": pid, **lane, "args": {"sort_index": order}})

    def context(self, number, words, **args):
        self.name(number, None, f"context {number}: {words}", **args)
        self.name(number, 1, "device timeline")
        self.name(number, 2, "kernels")

    def call(self, name, ts, took, context=1, **args):
        """A call that enqueues the operation whose number is returned."""
        self.operations += 1
        given = {"operation": self.operations, "context": context, **args}
        self.add("X", "call", name, ts, 0, tid=1, dur=took, args=given)
        self.add("s", "flow", name.rstrip("()"), ts + took / 2, 0, tid=1, id=self.operations)
        return self.operations

    def run(self, name, ts, took, operation, enqueued, *, context=1, outcome="done", **args):
        given = {"operation": operation, "enqueued": enqueued, "outcome": outcome, **args}
        self.add("X", "operation", name, ts, context, tid=1, dur=took, args=given)
        self.add("t", "flow", name, ts, context, tid=1, id=operation)

    def settle(self, name, ts, took, operation, promise="fulfilled", **args):
        given = {"operation": operation, "promise": promise, **args}
        self.add("X", "settlement", f"settle {name}", ts, 0, tid=2, dur=took, args=given)
        self.add("f", "flow", name.rstrip("()"), ts, 0, tid=2, id=operation, bp="e")

    def reject(self, name, ts, operation, cause, why):
        self.add(
            "i",
            "rejection",
            f"reject {name}",
            ts,
            0,
            tid=2,
            s="t",
            args={"operation": operation, "cause": cause, "why": why},
        )

    def kernel(self, name, ts, took, operation, *, context=1, clock="host", operators=()):
        given = {"operation": operation, "operators": [*operators], "clock": clock, "bytes": 4096}
        self.add("X", "kernel", name, ts, context, tid=2, dur=took, args=given)

    def lifetime(self, ph, number, name, ts, *, context=1, cat="buffer", **args):
        self.add(ph, cat, name, ts, context, id=number, args=args)

    def document(self):
        return {
            "displayTimeUnit": "ms",
            "otherData": {"generator": "webnn_py 0.2.0", "events": len(self.events), "clock": "perf_counter_ns"},
            "traceEvents": self.events,
        }


def begun():
    writer = Writer()
    writer.name(0, None, "script")
    writer.name(0, 1, "calls")
    writer.name(0, 2, "script timeline")
    return writer


def destroyed_in_flight():
    """Write, dispatch, read twice, destroy one of the outputs: its read is rejected, its memory goes in its turn."""
    writer = begun()
    writer.context(1, "numpy", backend="numpy", adapter="Intel(R) Xeon(R) Processor")
    names = {
        1: "buffer 1 float32 [64, 256] x",
        2: "buffer 2 float32 [64, 10] scores",
        3: "buffer 3 float32 [64, 32] hidden",
    }
    main = "digits.py:{} in main".format
    writer.lifetime("b", 1, "graph 1 classifier", 0, cat="graph", before=True)
    sizes = {1: 65536, 2: 2560, 3: 8192}
    at = 10
    device = 42
    for number, name in names.items():
        operation = writer.call("create_buffer()", at, 12, source=main(11 + number), bytes=sizes[number])
        writer.lifetime("b", number, name, at + 2, bytes=sizes[number])
        writer.run("create_buffer", device, 9, operation, at + 10, bytes=sizes[number], writes=[number])
        writer.lifetime("n", number, "allocated", device + 8, operation=operation, bytes=sizes[number])
        writer.settle("create_buffer()", device + 16, 6, operation)
        at, device = at + 22, device + 24
    write = writer.call("write_buffer()", 130, 20, source=main(17), writes=[1], bytes=65536)
    dispatch = writer.call("dispatch()", 154, 27, source=main(18), reads=[1], writes=[2, 3], graph=1, label="classify")
    first = writer.call("read_buffer()", 184, 19, source=main(19), reads=[2])
    second = writer.call("read_buffer()", 206, 19, source=main(20), reads=[3])
    destroy = writer.call("destroy()", 230, 25, source=main(21), writes=[2])
    why = "scores was destroyed by destroy() at digits.py:21 while this read was pending: destroy it after the read"
    writer.reject("read_buffer()", 242, first, destroy, why)
    writer.lifetime("n", 2, "destroyed", 242, operation=destroy)
    writer.run("write_buffer", 150, 22, write, 144, writes=[1], bytes=65536)
    writer.lifetime("n", 1, "written", 171, operation=write, bytes=65536)
    writer.run("dispatch", 178, 150, dispatch, 170, reads=[1], writes=[2, 3], graph=1, bytes=76288, label="classify")
    writer.kernel("matmul + relu", 182, 92, dispatch, operators=["matmul", "relu"])
    writer.kernel("matmul", 276, 22, dispatch, operators=["matmul"])
    writer.kernel("softmax", 300, 24, dispatch, operators=["softmax"])
    writer.lifetime("n", 1, "read", 182, operation=dispatch)
    writer.lifetime("n", 3, "written", 322, operation=dispatch)
    writer.lifetime("n", 2, "written", 324, operation=dispatch)
    writer.run("read_buffer", 330, 9, first, 194, reads=[2], bytes=2560)
    writer.lifetime("n", 2, "read", 332, operation=first)
    writer.settle("read_buffer()", 346, 8, first, "rejected", why=why, before=True)
    writer.run("read_buffer", 341, 14, second, 216, reads=[3], bytes=8192)
    writer.lifetime("n", 3, "read", 344, operation=second)
    writer.settle("read_buffer()", 366, 16, second)
    writer.run("release", 358, 14, destroy, 250, writes=[2], bytes=2560)
    writer.lifetime("n", 2, "released", 370, operation=destroy)
    writer.lifetime("e", 2, names[2], 371)
    return writer.document()


def with_everything():
    """Two contexts: one fails a dispatch and is lost, one is fine; labels that would break a careless page."""
    writer = begun()
    writer.context(1, f"wgpu {HOSTILE}", backend="wgpu", adapter="llvmpipe")
    writer.context(2, "numpy", backend="numpy")
    writer.lifetime("b", 7, f"buffer 7 float32 [4] {HOSTILE}", 0, context=1, before=True)
    writer.lifetime("b", 8, "buffer 8 int32 [2, 2] answers", 4, context=2)
    write = writer.call("write_buffer()", 10, 5, source=f"{HOSTILE}.py:3 in main", writes=[7], bytes=16, label=HOSTILE)
    writer.run("write_buffer", 20, 6, write, 13, writes=[7], bytes=16, label=HOSTILE)
    writer.lifetime("n", 7, "written", 25, operation=write, bytes=16)
    bad = writer.call("dispatch()", 30, 5, source="two.py:4 in main", reads=[7], writes=[7], graph=9)
    writer.run("dispatch", 40, 30, bad, 33, outcome="failed", why="out of memory", reads=[7], writes=[7], graph=9)
    writer.kernel("conv2d + relu", 42, 20, bad, clock="gpu", operators=["conv2d", "relu"])
    read = writer.call("read_buffer()", 36, 3, source="two.py:5 in main", reads=[7])
    late = writer.call("write_buffer()", 50, 3, source="two.py:6 in main", writes=[7])
    writer.run(
        "read_buffer", 71, 4, read, 38, outcome="failed", why="buffer 7 holds nothing: dispatch 2 failed", reads=[7]
    )
    writer.settle("read_buffer()", 78, 3, read, "rejected", why="UnknownError: dispatch 2 failed: out of memory")
    writer.add("i", "context", "lost: out of memory", 80, 1, s="p")
    writer.run("write_buffer", 80, 0, late, 52, outcome="dropped", why="the context is lost: out of memory", writes=[7])
    fine = writer.call("read_buffer()", 60, 4, context=2, source="two.py:7 in main", reads=[8])
    writer.run("read_buffer", 66, 8, fine, 62, context=2, reads=[8], bytes=16)
    writer.lifetime("n", 8, "read", 68, context=2, operation=fine)
    writer.settle("read_buffer()", 84, 4, fine)
    return writer.document()


def many(events):
    """Make about this many events, as of a long run: writes, dispatches of three kernels, and reads, in turns."""
    writer = begun()
    writer.context(1, "wgpu", backend="wgpu", adapter="llvmpipe")
    for number in (1, 2):
        writer.lifetime("b", number, f"buffer {number} float32 [1024]", 0, before=True)
    at = device = 5.0
    while len(writer.events) < events:
        write = writer.call("write_buffer()", at, 3, source="loop.py:8 in main", writes=[1], bytes=4096)
        dispatch = writer.call("dispatch()", at + 4, 4, source="loop.py:9 in main", reads=[1], writes=[2], graph=1)
        read = writer.call("read_buffer()", at + 10, 3, source="loop.py:10 in main", reads=[2])
        device = max(device, at + 8)
        writer.run("write_buffer", device, 2, write, at + 2, writes=[1], bytes=4096)
        writer.lifetime("n", 1, "written", device + 1, operation=write)
        writer.run("dispatch", device + 3, 12, dispatch, at + 7, reads=[1], writes=[2], graph=1)
        for index, name in enumerate(("matmul", "add + relu", "softmax")):
            writer.kernel(name, device + 3.5 + index * 3.8, 3.5, dispatch, clock="gpu", operators=name.split(" + "))
        writer.lifetime("n", 2, "written", device + 15, operation=dispatch)
        is_dropped = read % 300 == 0
        if is_dropped:
            writer.run("read_buffer", device + 16, 0, read, at + 12, outcome="dropped", why="rejected", reads=[2])
        else:
            writer.run("read_buffer", device + 16, 3, read, at + 12, reads=[2], bytes=4096)
            writer.lifetime("n", 2, "read", device + 17, operation=read)
            writer.settle("read_buffer()", device + 20, 2, read)
        at, device = at + 22 + (read % 7), device + 20
    return writer.document()
