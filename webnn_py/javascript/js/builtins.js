// JavaScript's built-ins as they are before any script runs, for the package's own files: a script may replace its own,
// and changes nothing here.
//
// Hence, in whatever runs after the start: methods of built-ins are functions of `runtime.own`; arrays are walked by
// their indices, since `for … of`, `...` and destructuring call iterators; what is looked into for names that it may
// lack has no prototype, and neither has a list that grows, whose prototype could have setters, nor a descriptor.
(function (runtime) {
  'use strict';

  const {bind, call} = Function.prototype;
  const free = bind.bind(call);  // a method as a function whose first argument is `this`
  const getterOf = (prototype, name) => {
    const found = Object.getOwnPropertyDescriptor(prototype, name)?.get;
    return found === undefined ? () => undefined : free(found);
  };
  const typedArray = Object.getPrototypeOf(Uint8Array.prototype);
  const shared = SharedArrayBuffer.prototype;

  const own = {
    __proto__: null,
    BigInt, Error, FinalizationRegistry, Map, Number, Promise,
    Set, TypeError, Uint8Array, WeakSet,
    iterator: Symbol.iterator, toPrimitive: Symbol.toPrimitive,

    isArray: Array.isArray, isView: ArrayBuffer.isView,
    create: Object.create, define: Object.defineProperty, freeze: Object.freeze, keys: Object.keys,
    is: Object.is, prototypeOf: Object.getPrototypeOf, setPrototypeOf: Object.setPrototypeOf,
    descriptor: Object.getOwnPropertyDescriptor, hasOwn: Object.hasOwn,
    apply: Reflect.apply, ownKeys: Reflect.ownKeys,
    parse: JSON.parse, stringify: JSON.stringify,
    isFinite: Number.isFinite, trunc: Math.trunc, min: Math.min, max: Math.max, fround: Math.fround,
    asIntN: BigInt.asIntN, asUintN: BigInt.asUintN,
    captureStackTrace: Error.captureStackTrace,
    exec: free(RegExp.prototype.exec),
    then: free(Promise.prototype.then),

    tagOf: free(Object.prototype.toString),
    symbolText: free(Symbol.prototype.toString),
    toWellFormed: free(String.prototype.toWellFormed),
    slice: free(String.prototype.slice), indexOf: free(String.prototype.indexOf),
    mapGet: free(Map.prototype.get), mapSet: free(Map.prototype.set), mapHas: free(Map.prototype.has),
    mapDelete: free(Map.prototype.delete), mapForEach: free(Map.prototype.forEach),
    setAdd: free(Set.prototype.add), setDelete: free(Set.prototype.delete), setForEach: free(Set.prototype.forEach),
    weakGet: free(WeakMap.prototype.get), weakSet: free(WeakMap.prototype.set),
    noted: free(WeakSet.prototype.has), note: free(WeakSet.prototype.add), forget: free(WeakSet.prototype.delete),
    register: free(FinalizationRegistry.prototype.register),
    typedSet: free(typedArray.set), typeOfView: getterOf(typedArray, Symbol.toStringTag),
    typedBuffer: getterOf(typedArray, 'buffer'), typedOffset: getterOf(typedArray, 'byteOffset'),
    typedBytes: getterOf(typedArray, 'byteLength'),
    dataBuffer: getterOf(DataView.prototype, 'buffer'), dataOffset: getterOf(DataView.prototype, 'byteOffset'),
    dataBytes: getterOf(DataView.prototype, 'byteLength'),
    bufferBytes: getterOf(ArrayBuffer.prototype, 'byteLength'), isDetached: getterOf(ArrayBuffer.prototype, 'detached'),
    isResizable: getterOf(ArrayBuffer.prototype, 'resizable'),
    sharedBytes: getterOf(shared, 'byteLength'), isGrowable: getterOf(shared, 'growable'),
  };

  // A list that grows by `list[list.length] = item`, whatever setters a script gives to arrays.
  own.list = () => own.setPrototypeOf([], null);

  // Put an item at the end of an array that scripts get, as it is.
  own.append = (array, value) => own.define(array, array.length, {
    __proto__: null, value, writable: true, enumerable: true, configurable: true});

  own.map = (array, change) => {
    const changed = [];
    for (let index = 0; index < array.length; index += 1) own.append(changed, change(array[index], index));
    return changed;
  };
  own.find = (array, test) => {
    for (let index = 0; index < array.length; index += 1) if (test(array[index])) return array[index];
    return undefined;
  };
  own.includes = (array, value) => own.find(array, (item) => item === value) !== undefined;
  own.join = (array, between) => {
    let text = '';
    for (let index = 0; index < array.length; index += 1) text += `${index > 0 ? between : ''}${array[index]}`;
    return text;
  };

  // Parsed JSON whose objects have no members but their own.
  own.bare = (value) => {
    if (typeof value !== 'object' || value === null) return value;
    if (!own.isArray(value)) own.setPrototypeOf(value, null);
    const keys = own.keys(value);
    for (let index = 0; index < keys.length; index += 1) own.bare(value[keys[index]]);
    return value;
  };

  // JSON of what the package's files make themselves: own members only, and no toJSON. Members that are undefined are
  // left out.
  own.json = (value) => {
    if (typeof value === 'string') return own.stringify(value);
    if (typeof value !== 'object' || value === null) return `${value}`;
    let text = '';
    if (own.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) text += `${index > 0 ? ',' : ''}${own.json(value[index])}`;
      return `[${text}]`;
    }
    const keys = own.keys(value);
    for (let index = 0; index < keys.length; index += 1) {
      const item = value[keys[index]];
      if (item !== undefined) text += `${text === '' ? '' : ','}${own.stringify(keys[index])}:${own.json(item)}`;
    }
    return `{${text}}`;
  };

  runtime.own = own;
})
