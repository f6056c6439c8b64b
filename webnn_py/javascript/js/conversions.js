// Web IDL conversions between JavaScript values and the plain values that are sent to the host.
//
// Types are data (see description.js). A value for the host is JSON, with these tags where JSON has no word:
// {ref} a platform object, {bigint}, {number} for NaN, infinities and -0, {record} pairs in order, {dictionary},
// {buffer} a view's type and length, its bytes travelling beside the message.
(function (runtime) {
  'use strict';

  const {own, slots} = runtime;
  const description = own.bare(runtime.description);

  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
  const succeeds = (getter, value) => {
    try {
      return getter(value) !== undefined;
    } catch {
      return false;
    }
  };
  // By what they are, not by their prototypes, which a script may change.
  const isPlainBuffer = (value) => isObject(value) && succeeds(own.bufferBytes, value);
  // In this order: a getter that fails makes an error, which takes microseconds, and most buffers are plain.
  const isShared = (value) => isObject(value) && !isPlainBuffer(value) && succeeds(own.sharedBytes, value);
  const isBuffer = (value) => isPlainBuffer(value) || isShared(value);
  const isBufferSource = (value) => own.isView(value) || isBuffer(value);

  const MAX_SHOWN = 100;

  function shown(value) {
    if (typeof value === 'string') {
      return own.stringify(value.length > MAX_SHOWN ? `${own.slice(value, 0, MAX_SHOWN)}…` : value);
    }
    if (typeof value === 'bigint') return own.asIntN(256, value) === value ? `${value}n` : 'a BigInt of over 256 bits';
    if (typeof value === 'symbol') return own.symbolText(value);
    if (!isObject(value)) return `${value}`;
    if (own.isArray(value)) return 'an array';
    try {
      return `a ${value.constructor.name}`;
    } catch {
      return 'an object';
    }
  }

  const refuse = (where, value, allowed) => {
    throw runtime.ours(new own.TypeError(`${where} is ${shown(value)}; it must be ${allowed}`));
  };

  // --- numbers ---------------------------------------------------------------------------------------------------

  const INTEGERS = {
    '__proto__': null,
    'long': {bits: 32, signed: true, low: -(2 ** 31), high: 2 ** 31 - 1},
    'unsigned long': {bits: 32, signed: false, low: 0, high: 2 ** 32 - 1},
    'unsigned long long': {bits: 64, signed: false, low: 0, high: 2 ** 53 - 1},
  };

  function toInteger(value, type, where) {
    const {bits, signed, low, high} = INTEGERS[type.kind];
    const number = toNumber(value, where);
    if (type.enforceRange) {
      const whole = own.trunc(number) + 0;
      if (!own.isFinite(number) || whole < low || whole > high) refuse(where, value, `an integer from ${low} to ${high}`);
      return whole;
    }
    // Without [EnforceRange] an integer wraps.
    if (!own.isFinite(number)) return 0;
    const whole = own.BigInt(own.trunc(number));
    return own.Number(signed ? own.asIntN(bits, whole) : own.asUintN(bits, whole));
  }

  // What an object's own methods throw is the script's business; what JavaScript itself refuses is refused in our words.
  function toNumber(value, where) {
    if (typeof value === 'bigint' || typeof value === 'symbol') refuse(where, value, 'a number');
    if (!isObject(value)) return +value;
    return toNumber(toPrimitive(value, where), where);
  }

  function toPrimitive(value, where) {
    const method = value[own.toPrimitive];
    if (method !== undefined && method !== null) {
      const primitive = own.apply(method, value, ['number']);
      return isObject(primitive) ? refuse(where, value, 'a number') : primitive;
    }
    for (const name in {__proto__: null, valueOf: 0, toString: 0}) {
      const convert = value[name];
      if (typeof convert !== 'function') continue;
      const primitive = own.apply(convert, value, []);
      if (!isObject(primitive)) return primitive;
    }
    return refuse(where, value, 'a number');
  }

  function toFinite(value, type, where) {
    let number = toNumber(value, where);
    if (type.kind === 'float') number = own.fround(number);
    if (!own.isFinite(number)) refuse(where, value, 'a finite number');
    return taggedNumber(number);
  }

  // JSON has no NaN, no infinities, and writes -0 as 0.
  const taggedNumber = (number) => own.isFinite(number) && !own.is(number, -0)
      ? number : {__proto__: null, number: own.is(number, -0) ? '-0' : `${number}`};

  // A number that is to be cast to a data type. Beyond these a cast gives the type's limit, or infinity, all the same.
  const MOST = 2n ** 1024n;
  const taggedBigInt = (value) =>
      ({__proto__: null, bigint: `${value > MOST ? MOST : value < -MOST ? -MOST : value}`});

  function toNumeric(value, where) {
    const numeric = isObject(value) ? toPrimitive(value, where) : value;
    return typeof numeric === 'bigint' ? taggedBigInt(numeric) : taggedNumber(toNumber(numeric, where));
  }

  // --- strings, objects ------------------------------------------------------------------------------------------

  function toText(value, where) {
    if (typeof value === 'symbol') refuse(where, value, 'a string');
    return `${value}`;
  }

  function toEnumeration(value, type, where) {
    const text = toText(value, where);
    const allowed = description.enums[type.name];
    if (!own.includes(allowed, text)) refuse(where, text, `one of ${own.join(allowed, ', ')}`);
    return text;
  }

  function toReference(value, type, where) {
    const slot = own.weakGet(slots, value);
    if (slot === undefined || slot.interface !== type.name) refuse(where, value, `an ${type.name}`);
    return {__proto__: null, ref: slot.handle};
  }

  function toGPUDevice(value, type, where, extras) {
    if (!runtime.gpu.isDevice(value)) refuse(where, value, 'a GPUDevice');
    extras.gpuDevice = value;
    return null;  // the host has nothing of it
  }

  function toBufferSource(value, type, where, extras) {
    if (!isBufferSource(value)) refuse(where, value, 'an ArrayBuffer or a view of one');
    const view = own.isView(value);
    const buffer = view ? bufferOf(value) : value;
    if (isShared(buffer) ? own.isGrowable(buffer) : own.isResizable(buffer)) {
      const what = `${view ? 'a view of ' : ''}a ${isShared(buffer) ? 'growable SharedArrayBuffer' : 'resizable ArrayBuffer'}`;
      throw runtime.ours(new own.TypeError(`${where} is ${what}; it must be a buffer of fixed length, or a view of one`));
    }
    extras.buffer = value;
    const name = view ? own.typeOfView(value) ?? 'DataView' : 'ArrayBuffer';
    return {__proto__: null, buffer: {__proto__: null, type: name, byteLength: byteLengthOf(value)}};
  }

  const isTyped = (view) => own.typeOfView(view) !== undefined;
  const bufferOf = (view) => isTyped(view) ? own.typedBuffer(view) : own.dataBuffer(view);

  function byteLengthOf(source) {
    if (!own.isView(source)) return isShared(source) ? own.sharedBytes(source) : own.bufferBytes(source);
    if (isTyped(source)) return own.typedBytes(source);
    return own.isDetached(own.dataBuffer(source)) ? 0 : own.dataBytes(source);
  }

  // The bytes of a buffer or view, without a copy; a detached one has none.
  function bytesOf(source) {
    if (byteLengthOf(source) === 0) return new own.Uint8Array(0);
    if (!own.isView(source)) return new own.Uint8Array(source);
    const offset = isTyped(source) ? own.typedOffset(source) : own.dataOffset(source);
    return new own.Uint8Array(bufferOf(source), offset, byteLengthOf(source));
  }

  function toSequence(value, type, where, extras) {
    const iterate = isObject(value) ? value[own.iterator] : undefined;
    if (iterate === undefined || iterate === null) refuse(where, value, 'a sequence');
    const iterator = own.apply(iterate, value, []);
    if (!isObject(iterator)) refuse(`what iterates over ${where}`, iterator, 'an object');
    const {next} = iterator;
    const items = own.list();
    for (;;) {
      const step = own.apply(next, iterator, []);
      if (!isObject(step)) refuse(`what iterates over ${where}`, step, 'an object');
      if (step.done) return items;
      items[items.length] = toHost(step.value, type.of, `${where}[${items.length}]`, extras);
    }
  }

  function toRecord(value, type, where, extras) {
    if (!isObject(value)) refuse(where, value, 'an object');
    const found = new own.Map();
    const keys = own.ownKeys(value);
    for (let index = 0; index < keys.length; index += 1) {
      if (!own.descriptor(value, keys[index])?.enumerable) continue;
      const name = toHost(keys[index], type.key, `a name in ${where}`, extras);
      own.mapSet(found, name, toHost(value[keys[index]], type.of, `${where}[${own.stringify(name)}]`, extras));
    }
    const record = own.list();
    own.mapForEach(found, (item, name) => { record[record.length] = [name, item]; });
    return {__proto__: null, record};
  }

  // Plain data, for which Web IDL has no type: what JSON has, with any number; undefined members are left out.
  const MAX_NESTED = 16;

  function toData(value, type, where, extras, depth = 0) {
    if (value === null || typeof value === 'boolean') return value;
    if (typeof value === 'number') return taggedNumber(value);
    if (typeof value === 'string') return own.toWellFormed(value);
    if (typeof value !== 'object') refuse(where, value, 'a boolean, a number, a string, null, an array or an object');
    if (depth > MAX_NESTED) refuse(where, value, `nested at most ${MAX_NESTED} levels deep`);
    const found = own.list();
    if (own.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        found[index] = toData(value[index] ?? null, type, `${where}[${index}]`, extras, depth + 1);
      }
      return found;
    }
    const names = own.keys(value);
    for (let index = 0; index < names.length; index += 1) {
      const name = own.toWellFormed(names[index]);
      const item = value[names[index]];
      if (item === undefined) continue;
      found[found.length] = [name, toData(item, type, `${where}[${own.stringify(name)}]`, extras, depth + 1)];
    }
    return {__proto__: null, record: found};
  }

  // In the order of Web IDL: inherited members first, then by name.
  const membersByDictionary = {__proto__: null};
  for (const name of own.keys(description.dictionaries)) {
    const chain = [];
    for (let dictionary = description.dictionaries[name]; dictionary;
         dictionary = description.dictionaries[dictionary.parent]) {
      chain.unshift([...dictionary.members].sort((a, b) => (a.name < b.name ? -1 : 1)));
    }
    membersByDictionary[name] = chain.flat();
  }

  function toDictionary(value, type, where, extras) {
    if (value !== undefined && value !== null && !isObject(value)) refuse(where, value, 'an object');
    const dictionary = {__proto__: null};
    const members = membersByDictionary[type.name];
    for (let index = 0; index < members.length; index += 1) {
      const member = members[index];
      const given = value === undefined || value === null ? undefined : value[member.name];
      if (given !== undefined) {
        dictionary[member.name] = toHost(given, member.type, `${where}.${member.name}`, extras);
      } else if (member.required) {
        throw runtime.ours(new own.TypeError(`${where}.${member.name} is missing`));
      } else if ('default' in member) {
        dictionary[member.name] = member.default;
      }
    }
    return {__proto__: null, dictionary};
  }

  // --- unions ----------------------------------------------------------------------------------------------------

  const FLOATS = {'__proto__': null, 'float': true, 'double': true, 'unrestricted double': true};
  const isNumeric = (type) => type.kind in INTEGERS || type.kind in FLOATS;

  function toUnion(value, type, where, extras) {
    const find = (test) => own.find(type.of, test);
    const sequence = find((member) => member.kind === 'sequence');
    if (sequence && isObject(value) && value[own.iterator]) return toHost(value, sequence, where, extras);
    const bigint = find((member) => member.kind === 'bigint');
    const numeric = find(isNumeric);
    if (bigint && numeric) return toNumeric(value, where);
    const rest = numeric ?? find((member) => member !== sequence);
    return toHost(value, rest, where, extras);
  }

  const CONVERSIONS = {
    '__proto__': null,
    'boolean': (value) => !!value,
    'long': toInteger,
    'unsigned long': toInteger,
    'unsigned long long': toInteger,
    'float': toFinite,
    'double': toFinite,
    'unrestricted double': (value, type, where) => taggedNumber(toNumber(value, where)),
    'bigint': (value) => taggedBigInt(own.BigInt(value)),
    'DOMString': (value, type, where) => toText(value, where),
    'USVString': (value, type, where) => own.toWellFormed(toText(value, where)),
    'enum': toEnumeration,
    'interface': toReference,
    'bufferSource': toBufferSource,
    'GPUDevice': toGPUDevice,
    'sequence': toSequence,
    'record': toRecord,
    'dictionary': toDictionary,
    'data': toData,
    'union': toUnion,
  };

  // A JavaScript value as a value for the host; `extras.buffer` receives the one buffer of a call.
  function toHost(value, type, where, extras) {
    return CONVERSIONS[type.kind](value, type, where, extras);
  }

  // --- overloads -------------------------------------------------------------------------------------------------

  const required = (overload) => overload.arguments.filter((argument) => !argument.optional).length;
  const PLAIN_OBJECTS = ['interface', 'bufferSource', 'dictionary', 'sequence'];

  // What of overload resolution does not hang on values: for each number of arguments the overloads that take it, and
  // the first argument by which they are told apart.
  function prepare(overloads) {
    const most = own.max(...overloads.map((overload) => overload.arguments.length));
    const byCount = [];
    for (let count = 0; count <= most; count += 1) {
      const fitting = overloads.filter(
          (overload) => required(overload) <= count && count <= overload.arguments.length);
      const differs = (index) => new Set(fitting.map(({arguments: all}) => own.json(all[index].type))).size > 1;
      byCount.push({__proto__: null, fitting, index: [...Array(count).keys()].find(differs)});
    }
    return {__proto__: null, byCount, least: own.min(...overloads.map(required))};
  }

  function accepts(type, value) {
    if (type.kind === 'interface') return own.weakGet(slots, value)?.interface === type.name;
    if (type.kind === 'bufferSource') return isBufferSource(value);
    if (type.kind === 'dictionary') return value === null || value === undefined || isObject(value);
    if (type.kind === 'sequence') return isObject(value) && value[own.iterator] !== undefined;
    return false;
  }

  // Web IDL's overload resolution, for the kinds of types that the API's overloads are told apart by.
  function resolve({byCount, least}, values, where) {
    const {fitting, index} = byCount[own.min(values.length, byCount.length - 1)];
    if (fitting.length === 0) {
      const needed = values.length < least ? `${least}` : 'others';
      throw runtime.ours(new own.TypeError(`${where} got ${values.length} arguments; it needs ${needed}`));
    }
    if (fitting.length === 1) return fitting[0];
    const typeOf = (overload) => overload.arguments[index].type;
    const value = values[index];
    const chosen =
        own.find(fitting, (one) => typeOf(one).kind === 'interface' && accepts(typeOf(one), value)) ??
        own.find(fitting, (one) => accepts(typeOf(one), value)) ??
        own.find(fitting, (one) => !own.includes(PLAIN_OBJECTS, typeOf(one).kind));
    if (chosen === undefined) refuse(`${where}: argument ${index + 1}`, value, 'one of the overloads\' types');
    return chosen;
  }

  // Convert the arguments of a call; `prepared` is what prepare() made of the overloads.
  function convertArguments(prepared, values, where) {
    const overload = resolve(prepared, values, where);
    const extras = {__proto__: null, buffer: null, gpuDevice: null};
    const converted = own.list();
    for (let index = 0; index < overload.arguments.length; index += 1) {
      const argument = overload.arguments[index];
      const value = index < values.length ? values[index] : undefined;
      const absent = value === undefined && argument.optional;
      if (absent && !('default' in argument)) {
        converted[index] = null;
      } else if (absent && argument.type.kind !== 'dictionary') {
        converted[index] = argument.default;
      } else {
        converted[index] = toHost(value, argument.type, `${where}: ${argument.name}`, extras);
      }
    }
    return {__proto__: null, overload, converted, ...extras};
  }

  // --- from the host ---------------------------------------------------------------------------------------------

  // A dictionary as a fresh object: members in the order of Web IDL, those that the host left out absent.
  function dictionaryFromHost(value, name) {
    const object = {};
    const members = membersByDictionary[name];
    for (let index = 0; index < members.length; index += 1) {
      const member = members[index];
      if (value[member.name] === undefined) continue;
      own.define(object, member.name, {
        __proto__: null, value: fromHost(value[member.name], member.type),
        writable: true, enumerable: true, configurable: true,
      });
    }
    return object;
  }

  // A record as a frozen object; the host gives it as a list of pairs, in which any name is harmless.
  function recordFromHost(pairs, type) {
    const object = {};
    for (let index = 0; index < pairs.length; index += 1) {
      own.define(object, pairs[index][0], {__proto__: null, value: fromHost(pairs[index][1], type), enumerable: true});
    }
    return own.freeze(object);
  }

  function fromHost(value, type, bytes) {
    switch (type.kind) {
      case 'undefined': return undefined;
      case 'ArrayBuffer': return bytes;
      case 'interface': return runtime.wrap(type.name, value);
      case 'dictionary': return dictionaryFromHost(value, type.name);
      case 'record': return recordFromHost(value, type.of);
      case 'sequence': return own.map(value, (item) => fromHost(item, type.of));
      case 'frozenArray': return own.freeze(own.map(value, (item) => fromHost(item, type.of)));
      default: return value;
    }
  }

  // A function's length; overloads that only a compatibility mode adds do not count.
  const lengthOf = (overloads) => own.min(...overloads.filter((overload) => !overload.added).map(required));

  Object.assign(runtime, {bytesOf, isBufferSource, convertArguments, prepare, fromHost, lengthOf});
})
