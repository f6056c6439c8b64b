"""WebGPU's rules for what one dispatch binds, under every test: wgpu-native does not hold to all of them.

A buffer is bound either for reading or for writing; ranges that are bound for writing do not overlap; ranges begin at
multiples of 256 bytes.
"""

from itertools import combinations

from webnn_py.devices.wgpu.runtime.executable import WgpuGraph


def check_bindings(patch):
    """From now on what binds otherwise fails; ``patch`` is pytest's monkeypatch."""
    bind = WgpuGraph.bind

    def check_and_bind(graph, kernel, ranges):
        problems = broken_rules(ranges, kernel.writable)
        assert not problems, f"{kernel.label}: {problems}"
        return bind(graph, kernel, ranges)

    patch.setattr(WgpuGraph, "bind", check_and_bind)


def broken_rules(ranges, writable):
    """The rules that some bindings break."""
    problems = [f"{item} is not aligned" for item in ranges if item.offset % 256]
    bindings = zip(ranges, writable, strict=False)  # --check-indices binds one more, of its own
    for (one, one_written), (other, other_written) in combinations(bindings, 2):
        if one.buffer is not other.buffer:
            continue
        if one_written != other_written:
            problems.append(f"{one} and {other} are bound for reading and for writing")
        elif one_written and one.offset < end_of(other) and other.offset < end_of(one):
            problems.append(f"{one} and {other} overlap and are bound for writing")
    return problems


def end_of(item):
    return item.offset + item.byte_length
