"""Gains of each optional kernel and fusion of the WebGPU device.

``python -m spec_tests.labs.benchmarks.gpu_variants [WORD…]``

Each model is built with all variants, once more for control, and once without each variant that it uses; all of these
run in turn. A ratio above 1 says that the model is slower without the variant; the control's ratio says how far noise
goes. Two times are taken: of a dispatch among several in a row, which is the GPU's or the encoder's, and of a round
trip of write, dispatch and awaited read. Models are written here and have random weights; WORDs choose some by name.
"""

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from time import perf_counter

import attrs
import numpy as np
import trio

import webnn_py
from spec_tests.labs.benchmarks.built import Built, Draw, difference
from spec_tests.labs.benchmarks.effective_passes import effective_passes
from spec_tests.labs.benchmarks.gpu_cases import CASES
from spec_tests.labs.benchmarks.gpu_models import (
    WARM_UP,
    Network,
    decoder_step,
    encoder,
    mobilenet_v1,
    recurrent,
    resnet_18,
    resnet_50,
)
from spec_tests.labs.benchmarks.gpu_small import fifty
from spec_tests.labs.benchmarks.measure import WORDS, as_text, head, is_wanted, parser, row, seconds_of
from webnn_py import MLContext, MLGraphBuilder, MLOperand
from webnn_py.devices.rewriting.passes import passes_left_out
from webnn_py.devices.wgpu.lowering import KERNEL_PASSES
from webnn_py.devices.wgpu.passes.pipeline import PASSES
from webnn_py.devices.wgpu.records.variants import KernelVariant
from webnn_py.onnx_models import OnnxModel

VARIANTS = tuple(map(str, dict.fromkeys([*KernelVariant, *PASSES.optional, *KERNEL_PASSES.optional])))
"""The names of what can be left out: optional kernels and passes."""

CONTROL = "(control)"
GAIN = 1.05
"""A ratio from which on a variant counts as a gain for a model."""

IN_A_ROW = 8
LEAST_ROUNDS, MOST_ROUNDS = 7, 60

Drawing = Callable[[MLGraphBuilder], Mapping[str, MLOperand]]


@attrs.frozen
class Model:
    """A model that is built again and again.

    Attributes:
        draw: (builder) → the outputs; the input is named ``x``.
        data: the input's array.
    """

    draw: Drawing
    data: np.ndarray

    @classmethod
    def of_onnx(cls, made: tuple[bytes, list[int]], data_type: str) -> "Model":
        model, shape = made
        loaded = OnnxModel.load(model)
        return cls(lambda builder: loaded.convert(builder, {"x": shape}), noise(shape, data_type))

    @classmethod
    def of_drawing(
        cls, shape: Sequence[int], draw: Draw, others: Sequence[Sequence[int]] = (), data_type: str = "float32"
    ) -> "Model":
        """A drawing of an input and of constants of other shapes."""

        def drawn(builder: MLGraphBuilder) -> Mapping[str, MLOperand]:
            x = builder.input("x", data_type=data_type, shape=shape)
            return {"y": draw(builder, x, *(builder.constant(noise(other, data_type, inner=1000)) for other in others))}

        return cls(drawn, noise(shape, data_type))


def noise(shape: Sequence[int], data_type: str = "float32", inner: float = 1) -> np.ndarray:
    """Return random numbers of the variance ``1 / inner``, equal ones from call to call."""
    few = np.random.default_rng(3).standard_normal(2**18 + 1, np.float32) * inner**-0.5
    with np.errstate(under="ignore"):
        return np.resize(few.astype(data_type), shape)


# --- models that the other benchmarks do not have ------------------------------------------------------------------


