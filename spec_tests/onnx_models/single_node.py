"""Models of a single node, run through the importer on the numpy device and through an independent runtime."""

import re
from collections.abc import Iterable

import attrs
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import defs, helper, numpy_helper, parser
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
        attributes: its attributes; empty lists are of integers.
        version: the version of the operator.
        outputs: how many outputs it has.
        wanted: the indices of the outputs that are outputs of the model; all of them if None.
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
    wanted: tuple | None = None
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
        attributes = {name: value for name, value in self.attributes.items() if value != []}
        node = helper.make_node(operator, names, outputs, name="the node", domain=domain, **attributes)
        empty = self.attributes.keys() - attributes.keys()
        node.attribute.extend(helper.make_attribute(name, [], attr_type=onnx.AttributeProto.INTS) for name in empty)
        arrays = {name: item for name, item in zip(names, self.inputs, strict=True) if name}
        initializers = {names[index]: self.inputs[index] for index in self.known}
        wanted = outputs if self.wanted is None else [outputs[index] for index in self.wanted]
        return make_model([node], arrays, wanted, initializers, opset=self.opset)

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


def parsed(text, *functions, inputs="float[3,4] x", opset=16, **initializers):
    """Return a model in bytes, from ONNX's text: "(outputs) <initializers> { nodes }".

    Functions of the domain "own" are texts as well; "<" begins one that names its domain and operator sets.
    """
    domains = [f'"{name}": 1' for name in ("own", "com.microsoft") if f" {name}." in text]
    opsets = "opset_import: [" + ", ".join([f'"": {opset}', *domains]) + "]"
    bodies = [item if item[0] == "<" else f'<domain: "own", {opsets}> {item}' for item in functions]
    graph = f"<ir_version: {8 if opset < 19 else 10}, {opsets}> g ({inputs}) => {text}"
    model = parser.parse_model("\n".join([graph, *bodies]))
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in initializers.items())
    return model.SerializeToString()


def expected(case):
    """Return the outputs that the oracle of a case gives."""
    if isinstance(case.oracle, list):
        return case.oracle
    if case.oracle == "reference":
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(onnx.load_model_from_string(case.model())).run(None, case.feeds)
    version = case.version if case.oracle == "onnxruntime" else case.oracle
    return run_onnxruntime(attrs.evolve(case, version=version).model(), case.feeds)


def seven_bits(weights):
    """Return half of each int8: onnxruntime sums their products with uint8 correctly on every processor.

    Where a processor has no VNNI, it adds two of them in 16 bits, which saturate: 2 · 255 · 127 does, 2 · 255 · 64 does
    not. The full range is compared with exact sums (``test_integer_products_are_exact``).
    """
    return weights >> 1


def run_onnxruntime(model, feeds):
    session = onnxruntime.InferenceSession(model, OPTIONS, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


async def run(context, model, feeds, **options):
    """Import a model, run it, and return its outputs in order; then free what it holds in the context."""
    loaded = model if isinstance(model, OnnxModel) else OnnxModel.load(model)
    builder = MLGraphBuilder(context)
    outputs = await compute_graph(context, await builder.build(loaded.convert(builder, **options)), feeds)
    return [outputs[name] for name in loaded.outputs]


def assert_same(actual, wanted, *, relative=1e-5, absolute=1e-6):
    """Assert that shapes and types are the same, booleans being uint8, floats close and integers equal."""
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
    """Run a case both ways; bytes may differ by one, where a float on the way is rounded otherwise."""
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
    """Assert that a case is refused for one reason, in a text that names its node, operator and opset."""
    with pytest.raises(UnsupportedModelError, match=re.escape(text)) as caught:
        OnnxModel.load(case.model()).convert(MLGraphBuilder(context))
    (problem,) = caught.value.problems
    assert problem.operator == case.operator
    opset = 1 if "." in case.operator else case.opset
    assert problem.subject == f"node 'the node' ({case.operator}, opset {opset})"
    assert str(caught.value) == f"the model cannot be converted:\n  {problem}"


def node(operator, versions, *inputs, known=(), outputs=1, wanted=None, oracle="onnxruntime", **attributes):
    """Return cases of one node, one for each version of its operator; tolerances stand among the attributes."""
    tolerances = {name: attributes.pop(name) for name in ("relative", "absolute") if name in attributes}
    inputs = tuple(None if item is None else np.asarray(item) for item in inputs)
    given = {"inputs": inputs, "known": tuple(known), "outputs": outputs, "wanted": wanted, "oracle": oracle}
    versions = [versions] if isinstance(versions, int) else versions
    return [
        Case(operator=operator, version=version, attributes=attributes, **given, **tolerances) for version in versions
    ]


def microsoft(operator, *inputs, **given):
    """Return the case of one of onnxruntime's own operators."""
    return node(f"{MICROSOFT}{operator}", 1, *inputs, **given)


def ml(operator, *inputs, **given):
    """Return the case of an operator of classical machine learning."""
    return node(f"ai.onnx.ml.{operator}", 1, *inputs, **given)


class Random:
    """Random arrays, the same in each process."""

    def __init__(self, seed, low=-1.0, high=1.0):
        self.rng, self._low, self._high = np.random.default_rng(seed), low, high

    def floats(self, *shape, dtype=np.float32):
        return self.rng.uniform(self._low, self._high, shape).astype(dtype)

    def integers(self, dtype, *shape):
        """Return integers of the whole range of a type."""
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def int64s(*values):
    return np.array(values, np.int64)


def scaled(scale, zero_point, data_type=np.uint8):
    """Return a scale and a zero point."""
    return np.float32(scale), data_type(zero_point)


def compared(*groups: Iterable[Case], by=check):
    """Return a test that compares each case of the groups with its oracle."""

    async def test(context, case):
        await by(context, case)

    return each(*groups)(test)


def each(*groups: Iterable[Case]):
    """Return a decorator that runs a test for each case of the groups, as one test."""
    return cells("case", [case for group in groups for case in group], ids=str)


def refused(*rows: tuple[list[Case], str]):
    """Return a test that each case is refused with the text of its row."""

    async def test(context, refused_case, text):
        (case,) = refused_case
        assert_refused(context, case, text)

    return cells(("refused_case", "text"), rows, ids=[f"{case.operator}: {text}"[:80] for (case,), text in rows])(test)
