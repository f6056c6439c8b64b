// What a script finds besides the language and the API: a global scope with events, errors that nobody caught, timers,
// microtasks. Everything outside goes through runtime.ask(). More of it: console.js, web.js, url.js.
(function (runtime) {
  'use strict';

  const {own, slots} = runtime;
  const global = globalThis;
  const {assign} = Object;
  const install = (name, value) =>
      Object.defineProperty(global, name, {value, writable: true, configurable: true, enumerable: false});

  // --- DOMException ----------------------------------------------------------------------------------------------

  const CODES = {
    __proto__: null,
    NotFoundError: 8, NotSupportedError: 9, InvalidStateError: 11, SyntaxError: 12, InvalidModificationError: 13,
    SecurityError: 18, AbortError: 20, QuotaExceededError: 22, TimeoutError: 23, DataCloneError: 25,
  };

  class DOMException {
    #name;
    #message;
    constructor(message = '', name = 'Error') {
      this.#name = `${name}`;
      this.#message = `${message}`;
      own.define(this, 'stack', {
        __proto__: null, value: own.stackOf(new own.Error(this.#message)), writable: true, configurable: true});
    }
    get name() { return this.#name; }
    get message() { return this.#message; }
    get code() { return CODES[this.#name] ?? 0; }
    static words(value) { return #name in value ? `${value.#name}: ${value.#message}` : undefined; }
  }
  const wordsOf = DOMException.words;
  delete DOMException.words;
  Object.setPrototypeOf(DOMException.prototype, Error.prototype);
  Object.defineProperty(DOMException.prototype, Symbol.toStringTag, {value: 'DOMException', configurable: true});
  for (const name of ['name', 'message', 'code']) {
    Object.defineProperty(DOMException.prototype, name, {enumerable: true});
  }
  install('DOMException', DOMException);

  const errorPrototype = own.Error.prototype;
  const isError = (value) => typeof value === 'object' && value !== null && own.inherits(errorPrototype, value);
  function textOf(error) {
    try {
      if (!isError(error)) return own.String(error);
      return wordsOf(error) ?? `${error.name}: ${error.message}`;
    } catch {
      return 'an exception that cannot be shown';
    }
  }

  // V8's stacks begin with the message, others do not.
  function withStack(message, error) {
    let stack;
    try {
      stack = error?.stack;
    } catch {
      stack = undefined;
    }
    if (typeof stack !== 'string' || stack === '') return message;
    const cut = runtime.trimmed(stack);
    return own.startsWith(cut, message) ? cut : `${message}\n${cut}`;
  }

  // --- events ----------------------------------------------------------------------------------------------------

  class Event {
    constructor(type, properties = {}) {
      assign(this, {type: `${type}`, defaultPrevented: false, target: null, ...properties});
    }
    preventDefault() { this.defaultPrevented = true; }
  }
  // What is dispatched here, whatever a script has made of the class.
  const event = (type, properties) => ({
    __proto__: Event.prototype, type, defaultPrevented: false, target: null, ...properties});

  class EventTarget {
    #listeners = own.list();
    addEventListener(type, listener, options = undefined) {
      const known = this.#listeners;
      for (let index = 0; index < known.length; index += 1) {
        if (known[index].type === type && known[index].listener === listener) return;
      }
      const once = typeof options === 'object' && options !== null && !!options.once;
      known[known.length] = {__proto__: null, type: `${type}`, listener, once};
    }
    removeEventListener(type, listener) {
      const kept = own.list();
      for (let index = 0; index < this.#listeners.length; index += 1) {
        const one = this.#listeners[index];
        if (one.type !== type || one.listener !== listener) kept[kept.length] = one;
      }
      this.#listeners = kept;
    }
    dispatchEvent(event) {
      const target = this === events ? global : this;
      event.target ??= target;
      const called = this.#listeners;
      const count = called.length;
      for (let index = 0; index < count; index += 1) {
        const {type, listener, once} = called[index];
        if (type !== event.type) continue;
        if (once) removeListener(this, type, listener);
        guarded(() => {
          if (typeof listener === 'function') own.apply(listener, target, [event]);
          else listener.handleEvent(event);
        }, []);
      }
      const handler = target === global ? undefined : target[`on${event.type}`];
      if (typeof handler === 'function') guarded(() => own.apply(handler, target, [event]), []);
      return !event.defaultPrevented;
    }
  }
  const [dispatch, addListener, removeListener] = ['dispatchEvent', 'addEventListener', 'removeEventListener']
      .map((name) => Function.prototype.call.bind(EventTarget.prototype[name]));
  install('Event', Event);
  install('EventTarget', EventTarget);
  const events = new EventTarget();
  install('addEventListener', (type, listener, options) => addListener(events, type, listener, options));
  install('removeEventListener', (type, listener) => removeListener(events, type, listener));
  install('dispatchEvent', (given) => dispatch(events, given));

  // An exception that nothing caught: an "error" event, and word to the host.
  let reporting = false;
  runtime.reportError = function (error) {
    const message = textOf(error);
    let unhandled = true;
    if (!reporting) {
      reporting = true;  // what a listener of the event throws is told, and not to listeners
      try {
        unhandled = dispatch(events, event('error', {
          message: `Uncaught ${message}`, error, filename: '', lineno: 0, colno: 0}));
      } finally {
        reporting = false;
      }
    }
    if (unhandled) runtime.ask({log: 'uncaught', text: withStack(message, error)});
  };
  install('reportError', (error) => runtime.reportError(error));
  runtime.reportText = ({message, stack}) => {
    const at = own.indexOf(message, ': ');
    const error = new own.Error(at < 0 ? message : own.slice(message, at + 2));
    if (at >= 0) own.define(error, 'name', {__proto__: null, value: own.slice(message, 0, at), writable: true});
    runtime.defineStack(error, stack);
    runtime.reportError(error);
  };

  runtime.reportRejection = function (reason, promise) {
    if (dispatch(events, event('unhandledrejection', {reason, promise}))) {
      runtime.ask({log: 'unhandled', text: withStack(textOf(reason), reason)});
    }
  };

  function guarded(callback, values) {
    try {
      return own.apply(callback, global, values);
    } catch (error) {
      return void runtime.reportError(error);
    }
  }

  // --- timers and microtasks -------------------------------------------------------------------------------------

  const timers = new own.Map();
  let lastTimer = 0;

  function startTimer(id, delay) {
    runtime.ask({timer: id, delay: own.max(0, delay | 0)});
  }
  function setTimer(callback, delay, repeat, values) {
    const id = ++lastTimer;
    const text = typeof callback === 'function' ? '' : `${callback}`;
    const run = typeof callback === 'function' ? callback : () => (0, eval)(text);
    own.mapSet(timers, id, {__proto__: null, run, values, delay, repeat});
    startTimer(id, delay);
    return id;
  }
  function clearTimer(id) {
    if (own.mapDelete(timers, id)) runtime.ask({cancel: id});
  }
  install('setTimeout', (callback, delay = 0, ...values) => setTimer(callback, delay, false, values));
  install('setInterval', (callback, delay = 0, ...values) => setTimer(callback, delay, true, values));
  install('clearTimeout', clearTimer);
  install('clearInterval', clearTimer);
  runtime.fire = function ({timer: id}) {
    const timer = own.mapGet(timers, id);
    if (timer === undefined) return;
    if (!timer.repeat) own.mapDelete(timers, id);
    guarded(timer.run, timer.values);
    if (own.mapHas(timers, id)) startTimer(id, timer.delay);
  };
  // A browser draws 60 times a second; here each frame is a task.
  install('requestAnimationFrame', (callback) => setTimer(() => callback(now()), 1000 / 60, false, []));
  install('cancelAnimationFrame', clearTimer);
  install('queueMicrotask', (callback) => {
    if (typeof callback !== 'function') throw runtime.ours(new own.TypeError('queueMicrotask(): callback is not a function'));
    own.later(() => guarded(callback, []));
  });

  const started = runtime.ask({clock: true}).answer.value;
  const now = () => runtime.ask({clock: true}).answer.value - started;
  install('performance', {now, timeOrigin: started});

  // --- the scope -------------------------------------------------------------------------------------------------

  class Navigator {}
  Object.defineProperty(Navigator.prototype, Symbol.toStringTag, {value: 'Navigator', configurable: true});
  const navigator = Object.create(Navigator.prototype);
  install('Navigator', Navigator);
  Object.defineProperty(global, 'navigator', {get: () => navigator, configurable: true, enumerable: true});
  install('self', global);
  install('window', global);
  install('isSecureContext', true);

  Object.assign(runtime, {
    DOMException, Event, EventTarget, install, textOf, isError, guarded, now, setTimer,
    isPlatformObject: (value) => own.weakGet(slots, value) !== undefined,
    dispatch: (target, type, properties) => dispatch(target, event(type, properties)),
  });
})
