// Web classes and functions that programs use and engines lack: text and base64, structuredClone, random numbers,
// aborting, messages, fetch.
(function (runtime) {
  'use strict';

  const {own, install, DOMException, EventTarget, dispatch, setTimer} = runtime;
  const attempt = (getter, value) => {
    try {
      return getter(value);
    } catch {
      return undefined;
    }
  };

  // --- text ------------------------------------------------------------------------------------------------------

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return encoded(`${text}`); }
  }
  function encoded(text) {
    const whole = own.toWellFormed(text);
    const bytes = own.list();
    const add = (byte) => { bytes[bytes.length] = byte; };
    for (let at = 0; at < whole.length; at += 1) {
      let code = own.charCodeAt(whole, at);
      if (code >= 0xd800 && code <= 0xdbff) {
        at += 1;
        code = 0x10000 + ((code - 0xd800) << 10) + own.charCodeAt(whole, at) - 0xdc00;
      }
      if (code < 0x80) {
        add(code);
        continue;
      }
      const more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      add([0, 0xc0, 0xe0, 0xf0][more] | (code >> (6 * more)));
      for (let left = more - 1; left >= 0; left -= 1) add(0x80 | ((code >> (6 * left)) & 0x3f));
    }
    const array = new own.Uint8Array(bytes.length);
    for (let at = 0; at < bytes.length; at += 1) array[at] = bytes[at];
    return array;
  }
  class TextDecoder {
    get encoding() { return 'utf-8'; }
    decode(source = new own.Uint8Array(0)) { return decoded(source); }
  }
  const decoded = (source) => runtime.ask({decode: true}, runtime.bytesOf(source)).answer.value;
  Object.assign(runtime, {encoded, decoded});
  install('TextEncoder', TextEncoder);
  install('TextDecoder', TextDecoder);

  const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const invalid = (name) => {
    throw runtime.ours(new DOMException(`${name}(): the text is not correctly encoded`, 'InvalidCharacterError'));
  };
  install('btoa', (data) => {
    const text = `${data}`;
    let result = '';
    for (let at = 0; at < text.length; at += 3) {
      const codes = [0, 1, 2];
      for (let one = 0; one < 3; one += 1) {
        codes[one] = at + one < text.length ? own.charCodeAt(text, at + one) : 0;
        if (codes[one] > 255) invalid('btoa');
      }
      const bits = (codes[0] << 16) | (codes[1] << 8) | codes[2];
      result += LETTERS[bits >> 18] + LETTERS[(bits >> 12) & 63] +
          (at + 1 < text.length ? LETTERS[(bits >> 6) & 63] : '=') + (at + 2 < text.length ? LETTERS[bits & 63] : '=');
    }
    return result;
  });
  install('atob', (data) => {
    const given = `${data}`;
    let text = '';
    for (let at = 0; at < given.length; at += 1) if (own.indexOf(' \t\n\f\r', given[at]) < 0) text += given[at];
    if (text.length % 4 === 0) text = own.exec(/^([^]*?)={0,2}$/, text)[1];
    if (text.length % 4 === 1) invalid('atob');
    let result = '';
    let bits = 0;
    let held = 0;
    for (let at = 0; at < text.length; at += 1) {
      const value = own.indexOf(LETTERS, text[at]);
      if (value < 0) invalid('atob');
      bits = ((bits << 6) | value) & 0xfff;
      held += 6;
      if (held < 8) continue;
      held -= 8;
      result += own.fromCharCode((bits >> held) & 255);
    }
    return result;
  });

  // --- structuredClone -------------------------------------------------------------------------------------------

  const refuseClone = (what) => {
    throw runtime.ours(new DOMException(`${what} cannot be cloned`, 'DataCloneError'));
  };
  const NEVER = {
    '__proto__': null, '[object Promise]': 1, '[object WeakMap]': 1, '[object WeakSet]': 1, '[object WeakRef]': 1,
    '[object Generator]': 1, '[object FinalizationRegistry]': 1,
  };

  function cloned(value, seen) {
    if (typeof value === 'symbol' || typeof value === 'function') return refuseClone(`a ${typeof value}`);
    if (typeof value !== 'object' || value === null) return value;
    if (own.mapHas(seen, value)) return own.mapGet(seen, value);
    const remember = (copy) => {
      own.mapSet(seen, value, copy);
      return copy;
    };
    const simple = clonedBuiltin(value, seen);
    if (simple !== undefined) return remember(simple);
    if (attempt(own.mapSize, value) !== undefined) {
      const copy = remember(new own.Map());
      own.mapForEach(value, (item, key) => own.mapSet(copy, cloned(key, seen), cloned(item, seen)));
      return copy;
    }
    if (attempt(own.setSize, value) !== undefined) {
      const copy = remember(new own.Set());
      own.setForEach(value, (item) => own.setAdd(copy, cloned(item, seen)));
      return copy;
    }
    if (runtime.isPlatformObject(value) || value instanceof EventTarget || own.tagOf(value) in NEVER) {
      return refuseClone(`an object ${own.slice(own.tagOf(value), 8, -1)}`);
    }
    return clonedMembers(value, remember(own.isArray(value) ? [] : {}), seen);
  }

  function clonedMembers(value, copy, seen) {
    const keys = own.keys(value);
    for (let index = 0; index < keys.length; index += 1) {
      own.define(copy, keys[index], {
        __proto__: null, value: cloned(value[keys[index]], seen), writable: true, enumerable: true, configurable: true});
    }
    if (own.isArray(value)) copy.length = value.length;
    return copy;
  }

  const WRAPPERS = {'__proto__': null, '[object Boolean]': 1, '[object Number]': 1, '[object String]': 1};
  const ERRORS = {__proto__: null};
  for (const name of ['EvalError', 'RangeError', 'ReferenceError', 'SyntaxError', 'TypeError', 'URIError']) {
    ERRORS[name] = globalThis[name];
  }

  // What has no parts that may refer to it; undefined for anything else.
  function clonedBuiltin(value, seen) {
    const bytes = attempt(own.bufferBytes, value);
    if (bytes !== undefined) return own.bufferSlice(value, 0);
    if (attempt(own.sharedBytes, value) !== undefined) return value;
    if (own.isView(value)) return clonedView(value, seen);
    const time = attempt(own.dateValue, value);
    if (time !== undefined) return new own.Date(time);
    const tag = own.tagOf(value);
    if (tag === '[object RegExp]') return new own.RegExp(own.regExpSource(value), own.regExpFlags(value));
    if (tag in WRAPPERS) return Object(value.valueOf());
    if (!runtime.isError(value)) return undefined;
    if (value instanceof DOMException) return new DOMException(value.message, value.name);
    const name = `${value.name}`;
    const copy = new (ERRORS[name] ?? own.Error)(`${value.message}`);
    own.define(copy, 'stack', {__proto__: null, value: value.stack, writable: true, configurable: true});
    return copy;
  }

  const VIEWS = {__proto__: null};
  for (const name of ['Int8', 'Uint8', 'Uint8Clamped', 'Int16', 'Uint16', 'Int32', 'Uint32', 'Float16', 'Float32', 'Float64',
    'BigInt64', 'BigUint64']) {
    VIEWS[`${name}Array`] = globalThis[`${name}Array`];
  }
  const {DataView} = globalThis;
  function clonedView(value, seen) {
    const name = own.typeOfView(value);
    const typed = name !== undefined;
    const buffer = cloned(typed ? own.typedBuffer(value) : own.dataBuffer(value), seen);
    return typed ? new VIEWS[name](buffer, own.typedOffset(value), own.typedLength(value))
                 : new DataView(buffer, own.dataOffset(value), own.dataBytes(value));
  }

  function structuredClone(value, options = undefined) {
    const seen = new own.Map();
    const transfer = options?.transfer ?? [];
    for (let index = 0; index < transfer.length; index += 1) {
      if (attempt(own.bufferBytes, transfer[index]) === undefined) refuseClone('what is to be transferred');
      own.mapSet(seen, transfer[index], own.transfer(transfer[index]));
    }
    return cloned(value, seen);
  }
  install('structuredClone', function clone(value, options) {
    if (arguments.length === 0) throw runtime.ours(new own.TypeError('structuredClone() needs a value'));
    return runtime.entered(clone, this, [value, options], (_, values) => structuredClone(values[0], values[1]));
  });

  // --- random numbers --------------------------------------------------------------------------------------------

  const MOST_RANDOM = 65536;
  const FLOATS = {__proto__: null, Float16Array: 1, Float32Array: 1, Float64Array: 1};
  const randomBytes = (count) => new own.Uint8Array(runtime.ask({random: count}).bytes);
  const crypto = {
    getRandomValues(view) {
      const name = own.isView(view) ? own.typeOfView(view) : undefined;
      if (name === undefined || name in FLOATS) {
        throw runtime.ours(new DOMException('getRandomValues(): it fills typed arrays of integers', 'TypeMismatchError'));
      }
      const bytes = runtime.bytesOf(view);
      const count = own.typedBytes(bytes);
      if (count > MOST_RANDOM) {
        const words = `getRandomValues(): ${count} bytes; ${MOST_RANDOM} at most`;
        throw runtime.ours(new DOMException(words, 'QuotaExceededError'));
      }
      own.typedSet(bytes, randomBytes(count));
      return view;
    },
    randomUUID() {
      const bytes = randomBytes(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let text = '';
      for (let at = 0; at < 16; at += 1) {
        const digits = '0123456789abcdef';
        text += (at === 4 || at === 6 || at === 8 || at === 10 ? '-' : '') + digits[bytes[at] >> 4] + digits[bytes[at] & 15];
      }
      return text;
    },
  };
  install('crypto', crypto);

  // --- aborting --------------------------------------------------------------------------------------------------

  const inside = {};
  class AbortSignal extends EventTarget {
    #reason = undefined;
    #aborted = false;
    onabort = null;
    constructor(key) {
      if (key !== inside) throw runtime.ours(new own.TypeError('Illegal constructor: AbortSignal'));
      super();
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    static end(signal, reason) {
      if (signal.#aborted) return;
      signal.#aborted = true;
      signal.#reason = reason === undefined ? new DOMException('the operation was aborted', 'AbortError') : reason;
      dispatch(signal, 'abort', {});
    }
    static abort(reason = undefined) {
      const signal = new AbortSignal(inside);
      abort(signal, reason);
      return signal;
    }
    static timeout(milliseconds) {
      const signal = new AbortSignal(inside);
      setTimer(() => abort(signal, new DOMException('the time is up', 'TimeoutError')), milliseconds, false, []);
      return signal;
    }
    static any(signals) {
      const signal = new AbortSignal(inside);
      for (const one of signals) {
        if (one.aborted) abort(signal, one.reason);
        else one.addEventListener('abort', () => abort(signal, one.reason));
      }
      return signal;
    }
  }
  const abort = AbortSignal.end;
  delete AbortSignal.end;
  class AbortController {
    #signal = new AbortSignal(inside);
    get signal() { return this.#signal; }
    abort(reason = undefined) { abort(this.#signal, reason); }
  }
  install('AbortSignal', AbortSignal);
  install('AbortController', AbortController);

  // --- messages --------------------------------------------------------------------------------------------------

  class MessagePort extends EventTarget {
    #other = null;
    #waiting = own.list();
    #started = false;
    #onmessage = null;
    constructor(key) {
      if (key !== inside) throw runtime.ours(new own.TypeError('Illegal constructor: MessagePort'));
      super();
    }
    static join(first, second) {
      first.#other = second;
      second.#other = first;
    }
    get onmessage() { return this.#onmessage; }
    set onmessage(handler) {
      this.#onmessage = handler;
      this.start();
    }
    postMessage(message, options = undefined) {
      const transfer = own.isArray(options) ? {transfer: options} : options;
      const data = structuredClone(message, transfer);
      const other = this.#other;
      if (other === null) return;
      if (other.#started) other.#deliver(data);
      else other.#waiting[other.#waiting.length] = data;
    }
    #deliver(data) {
      setTimer(() => { if (this.#other !== null) dispatch(this, 'message', {data}); }, 0, false, []);
    }
    start() {
      if (this.#started) return;
      this.#started = true;
      for (let index = 0; index < this.#waiting.length; index += 1) this.#deliver(this.#waiting[index]);
      this.#waiting = own.list();
    }
    close() {
      if (this.#other !== null) this.#other.#other = null;
      this.#other = null;
    }
  }
  const joinPorts = MessagePort.join;
  delete MessagePort.join;
  class MessageChannel {
    constructor() {
      this.port1 = new MessagePort(inside);
      this.port2 = new MessagePort(inside);
      joinPorts(this.port1, this.port2);
    }
  }
  install('MessagePort', MessagePort);
  install('MessageChannel', MessageChannel);

  // --- fetch -----------------------------------------------------------------------------------------------------

  // A stream of bytes that are there already, in one piece.
  class ReadableStream {
    #bytes;
    #locked = false;
    constructor(key, bytes) {
      if (key !== inside) throw runtime.ours(new own.TypeError('Illegal constructor: ReadableStream'));
      this.#bytes = bytes;
    }
    get locked() { return this.#locked; }
    getReader() {
      if (this.#locked) throw runtime.ours(new own.TypeError('getReader(): the stream has a reader'));
      this.#locked = true;
      return {
        read: async () => {
          const bytes = this.#bytes;
          this.#bytes = null;
          return bytes === null ? {done: true, value: undefined} : {done: false, value: new own.Uint8Array(bytes)};
        },
        cancel: async () => { this.#bytes = null; },
        releaseLock: () => { this.#locked = false; },
      };
    }
    async cancel() { this.#bytes = null; }
  }
  runtime.streamOf = (bytes) => new ReadableStream(inside, bytes);
  install('ReadableStream', ReadableStream);

  class Headers {
    #length;
    constructor(key, length) {
      if (key !== inside) throw runtime.ours(new own.TypeError('Illegal constructor: Headers'));
      this.#length = length;
    }
    get(name) { return own.toLowerCase(`${name}`) === 'content-length' ? `${this.#length}` : null; }
    has(name) { return this.get(name) !== null; }
  }
  install('Headers', Headers);

  class Response {
    #bytes;
    #body;
    #headers;
    constructor(url, status, bytes) {
      Object.assign(this, {url, status, ok: status === 200, statusText: status === 200 ? 'OK' : 'Not Found'});
      this.#bytes = bytes;
      this.#headers = new Headers(inside, own.bufferBytes(bytes));
    }
    static is(value) { return typeof value === 'object' && value !== null && #bytes in value; }
    get headers() { return this.#headers; }
    get body() { return this.#body ??= runtime.streamOf(this.#bytes); }
    async arrayBuffer() { return this.#bytes; }
    async bytes() { return new own.Uint8Array(this.#bytes); }
    async text() { return decoded(this.#bytes); }
    async json() { return own.parse(decoded(this.#bytes)); }
  }
  runtime.isResponse = Response.is;
  delete Response.is;
  install('Response', Response);
  runtime.bytesOfUrl = () => undefined;
  runtime.read = (url) => {
    const known = runtime.bytesOfUrl(url);
    if (known !== undefined) return {__proto__: null, status: 200, bytes: known};
    const {answer, bytes} = runtime.ask({fetch: url});
    return {__proto__: null, status: answer.value, bytes};
  };
  install('fetch', async (resource, options = undefined) => {
    options?.signal?.throwIfAborted();
    const url = `${resource?.url ?? resource}`;
    const {status, bytes} = runtime.read(url);
    return new Response(url, status, bytes);
  });
})
