// The runtime of quickjs-ng, and the one function by which it is entered. `own` is what JavaScript's built-ins were in
// the beginning.
(function (send, take, wasm) {
  'use strict';
  const own = {__proto__: null, parse: JSON.parse, stringify: JSON.stringify, String, SyntaxError, TypeError,
               defineProperty: Object.defineProperty, keys: Object.keys};
  // The engine makes calls of it of template literals: a script must not come between them.
  Object.defineProperty(String.prototype, 'concat', {writable: false, configurable: false});
  const runtime = {__proto__: null, slots: new WeakMap(), send: (text, bytes) => [send(text, bytes), take()], wasm};
  const shown = (error) => {
    try {
      const isError = typeof error === 'object' && error !== null && 'message' in error;
      return own.stringify({__proto__: null, message: isError ? `${error.name}: ${error.message}` : own.String(error),
                            stack: isError ? `${error.stack}` : ''});
    } catch {
      return '{"message": "Error: an exception that cannot be shown", "stack": ""}';
    }
  };
  const entries = {
    __proto__: null,
    load: (loaded) => void loaded(runtime),
    call: (name, text, bytes) => void runtime[name](own.parse(text), bytes),
    rejected: (reason, promise) => void runtime.reportRejection(reason, promise),
    uncaught: (error) => void runtime.reportError(error),
    shown,
    meta: (meta, url) => void own.defineProperty(meta, 'url', {
      __proto__: null, value: url, writable: true, enumerable: true, configurable: true}),
    refusal: (message) => new own.TypeError(message),
    syntaxError: (message) => new own.SyntaxError(message),
    attributes: (given) => {
      if (given === undefined || own.keys(given).length === 0) return;
      throw new own.TypeError('import attributes are not supported; fetch() reads other files than modules');
    },
  };
  return (entry, a, b, c) => entries[entry](a, b, c);
})
