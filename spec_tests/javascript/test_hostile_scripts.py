"""Scripts that replace JavaScript's built-ins change nothing of the bindings."""

from spec_tests.support.scripts import both_engines, lines_of

# Everything that a script can replace throws and tells its name; what the program itself needs is kept before.
POISON = r"""
const {apply, ownKeys, getOwnPropertyDescriptor, defineProperty, getPrototypeOf} = Reflect;
const {log} = console;
const {then} = Promise.prototype;
const {toString} = Error.prototype;
const iterator = Symbol.iterator;
let touched = '';

function poisoned(name) {
  return function () {
    touched += `${name} `;
    throw new EvalError(name);
  };
}
// What is to be replaced is collected first, and replaced then, by what was there before.
const plan = [];
const replace = (object, key, descriptor) => plan.push([object, key, {__proto__: null, ...descriptor}]);

// Web IDL and JavaScript have a promise's constructor looked up where a script awaits it.
const LEFT = new Set(['Promise.prototype.constructor', 'Promise.Symbol(Symbol.species)', 'Object.prototype.__proto__']);
const seen = new Set([globalThis]);
function poison(object, path) {
  if (seen.has(object)) return;
  seen.add(object);
  for (const key of ownKeys(object)) {
    const name = `${path}.${String(key)}`;
    const found = getOwnPropertyDescriptor(object, key);
    const {value} = found;
    const isFunction = typeof value === 'function';
    if ((typeof value === 'object' && value !== null) || (isFunction && key === 'prototype')) poison(value, name);
    if (LEFT.has(name) || !found.configurable) continue;
    if (isFunction) replace(object, key, {...found, value: poisoned(name)});
    else if (found.get !== undefined) replace(object, key, {...found, get: poisoned(name)});
  }
}
const hidden = {
  '%TypedArray%': getPrototypeOf(Uint8Array),
  '%TypedArray%.prototype': getPrototypeOf(Uint8Array.prototype),
  '%ArrayIterator%': getPrototypeOf([][iterator]()),
  '%MapIterator%': getPrototypeOf(new Map()[iterator]()),
  '%SetIterator%': getPrototypeOf(new Set()[iterator]()),
  '%StringIterator%': getPrototypeOf(''[iterator]()),
  '%RegExpStringIterator%': getPrototypeOf(''.matchAll(/a/g)),
  '%Generator%': getPrototypeOf(getPrototypeOf((function* () {})())),
  '%AsyncFunction%': getPrototypeOf(async () => {}),
};
// Members that JavaScript or the package's own files might look for in their own objects.
const MEMBERS = ['error', 'settled', 'value', 'promise', 'call', 'kind', 'default', 'limits',
  'get', 'set', 'handle', 'attributes', 'toJSON', 'collected', 'configurable', 'enumerable',
  'type', 'target', 'fitting', 'interface', 'values', 'settlement', 'enforceRange', 'required',
  'optional', 'parent', 'of', 'key', 'log', 'timer', 'resolve', 'own', 'bytes'];
const CONSTRUCTORS = ['Array', 'ArrayBuffer', 'BigInt', 'Boolean', 'DataView', 'Date', 'Error', 'Float32Array',
  'FinalizationRegistry', 'Map', 'Number', 'Object', 'Promise', 'Proxy', 'RangeError', 'RegExp', 'Set',
  'SharedArrayBuffer', 'String', 'Symbol', 'TypeError', 'Uint8Array', 'WeakMap', 'WeakRef', 'WeakSet', 'Iterator',
  'DOMException', 'EventTarget', 'Event', 'URL', 'URLSearchParams', 'TextDecoder', 'Response'];
function collect() {
  for (const name of [...CONSTRUCTORS, 'JSON', 'Math', 'Reflect', 'Atomics']) {
    poison(globalThis[name], name);
    replace(globalThis, name, {value: poisoned(name), configurable: true, writable: true});
  }
  for (const name of Object.keys(hidden)) poison(hidden[name], name);
  poison(getPrototypeOf(poison), 'Function.prototype');
  const trap = (object, path, name) => {
    const get = poisoned(`${path}.${name}`);
    replace(object, name, {get, set: get, configurable: true});
  };
  for (const name of ['0', '1', '2', '3']) trap(Array.prototype, 'Array.prototype', name);
  for (const name of MEMBERS) trap(Object.prototype, 'Object.prototype', name);
}
function poisonEverything() {
  collect();
  for (let at = 0; at < plan.length; at += 1) {
    const entry = plan[at];
    defineProperty(entry[0], entry[1], entry[2]);
  }
}
"""