class FourBitNetwork(Network):
    """A model whose weights have four bits, in blocks of 32."""

    def product(self, x: str, before: int, after: int) -> str:
        """Add a product with a matrix of four bits."""
        bits = np.resize(np.random.default_rng(after).integers(0, 256, 2**18 + 1, np.uint8), (after, before // 32, 16))
        scales = np.full(after * before // 32, 0.2 * before**-0.5, self.data_type)
        sides = [self.constant(bits), self.constant(scales)]
        options = {"K": before, "N": after, "bits": 4, "block_size": 32, "domain": "com.microsoft"}
        return self.node("MatMulNBits", x, *sides, **options)


def four_bit_step(layers: int = 4, width: int = 2048, cached: int = 1024) -> tuple[bytes, list[int]]:
    """Write the step of a token through a decoder of 4-bit weights; four query heads share keys and values."""
    net = FourBitNetwork(4)
    heads = width // 128
    groups = heads // 4
    scale = net.constant(np.array(128**-0.5, np.float32))
    split, merged = net.constant(np.array([1, heads, 1, 128])), net.constant(np.array([1, 1, width]))
    alone, shared = net.constant(np.array([1, groups, 1, 128])), net.constant(np.array([1, heads, cached + 1, 128]))
    single, spread = (net.constant(np.array([1, groups, number, cached + 1, 128])) for number in (1, 4))

    def normalized(x: str) -> str:
        return net.node("LayerNormalization", x, net.constant(np.ones(width, np.float32)), axis=-1)

    x = "x"
    for _ in range(layers):
        inner = normalized(x)
        query = net.node("Reshape", net.product(inner, width, width), split)
        pair = []
        for _ in range(2):
            new = net.node("Reshape", net.product(inner, width, groups * 128), alone)
            known = net.node("Concat", net.weight(1, groups, cached, 128, inner=1), new, axis=2)
            pair.append(net.node("Reshape", net.node("Expand", net.node("Reshape", known, single), spread), shared))
        key, value = pair
        scores = net.node("Mul", net.node("MatMul", query, net.node("Transpose", key, perm=[0, 1, 3, 2])), scale)
        mixed = net.node("Reshape", net.node("MatMul", net.node("Softmax", scores, axis=-1), value), merged)
        x = net.node("Add", x, net.product(mixed, width, width))
        inner = net.node("Relu", net.product(normalized(x), width, 4 * width))
        x = net.node("Add", x, net.product(inner, 4 * width, width))
    return net.model([1, 1, width], normalized(x)), [1, 1, width]


def image_decoder(sizes: Sequence[int], builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    """Draw transposed convolutions that double height and width, as decoders of images and segmentations have them."""
    for before, after in pairwise(sizes):
        filter_ = builder.constant(noise([before, after, 4, 4], inner=4 * before))
        bias = builder.constant(noise([after]))
        x = builder.relu(builder.conv_transpose2d(x, filter_, padding=[1] * 4, strides=[2, 2], bias=bias))
    return x


def channels_last(widths: Sequence[int], builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    """Draw separable convolutions of images whose channels come last, as models of TensorFlow have them."""
    layouts = {"input_layout": "nhwc"}
    for index, (before, after) in enumerate(pairwise(widths)):
        window = builder.constant(noise([1, 3, 3, before], inner=9))
        strides = [1 + index % 2] * 2
        x = builder.conv2d(
            x, window, padding=[1] * 4, strides=strides, groups=before, filter_layout="ihwo", bias=None, **layouts
        )
        x = builder.clamp(x, min_value=0, max_value=6)
        filter_ = builder.constant(noise([after, 1, 1, before], inner=before))
        x = builder.clamp(builder.conv2d(x, filter_, filter_layout="ohwi", **layouts), min_value=0, max_value=6)
    x = builder.max_pool2d(x, window_dimensions=[3, 3], strides=[2, 2], padding=[1] * 4, layout="nhwc")
    return builder.average_pool2d(x, layout="nhwc")


def large_windows(blocks: int, builder: MLGraphBuilder, x: MLOperand) -> MLOperand:
    """Draw blocks of ConvNeXt: depthwise windows of 7 × 7, then a normalization and products over the channels."""
    channels = x.shape[1]
    up, down = (
        builder.constant(noise(shape, inner=shape[0])) for shape in ([channels, 4 * channels], [4 * channels, channels])
    )
    for _ in range(blocks):
        window = builder.constant(noise([channels, 1, 7, 7], inner=49))
        inner = builder.transpose(builder.conv2d(x, window, padding=[3] * 4, groups=channels), permutation=[0, 2, 3, 1])
        inner = builder.layer_normalization(inner, axes=[3])
        inner = builder.matmul(builder.gelu(builder.matmul(inner, up)), down)
        x = builder.add(x, builder.transpose(inner, permutation=[0, 3, 1, 2]))
    return x


MADE: dict[str, Callable[[], tuple[bytes, list[int]]]] = {
    "ResNet-50, batch 16": partial(resnet_50, 16),
    "BERT, 4 layers of 768, 8 × 128 tokens": partial(encoder, 4, 768, batch=8),
    "decoder step, 4 layers of 2048, float16": partial(decoder_step, 4),
    "MobileNet v1": mobilenet_v1,
    "MiniLM-L6 encoder, 128 tokens": encoder,
    "ResNet-50, batch 1": partial(resnet_50, 1),
    "BERT, 4 layers of 768, 8 × 128 tokens, float16": partial(encoder, 4, 768, batch=8, data_type="float16"),
    "ResNet-50, batch 16, float16": partial(resnet_50, 16, "float16"),
    "decoder step, 4 layers of 2048, 4-bit weights": four_bit_step,
    "BERT, 4 layers of 768, 128 tokens": partial(encoder, 4, 768),
    "ResNet-18": resnet_18,
    "2 bidirectional GRUs of 32, 60 steps": partial(recurrent, 60),
    "BERT, 4 layers of 768, 16 tokens": partial(encoder, 4, 768, tokens=16),
    "BERT, 4 layers of 768, 48 tokens": partial(encoder, 4, 768, tokens=48),
    "ViT, 4 layers of 768, 197 tokens": partial(encoder, 4, 768, tokens=197),
}
DRAWN: dict[str, tuple[list[int], Draw]] = {
    "image decoder, 28² to 448²": ([1, 256, 28, 28], partial(image_decoder, (256, 128, 64, 32, 16))),
    "channels last, 112²": ([1, 112, 112, 32], partial(channels_last, (32, 64, 128, 128, 256, 256))),
    "ConvNeXt, 4 blocks of 96 at 56²": ([1, 96, 56, 56], partial(large_windows, 4)),
    "50 element-wise operators": ([1000], fifty),
}
QUICK_MADE: dict[str, Callable[[], tuple[bytes, list[int]]]] = {
    "encoder of 96, 32 tokens": partial(encoder, 1, 96, tokens=32),
    "decoder step of 512, float16": partial(decoder_step, 1, 512, 32),
    "decoder step of 512, 4-bit weights": partial(four_bit_step, 1, 512, 31),
    "2 bidirectional GRUs of 8, 4 steps": partial(recurrent, 4, 16, 8),
}
QUICK_DRAWN: dict[str, tuple[list[int], Draw]] = {
    "image decoder, 4² to 16²": ([1, 16, 4, 4], partial(image_decoder, (16, 8, 8))),
    "channels last, 8²": ([1, 8, 8, 8], partial(channels_last, (8, 16, 16))),
    "ConvNeXt, a block of 16 at 8²": ([1, 16, 8, 8], partial(large_windows, 1)),
}


def models_of(
    made: Mapping[str, Callable[[], tuple[bytes, list[int]]]], drawn: Mapping[str, tuple[list[int], Draw]]
) -> dict[str, Callable[[], Model]]:
    """Return what makes each model."""

    def of_onnx(name: str) -> Model:
        return Model.of_onnx(made[name](), "float16" if "float16" in name else "float32")

    of_drawings = {name: partial(Model.of_drawing, *given) for name, given in drawn.items()}
    return {name: partial(of_onnx, name) for name in made} | of_drawings


MODELS = models_of(MADE, DRAWN)
MODELS |= {
    f"operator: {case.name}": partial(Model.of_drawing, case.shapes[0], case.draw, case.shapes[1:], case.data_type)
    for case in CASES
    if not case.float16_accumulation
}
QUICK = models_of(QUICK_MADE, QUICK_DRAWN)


# --- timing --------------------------------------------------------------------------------------------------------


@contextmanager
def asked() -> Iterator[set[str]]:
    """Collect the variants that builds in the context could use: those that they ask for, and passes with an effect."""
    names: set[str] = set()
    is_on = KernelVariant.__dict__["is_on"]

    def noted(variant: KernelVariant) -> bool:
        names.add(variant)
        return is_on.fget(variant)

    KernelVariant.is_on = property(noted)
    try:
        with effective_passes() as effective:
            yield names
    finally:
        KernelVariant.is_on = is_on
        names.update(effective.intersection(VARIANTS))


@attrs.define
class Contender:
    """A graph of a model, and what its runs took.

    Attributes:
        rows: seconds of a dispatch among several in a row.
        trips: seconds of a write, a dispatch and an awaited read.
    """

    built: Built
    rows: list[float] = attrs.field(factory=list)
    trips: list[float] = attrs.field(factory=list)

    async def take(self, in_a_row: int) -> None:
        """Time both once."""
        self.built.write()
        await self.built.context.drain()
        self.rows.append(await self.built.run(in_a_row) / in_a_row)
        for _ in range(2):
            self.trips.append(await seconds_of(self.result))

    async def result(self) -> np.ndarray:
        """Make a round trip."""
        (result,) = await self.built.trip()
        return np.asarray(result)


async def built(context: MLContext, model: Model, *left_out: str) -> Contender:
    """Build a model without some variants."""
    builder = MLGraphBuilder(context)
    outputs = model.draw(builder)
    with passes_left_out(*left_out):
        return Contender(await Built.on_context(context, builder, outputs, {"x": model.data}))


async def compared(ml: webnn_py.ML, model: Model, options: argparse.Namespace) -> dict:
    """Time a model with all variants and without each; return what the tables are made of."""
    context = await ml.create_context(backend="wgpu")
    with asked() as names:
        whole = await built(context, model)
    used = [name for name in VARIANTS if name in names]
    contenders = {CONTROL: await built(context, model)}
    failures = {}
    for name in used:
        try:
            contenders[str(name)] = await built(context, model, name)
        except webnn_py.OperationError as error:
            failures[str(name)] = str(error)[:200]
    expected = await whole.result()
    off = {name: difference(await one.result(), expected) for name, one in contenders.items()}
    every = [whole, *contenders.values()]
    warm = perf_counter() + (0 if options.quick else WARM_UP)
    while perf_counter() < warm:
        await whole.result()
    began, rounds = perf_counter(), 0
    least, most = (1, 1) if options.quick else (LEAST_ROUNDS, MOST_ROUNDS)
    while rounds < least or (rounds < most and perf_counter() - began < options.share * len(every)):
        for one in every if rounds % 2 == 0 else every[::-1]:
            await one.take(1 if options.quick else IN_A_ROW)
        rounds += 1
    context.destroy()
    of_row, trip = statistics.median(whole.rows), statistics.median(whole.trips)
    without = {
        name: {
            "row": statistics.median(one.rows) / of_row,
            "trip": statistics.median(one.trips) / trip,
            "difference": off[name],
        }
        for name, one in contenders.items()
    }
    return {"row": of_row, "trip": trip, "rounds": rounds, "without": without, "failures": failures}


# --- the tables ----------------------------------------------------------------------------------------------------


def as_markdown(found: Mapping[str, dict], device: str) -> str:
    """Return the tables: of variants over all models, and of models."""
    by_variant: dict[str, dict[str, dict]] = {}
    for model, taken in found.items():
        for name, ratios in taken["without"].items():
            by_variant.setdefault(name, {})[model] = ratios
    lines = [f"{device}: time without a variant, as a multiple of the time with all (in a row; round trip).", ""]
    lines += [head("variant", "models", "mean", f"over {GAIN}", "largest", "where")]
    for name in (CONTROL, *VARIANTS):
        if name in by_variant:
            lines.append(row(*_cells(name, by_variant[name])))
    unused = [name for name in VARIANTS if name not in by_variant]
    lines += ["", f"In none of the models: {', '.join(unused) or '–'}.", ""]
    lines += [head("model", "in a row", "round trip", "rounds", "ratios in a row (round trip)")]
    for model, taken in found.items():
        ratios = [f"{name} {one['row']:.2f} ({one['trip']:.2f})" for name, one in taken["without"].items()]
        lines.append(row(model, as_text(taken["row"]), as_text(taken["trip"]), taken["rounds"], ", ".join(ratios)))
    return "\n".join(lines)


def _cells(name: str, ratios: Mapping[str, dict]) -> list[str]:
    both = np.array([(one["row"], one["trip"]) for one in ratios.values()])
    means = np.exp(np.log(both).mean(0))
    gains = (both >= GAIN).sum(0)
    where = [f"{model} {max(one, trip):.2f}" for (model, _), (one, trip) in zip(ratios.items(), both, strict=True)]
    where = [words for words, pair in zip(where, both, strict=True) if max(pair) >= GAIN]
    pairs = [f"{one:.3f}; {other:.3f}" for one, other in (means, both.max(0))]
    return [name, str(len(both)), pairs[0], f"{gains[0]}; {gains[1]}", pairs[1], "; ".join(where)]


async def measure(options: argparse.Namespace) -> bool:
    """Time all models as long as there is time; return whether all results agree."""
    models = QUICK if options.quick else MODELS
    chosen = {name: make for name, make in models.items() if is_wanted(name, options.words)}
    found: dict[str, dict] = {}
    began = perf_counter()
    async with webnn_py.open_ml(experimental={"int4"}) as ml:  # so that weights of four bits stay packed
        keeper = await ml.create_context(backend="wgpu")  # while it lives, the device keeps its pipelines
        device = str(keeper.backend.adapter)
        for name, make in chosen.items():
            passed = perf_counter() - began
            if passed > options.seconds:
                print(f"{name}: left out after {passed:.0f} s", file=sys.stderr)
                continue
            found[name] = await compared(ml, make(), options)
            print(f"{name}: {perf_counter() - began - passed:.1f} s", file=sys.stderr, flush=True)
        keeper.destroy()
    print(as_markdown(found, device))
    wrong = [
        f"{model} without {name}: off by {one['difference']:.2g}"
        for model, taken in found.items()
        for name, one in taken["without"].items()
        if not one["difference"] < (5e-2 if "float16" in model else 2e-3)
    ]
    wrong += [
        f"{model} without {name}: {text}" for model, one in found.items() for name, text in one["failures"].items()
    ]
    print("\n".join(wrong), file=sys.stderr)
    return not wrong


def main() -> None:
    arguments = parser("gpu_variants", __doc__)
    arguments.add_argument("words", **WORDS)
    arguments.add_argument("--seconds", type=float, default=270, help="begin no model later (default: %(default)s)")
    arguments.add_argument("--share", type=float, default=0.25, help="seconds for each variant (default: %(default)s)")
    arguments.add_argument("--quick", action="store_true", help="small models, each run once: to try the program")
    if not trio.run(measure, arguments.parse_args()):
        sys.exit(1)


if __name__ == "__main__":
    main()
