// WebAssembly in quickjs-ng: the classes that scripts see, over the functions of quickjs_wasm.py.
(function (runtime) {
  'use strict';

  const {own, wasm, install} = runtime;
  const MOST_PAGES = 65536;
  const MOST_ELEMENTS = 10000000;
  const TYPES = {__proto__: null, i32: 0, i64: 0, f32: 0, f64: 0, anyfunc: 0, funcref: 0};
  const typeError = (words) => { throw runtime.ours(new own.TypeError(`WebAssembly: ${words}`)); };
  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';

  const WebAssembly = {};
  const member = (target, name, value, enumerable = false) => own.define(target, name, {
    __proto__: null, value, writable: true, enumerable, configurable: true});
  const tag = (target, name) => own.define(target, own.toStringTag, {__proto__: null, value: name, configurable: true});
  tag(WebAssembly, 'WebAssembly');

  class CompileError extends own.Error {}
  class LinkError extends own.Error {}
  class RuntimeError extends own.Error {}
  const ERRORS = {__proto__: null, CompileError, LinkError, RuntimeError, RangeError, TypeError: own.TypeError};
  for (const name of ['CompileError', 'LinkError', 'RuntimeError']) {
    member(ERRORS[name].prototype, 'name', name);
    member(WebAssembly, name, ERRORS[name]);
  }
  const errorOf = (kind, words) => runtime.ours(new ERRORS[kind](words));

  // Numbers of things, and the objects that scripts have of them, one of each.
  const objects = new own.Map();
  const inside = {};
  const buffers = new own.WeakSet();

  function listOf() {
    const list = [];
    for (let index = 0; index < arguments.length; index += 1) own.append(list, arguments[index]);
    return list;
  }
  const itemsOf = (iterable, count) => {
    const items = [...iterable];
    if (items.length !== count) typeError(`a function returned ${items.length} values; it must be ${count}`);
    return items;
  };
  wasm.register(listOf, errorOf, itemsOf);
  const growths = new Uint32Array(wasm.growths);

  // A limit of a descriptor, or -1.
  function limit(descriptor, name, most) {
    const given = descriptor[name];
    if (given === undefined) return -1;
    const number = own.Number(given);
    if (!own.isFinite(number) || number < 0 || number > most) typeError(`${name} is ${given}; it must be 0 to ${most}`);
    return own.trunc(number);
  }
  function limitsOf(descriptor, most) {
    if (!isObject(descriptor)) typeError('a descriptor must be an object');
    const initial = own.max(limit(descriptor, 'initial', most), limit(descriptor, 'minimum', most));
    const maximum = limit(descriptor, 'maximum', most);
    if (initial < 0) typeError('the descriptor lacks initial');
    if (maximum >= 0 && maximum < initial) {
      throw runtime.ours(new ERRORS.RangeError(`WebAssembly: maximum is ${maximum}, less than initial, ${initial}`));
    }
    return {__proto__: null, initial, maximum};
  }
  const indexOf = (value, what) => {
    const number = own.Number(value);
    if (!own.isFinite(number) || number < 0 || number >= 2 ** 32) typeError(`${what} is ${value}; it must be 0 to 4294967295`);
    return own.trunc(number);
  };

  // --- modules ---------------------------------------------------------------------------------------------------

  const registry = new own.FinalizationRegistry((module) => void wasm.drop(module));

  class Module {
    #described;
    #sections;
    constructor(source) {
      const bytes = runtime.bytesOf(source);
      this.#described = own.bare(own.parse(wasm.compile(bytes)));
      this.#sections = customSections(bytes);
      own.register(registry, this, this.#described.module);
    }
    static is(value) { return isObject(value) && #described in value; }
    static described(module) { return module.#described; }
    static sections(module) { return module.#sections; }
  }
  const {is: isModule, described, sections} = Module;
  for (const name of ['is', 'described', 'sections']) delete Module[name];
  const moduleOf = (value) => {
    if (!isModule(value)) typeError('it must be a Module');
    return value;
  };
  member(Module, 'exports', (module) => own.map(described(moduleOf(module)).exports, ({name, kind}) => ({name, kind})));
  member(Module, 'imports', (module) =>
      own.map(described(moduleOf(module)).imports, ({module: from, name, kind}) => ({module: from, name, kind})));
  member(Module, 'customSections', (module, name) => {
    const found = [];
    const wanted = `${name}`;
    own.map(sections(moduleOf(module)), (section) => {
      if (section.name === wanted) own.append(found, own.bufferSlice(section.bytes, 0));
    });
    return found;
  });

  // The sections of no meaning, of bytes that are a module.
  function customSections(bytes) {
    const found = [];
    let at = 8;
    const number = () => {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = bytes[at];
        at += 1;
        value += (byte & 127) * 2 ** shift;
        if (byte < 128) return value;
      }
    };
    while (at < own.typedBytes(bytes)) {
      const kind = bytes[at];
      at += 1;
      const size = number();
      const end = at + size;
      if (kind === 0) {
        const start = number();
        const whole = own.typedBuffer(bytes);
        const offset = own.typedOffset(bytes);
        const name = runtime.decoded(own.bufferSlice(whole, offset + at, offset + at + start));
        own.append(found, {__proto__: null, name, bytes: own.bufferSlice(whole, offset + at + start, offset + end)});
      }
      at = end;
    }
    return found;
  }

  class Instance {
    #exports;
    constructor(module, imports = undefined) {
      const {module: number, imports: wanted} = described(moduleOf(module));
      if (wanted.length > 0 && !isObject(imports)) typeError('the module has imports, and no object of them is given');
      const given = [number];
      for (let index = 0; index < wanted.length; index += 1) own.append(given, imported(wanted[index], imports));
      this.#exports = exportsOf(own.bare(own.parse(own.apply(wasm.instantiate, undefined, given))));
    }
    get exports() { return this.#exports; }
  }

  function imported({module, name, kind, type}, imports) {
    const called = `import ${own.stringify(module)}.${own.stringify(name)}`;
    const from = imports[module];
    if (!isObject(from)) typeError(`${called}: ${own.stringify(module)} is no object`);
    const value = from[name];
    const refused = (wanted) => { throw errorOf('LinkError', `WebAssembly: ${called}: it must be ${wanted}`); };
    switch (kind) {
      case 'function': return typeof value === 'function' ? value : refused('a function');
      case 'memory': return isMemory(value) ? numberOfMemory(value) : refused('a Memory');
      case 'table': return isTable(value) ? numberOfTable(value) : refused('a Table');
      default:
        if (isGlobal(value)) return numberOfGlobal(value);
        if (typeof value !== (type === 'i64' ? 'bigint' : 'number') || !(type in TYPES)) refused(`a Global or a number for ${type}`);
        return wasm.global_(type, 0, value);
    }
  }

  const CLASSES = {__proto__: null};
  function exportsOf(list) {
    const exported = own.create(null);
    own.map(list, ({name, kind, handle}) => {
      const value = kind === 'function' ? wasm.function(handle)
                                        : own.mapGet(objects, handle) ?? new CLASSES[kind](inside, handle);
      own.define(exported, name, {__proto__: null, value, enumerable: true});
    });
    return own.freeze(exported);
  }

  // --- what instances share --------------------------------------------------------------------------------------

  class Memory {
    #handle;
    #buffer;
    #growths = -1;
    constructor(descriptor, known = undefined) {
      if (descriptor === inside) {
        this.#handle = known;
      } else {
        const {initial, maximum} = limitsOf(descriptor, MOST_PAGES);
        const shared = descriptor.shared ? 1 : 0;
        if (shared && maximum < 0) typeError('a shared memory needs maximum');
        this.#handle = wasm.memory(initial, maximum, shared);
      }
      own.mapSet(objects, this.#handle, this);
    }
    static is(value) { return isObject(value) && #handle in value; }
    static number(memory) { return memory.#handle; }
    get buffer() {
      if (this.#growths !== growths[0]) {
        this.#growths = growths[0];
        this.#buffer = wasm.buffer(this.#handle);
        own.note(buffers, this.#buffer);
      }
      return this.#buffer;
    }
    grow(delta) { return wasm.grow_memory(this.#handle, indexOf(delta, 'grow(): delta')); }
  }
  const {is: isMemory, number: numberOfMemory} = Memory;

  class Table {
    #handle;
    constructor(descriptor, known = undefined) {
      if (descriptor === inside) {
        this.#handle = known;
      } else {
        const {initial, maximum} = limitsOf(descriptor, MOST_ELEMENTS);
        const element = `${descriptor.element}`;
        if (element !== 'anyfunc' && element !== 'funcref') typeError(`element is ${element}; it must be anyfunc`);
        this.#handle = wasm.table(initial, maximum, known ?? null);
      }
      own.mapSet(objects, this.#handle, this);
    }
    static is(value) { return isObject(value) && #handle in value; }
    static number(table) { return table.#handle; }
    get length() { return wasm.table_size(this.#handle); }
    get(index) { return wasm.get_element(this.#handle, indexOf(index, 'get(): index')); }
    set(index, value = null) { wasm.set_element(this.#handle, indexOf(index, 'set(): index'), value); }
    grow(delta, value = null) { return wasm.grow_table(this.#handle, indexOf(delta, 'grow(): delta'), value); }
  }
  const {is: isTable, number: numberOfTable} = Table;

  class Global {
    #handle;
    constructor(descriptor, value = undefined) {
      if (descriptor === inside) {
        this.#handle = value;
      } else {
        if (!isObject(descriptor)) typeError('a descriptor must be an object');
        const mutable = descriptor.mutable ? 1 : 0;
        const type = `${descriptor.value}`;
        if (!(type in TYPES)) typeError(`value is ${type}; it must be i32, i64, f32, f64 or anyfunc`);
        const missing = type === 'anyfunc' || type === 'funcref' ? null : type === 'i64' ? 0n : 0;
        this.#handle = wasm.global_(type, mutable, value === undefined ? missing : value);
      }
      own.mapSet(objects, this.#handle, this);
    }
    static is(value) { return isObject(value) && #handle in value; }
    static number(global) { return global.#handle; }
    get value() { return wasm.get_global(this.#handle); }
    set value(value) { wasm.set_global(this.#handle, value); }
    valueOf() { return this.value; }
  }
  const {is: isGlobal, number: numberOfGlobal} = Global;
  for (const one of [Memory, Table, Global]) for (const name of ['is', 'number']) delete one[name];
  Object.assign(CLASSES, {memory: Memory, table: Table, global: Global});

  for (const one of [Module, Instance, Memory, Table, Global]) {
    tag(one.prototype, `WebAssembly.${one.name}`);
    member(WebAssembly, one.name, one);
  }
  member(WebAssembly, 'validate', (source) => wasm.validate(runtime.bytesOf(source)), true);
  install('WebAssembly', WebAssembly);

  // A memory's bytes are no script's to move elsewhere.
  for (const name of ['transfer', 'transferToFixedLength', 'transferToImmutable']) {
    const original = ArrayBuffer.prototype[name];
    if (original === undefined) continue;
    const guarded = {[name](length) {
      if (isObject(this) && own.noted(buffers, this)) typeError(`the buffer of a Memory cannot be moved by ${name}()`);
      return own.apply(original, this, length === undefined ? [] : [length]);
    }}[name];
    member(ArrayBuffer.prototype, name, guarded);
  }
  const {transfer} = own;
  own.transfer = (buffer) => {
    if (own.noted(buffers, buffer)) typeError('the buffer of a Memory cannot be transferred');
    return transfer(buffer);
  };
})
