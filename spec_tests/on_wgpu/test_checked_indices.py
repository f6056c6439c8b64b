"""The check of indices that ``pytest --check-indices`` puts into all kernels finds indices out of range."""

import attrs
import numpy as np
import pytest

from spec_tests.support.checked_indices import check_indices, with_checks
from spec_tests.support.computing import compute
from webnn_py import MLGraphBuilder, UnknownError
from webnn_py.devices.wgpu.runtime.pipelines import Pipelines


@pytest.fixture
def _checks(request, monkeypatch):
    if not request.config.getoption("--check-indices"):
        check_indices(monkeypatch)


@pytest.fixture
async def attend(ml):
    """Computes what has all kinds of indices: those of buffers, of workgroup memory, and those in others."""
    context = await ml.create_context(backend="wgpu")

    async def run():
        builder = MLGraphBuilder(context)
        table = builder.input("table", data_type="float32", shape=[50, 64])
        rows = builder.gather(table, builder.input("rows", data_type="int32", shape=[33]))
        drawn = {"y": builder.softmax(builder.matmul(rows, builder.transpose(rows)), 1)}
        given = {"table": np.ones((50, 64), np.float32), "rows": np.arange(33, dtype=np.int32)}
        return (await compute(context, builder, given, drawn))["y"]

    return run


@pytest.mark.usefixtures("_checks")
async def test_kernels_that_are_checked_compute_the_same(attend):
    np.testing.assert_allclose(await attend(), np.full((33, 33), 1 / 33), rtol=1e-6)


@pytest.mark.sampled(5)
@pytest.mark.usefixtures("_checks")
@pytest.mark.parametrize("line", ["tile[", "o[", "out0[", "left[", "in0["])
async def test_an_index_outside_is_found(attend, monkeypatch, line):
    make = Pipelines._make

    def shift(cache, kernel, layout):
        code = kernel.source
        indexed = [place for place in code.split("\n") if line in place and "var<" not in place]
        for place in indexed:
            start = place.index(line) + len(line)
            code = code.replace(place, f"{place[:start]}1000000u + {place[start:]}")
        return make(cache, attrs.evolve(kernel, source=code), layout)

    monkeypatch.setattr(Pipelines, "_make", shift)
    with pytest.raises(UnknownError, match="an index lies outside in the kernel"):
        await attend()


def test_indices_within_indices_are_checked_too():
    code = (
        "enable f16;\nvar<storage, read> a: array<u32>;\nvar<workgroup> b: array<vec4<f32>, 64>;\nlet x = b[a[i + 1u]];"
    )
    checked = with_checks(code, 7)
    assert checked.startswith("enable f16;\n")
    assert "@binding(1) var<storage, read_write> flag_of_indices" in checked
    assert "if (i >= arrayLength(&a)) { atomicMax(&flag_of_indices, 7u)" in checked
    assert "if (i >= 64u)" in checked
    assert "let x = b[checked_b(a[checked_a(i + 1u)])];" in checked
