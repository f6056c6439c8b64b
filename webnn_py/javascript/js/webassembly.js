// WebAssembly's functions that return promises, of those that return what they make: compiling in the background, an
// engine would have something to wait for that its host does not know of.
(function (runtime) {
  'use strict';

  const {own} = runtime;
  const {WebAssembly} = globalThis;
  const {Module, Instance} = WebAssembly;
  const construct = Reflect.construct;
  const isModule = (value) => typeof value === 'object' && value !== null && own.inherits(Module.prototype, value);

  async function bytesOf(source) {
    const response = await source;
    if (!runtime.isResponse(response)) {
      throw runtime.ours(new own.TypeError('WebAssembly: what is streamed is no Response'));
    }
    if (!response.ok) throw runtime.ours(new own.TypeError(`WebAssembly: ${response.url} has the status ${response.status}`));
    return response.arrayBuffer();
  }

  const compile = (bytes) => construct(Module, [bytes]);
  const instantiate = (module, imports) => construct(Instance, [module, imports]);
  const both = (bytes, imports) => {
    const module = compile(bytes);
    return {module, instance: instantiate(module, imports)};
  };
  const functions = {
    async compile(bytes) { return compile(bytes); },
    async instantiate(source, imports = undefined) {
      return isModule(source) ? instantiate(source, imports) : both(source, imports);
    },
    async compileStreaming(source) { return compile(await bytesOf(source)); },
    async instantiateStreaming(source, imports = undefined) { return both(await bytesOf(source), imports); },
  };
  const names = own.keys(functions);
  for (let index = 0; index < names.length; index += 1) {
    own.define(WebAssembly, names[index], {
      __proto__: null, value: functions[names[index]], writable: true, enumerable: true, configurable: true});
  }
})
