// What a script finds in a browser besides the language and the API: a global scope with events, timers, console,
// DOMException, fetch of local files, a few Web classes. Everything outside goes through runtime.ask().
(function (runtime) {
  'use strict';

  const global = globalThis;
  const install = (name, value) =>
      Object.defineProperty(global, name, {value, writable: true, configurable: true, enumerable: false});

  // --- DOMException ----------------------------------------------------------------------------------------------

  const CODES = {
    NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13, SecurityError: 18,
    AbortError: 20, TimeoutError: 23, DataCloneError: 25,
  };

  class DOMException {
    #name;
    #message;
    constructor(message = '', name = 'Error') {
      this.#name = `${name}`;
      this.#message = `${message}`;
      Object.defineProperty(this, 'stack', {
        value: new Error(this.#message).stack, writable: true, configurable: true});
    }
    get name() { return this.#name; }
    get message() { return this.#message; }
    get code() { return CODES[this.#name] ?? 0; }
  }
  Object.setPrototypeOf(DOMException.prototype, Error.prototype);
  Object.defineProperty(DOMException.prototype, Symbol.toStringTag, {value: 'DOMException', configurable: true});
  for (const name of ['name', 'message', 'code']) {
    Object.defineProperty(DOMException.prototype, name, {enumerable: true});
  }
  install('DOMException', DOMException);

  // --- events of the global scope --------------------------------------------------------------------------------

  class Event {
    constructor(type, properties = {}) {
      Object.assign(this, {type: `${type}`, defaultPrevented: false, ...properties});
    }
    preventDefault() { this.defaultPrevented = true; }
  }
  class EventTarget {
    #listeners = new Map();
    addEventListener(type, listener) {
      const listeners = this.#listeners.get(type) ?? [];
      if (!listeners.includes(listener)) this.#listeners.set(type, [...listeners, listener]);
    }
    removeEventListener(type, listener) {
      this.#listeners.set(type, (this.#listeners.get(type) ?? []).filter((other) => other !== listener));
    }
    dispatchEvent(event) {
      event.target ??= this;
      for (const listener of this.#listeners.get(event.type) ?? []) {
        if (typeof listener === 'function') listener.call(global, event);
        else listener.handleEvent(event);
      }
      return !event.defaultPrevented;
    }
  }
  install('Event', Event);
  install('EventTarget', EventTarget);
  const events = new EventTarget();
  for (const name of ['addEventListener', 'removeEventListener', 'dispatchEvent']) {
    install(name, (...values) => events[name](...values));
  }

  const textOf = (error) =>
      error instanceof Error || error instanceof DOMException ? `${error.name}: ${error.message}` : String(error);

  // V8's stacks begin with the message, others do not.
  function withStack(message, stack) {
    if (!stack) return message;
    return stack.startsWith(message) ? stack : `${message}\n${stack}`;
  }

  // An exception that nothing caught: an "error" event, and word to the host.
  runtime.reportError = function (error) {
    const message = textOf(error);
    const unhandled = events.dispatchEvent(new Event('error', {message: `Uncaught ${message}`, error, filename: '',
                                                               lineno: 0, colno: 0}));
    if (unhandled) runtime.ask({log: 'uncaught', text: withStack(message, error?.stack)});
  };
  install('reportError', runtime.reportError);
  runtime.reportText = ({message, stack}) => {
    const [, name, text] = /^(\w+): ([^]*)$/.exec(message) ?? [message, 'Error', message];
    runtime.reportError(Object.assign(new Error(text), {name, stack}));
  };

  runtime.reportRejection = function (reason, promise) {
    if (events.dispatchEvent(new Event('unhandledrejection', {reason, promise}))) {
      runtime.ask({log: 'unhandled', text: textOf(reason)});
    }
  };

  const guarded = (callback, values) => {
    try {
      callback.apply(global, values);
    } catch (error) {
      runtime.reportError(error);
    }
  };

  // --- timers and microtasks -------------------------------------------------------------------------------------

  const timers = new Map();
  let lastTimer = 0;

  function startTimer(id, delay) {
    runtime.ask({timer: id, delay: Math.max(0, Number(delay) || 0)});
  }
  function setTimer(callback, delay, repeat, values) {
    const id = ++lastTimer;
    const run = typeof callback === 'function' ? callback : () => (0, eval)(`${callback}`);
    timers.set(id, {run, values, delay, repeat});
    startTimer(id, delay);
    return id;
  }
  function clearTimer(id) {
    if (timers.delete(id)) runtime.ask({cancel: id});
  }
  install('setTimeout', (callback, delay = 0, ...values) => setTimer(callback, delay, false, values));
  install('setInterval', (callback, delay = 0, ...values) => setTimer(callback, delay, true, values));
  install('clearTimeout', clearTimer);
  install('clearInterval', clearTimer);
  runtime.fire = function ({timer: id}) {
    const timer = timers.get(id);
    if (timer === undefined) return;
    if (!timer.repeat) timers.delete(id);
    guarded(timer.run, timer.values);
    if (timers.has(id)) startTimer(id, timer.delay);
  };
  install('queueMicrotask', (callback) => {
    Promise.resolve().then(() => guarded(callback, []));
  });

  // --- console ---------------------------------------------------------------------------------------------------

  const isTyped = (value) => ArrayBuffer.isView(value) && !(value instanceof DataView);
  function inspected(value, depth = 0) {
    if (typeof value === 'string') return depth === 0 ? value : JSON.stringify(value);
    if (typeof value === 'bigint') return `${value}n`;
    if (value instanceof Error || value instanceof DOMException) return textOf(value);
    if (typeof value === 'function') return `[function ${value.name}]`;
    if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? '-0' : String(value);
    if (value instanceof ArrayBuffer) return `ArrayBuffer(${value.byteLength})`;
    if (Array.isArray(value) || isTyped(value)) {
      const items = Array.from(value.slice(0, 100), (item) => inspected(item, depth + 1));
      if (value.length > 100) items.push(`… ${value.length - 100} more`);
      return `${isTyped(value) ? `${value.constructor.name}(${value.length}) ` : ''}[${items.join(', ')}]`;
    }
    const tag = value[Symbol.toStringTag] ?? value.constructor?.name;
    const name = tag === undefined || tag === 'Object' ? '' : `${tag} `;
    if (depth > 3) return `${name}{…}`;
    const pairs = Object.entries(value).map(([key, item]) => `${key}: ${inspected(item, depth + 1)}`);
    return `${name}{${pairs.join(', ')}}`;
  }
  const log = (level) => (...values) => {
    runtime.ask({log: level, text: values.map((value) => inspected(value)).join(' ')});
  };
  install('console', {log: log('log'), info: log('info'), warn: log('warn'), error: log('error'), debug: log('debug')});

  // --- a few Web classes -----------------------------------------------------------------------------------------

  class URLSearchParams {
    #pairs = [];
    constructor(text = '') {
      const words = (part) => decodeURIComponent(part.replaceAll('+', ' '));
      for (const pair of `${text}`.replace(/^\?/, '').split('&').filter(Boolean)) {
        const at = pair.indexOf('=');
        this.#pairs.push(at < 0 ? [words(pair), ''] : [words(pair.slice(0, at)), words(pair.slice(at + 1))]);
      }
    }
    get(name) { return this.#pairs.find(([key]) => key === name)?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([key]) => key === name).map(([, value]) => value); }
    has(name) { return this.#pairs.some(([key]) => key === name); }
    [Symbol.iterator]() { return this.#pairs[Symbol.iterator](); }
  }
  install('URLSearchParams', URLSearchParams);

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') {
      return Uint8Array.from(unescape(encodeURIComponent(`${text}`.toWellFormed())), (character) => character.charCodeAt(0));
    }
  }
  class TextDecoder {
    get encoding() { return 'utf-8'; }
    decode(source = new Uint8Array(0)) {
      return runtime.ask({decode: true}, runtime.bytesOf(source)).answer.value;
    }
  }
  install('TextEncoder', TextEncoder);
  install('TextDecoder', TextDecoder);

  class Response {
    #bytes;
    constructor(url, status, bytes) {
      Object.assign(this, {url, status, ok: status === 200, statusText: status === 200 ? 'OK' : 'Not Found'});
      this.#bytes = bytes;
    }
    async arrayBuffer() { return this.#bytes; }
    async bytes() { return new Uint8Array(this.#bytes); }
    async text() { return new TextDecoder().decode(this.#bytes); }
    async json() { return JSON.parse(await this.text()); }
  }
  install('Response', Response);
  install('fetch', async (resource) => {
    const url = `${resource?.url ?? resource}`;
    const {answer, bytes} = runtime.ask({fetch: url});
    return new Response(url, answer.value, bytes);
  });

  const started = runtime.ask({clock: true}).answer.value;
  install('performance', {now: () => runtime.ask({clock: true}).answer.value - started, timeOrigin: started});

  // --- the scope -------------------------------------------------------------------------------------------------

  class Navigator {}
  Object.defineProperty(Navigator.prototype, Symbol.toStringTag, {value: 'Navigator', configurable: true});
  const navigator = Object.create(Navigator.prototype);
  install('Navigator', Navigator);
  Object.defineProperty(global, 'navigator', {get: () => navigator, configurable: true, enumerable: true});
  install('self', global);
  install('window', global);
  runtime.openProgram = function ({href}) {
    install('location', Object.freeze({href, toString: () => href}));
  };
  install('isSecureContext', true);
})
