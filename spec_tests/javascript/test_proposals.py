"""Proposals that scripts have with ``webnn-py node --experimental`` alone: their members, and what those say."""

import json
from pathlib import Path

import pytest
import trio

import webnn_py
from spec_tests.support.backends import BACKENDS

FOUR_BITS = """
const context = await navigator.ml.createContext();
const types = context.opSupportLimits();
console.log(types.constant.dataTypes.slice(-2).join(), types.input.dataTypes.length, types.add.a.dataTypes.length);
const builder = new MLGraphBuilder(context);
const bytes = (dataType, shape, ...values) => builder.constant({dataType, shape}, new Uint8Array(values));
const scale = builder.constant({dataType: 'float32', shape: [1]}, new Float32Array([0.5]));
const zeroPoint = bytes('int4', [1], 0x0F);
const y = builder.dequantizeLinear(bytes('int4', [3], 0xF7, 0x08), scale, zeroPoint);
const graph = await builder.build({y, q: builder.quantizeLinear(y, scale, zeroPoint)});
const tensors = {};
for (const [name, dataType] of [['y', 'float32'], ['q', 'int4']])
  tensors[name] = await context.createTensor({dataType, shape: [3], readable: true});
console.log(tensors.q.dataType, tensors.q.shape.join());
context.dispatch(graph, {}, tensors);
console.log(new Float32Array(await context.readTensor(tensors.y)).join());
const target = new Uint8Array(2);
await context.readTensor(tensors.q, target);
console.log(target.join(), new Uint8Array(await context.readTensor(tensors.q)).join());
const other = new MLGraphBuilder(context);
try { other.input('x', {dataType: 'int4', shape: [2]}); } catch ({name, message}) { console.log(name, message); }
"""

FOUR_BITS_SAID = """
int4,uint4 8 8
int4 3
4,0,-3.5
247,8 247,8
TypeError input(): data_type is 'int4'; it must be one of float32, float16, int32, uint32, int64, uint64, int8, uint8,\
 or numpy's native dtype of that name
"""


def test_a_script_has_weights_of_four_bits(run):
    expected = FOUR_BITS_SAID.replace("\\\n", "").strip().splitlines()
    assert run(FOUR_BITS, "--experimental", "int4") == expected


def test_a_script_has_no_four_bits_without_the_option(run):
    builder = "new MLGraphBuilder(await navigator.ml.createContext())"
    program = f"{builder}.constant({{dataType: 'int4', shape: [2]}}, new Uint8Array(1));"
    said = run(f"try {{ {program} }} catch ({{name, message}}) {{ console.log(name, message); }}")
    assert said[0].startswith('TypeError constant(): descriptor.dataType is "int4"; it must be one of float32')


POLICY = """
console.log('accelerated' in MLContext.prototype, 'computePolicy' in MLGraph.prototype);
for (const computePolicy of ['default', 'high-performance', 'fallback', undefined]) {
  const context = await navigator.ml.createContext({computePolicy, accelerated: 'is no member any more'});
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({y: builder.neg(builder.input('x', {dataType: 'float32', shape: [2]}))});
  console.log(context.accelerated, ['fallback', 'default', 'high-performance'].includes(graph.computePolicy));
  if (computePolicy === 'fallback') console.log(graph.computePolicy);
}
await navigator.ml.createContext({computePolicy: 'fast'}).catch(({name, message}) => {
  console.log(name);
  console.log(message);
});
"""

POLICY_SAID = """
false true
undefined true
undefined true
undefined true
fallback
undefined true
TypeError
createContext(): options.computePolicy is "fast"; it must be one of default, high-performance, low-power, fallback
"""


def test_a_script_gives_a_compute_policy_and_sees_the_effective_one(run):
    assert run(POLICY, "--experimental", "compute-policy") == POLICY_SAID.strip().splitlines()


RUN_BY_POLICY = """
const d = {dataType: 'float32', shape: [3], readable: true, writable: true};
for (const computePolicy of ['default', 'high-performance', 'low-power', 'fallback']) {
  const context = await navigator.ml.createContext({computePolicy});
  const builder = new MLGraphBuilder(context);
  const graph = await builder.build({y: builder.neg(builder.input('x', d))});
  const [x, y] = await Promise.all([context.createTensor(d), context.createTensor(d)]);
  context.writeTensor(x, new Float32Array([1, 2, 3]));
  context.dispatch(graph, {x}, {y});
  console.log(computePolicy, graph.computePolicy, new Float32Array(await context.readTensor(y)).join());
  context.destroy();
  console.log(graph.computePolicy);
}
"""


