"""Operators that a device does not claim are expanded, and what it supports then is what is enforced."""

import numpy as np
import pytest

from spec_tests.operators.cases import load_all
from spec_tests.operators.decomposed import DECOMPOSITIONS
from spec_tests.operators.minimal import minimal, operand_rows
from spec_tests.operators.test_limits import refused, replaced, run
from spec_tests.support.buffers import constant
from spec_tests.support.computing import compute, run_graph
from spec_tests.support.stand_ins import failing, noted
from spec_tests.support.watched_device import context_on
from webnn_py import MLGraphBuilder, OperationError, UnknownError
from webnn_py.core import reference
from webnn_py.core.descriptors import DATA_TYPES, MLOperandDescriptor
from webnn_py.core.device.backend import Capabilities
from webnn_py.core.device.compiling import expansion
from webnn_py.core.device.compiling.expansion import ExpandingBuilder, missing_primitives, support_of
from webnn_py.core.graph import Input
from webnn_py.core.operators.composite import Composite
from webnn_py.core.operators.examples import examples_of
from webnn_py.core.operators.limits import limit
from webnn_py.core.operators.operand import MLOperand
from webnn_py.core.operators.registry import OPERATORS
from webnn_py.core.reference import RECORD, ReferenceBackend

FILES = {file.operator: file for file in load_all()}
FLOAT32 = ("float32", "int32", "uint8")


CAPABILITIES = RECORD.capabilities()


def without(*names, data_types=DATA_TYPES, max_rank=8, **of_operators):
    """Return the limits of the reference device without some operators and data types."""

    def supports(operator):
        if operator.name in names:
            return ()
        return of_operators.get(operator.name, CAPABILITIES.supports(operator))

    return Capabilities(supports, data_types, max_rank)


class Limited(ReferenceBackend):
    """The reference device, which does not know what it is given beyond its capabilities."""

    def __init__(self, capabilities):
        super().__init__()
        self.capabilities = capabilities

    def compile(self, graph):
        for node in graph.nodes:
            assert expansion.is_claimed(node, self.capabilities), f"{node} is not claimed"
        return super().compile(graph)


LIMITED = {
    "float32": without(data_types=FLOAT32),
    "no exp": without("exp"),
    "no int64": without(data_types=tuple(item for item in DATA_TYPES if item != "int64")),
    "three axes": without(max_rank=3),
    "no gather, no where": without("gather", "where"),
    "sums of float32, casts of floats": without(
        reduce_sum=("float32",),
        cast=("float32", "float16"),
        gather={**dict.fromkeys(("input", "output"), DATA_TYPES)} | {"indices": ("int64",)},
    ),
    "nothing": Capabilities(lambda _operator: ()),
}


@pytest.fixture(params=LIMITED)
async def limited(ml, request):
    return await context_on(ml, Limited(LIMITED[request.param]))


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", sorted(OPERATORS))
async def test_what_is_reported_is_what_is_enforced(limited, name):
    operator, limits = OPERATORS[name], limited.op_support_limits()[name]
    rows = operand_rows(operator)
    if not any(row["data_types"] for row in limits.values()):
        words = "this device cannot run it" if name != "cast" else ""
        top = limited.op_support_limits()["input"]
        if max(row.ranks.min for row in rows.values()) <= top["rank_range"]["max"]:
            arguments = minimal(name)
            types = {tensor.data_type for value in arguments.values() for tensor in tensors(value)}
            if types <= set(top["data_types"]):
                refused(limited, name, arguments, words)
        return
    for operand in rows:
        for data_type in limits[operand]["data_types"]:
            types = first_types(operator, limits) | {operand: data_type}
            assert await run(limited, name, with_outputs(name, minimal(name, data_type=types), limits))
        for data_type in sorted(
            set(limited.op_support_limits()["input"]["data_types"]) - set(limits[operand]["data_types"])
        ):
            arguments = minimal(name, data_type=first_types(operator, limits))
            refused(limited, name, replaced(arguments, operand, data_type=data_type), f"the data type of {operand}")
    for operand in rows:
        ranks = limits[operand]["rank_range"]
        for rank in range(ranks["min"], ranks["max"] + 1):
            arguments = minimal(name, data_type=first_types(operator, limits), rank={operand: rank})
            if all(
                len(item.shape) <= limits[key]["rank_range"]["max"] for key in rows for item in tensors(arguments[key])
            ):
                assert await run(limited, name, with_outputs(name, arguments, limits))


def tensors(value):
    return [item for item in (value if isinstance(value, list) else [value]) if hasattr(item, "data_type")]


