"""The interfaces of the API as a script sees them."""

import json


def test_interfaces_have_the_properties_of_web_idl(run):
    source = """
      const method = Object.getOwnPropertyDescriptor(MLGraphBuilder.prototype, 'conv2d');
      console.log(method.enumerable, method.writable, method.value.length, method.value.name);
      console.log(Object.getOwnPropertyDescriptor(globalThis, 'MLContext').enumerable, String(MLContext.prototype));
      console.log(MLGraphBuilder.length, navigator.ml === navigator.ml, navigator.ml instanceof ML);
      class Mine extends MLGraphBuilder {}
      navigator.ml.createContext().then((context) => console.log(new Mine(context) instanceof Mine));
    """
    assert run(source) == ["true true 2 conv2d", "false [object MLContext]", "1 true true", "true"]


DROPPED = """
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';
setFlagsFromString('--expose_gc');
const gc = runInNewContext('gc');
const context = await navigator.ml.createContext();
const handles = [];
for (let round = 0; round < 300; round += 1) {
  await context.createTensor({dataType: 'float32', shape: [250_000]});
  if (round % 50 === 49) gc();
}
console.log('done');
"""


def test_objects_that_scripts_drop_are_dropped_by_the_host(run, tmp_path):
    trace = tmp_path / "trace.json"
    assert run(DROPPED, "--trace", str(trace)) == ["done"]
    events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    assert sum(event["name"] == "release" for event in events) > 200


LABELLED = """
const descriptor = {dataType: 'float32', shape: [2], label: 'weights'};
navigator.ml.createContext({label: 'all'}).then(async (context) => {
    const builder = new MLGraphBuilder(context);
    const x = builder.input('x', descriptor);
    const things = [context, await context.createTensor(descriptor),
        await context.createConstantTensor(descriptor, new Float32Array(2)),
        await builder.build({y: builder.relu(x)}), x];
    console.log(things.map((thing) => 'label' in thing).join(' '));
});
"""


def test_only_operators_have_labels_in_scripts(run):
    assert run(LABELLED) == ["false false false false false"]


REPLACED = """
const touched = [];
const replaced = [
  [Array.prototype, ['map', 'forEach', 'includes', 'join', 'find', 'concat', Symbol.iterator]],
  [Map.prototype, ['get', 'set', 'has', 'delete', 'forEach']],
  [WeakMap.prototype, ['get', 'set']],
  [Object, ['keys', 'create', 'freeze', 'getPrototypeOf', 'getOwnPropertyDescriptor']],
  [Reflect, ['apply', 'ownKeys']],
  [Promise.prototype, ['then']],
  [String.prototype, ['slice', 'indexOf', 'toWellFormed']],
  [JSON, ['stringify']],
];
const {defineProperty} = Object;
const {log} = console;
const poison = (object, name) => {
  const value = () => {
    touched[touched.length] = `${String(name)}`;
    throw new EvalError(String(name));
  };
  defineProperty(object, name, {value, configurable: true, writable: true});
};
const context = await navigator.ml.createContext();
const {iterator} = Symbol;
const two = {[iterator]: () => { let at = 0; return {next: () => ({done: at++ > 0, value: 2})}; }};
for (let at = 0; at < replaced.length; at += 1) {
  for (let name = 0; name < replaced[at][1].length; name += 1) poison(replaced[at][0], replaced[at][1][name]);
}
const described = {dataType: 'float32', shape: two, readable: true, writable: true};
const tensor = await context.createTensor(described);
const output = await context.createTensor(described);
const given = new Float32Array(2);
given[0] = 1.5;
context.writeTensor(tensor, given);
const builder = new MLGraphBuilder(context);
const y = builder.add(builder.clamp(builder.input('x', described), {maxValue: 1n}), builder.constant('float32', 2));
const graph = await builder.build({y});
context.dispatch(graph, {x: tensor}, {y: output});
const read = new Float32Array(await context.readTensor(output));
let message = '';
try {
  builder.input('y', {dataType: 'float32', shape: 1});
} catch (error) {
  message = error.name;
}
tensor.destroy();
let destroyed = '';
try {
  await context.readTensor(tensor);
} catch (error) {
  destroyed = error.name;
}
const {preferredInputLayout} = context.opSupportLimits();
log(`${read[0]} ${read[1]} ${preferredInputLayout} ${message} ${destroyed} ${touched.length}`);
"""


def test_replacing_built_ins_changes_nothing_of_the_bindings(run):
    assert run(REPLACED) == ["3 2 nchw TypeError InvalidStateError 0"]