def effective_policies(backend):
    """The effective policy of each that a script asks for: "default" keeps --backend, the others choose a device."""

    async def find():
        async with webnn_py.open_ml(experimental={"compute-policy"}) as ml:
            for policy in ("default", "high-performance", "low-power", "fallback"):
                named = {"backend": backend} if policy == "default" else {}
                context = await ml.create_context(compute_policy=policy, **named)
                kind = context.backend.device_types[0]
                yield policy, "fallback" if kind == "cpu" else policy

    async def all_of_them():
        return [each async for each in find()]

    return trio.run(all_of_them)


@pytest.mark.parametrize("backend", BACKENDS)
def test_graphs_run_by_each_policy_on_every_device(run, backend):
    lines = run(RUN_BY_POLICY, "--experimental", "compute-policy", "--backend", backend)
    expected = [(f"{asked} {effective} -1,-2,-3", effective) for asked, effective in effective_policies(backend)]
    assert lines == [line for pair in expected for line in pair]


ATTENTION = (Path(__file__).parents[2] / "examples" / "subgraph.mjs").read_text(encoding="utf-8")

ATTENTION_SAID = """
GQA: 86 operators, run as groupQueryAttention
a name of my own: 86 operators, no operator is called 'a name of my own'
  output: equal
  present_key: equal
  present_value: equal
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_example_of_sub_graphs_is_equal_whole_and_by_its_body(run, backend):
    said = run(ATTENTION, "--experimental", "subgraph", "--backend", backend)
    assert said == 2 * ATTENTION_SAID.strip().splitlines()


def test_a_program_with_sub_graphs_is_traced(run, tmp_path):
    trace = tmp_path / "trace.json"
    said = run(ATTENTION, "--experimental", "subgraph", "--trace", str(trace))
    assert said == 2 * ATTENTION_SAID.strip().splitlines()
    builds = [event for event in json.loads(trace.read_text())["traceEvents"] if event.get("name") == "build()"]
    assert len({event["args"]["graph"] for event in builds} - {0}) == 4


SUBGRAPHS = """
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const descriptor = {dataType: 'float32', shape: [2]};
const operand = builder.input('input', descriptor);
const input = builder.input('input', descriptor);
class Config {
  constructor() {
    Object.assign(this, {beta: 2, absent: undefined, list: [-0, NaN, null, {deep: 'x'}]});
  }
}
const definition = builder.buildSubgraph({y: builder.neg(input)}, {name: 'f', inputs: {input}, config: new Config()});
console.log(Object.prototype.toString.call(definition), definition.name, definition instanceof MLSubgraph);
const outputs = builder.subgraph(definition, {input: operand}, {label: 'call'});
console.log(Object.keys(outputs).join(), outputs.y.dataType, Object.isFrozen(outputs));
const say = (call) => {
  try {
    console.log(call());
  } catch ({name, message}) {
    console.log(name, message);
  }
};
const x = builder.input('x', descriptor);
const y = builder.neg(x);
const cyclic = {};
cyclic.again = cyclic;
say(() => builder.buildSubgraph({y}, {name: 'g', inputs: {x}, config: {call: () => 1}}));
say(() => builder.buildSubgraph({y}, {name: 'g', inputs: {x}, config: cyclic}).name);
say(() => builder.buildSubgraph({y}, {name: 'g', inputs: {x}, config: 1n}));
say(() => builder.buildSubgraph({y}, {name: 'g', inputs: {}}));
say(() => builder.buildSubgraph({y}, {name: 'g'}));
say(() => builder.subgraph(definition, {x}));
say(() => builder.subgraph(y, {x}));
say(() => new MLSubgraph());
const graph = await builder.build(outputs);
console.log(JSON.stringify(graph.subgraphs), Object.isFrozen(graph.subgraphs));
"""

NESTED = '["again"]' * 17

SUBGRAPHS_SAID = f"""
[object MLSubgraph] f true
y float32 true
TypeError buildSubgraph(): options.config["call"] is a Function; it must be a boolean, a number, a string, null, an \
array or an object
TypeError buildSubgraph(): options.config{NESTED} is a Object; it must be nested at most 16 levels deep
TypeError buildSubgraph(): options.config is 1n; it must be a boolean, a number, a string, null, an array or an object
TypeError build_subgraph(): outputs depend on the input 'x', which is not among inputs []; a body sees its own inputs \
and constants only
TypeError buildSubgraph(): options.inputs is missing
TypeError subgraph(): operands are ['x']; those of 'f' are ['input']
TypeError subgraph(): definition is a MLOperand; it must be an MLSubgraph
TypeError Illegal constructor: MLSubgraph
[{{"label":"call","name":"f","operators":1,"reason":"no operator is called 'f'"}}] true
"""


def test_a_script_defines_and_calls_sub_graphs(run):
    assert run(SUBGRAPHS, "--experimental", "subgraph") == SUBGRAPHS_SAID.strip().splitlines()
    plain = "console.log(typeof MLSubgraph, 'subgraph' in MLGraphBuilder.prototype, 'subgraphs' in MLGraph.prototype);"
    assert run(plain) == ["undefined false false"]