# The steps one after another, by `then` as it was; each step's answer is what the next gets.
PROGRAM = r"""
const {Float32Array: F32, ArrayBuffer: Buffer} = globalThis;
const items = (...given) => ({
  __proto__: null,
  [iterator]: () => {
    let at = 0;
    return {__proto__: null, next: () => at < given.length
      ? {__proto__: null, done: false, value: given[at++]} : {__proto__: null, done: true, value: undefined}};
  },
});
const described = (shape) => ({__proto__: null, dataType: 'float32', shape, readable: true, writable: true});
const {ml} = navigator;
const Builder = MLGraphBuilder;
const after = setTimeout;
const soon = queueMicrotask;
let context, tensor, output, graph;
const steps = [
  () => ml.createContext(),
  (made) => (context = made).createTensor(described(items(2))),
  (made) => {
    tensor = made;
    return context.createTensor(described(items(2)));
  },
  (made) => {
    output = made;
    const given = new F32(2);
    given[0] = 1.5;
    given[1] = -2;
    context.writeTensor(tensor, given);
    const builder = new Builder(context);
    const x = builder.input('x', described(items(2)));
    const limited = builder.clamp(x, {__proto__: null, maxValue: 1n});
    const doubled = builder.add(limited, builder.constant('float32', 2));
    const parts = builder.split(doubled, items(1, 1), {__proto__: null, axis: 0});
    const y = builder.concat(items(parts[1], parts[0]), 0);
    log(y.dataType, y.shape[0], y.shape.length, parts.length);
    return builder.build({__proto__: null, y});
  },
  (made) => {
    context.dispatch(graph = made, {__proto__: null, x: tensor}, {__proto__: null, y: output});
    return context.readTensor(output);
  },
  (bytes) => {
    const view = new F32(bytes);
    log(view[0], view[1]);
    return context.readTensor(output, new Buffer(8));
  },
  () => {
    const limits = context.opSupportLimits();
    log(limits.add.a.dataTypes[0], limits.preferredInputLayout);
    return context.createTensor(described(items(0)));
  },
  (error) => {
    log(error.message !== '');
    try {
      new Builder(context).input('y', described(items(-1)));
    } catch (thrown) {
      log(thrown.message);
    }
    tensor.destroy();
    return context.readTensor(tensor);
  },
  (error) => {
    log(error.message !== '');
    soon(() => log('microtask'));
    after(() => {
      log('timer');
      context.destroy();
      next(context.lost);
    }, 1);
  },
  (lost) => log(typeof lost.message),
];
let step = 0;
function next(promise) {
  const go = (value) => {
    const made = steps[step++](value);
    if (made !== undefined && step < steps.length) next(made);
  };
  apply(then, promise, [go, go]);
}
function start() {
  next(steps[step++]());
}
after(() => log(`touched: ${touched}`), 1000);
"""


async def outcome(engine, body):
    return await lines_of(POISON + PROGRAM + body, engine)


@both_engines
async def test_replacing_every_built_in_changes_nothing(engine, autojump_clock):
    plain = await outcome(engine, "start();")
    assert plain[:2] == ["float32 2 1 2", "0 3"]
    assert plain[-1] == "touched: "
    assert await outcome(engine, "poisonEverything(); start();") == plain