def first_types(operator, limits):
    """For each operand whose data type can be chosen, the first that is supported."""
    return {name: limits[name]["data_types"][0] for name, row in operand_rows(operator).items() if row.type_of is None}


def with_outputs(name, arguments, limits):
    option = {"cast": "data_type", "arg_min": "output_data_type", "arg_max": "output_data_type"}.get(name)
    return arguments if option is None else arguments | {option: limits["output"]["data_types"][0]}


def data_types(name, operand, capabilities):
    return support_of(OPERATORS[name], capabilities).data_types[operand]


def test_an_operator_is_supported_in_the_data_types_of_what_it_is_expanded_into():
    assert data_types("softmax", "input", LIMITED["float32"]) == ("float32",)
    assert data_types("softmax", "input", LIMITED["no exp"]) == ()
    assert data_types("reduce_l2", "input", LIMITED["no exp"]) == ("float32", "float16")
    assert data_types("quantize_linear", "zero_point", LIMITED["no int64"]) == ("uint8", "int8")
    assert data_types("quantize_linear", "zero_point", CAPABILITIES) == ("uint8", "int8", "uint32", "int32")
    mixed = LIMITED["sums of float32, casts of floats"]
    assert data_types("reduce_l1", "input", mixed) == ("float32",)
    assert data_types("softmax", "input", mixed) == ("float32", "float16")
    assert data_types("gather", "indices", mixed) == ("int64",)
    assert data_types("conv2d", "input", without(max_rank=4)) == ()
    assert data_types("conv2d", "input", without(max_rank=5)) == ("float32", "float16")


# --- the examples by which that is found ---------------------------------------------------------------------------


class Noting(ExpandingBuilder):
    """Notes each primitive with the data types of its operands and outputs."""

    def __init__(self):
        super().__init__(CAPABILITIES)
        self.reached = set()

    def draw(self, node):
        values = super().draw(node)
        if node.operator.name not in DECOMPOSITIONS:
            types = tuple(descriptor.data_type for descriptor in (*(v.descriptor for v in node.inputs), *node.outputs))
            self.reached.add((node.operator.name, frozenset(types) if node.operator.name == "concat" else types))
        return values


def reached(name, arguments):
    builder = Noting()

    def operand(value):
        if isinstance(value, list) and value and isinstance(value[0], MLOperandDescriptor):
            return [operand(item) for item in value]
        return builder.operand(Input(value, "x")) if isinstance(value, MLOperandDescriptor) else value

    getattr(builder, name)(**{key: operand(value) for key, value in arguments.items()})
    return builder.reached


def described(case):
    """The arguments of a case, with descriptors for operands."""

    def descriptor(tensor):
        return MLOperandDescriptor(tensor["data_type"], tensor["shape"])

    operands = {
        key: [descriptor(item) for item in given] if isinstance(given, list) else descriptor(given)
        for key, given in case.inputs.items()
    }
    return operands | case.options


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", DECOMPOSITIONS)
def test_the_examples_reach_everything_that_any_case_reaches(name):
    operator = OPERATORS[name]
    by_types = {}
    for case in FILES[name].cases:
        arguments = described(case)
        chosen = {
            key: arguments[key].data_type
            for key, row in operator.limits.items()
            if row.type_of is None and key in case.inputs
        }
        if "output_data_type" in operator.parameters:
            chosen["output"] = case.options.get("output_data_type", "int32")
        types = tuple(chosen.items())
        if types not in by_types:
            by_types[types] = set().union(
                *(reached(name, example) for example in examples_of(operator, chosen, expansion.USUAL_RANK))
            )
        missed = reached(name, arguments) - by_types[types]
        assert not missed, f"{case.name}: no example reaches {missed}"


# --- graphs that are expanded --------------------------------------------------------------------------------------


@pytest.fixture
async def context(ml):
    return await ml.create_context(backend="reference")


async def test_names_and_constants_of_an_expanded_graph_stay(context):
    weights = await constant(context, [1, 2, 3])
    builder = MLGraphBuilder(context)
    x, unused = (builder.input(name, data_type="float32", shape=[3]) for name in ("x", "unused"))
    softened = builder.softmax(builder.mul(x, builder.constant(weights)), 0)
    outputs = {
        "ä": softened,
        "again": softened,
        "as it is": builder.clamp(x),
        "of both": builder.neg(builder.sub(x, unused)),
    }
    graph = await builder.build(outputs)
    weights.destroy()
    assert list(graph.input_descriptors) == ["x", "unused"]
    assert list(graph.output_descriptors) == list(outputs)
    results = await run_graph(context, graph, {"x": np.float32([0, 0.5, -1]), "unused": np.ones(3)})
    powers = np.exp(np.float32([0, 1, -3]))
    for name in ("ä", "again"):
        np.testing.assert_allclose(results[name], powers / powers.sum(), rtol=1e-6)
    np.testing.assert_array_equal(results["as it is"], [0, 0.5, -1])
    np.testing.assert_array_equal(results["of both"], [1, 0.5, 2])


