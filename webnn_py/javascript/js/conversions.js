// Web IDL conversions between JavaScript values and the plain values that are sent to the host.
//
// Types are data (see description.js). A value for the host is JSON, with these tags where JSON has no word:
// {ref} a platform object, {bigint}, {number} for NaN, infinities and -0, {record} pairs in order, {dictionary},
// {buffer} a view's type and length, its bytes travelling beside the message.
(function (runtime) {
  'use strict';

  const {slots, description} = runtime;
  const typedArrayTag = Object.getOwnPropertyDescriptor(
      Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;

  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
  const isShared = (value) => typeof SharedArrayBuffer === 'function' && value instanceof SharedArrayBuffer;
  const isBuffer = (value) => value instanceof ArrayBuffer || isShared(value);
  const isBufferSource = (value) => isBuffer(value) || ArrayBuffer.isView(value);

  function shown(value) {
    if (typeof value === 'string') return JSON.stringify(value);
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value === 'symbol') return value.toString();
    if (Array.isArray(value)) return 'an array';
    return isObject(value) ? `a ${value.constructor?.name ?? 'object'}` : String(value);
  }

  const refuse = (where, value, allowed) => {
    throw new TypeError(`${where} is ${shown(value)}; it must be ${allowed}`);
  };

  // --- numbers ---------------------------------------------------------------------------------------------------

  const INTEGERS = {
    'long': {bits: 32, signed: true},
    'unsigned long': {bits: 32, signed: false},
    'unsigned long long': {bits: 64, signed: false},
  };

  function toInteger(value, type, where) {
    const {bits, signed} = INTEGERS[type.kind];
    const number = toNumber(value, where);
    if (type.enforceRange) {
      const low = signed ? -(2 ** (bits - 1)) : 0;
      const high = Math.min(2 ** (signed ? bits - 1 : bits) - 1, Number.MAX_SAFE_INTEGER);
      const whole = Math.trunc(number) + 0;
      if (!Number.isFinite(number) || whole < low || whole > high) {
        refuse(where, value, `an integer from ${low} to ${high}`);
      }
      return whole;
    }
    // Without [EnforceRange] an integer wraps.
    if (!Number.isFinite(number)) return 0;
    const whole = BigInt(Math.trunc(number));
    return Number(signed ? BigInt.asIntN(bits, whole) : BigInt.asUintN(bits, whole));
  }

  function toNumber(value, where) {
    try {
      return +value;
    } catch (error) {
      if (error instanceof TypeError) refuse(where, value, 'a number');
      throw error;
    }
  }

  function toFinite(value, type, where) {
    let number = toNumber(value, where);
    if (type.kind === 'float') number = Math.fround(number);
    if (!Number.isFinite(number)) refuse(where, value, 'a finite number');
    return taggedNumber(number);
  }

  // JSON has no NaN, no infinities, and writes -0 as 0.
  const taggedNumber = (number) =>
      Number.isFinite(number) && !Object.is(number, -0) ? number : {number: Object.is(number, -0) ? '-0' : `${number}`};

  function toNumeric(value, where) {
    let numeric = value;
    if (isObject(value)) numeric = value[Symbol.toPrimitive] ? value[Symbol.toPrimitive]('number') : value.valueOf();
    return typeof numeric === 'bigint' ? {bigint: `${numeric}`} : taggedNumber(toNumber(numeric, where));
  }

  // --- strings, objects ------------------------------------------------------------------------------------------

  function toText(value, where) {
    if (typeof value === 'symbol') refuse(where, value, 'a string');
    return `${value}`;
  }

  function toEnumeration(value, type, where) {
    const text = toText(value, where);
    const allowed = description.enums[type.name];
    if (!allowed.includes(text)) refuse(where, text, `one of ${allowed.join(', ')}`);
    return text;
  }

  function toReference(value, type, where) {
    const slot = slots.get(value);
    if (slot === undefined || slot.interface !== type.name) refuse(where, value, `an ${type.name}`);
    return {ref: slot.handle};
  }

  function toBufferSource(value, type, where, extras) {
    if (!isBufferSource(value)) refuse(where, value, 'an ArrayBuffer or a view of one');
    const view = isBuffer(value);
    extras.buffer = value;
    return {buffer: {type: view ? 'ArrayBuffer' : viewType(value), byteLength: value.byteLength}};
  }

  const viewType = (view) => typedArrayTag.call(view) ?? 'DataView';

  // The bytes of a buffer or view, without a copy; a detached one has none.
  function bytesOf(source) {
    if (isBuffer(source)) return source.detached ? new Uint8Array(0) : new Uint8Array(source);
    return source.byteLength === 0 ? new Uint8Array(0)
                                   : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  }

  function toSequence(value, type, where, extras) {
    const iterate = isObject(value) ? value[Symbol.iterator] : undefined;
    if (iterate === undefined || iterate === null) refuse(where, value, 'a sequence');
    const items = [];
    for (const item of {[Symbol.iterator]: () => iterate.call(value)}) {
      items.push(toHost(item, type.of, `${where}[${items.length}]`, extras));
    }
    return items;
  }

  function toRecord(value, type, where, extras) {
    if (!isObject(value)) refuse(where, value, 'an object');
    const pairs = new Map();
    for (const key of Reflect.ownKeys(value)) {
      if (!Object.getOwnPropertyDescriptor(value, key)?.enumerable) continue;
      const name = toHost(key, type.key, `a name in ${where}`, extras);
      pairs.set(name, toHost(value[key], type.of, `${where}[${JSON.stringify(name)}]`, extras));
    }
    return {record: [...pairs]};
  }

  // In the order of Web IDL: inherited members first, then by name.
  const membersByDictionary = new Map();
  function dictionaryMembers(name) {
    if (!membersByDictionary.has(name)) membersByDictionary.set(name, collectMembers(name));
    return membersByDictionary.get(name);
  }
  function collectMembers(name) {
    const chain = [];
    for (let dictionary = description.dictionaries[name]; dictionary;
         dictionary = description.dictionaries[dictionary.parent]) {
      chain.unshift([...dictionary.members].sort((a, b) => (a.name < b.name ? -1 : 1)));
    }
    return chain.flat();
  }

  function toDictionary(value, type, where, extras) {
    if (value !== undefined && value !== null && !isObject(value)) refuse(where, value, 'an object');
    const dictionary = {};
    for (const member of dictionaryMembers(type.name)) {
      const given = value === undefined || value === null ? undefined : value[member.name];
      if (given !== undefined) {
        dictionary[member.name] = toHost(given, member.type, `${where}.${member.name}`, extras);
      } else if (member.required) {
        throw new TypeError(`${where}.${member.name} is missing`);
      } else if ('default' in member) {
        dictionary[member.name] = member.default;
      }
    }
    return {dictionary};
  }

  // --- unions ----------------------------------------------------------------------------------------------------

  const isNumeric = (type) => type.kind in INTEGERS || /double$|^float$/.test(type.kind);

  function toUnion(value, type, where, extras) {
    const find = (test) => type.of.find(test);
    const sequence = find((member) => member.kind === 'sequence');
    if (sequence && isObject(value) && value[Symbol.iterator]) return toHost(value, sequence, where, extras);
    const [bigint, numeric] = [find((member) => member.kind === 'bigint'), find(isNumeric)];
    if (bigint && numeric) return toNumeric(value, where);
    const rest = numeric ?? find((member) => member !== sequence);
    return toHost(value, rest, where, extras);
  }

  const CONVERSIONS = {
    'boolean': (value) => Boolean(value),
    'long': toInteger,
    'unsigned long': toInteger,
    'unsigned long long': toInteger,
    'float': toFinite,
    'double': toFinite,
    'unrestricted double': (value, type, where) => taggedNumber(toNumber(value, where)),
    'bigint': (value, type, where) => ({bigint: `${BigInt(value)}`}),
    'DOMString': (value, type, where) => toText(value, where),
    'USVString': (value, type, where) => toText(value, where).toWellFormed(),
    'enum': toEnumeration,
    'interface': toReference,
    'bufferSource': toBufferSource,
    'sequence': toSequence,
    'record': toRecord,
    'dictionary': toDictionary,
    'union': toUnion,
  };

  // A JavaScript value as a value for the host; `extras.buffer` receives the one buffer of a call.
  function toHost(value, type, where, extras) {
    return CONVERSIONS[type.kind](value, type, where, extras);
  }

  // --- overloads -------------------------------------------------------------------------------------------------

  const required = (overload) => overload.arguments.filter((argument) => !argument.optional).length;

  function accepts(type, value) {
    if (type.kind === 'interface') return slots.get(value)?.interface === type.name;
    if (type.kind === 'bufferSource') return isBufferSource(value);
    if (type.kind === 'dictionary') return value === null || value === undefined || isObject(value);
    if (type.kind === 'sequence') return isObject(value) && value[Symbol.iterator] !== undefined;
    return false;
  }

  // Web IDL's overload resolution, for the kinds of types that the API's overloads are told apart by.
  function resolve(overloads, values, where) {
    const count = Math.min(values.length, Math.max(...overloads.map((overload) => overload.arguments.length)));
    const fitting = overloads.filter(
        (overload) => required(overload) <= count && count <= overload.arguments.length);
    if (fitting.length === 0) {
      const least = Math.min(...overloads.map(required));
      throw new TypeError(`${where} got ${values.length} arguments; it needs ${count < least ? `${least}` : 'others'}`);
    }
    if (fitting.length === 1) return fitting[0];
    const differs = (index) => new Set(fitting.map(({arguments: all}) => JSON.stringify(all[index].type))).size > 1;
    const index = [...Array(count).keys()].find(differs);
    const typeOf = (overload) => overload.arguments[index].type;
    const others = (type) => !['interface', 'bufferSource', 'dictionary', 'sequence'].includes(type.kind);
    const chosen = fitting.find((overload) => typeOf(overload).kind === 'interface' &&
                                              accepts(typeOf(overload), values[index])) ??
        fitting.find((overload) => accepts(typeOf(overload), values[index])) ??
        fitting.find((overload) => others(typeOf(overload)));
    if (chosen === undefined) refuse(`${where}: argument ${index + 1}`, values[index], 'one of the overloads\' types');
    return chosen;
  }

  // Convert the arguments of a call.
  function convertArguments(overloads, values, where) {
    const overload = resolve(overloads, values, where);
    const extras = {buffer: null};
    const converted = overload.arguments.map((argument, index) => {
      const value = values[index];
      if (value === undefined && argument.optional) {
        if (!('default' in argument)) return null;
        if (argument.type.kind !== 'dictionary') return argument.default;
      }
      return toHost(value, argument.type, `${where}: ${argument.name}`, extras);
    });
    return {overload, converted, buffer: extras.buffer};
  }

  // --- from the host ---------------------------------------------------------------------------------------------

  // A dictionary as a fresh object: members in the order of Web IDL, those that the host left out absent.
  function dictionaryFromHost(value, name) {
    const object = {};
    for (const member of dictionaryMembers(name)) {
      if (value[member.name] !== undefined) object[member.name] = fromHost(value[member.name], member.type);
    }
    return object;
  }

  function fromHost(value, type, bytes) {
    switch (type.kind) {
      case 'undefined': return undefined;
      case 'ArrayBuffer': return bytes;
      case 'interface': return runtime.wrap(type.name, value);
      case 'dictionary': return dictionaryFromHost(value, type.name);
      case 'sequence': return value.map((item) => fromHost(item, type.of));
      case 'frozenArray': return Object.freeze(value.map((item) => fromHost(item, type.of)));
      default: return value;
    }
  }

  // A function's length; overloads that only a compatibility mode adds do not count.
  const lengthOf = (overloads) => Math.min(...overloads.filter((overload) => !overload.added).map(required));

  Object.assign(runtime, {bytesOf, convertArguments, fromHost, lengthOf});
})
