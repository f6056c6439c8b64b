"""Models of a single node, run through the importer on the numpy device and through an independent runtime."""

import re
from collections.abc import Iterable

import attrs
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import defs, helper, parser
from onnx.reference import ReferenceEvaluator

from spec_tests.support.cells import cells
from spec_tests.support.computing import compute_graph
from spec_tests.support.onnx_programs import make_model
from webnn_py import MLGraphBuilder
from webnn_py.onnx_models import OnnxModel, UnsupportedModelError

OLDEST_OPSET = 7  # that onnxruntime runs; most versions of operators before it are those of this opset
MOST_TIES = 0.1
"""Of quantized elements, how many may be rounded to the other side."""
ANY_OPSET = 15
"""For operators of onnxruntime's own."""
MICROSOFT = "com.microsoft."
OPTIONS = onnxruntime.SessionOptions()
OPTIONS.intra_op_num_threads = 1
OPTIONS.log_severity_level = 4  # what it says of old models is no concern here
OPTIONS.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL


@attrs.frozen(kw_only=True)
class Case:
    """A node with its inputs.

    Attributes:
        operator: the ONNX operator.
        inputs: its inputs; None for absent ones.
        known: the indices of the inputs that are initializers, not inputs of the model.
        attributes: its attributes.
        version: the version of the operator.
        outputs: how many outputs it has.
        wanted: the indices of the outputs that are outputs of the model.
        oracle: "onnxruntime", or where that lacks the operator, "reference", an older version of equal meaning, or
            the outputs.
        relative: the relative tolerance.
        absolute: the absolute tolerance.
    """

    operator: str
    inputs: tuple
    known: tuple = ()
    attributes: dict
    version: int
    outputs: int = 1
    wanted: tuple = (0,)
    oracle: str = "onnxruntime"
    relative: float = 1e-5
    absolute: float = 1e-6

    def __str__(self):
        shapes = ",".join("-" if item is None else f"{item.dtype}{list(item.shape)}" for item in self.inputs)
        known = "".join(f" {self.inputs[index].tolist()}" for index in self.known if self.inputs[index].size < 9)
        attributes = "".join(f" {name}={value}" for name, value in self.attributes.items())
        return f"{self.operator}-{self.version} {shapes}{known}{attributes}".replace("\n", "")

    def model(self):
        names = [f"x{index}" if item is not None else "" for index, item in enumerate(self.inputs)]
        outputs = [f"y{index}" for index in range(self.outputs)]
        domain, _, operator = self.operator.rpartition(".")
        node = helper.make_node(operator, names, outputs, name="the node", domain=domain, **self.attributes)
        arrays = {name: item for name, item in zip(names, self.inputs, strict=True) if name}
        initializers = {names[index]: self.inputs[index] for index in self.known}
        return make_model([node], arrays, [outputs[index] for index in self.wanted], initializers, opset=self.opset)

    @property
    def opset(self):
        if self.operator.startswith(MICROSOFT) or not defs.has(self.operator):
            return ANY_OPSET
        opset = max(self.version, OLDEST_OPSET)
        if self.version < OLDEST_OPSET and defs.get_schema(self.operator, opset, "").since_version != self.version:
            opset = self.version
        assert defs.get_schema(self.operator, opset, "").since_version == self.version
        return opset

    @property
    def feeds(self):
        return {
            f"x{index}": item for index, item in enumerate(self.inputs) if item is not None and index not in self.known
        }


def parsed(text, *, inputs="float[3,4] x", opset=16):
    """A model in bytes, from ONNX's text: "(outputs) <initializers> { nodes }"."""
    header = f'<ir_version: 8, opset_import: ["": {opset}]>'
    return parser.parse_model(f"{header} g ({inputs}) => {text}").SerializeToString()


def expected(case):
    """What the oracle says."""
    if isinstance(case.oracle, list):
        return case.oracle
    if case.oracle == "reference":
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(onnx.load_model_from_string(case.model())).run(None, case.feeds)
    version = case.version if case.oracle == "onnxruntime" else case.oracle
    return run_onnxruntime(attrs.evolve(case, version=version).model(), case.feeds)