async def test_an_error_names_the_operator_that_was_drawn_and_its_label(context, monkeypatch):
    monkeypatch.setitem(reference.KERNELS, "exp", failing(FloatingPointError("too hot")))
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[3])
    y = builder.lstm_cell(*operands_of_cell(builder, x), 1, label="my cell")[0]
    with pytest.raises(UnknownError, match=r"exp \[in lstmCell \[my cell\]\]\(float32 \[1, 1\]\): too hot"):
        await compute(context, builder, {"x": np.zeros(3, np.float32)}, {"y": y})


def operands_of_cell(builder, x):
    row = builder.reshape(x, [1, 3])
    zeros = [builder.constant(np.zeros(shape, np.float32)) for shape in ((4, 3), (4, 1), (1, 1), (1, 1))]
    return [row, *zeros]


async def test_a_graph_that_needs_no_expansion_is_compiled_as_it_is(context, monkeypatch):
    seen = noted(monkeypatch, ReferenceBackend, "compile", lambda _backend, graph: graph)
    builder = MLGraphBuilder(context)
    x = builder.input("x", data_type="float32", shape=[3])
    await compute(context, builder, {"x": np.ones(3, np.float32)}, {"y": builder.add(x, x, label="mine")})
    (graph,) = seen
    assert [(node.operator.name, node.label) for node in graph.nodes] == [("add", "mine")]


def endless(input: MLOperand, *, label: str = "") -> MLOperandDescriptor:
    """Give the input, by way of itself."""
    return MLOperandDescriptor(input.data_type, input.shape)


ENDLESS = Composite(
    endless,
    "endless",
    {"input": limit(DATA_TYPES), "output": limit(DATA_TYPES, type_of="input")},
    lambda builder, **operands: builder.append(ENDLESS, **operands),
)


async def test_what_expands_into_itself_fails_the_build(context):
    builder = MLGraphBuilder(context)
    y = builder.append(ENDLESS, builder.input("x", data_type="float32", shape=[2]), label="mine")
    with pytest.raises(OperationError, match=r"endless \[mine\].* is neither claimed by the device nor expanded"):
        await builder.build({"y": y})


@pytest.mark.parametrize(
    ("name", "lacking", "words"),
    [
        ("erf", ["erf"], "it does not claim erf, which has no decomposition into other operators"),
        ("softmax", ["exp"], "it claims neither softmax nor all that it is expanded into; missing: exp"),
        (
            "lstm",
            ["matmul", "where", "cos"],
            "it claims neither lstm nor all that it is expanded into; missing: matmul, where",
        ),
    ],
)
async def test_a_refusal_names_the_primitives_that_the_device_would_have_to_claim(ml, name, lacking, words):
    context = await context_on(ml, Limited(without(*lacking)))
    refused(context, name, minimal(name), f"this device cannot run it: {words}")


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", sorted(DECOMPOSITIONS))
def test_a_device_that_claims_the_missing_primitives_too_can_run_the_operator(name):
    nothing = Capabilities(lambda _operator: ())
    missing = missing_primitives(OPERATORS[name], nothing)
    assert missing
    assert set(missing) <= set(reference.KERNELS)
    enough = Capabilities(lambda operator: DATA_TYPES if operator.name in missing else ())
    assert any(support_of(OPERATORS[name], enough).data_types.values())


def test_a_device_without_the_data_types_of_an_operator_lacks_no_primitive():
    integers = Capabilities(lambda _operator: (), data_types=("int32",))
    assert missing_primitives(OPERATORS["softmax"], integers) == ()


async def test_a_refusal_says_that_the_device_has_no_data_type_of_the_operator(ml):
    device = Limited(without(data_types=("int32", "uint8")))
    context = await context_on(ml, device)
    b = MLGraphBuilder(context)
    x = b.input("x", data_type="int32", shape=[2])
    with pytest.raises(TypeError, match="this device cannot run it: it has none of the operator's data types"):
        b.sigmoid(x)
