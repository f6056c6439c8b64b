"""The proposal "dynamic shapes", which scripts have with ``webnn-py js --experimental dynamic-shapes`` alone."""

from spec_tests.support.scripts import both_engines

PROGRAM = """
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const keys = builder.input('keys', {dataType: 'float32', shape: [{name: 'past', maxSize: 7}, 2]});
const key = builder.input('key', {dataType: 'float32', shape: [1, 2]});
const all = builder.concat([keys, key], 0);
console.log(JSON.stringify(keys.shape), JSON.stringify(all.shape), Object.isFrozen(all.shape));
const twice = builder.input('twice', {dataType: 'float32', shape: ['past', 1]});
const y = builder.concat([builder.reshape(all, [1, 'past + 1', 2]), builder.expand(twice, [1, 'past', 2])], 1);
const graph = await builder.build({y});
const tensor = (shape) => context.createTensor({dataType: 'float32', shape, readable: true, writable: true});
for (const past of [2, 7]) {
  const shapes = {keys: [past, 2], key: [1, 2], twice: [past, 1]};
  const computed = graph.computeShapes(shapes);
  console.log(JSON.stringify(computed));
  const inputs = {};
  for (const name in shapes) {
    inputs[name] = await tensor(shapes[name]);
    context.writeTensor(inputs[name], new Float32Array(shapes[name][0] * shapes[name][1]).fill(shapes[name][0]));
  }
  const output = await tensor(computed.y);
  context.dispatch(graph, inputs, {y: output});
  console.log(new Float32Array(await context.readTensor(output)).join());
}
const told = (call) => { try { call(); } catch ({name, message}) { console.log(name, message); } };
told(() => graph.computeShapes({keys: [8, 2], key: [1, 2], twice: [8, 1]}));
told(() => graph.computeShapes({keys: [-1, 2], key: [1, 2], twice: [8, 1]}));
const input = (...shape) => () => new MLGraphBuilder(context).input('x', {dataType: 'float32', shape});
told(input({name: 'n'}));
told(input({maxSize: 4}));
told(input(''));
told(input('n'));
told(input(true));
told(input({name: 'n', maxSize: 0}));
told(input({name: 'n', maxSize: 4, minSize: 5}));
console.log(input({name: 'n', maxSize: 4, minSize: 4}, 2.5)().shape.join());
"""

SAID = """
["past",2] ["past + 1",2] true
{"y":[1,5,2]}
2,2,2,2,1,1,2,2,2,2
{"y":[1,15,2]}
7,7,7,7,7,7,7,7,7,7,7,7,7,7,1,1,7,7,7,7,7,7,7,7,7,7,7,7,7,7
TypeError compute_shapes(): input_shapes['keys'] is [8, 2]; dimension 0, past, must be from 1 to 7
TypeError computeShapes(): inputShapes["keys"][0] is -1; it must be an integer from 0 to 4294967295
"""


@both_engines
def test_a_script_names_dimensions_and_computes_shapes(run, engine):
    said = run(engine, PROGRAM, "--experimental", "dynamic-shapes")
    undeclared = "which no input has declared; it must be a number, or a name that has its largest size from an"
    assert said == [
        *SAID.strip().splitlines(),
        "TypeError input(): descriptor.shape[0].maxSize is missing",
        "TypeError input(): descriptor.shape[0].name is missing",
        *(f"TypeError input(): shape[0] is {name!r}, {undeclared} MLDynamicDimension" for name in ("", "n", "true")),
        "TypeError MLDynamicDimension('n'): sizes are from 1 to 0; they must be from 1 to 2147483647",
        "TypeError MLDynamicDimension('n'): sizes are from 5 to 4; they must be from 1 to 2147483647",
        "4,2",
    ]


@both_engines
def test_named_dimensions_are_refused_without_the_option(run, engine):
    assert run(
        engine,
        """
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
for (const dimension of ['n', {name: 'n', maxSize: 4}]) {
  try { builder.input('x', {dataType: 'float32', shape: [dimension]}); } catch ({name}) { console.log(name); }
}
console.log('computeShapes' in MLGraph.prototype);
""",
    ) == ["TypeError", "TypeError", "false"]
