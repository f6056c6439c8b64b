"""Products of a few rows with weights of four bits: a kernel of their own, which reads the packed weights."""

import attrs
import numpy as np
import pytest

from spec_tests.onnx_models.single_node import Random, assert_same, expected, microsoft, run
from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.codegen.gemm import four_bit_tiling, selection
from webnn_py.devices.wgpu.codegen.gemm.four_bit_tiling import FourBitTuning
from webnn_py.onnx_models import OnnxModel

random = Random(12)

SHAPES = [  # rows, inner, columns, block size
    (1, 96, 70, 32),
    (1, 128, 4200, 64),
    (2, 256, 300, 32),
    (3, 1024, 41, 128),
    (5, 128, 2100, 32),
    (8, 64, 1030, 32),
    (1, 80, 70, 32),
    (2, 96, 70, 16),
]
OTHERS = [(1, 84, 70, 32), (1, 20, 70, 16)]
"""Rows that end within a word: the general kernels."""


def product(rows, inner, columns, size, *, points=True, bias=False):
    """Return the case of a product."""
    blocks = -(-inner // size)
    weights = random.integers("uint8", columns, blocks, size // 2)
    zeros = random.integers("uint8", columns, -(-blocks // 2)) if points else None
    inputs = [random.floats(rows, inner), weights, random.floats(columns, blocks), zeros]
    inputs += [None, random.floats(columns)] if bias else []
    known = [index for index in (1, 2, 3, 5) if index < len(inputs) and inputs[index] is not None]
    how = {"K": inner, "N": columns, "bits": 4, "block_size": size}
    return microsoft("MatMulNBits", *inputs, known=known, **how)[0]


@pytest.fixture
async def gpu_context(ml):
    return await ml.create_context(backend="wgpu")


@pytest.fixture
def emitted(monkeypatch):
    """Return the plans of the kernels that are written."""
    return noted(monkeypatch, selection, "emit_four_bit_gemv", lambda _lowering, plan, _epilogue: plan)


TUNINGS = [
    FourBitTuning(rows=4, words=2, lanes=96, is_staged=False, least_groups=0),
    FourBitTuning(rows=4, words=4, ahead=2, least_groups=0),
    FourBitTuning(threads=64, lanes=8, rows=2, words=2, ahead=2, least_groups=0),
    FourBitTuning(threads=128, lanes=64, rows=1, words=1, is_staged=False),
    FourBitTuning(threads=128, lanes=16, rows=4, is_staged=False, least_groups=0),
    None,
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tuning", TUNINGS)
async def test_the_kernel_is_exact(gpu_context, emitted, monkeypatch, tuning):
    if tuning is not None:
        monkeypatch.setattr(four_bit_tiling, "tuning_of", lambda _: tuning)
    for number, shape in enumerate(SHAPES):
        case = product(*shape, points=number % 2 == 0, bias=number > 3)
        assert_same(await run(gpu_context, case.model(), case.feeds), expected(case), relative=1e-4, absolute=1e-4)
        assert len(emitted) == number + 1, shape
    assert {plan.common_point for plan in emitted} == {None, 8}
    assert tuning is None or {plan.tuning.rows for plan in emitted} == {tuning.rows}


async def test_other_products_have_general_kernels(gpu_context, emitted):
    for shape in OTHERS:
        case = product(*shape)
        assert_same(await run(gpu_context, case.model(), case.feeds), expected(case), relative=1e-4, absolute=1e-4)
    assert not emitted


async def test_without_the_kernel_results_are_the_same(gpu_context, emitted):
    case = product(*SHAPES[2])
    with passes_left_out("gemv-four-bits"):
        assert_same(await run(gpu_context, case.model(), case.feeds), expected(case), relative=1e-4, absolute=1e-4)
    assert not emitted


async def test_nan_and_infinity_reach_the_sums(gpu_context):
    case = product(2, 64, 40, 32)
    feeds = {"x0": case.feeds["x0"].copy()}
    feeds["x0"][0, 5], feeds["x0"][1, 6] = np.nan, np.inf
    (output,) = await run(gpu_context, case.model(), feeds)
    assert np.isnan(output[0]).all()
    assert not np.isfinite(output[1]).any()


async def test_weights_stay_packed_without_being_asked_for(gpu_context):
    case = product(1, 1024, 256, 32, points=False)
    builder = MLGraphBuilder(gpu_context)
    graph = await builder.build(OnnxModel.load(case.model()).convert(builder))
    bytes_of_constants = graph.handle.compiled.byte_length
    assert bytes_of_constants < 1024 * 256 * 0.7
    graph.destroy()


async def test_products_of_float16_are_computed_in_float32(gpu_context, emitted):
    case = product(2, 96, 70, 32, bias=True)
    inputs = [item if item is None or item.dtype != np.float32 else item.astype(np.float16) for item in case.inputs]
    case = attrs.evolve(case, inputs=tuple(inputs))
    assert_same(await run(gpu_context, case.model(), case.feeds), expected(case), relative=2e-3, absolute=2e-3)
    assert len(emitted) == 1