def seven_bits(weights):
    """Half of each int8, whose products with uint8 onnxruntime sums right anywhere.

    Where a processor has no VNNI, it adds two of them in 16 bits, which saturate: 2 · 255 · 127 does, 2 · 255 · 64 does
    not. The full range is compared with exact sums (``test_integer_products_are_exact``).
    """
    return weights >> 1


def run_onnxruntime(model, feeds):
    session = onnxruntime.InferenceSession(model, OPTIONS, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


async def run(context, model, feeds, **options):
    """Import a model, run it, and return its outputs in order; nothing is left of it in the context."""
    loaded = model if isinstance(model, OnnxModel) else OnnxModel.load(model)
    builder = MLGraphBuilder(context)
    outputs = await compute_graph(context, await builder.build(loaded.convert(builder, **options)), feeds)
    return [outputs[name] for name in loaded.outputs]


def assert_same(actual, wanted, *, relative=1e-5, absolute=1e-6):
    """Shapes and types are the same, booleans being uint8; floats are close, integers equal."""
    assert len(actual) == len(wanted)
    plain = [item.astype(np.uint8) if item.dtype == np.bool_ else item for item in wanted]
    for ours, theirs in zip(actual, plain, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        if theirs.dtype.kind == "f":
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(ours, theirs, rtol=relative, atol=absolute)
        else:
            np.testing.assert_array_equal(ours, theirs)


async def check(context, case):
    """Run a case both ways and compare."""
    actual = await run(context, case.model(), case.feeds)
    assert_same(actual, expected(case), relative=case.relative, absolute=case.absolute)


async def check_steps(context, case):
    """Likewise, but bytes may lie one step apart: a float on the way may be rounded otherwise."""
    actual, wanted = await run(context, case.model(), case.feeds), expected(case)
    for ours, theirs in zip(actual, wanted, strict=True):
        if theirs.dtype.itemsize > 1:
            assert_same([ours], [theirs], relative=case.relative, absolute=case.absolute)
            continue
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        steps = np.abs(ours.astype(np.int32) - theirs.astype(np.int32))
        assert steps.max() <= 1, f"{steps.max()} steps"
        assert np.count_nonzero(steps) <= MOST_TIES * steps.size, f"{np.count_nonzero(steps)} of {steps.size}"


def assert_refused(context, case, text):
    """A case is refused for one reason, with a text that names its node, operator and opset."""
    with pytest.raises(UnsupportedModelError, match=re.escape(text)) as caught:
        OnnxModel.load(case.model()).convert(MLGraphBuilder(context))
    (problem,) = caught.value.problems
    assert problem.operator == case.operator
    opset = 1 if "." in case.operator else case.opset
    assert problem.subject == f"node 'the node' ({case.operator}, opset {opset})"
    assert str(caught.value) == f"the model cannot be converted:\n  {problem}"


def node(operator, versions, *inputs, known=(), outputs=1, wanted=(0,), oracle="onnxruntime", **attributes):
    """Cases of one node, one for each version of its operator; tolerances stand among the attributes."""
    tolerances = {name: attributes.pop(name) for name in ("relative", "absolute") if name in attributes}
    versions = [versions] if isinstance(versions, int) else versions
    return [
        Case(
            operator=operator,
            inputs=inputs,
            known=tuple(known),
            attributes=attributes,
            version=version,
            outputs=outputs,
            wanted=tuple(wanted),
            oracle=oracle,
            **tolerances,
        )
        for version in versions
    ]


def each(*groups: Iterable[Case]):
    """Return a decorator that runs a test for each case of the groups, as one test."""
    return cells("case", [case for group in groups for case in group], ids=str)


def compared(*groups: Iterable[Case]):
    """Return a test that compares each case of the groups with its oracle."""

    async def test(context, case):
        await check(context, case)

    return each(*groups)(test)
