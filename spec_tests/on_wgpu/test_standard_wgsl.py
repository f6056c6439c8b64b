"""Kernels are standard WGSL: Tint takes them, as naga does under every other test."""

import json
from functools import partial

import numpy as np
import pytest

from spec_tests.on_wgpu.test_cached_attention import FORMS, decode
from spec_tests.on_wgpu.test_four_bit_gemv import OTHERS, SHAPES, product
from spec_tests.on_wgpu.test_variants import MODELS, small  # noqa: F401 - a fixture
from spec_tests.operators.cases import load_all
from spec_tests.operators.choosing import CHOSEN
from spec_tests.support.kernel_writer import KernelWriter
from spec_tests.support.tint import Tint
from spec_tests.support.watched_device import context_on
from webnn_py import MLGraphBuilder
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.records.features import Features
from webnn_py.devices.wgpu.records.variants import KernelVariant
from webnn_py.devices.wgpu.runtime import buffer_copies
from webnn_py.onnx_models import OnnxModel
from webnn_py.testing.device_cases.graphs import DRAWERS, run

CASES = json.loads(CHOSEN.read_text(encoding="utf-8"))
"""Those that together give every word of WGSL."""

LONG = "int64"
"""Of 64-bit integers WGSL knows nothing: their kernels are for naga alone."""

ADAPTERS = {
    "the least": Features(),
    "the most": Features(
        shader_f16=True,
        subgroups=True,
        least_subgroup=32,
        max_storage_buffers=16,
        max_workgroup_storage=49152,
        max_invocations=1024,
        gpu="hopper",
    ),
}
"""Features that adapters may have, without 64-bit integers."""

OF_ONNX = {
    **{f"attention {form}": partial(decode, **form) for form in (*FORMS, {"lengths": (20, 20), "new": 20})},
    **{f"four-bit product {shape}": partial(product, *shape) for shape in (*SHAPES, *OTHERS)},
}
"""Operators of ONNX that have kernels of their own."""

on_each_adapter = pytest.mark.parametrize("features", ADAPTERS.values(), ids=ADAPTERS)


@pytest.fixture(scope="session")
def tint():
    return Tint(pytest.importorskip("wgpudawn", reason="kernels are not given to Tint: wgpudawn is not installed"))


@pytest.fixture
async def refused(ml, tint, features):
    """A function that draws and builds by another one, and returns what Tint refuses of the kernels, in words."""
    device = KernelWriter(features)
    context = await context_on(ml, device)

    async def refused_of(name, draw):
        await draw(context)
        kernels = device.take()
        assert kernels, f"{name} has no kernel"
        return [f"{name}, kernel {one.label}: {text}" for one in kernels if (text := tint.refusal(one.source))]

    return refused_of


@pytest.mark.sampled(16)
@on_each_adapter
@pytest.mark.parametrize("file", [pytest.param(file, id=file.operator) for file in load_all()])
async def test_tint_takes_the_kernels_of_an_operator(refused, file):
    wrong = []
    for drawn, names in CASES[file.operator].items():
        for case in file.cases:
            if case.name in names and LONG not in json.dumps(case.raw):
                wrong += await refused(f"{case.name} {drawn}", lambda context: run(context, case, DRAWERS[drawn]))  # noqa: B023 - called at once
    assert not wrong, "\n".join(wrong)


@pytest.mark.sampled(12)
@pytest.mark.usefixtures("small")
@on_each_adapter
@pytest.mark.parametrize("name", MODELS)
async def test_tint_takes_the_kernels_of_a_model(refused, name):
    """With all optional kernels, and with none."""

    async def build(context):
        builder = MLGraphBuilder(context)
        await builder.build(model.draw(builder))

    with np.errstate(under="ignore"):
        model = MODELS[name]()
    wrong = await refused(name, build)
    with passes_left_out(*KernelVariant):
        wrong += await refused(f"{name}, general kernels", build)
    assert not wrong, "\n".join(wrong)


@pytest.mark.sampled(12)
@on_each_adapter
@pytest.mark.parametrize("name", OF_ONNX)
async def test_tint_takes_the_kernels_of_an_operator_of_onnx(refused, name):
    """Of operands that the graph has computed: most are bound for writing, and may change for Tint."""

    async def build(context):
        builder = MLGraphBuilder(context)
        inputs = {item: builder.input(item, data_type=x.dtype, shape=x.shape) for item, x in case.feeds.items()}
        operands = {item: builder.neg(operand) for item, operand in inputs.items()}
        await builder.build(OnnxModel.load(case.model()).convert(builder, input_operands=operands))

    case = OF_ONNX[name]()
    wrong = await refused(name, build)
    assert not wrong, "\n".join(wrong)


def test_tint_takes_the_kernel_that_copies_bytes(tint):
    assert not tint.refusal(buffer_copies.SOURCE)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("let x = i | i << 3u;", "mixing '|' and '<<' requires parenthesis"),
        ("let x = bitcast<f32>(0x7f800000u);", "value inf cannot be represented as 'f32'"),
        ("let x = subgroupAdd(i);", "without extension 'subgroups'"),
        ("if (i < 3u) { workgroupBarrier(); }", "must only be called from uniform control flow"),
    ],
)
def test_what_is_no_standard_wgsl_is_refused(tint, statement, why):
    text = f"@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{\n{statement}\n}}"
    message = tint.refusal(text)
    assert why in message
    assert ":2:" in message
