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


EXPLAINER = """
const context = await navigator.ml.createContext();
const builder = new MLGraphBuilder(context);
const constant = (...values) => builder.constant({dataType: 'int32', shape: [values.length]}, new Int32Array(values));
const x = builder.input('x', {dataType: 'float32', shape: ['seq_len', 2]});
const seqLen = builder.cast(builder.slice(builder.shape(x), [0], [1]), 'int32');
const pad = builder.modulusFloor(builder.neg(seqLen), constant(4));
const padded = builder.padDynamic(x, constant(0, 0), builder.concat([pad, constant(0)], 0), {label: 'to fours'});
const sizes = builder.cast(builder.shape(padded), 'int32');
const fours = builder.concat([builder.div(builder.slice(sizes, [0], [1]), constant(4)), constant(4, 2)], 0);
const y = builder.reshapeDynamic(padded, fours);
const [first] = builder.splitDynamic(y, builder.concat([builder.slice(fours, [0], [1])], 0), {axis: 0});
const flat = builder.reshapeTo2d(first, {axis: 1});
const column = builder.sliceDynamic(x, constant(0, 1), builder.concat([seqLen, constant(1)], 0));
const tail = builder.squeeze(builder.unsqueeze(column, [0]), {axes: [0]});
console.log(JSON.stringify(x.shape), JSON.stringify(tail.shape), y.shape.length, typeof y.shape[0]);
const numbers = builder.range(builder.constant('int32', 0), builder.reshape(seqLen, []), builder.constant('int32', 2));
const graph = await builder.build({flat, tail, shape: builder.shape(x), numbers});
const dataTypes = {flat: 'float32', tail: 'float32', shape: 'uint32', numbers: 'int32'};
const tensor = (dataType, shape) => context.createTensor({dataType, shape, readable: true, writable: true});
for (const size of [3, 300]) {
  const shapes = graph.computeShapes({x: [size, 2]});
  const input = await tensor('float32', [size, 2]);
  context.writeTensor(input, Float32Array.from({length: 2 * size}, (_, index) => index));
  const outputs = {};
  for (const name in shapes) outputs[name] = await tensor(dataTypes[name], shapes[name]);
  context.dispatch(graph, {x: input}, outputs);
  const last = async (name, View) => [...new View(await context.readTensor(outputs[name]))].slice(-3).join();
  console.log(JSON.stringify(shapes), await last('flat', Float32Array), await last('tail', Float32Array),
              await last('shape', Uint32Array), await last('numbers', Int32Array));
}
const say = (call) => { try { call(); } catch ({name, message}) { console.log(name, message); } };
const other = new MLGraphBuilder(context);
const z = other.input('z', {dataType: 'float32', shape: ['n', 1]});
say(() => other.squeeze(z));
say(() => other.reshapeDynamic(z, other.cast(other.reduceSum(z, {axes: [0]}), 'int32'), {label: 'r'}));
say(() => other.shape(other.constant('float32', 1)));
say(() => other.input('w', {dataType: 'float32', shape: ['']}));
say(() => other.unsqueeze(z, [3, 3]));
"""

EXPLAINER_SAID = """
["seq_len",2] ["seq_len",1] 3 string
{"flat":[1,8],"tail":[3,1],"shape":[2],"numbers":[2]} 5,0,0 1,3,5 3,2 0,2
{"flat":[75,8],"tail":[300,1],"shape":[2],"numbers":[150]} 597,598,599 595,597,599 300,2 294,296,298
TypeError squeeze(): whether n is 1 is known at dispatch only; name the axes
"""


@both_engines
def test_a_script_computes_with_shapes_as_the_explainer_has_it(run, engine):
    said = run(engine, EXPLAINER, "--experimental", "dynamic-shapes-explainer")
    assert said[:4] == EXPLAINER_SAID.strip().splitlines()
    assert [line.partition(";")[0].partition(": it")[0] for line in said[4:]] == [
        "TypeError reshape_dynamic() [r]: cannot resolve new_shape, which is <MLOperand cast int32 [1]>",
        "TypeError shape(): input is a scalar, and an empty shape is no tensor",
        "TypeError input(): shape[0] is ''",
        "TypeError unsqueeze(): axes are [3, 3]",
    ]
    assert run(engine, "console.log('shape' in MLGraphBuilder.prototype);", "--experimental", "dynamic-shapes") == [
        "false"
    ]
