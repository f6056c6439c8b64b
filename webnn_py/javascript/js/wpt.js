// Between testharness.js and its report: the window-like scope that test files expect, and results to the host.
(function (runtime) {
  'use strict';

  const global = globalThis;
  const install = (name, value) =>
      Object.defineProperty(global, name, {value, writable: true, configurable: true, enumerable: false});

  // No `document`: testharness.js would then look for elements to show results in.
  runtime.openWindow = function ({location, isolated}) {
    install('window', global);
    install('Window', class Window {
      static [Symbol.hasInstance](value) { return value === global; }
    });
    install('GLOBAL', {isWindow: () => true, isWorker: () => false, isShadowRealm: () => false});
    install('location', Object.freeze({...location, toString: () => location.href}));
    install('crossOriginIsolated', isolated);
  };

  runtime.watchTests = function () {
    const statuses = ['PASS', 'FAIL', 'TIMEOUT', 'NOTRUN', 'PRECONDITION_FAILED'];
    // A test is told of when it is made, and again when it starts.
    global.add_test_state_callback((test) => runtime.ask({known: test.index, name: test.name, started: test.phase > 0}));
    global.add_result_callback((test) => runtime.ask({
      ended: test.index, name: test.name, status: statuses[test.status], message: test.message ?? null}));
    global.add_completion_callback((tests, harness) => runtime.ask({
      harness: ['OK', 'ERROR', 'TIMEOUT', 'PRECONDITION_FAILED'][harness.status],
      message: harness.message ?? null,
    }));
  };
})
