// The interfaces of the description as JavaScript classes, each method a call to the host.
(function (runtime) {
  'use strict';

  const {slots, description, ask, capability, collected, convertArguments, fromHost, bytesOf, lengthOf} = runtime;
  const global = globalThis;
  const prototypes = new Map();
  const registry = new FinalizationRegistry((handle) => collected.push(handle));

  // --- platform objects ------------------------------------------------------------------------------------------

  // Make the object of an interface that the host's answer describes: a handle, and the attributes' values.
  runtime.wrap = function (name, {handle, attributes}) {
    const object = Object.create(prototypes.get(name));
    const values = new Map();
    for (const {name: attribute, type} of description.interfaces[name].attributes) {
      const value = attributes[attribute];
      values.set(attribute, type.kind === 'promise' ? capability(value, type.of).promise : fromHost(value, type));
    }
    slots.set(object, {interface: name, handle, values});
    registry.register(object, handle);
    return object;
  };

  function slotOf(object, name) {
    const slot = slots.get(object);
    if (slot?.interface !== name) throw new TypeError(`Illegal invocation: not an ${name}`);
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
    const get = {
      [attribute.name]() {
        try {
          return slotOf(this, name).values.get(attribute.name);
        } catch (error) {
          if (promised) return Promise.reject(error);
          throw error;
        }
      },
    }[attribute.name];
    Object.defineProperty(get, 'name', {value: `get ${attribute.name}`, configurable: true});
    define(prototype, attribute.name, {get, set: undefined});
  }

  function callOperation(self, name, operation, values) {
    const slot = slotOf(self, name);
    const {overload, converted, buffer} = convertArguments(operation.overloads, values, `${operation.name}()`);
    const returns = overload.returns;
    // The limits of a context never change; scripts ask for them all the time, and get fresh objects.
    if (returns.kind === 'dictionary') {
      if (slot.limits === undefined) {
        const {answer} = ask({call: operation.name, interface: name, this: slot.handle, args: []});
        slot.limits = JSON.stringify(fromHost(answer.value, returns));
      }
      return JSON.parse(slot.limits);
    }
    // The one buffer of a call that returns a promise of nothing is to be filled, any other is to be read.
    const fills = buffer !== null && returns.kind === 'promise' && returns.of.kind === 'undefined';
    const bytes = buffer === null || fills ? null : bytesOf(buffer);
    const asked = ask({call: operation.name, interface: name, this: slot.handle, args: converted}, bytes);
    if (returns.kind !== 'promise') return fromHost(asked.answer.value, returns, asked.bytes);
    const entry = capability(asked.answer.promise);
    if (fills) entry.target = buffer;
    return capability(asked.answer.promise, returns.of).promise;
  }

  function defineOperation(prototype, name, operation) {
    const promises = operation.overloads[0].returns.kind === 'promise';
    const body = promises ? {
      // What goes wrong in a method that returns a promise rejects it.
      method(...values) {
        try {
          return callOperation(this, name, operation, values);
        } catch (error) {
          return Promise.reject(error);
        }
      },
    } : {
      method(...values) {
        return callOperation(this, name, operation, values);
      },
    };
    defineFunction(prototype, operation.name, lengthOf(operation.overloads), body.method);
  }

  function constructObject(name, overloads, target, values) {
    if (overloads === null) throw new TypeError(`Illegal constructor: ${name}`);
    const {converted} = convertArguments(overloads, values, `${name}()`);
    const {answer} = ask({call: 'constructor', interface: name, args: converted});
    const object = runtime.wrap(name, answer.value);
    if (target.prototype !== prototypes.get(name)) Object.setPrototypeOf(object, target.prototype);
    return object;
  }

  function defineInterface(name, definition) {
    const overloads = definition.constructors;
    const constructor = function (...values) {
      if (new.target === undefined) throw new TypeError(`${name} is a constructor; it needs new`);
      return constructObject(name, overloads, new.target, values);
    };
    Object.defineProperty(constructor, 'name', {value: name, configurable: true});
    Object.defineProperty(constructor, 'length', {
      value: overloads ? lengthOf(overloads) : 0, configurable: true});
    const {prototype} = constructor;
    Object.defineProperty(constructor, 'prototype', {writable: false});
    Object.defineProperty(prototype, Symbol.toStringTag, {value: name, configurable: true});
    prototypes.set(name, prototype);
    for (const attribute of definition.attributes) defineAttribute(prototype, name, attribute);
    for (const operation of definition.operations) defineOperation(prototype, name, operation);
    Object.defineProperty(global, name, {value: constructor, writable: true, configurable: true});
  }

  for (const [name, definition] of Object.entries(description.interfaces)) defineInterface(name, definition);

  // --- navigator.ml ----------------------------------------------------------------------------------------------

  const ml = runtime.wrap('ML', {handle: 0, attributes: {}});
  for (const attribute of description.navigator) {
    const get = {
      get() {
        if (this !== global.navigator) throw new TypeError('Illegal invocation: not a Navigator');
        return ml;
      },
    }.get;
    Object.defineProperty(get, 'name', {value: `get ${attribute.name}`, configurable: true});
    define(Object.getPrototypeOf(global.navigator), attribute.name, {get, set: undefined});
  }
})
