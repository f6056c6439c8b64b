// The interfaces of the description as JavaScript classes, each method a call to the host.
(function (runtime) {
  'use strict';

  const {own, slots, description, ask, capability, convertArguments, prepare, fromHost, bytesOf, lengthOf} = runtime;
  const global = globalThis;
  const prototypes = {__proto__: null};

  const rejected = (error) => new own.Promise((_, reject) => reject(error));

  // --- platform objects ------------------------------------------------------------------------------------------

  // Make the object of an interface that the host's answer describes: a handle, and the attributes' values.
  runtime.wrap = function (name, {handle, attributes}) {
    const object = own.create(prototypes[name]);
    const values = {__proto__: null};
    const described = description.interfaces[name].attributes;
    for (let index = 0; index < described.length; index += 1) {
      const {name: attribute, type} = described[index];
      const value = attributes[attribute];
      values[attribute] = type.kind === 'promise' ? capability(value, type.of).promise : fromHost(value, type);
    }
    own.weakSet(slots, object, {
      __proto__: null, interface: name, handle, values, limits: undefined, exports: attributes.exports});
    runtime.keepFor(object, handle);
    return object;
  };

  function slotOf(object, name) {
    const slot = own.weakGet(slots, object);
    if (slot?.interface !== name) throw runtime.ours(new own.TypeError(`Illegal invocation: not an ${name}`));
    return slot;
  }

  function define(target, name, properties) {
    Object.defineProperty(target, name, {enumerable: true, configurable: true, ...properties});
  }

  function defineFunction(target, name, length, body) {
    Object.defineProperty(body, 'name', {value: name, configurable: true});
    Object.defineProperty(body, 'length', {value: length, configurable: true});
    define(target, name, {value: body, writable: true});
  }

  // Attributes of objects live in their slot: they work forever, and frozen arrays are always the same one.
  function defineAttribute(prototype, name, attribute) {
    const promised = attribute.type.kind === 'promise';
    const read = (self) => slotOf(self, name).values[attribute.name];
    const {get} = {
      get() {
        try {
          return runtime.entered(get, this, null, read);
        } catch (error) {
          if (promised) return rejected(error);
          throw error;
        }
      },
    };
    Object.defineProperty(get, 'name', {value: `get ${attribute.name}`, configurable: true});
    define(prototype, attribute.name, {get, set: undefined});
  }

  function callOperation(slot, operation, prepared, values) {
    const {overload, converted, buffer, gpuDevice} = convertArguments(prepared, values, `${operation.name}()`);
    const returns = overload.returns;
    const message = {__proto__: null, call: operation.name, interface: slot.interface, this: slot.handle, args: converted};
    // The limits of a context never change; scripts ask for them all the time, and get fresh objects.
    if (returns.kind === 'dictionary') {
      slot.limits ??= own.json(fromHost(ask(message).answer.value, returns));
      return own.parse(slot.limits);
    }
    if (returns.kind === 'GPUBuffer') return runtime.gpu.lend(message, values[0]);
    // The one buffer of a call that returns a promise of nothing is to be filled, any other is to be read.
    const fills = buffer !== null && returns.kind === 'promise' && returns.of.kind === 'undefined';
    const reads = buffer !== null && !fills;
    // What is wrong with bytes is the answer to the call, and has the caller's line.
    if (returns.kind === 'promise' && !reads) message.promise = runtime.promiseNumber();
    const asked = ask(message, reads ? bytesOf(buffer) : null);
    if (operation.name === 'destroy') runtime.rejectReads(slot.handle, slot.interface, asked.answer.expected);
    if (returns.kind !== 'promise') return fromHost(asked.answer.value, returns, asked.bytes);
    const entry = capability(asked.answer.promise, returns.of);
    if (fills) entry.target = buffer;
    if (operation.name === 'readTensor') entry.reads = [converted[0].ref, slot.handle];
    return gpuDevice === null ? entry.promise : runtime.gpu.created(entry.promise, gpuDevice);
  }

  function defineOperation(prototype, name, operation) {
    const prepared = prepare(operation.overloads);
    const call = (self, values) => callOperation(slotOf(self, name), operation, prepared, values);
    const promises = operation.overloads[0].returns.kind === 'promise';
    const {method} = promises ? {
      // What goes wrong in a method that returns a promise rejects it.
      method(...values) {
        try {
          return runtime.entered(method, this, values, call);
        } catch (error) {
          return rejected(error);
        }
      },
    } : {
      method(...values) {
        return runtime.entered(method, this, values, call);
      },
    };
    defineFunction(prototype, operation.name, lengthOf(operation.overloads), method);
  }

  function constructObject(name, prepared, target, values) {
    if (prepared === null) throw runtime.ours(new own.TypeError(`Illegal constructor: ${name}`));
    const {converted} = convertArguments(prepared, values, `${name}()`);
    const {answer} = ask({__proto__: null, call: 'constructor', interface: name, args: converted});
    const object = runtime.wrap(name, answer.value);
    const {prototype} = target;
    if (prototype !== prototypes[name] && typeof prototype === 'object') own.setPrototypeOf(object, prototype);
    return object;
  }

  function defineInterface(name, definition) {
    const overloads = definition.constructors;
    const prepared = overloads ? prepare(overloads) : null;
    const constructor = function (...values) {
      const target = new.target;
      return runtime.entered(constructor, this, values, () => {
        if (target === undefined) throw runtime.ours(new own.TypeError(`${name} is a constructor; it needs new`));
        return constructObject(name, prepared, target, values);
      });
    };
    Object.defineProperty(constructor, 'name', {value: name, configurable: true});
    Object.defineProperty(constructor, 'length', {
      value: overloads ? lengthOf(overloads) : 0, configurable: true});
    const {prototype} = constructor;
    Object.defineProperty(constructor, 'prototype', {writable: false});
    Object.defineProperty(prototype, Symbol.toStringTag, {value: name, configurable: true});
    prototypes[name] = prototype;
    for (const attribute of definition.attributes) defineAttribute(prototype, name, attribute);
    for (const operation of definition.operations) defineOperation(prototype, name, operation);
    Object.defineProperty(global, name, {value: constructor, writable: true, configurable: true});
  }

  for (const [name, definition] of Object.entries(description.interfaces)) defineInterface(name, definition);

  // --- navigator.ml ----------------------------------------------------------------------------------------------

  const {navigator} = global;
  const ml = runtime.wrap('ML', {handle: 0, attributes: {}});
  for (const attribute of description.navigator) {
    const get = {
      get() {
        if (this !== navigator) throw new own.TypeError('Illegal invocation: not a Navigator');
        return ml;
      },
    }.get;
    Object.defineProperty(get, 'name', {value: `get ${attribute.name}`, configurable: true});
    define(Object.getPrototypeOf(navigator), attribute.name, {get, set: undefined});
  }
})
