// The part of testharness.js that the files beside this need, written anew: the same names, the same meaning.
// Tests run one after another; the first uncaught exception outside of a test ends the file with an error.
'use strict';

(function () {
  const global = globalThis;
  const PASS = 0, FAIL = 1;
  const OK = 0, ERROR = 1;
  const callbacks = {begun: [], ended: [], complete: []};
  const tests = [];
  let queue = Promise.resolve();
  let waiting = 0;
  let loaded = false;
  let complete = false;

  class AssertionError extends Error {
    get name() { return 'AssertionError'; }
  }

  // --- results -----------------------------------------------------------------------------------------------------

  function finish(status, message = null) {
    if (complete) return;
    complete = true;
    for (const callback of callbacks.complete) callback(tests, {status, message});
  }

  function make(name) {
    const test = {name, phase: 0, status: null, message: null, cleanups: [],
                  add_cleanup(step) { this.cleanups.push(step); }};
    test.index = tests.push(test);
    for (const callback of callbacks.begun) callback(test);
    return test;
  }

  function begin(test) {
    test.phase = 1;
    for (const callback of callbacks.begun) callback(test);
  }

  function end(test, status, message = null) {
    for (const step of test.cleanups) step();
    Object.assign(test, {status, message});
    for (const callback of callbacks.ended) callback(test);
  }

  const told = (error) => (error instanceof AssertionError ? error.message : `${error?.name ?? ''} ${error?.message ?? error}`);

  function endWhenDone() {
    if (loaded && waiting === 0) finish(OK);
  }

  // The scripts of a file run in one task; when its microtasks begin, all tests are known.
  Promise.resolve().then(() => {
    loaded = true;
    endWhenDone();
  });
  global.addEventListener('error', (event) => finish(ERROR, event.message));

  // --- tests -------------------------------------------------------------------------------------------------------

  function test(body, name) {
    const one = make(name);
    begin(one);
    try {
      body.call(one, one);
      end(one, PASS);
    } catch (error) {
      end(one, FAIL, told(error));
    }
  }

  function promise_test(body, name) {
    waiting += 1;
    const one = make(name);
    queue = queue.then(async () => {
      begin(one);
      try {
        await body.call(one, one);
        end(one, PASS);
      } catch (error) {
        end(one, FAIL, told(error));
      }
      waiting -= 1;
      endWhenDone();
    });
  }

  // --- assertions --------------------------------------------------------------------------------------------------

  const shown = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value));

  function assert(condition, what, description) {
    if (!condition) throw new AssertionError(description ? `${description}: ${what}` : what);
  }

  const asserts = {
    assert_true: (actual, description) =>
      assert(actual === true, `expected true got ${shown(actual)}`, description),
    assert_false: (actual, description) =>
      assert(actual === false, `expected false got ${shown(actual)}`, description),
    assert_equals: (actual, expected, description) =>
      assert(Object.is(actual, expected), `expected ${shown(expected)} but got ${shown(actual)}`, description),
    assert_not_equals: (actual, unexpected, description) =>
      assert(!Object.is(actual, unexpected), `got disallowed value ${shown(actual)}`, description),
    assert_in_array: (actual, expected, description) =>
      assert(expected.includes(actual), `${shown(actual)} is not one of ${expected.map(shown)}`, description),
    assert_array_equals(actual, expected, description) {
      assert(actual.length === expected.length, `lengths differ, expected ${expected.length} got ${actual.length}`,
             description);
      for (let index = 0; index < expected.length; index += 1) {
        assert(Object.is(actual[index], expected[index]),
               `expected property ${index} to be ${shown(expected[index])} but got ${shown(actual[index])}`,
               description);
      }
    },
    assert_array_approx_equals(actual, expected, epsilon, description) {
      assert(actual.length === expected.length, `lengths differ, expected ${expected.length} got ${actual.length}`,
             description);
      for (let index = 0; index < expected.length; index += 1) {
        assert(Math.abs(actual[index] - expected[index]) <= epsilon,
               `property ${index}: expected ${expected[index]} +/- ${epsilon} but got ${actual[index]}`, description);
      }
    },
    assert_unreached: (description) => assert(false, 'reached unreachable code', description),
    assert_throws_js(constructor, body, description) {
      try {
        body();
      } catch (error) {
        checkJs(error, constructor, description);
        return;
      }
      assert(false, 'did not throw', description);
    },
    assert_throws_dom(name, body, description) {
      try {
        body();
      } catch (error) {
        checkDom(error, name, description);
        return;
      }
      assert(false, 'did not throw', description);
    },
  };

  function checkJs(error, constructor, description) {
    assert(error?.constructor === constructor, `threw ${told(error)} instead of ${constructor.name}`, description);
  }

  function checkDom(error, name, description) {
    assert(error instanceof DOMException && error.constructor === DOMException && error.name === name,
           `threw ${told(error)} instead of ${name}`, description);
  }

  async function rejection(promise, description) {
    let value;
    try {
      value = await promise;
    } catch (error) {
      return error;
    }
    assert(false, `should have rejected, got ${shown(value)}`, description);
  }

  Object.assign(global, asserts, {
    AssertionError,
    test,
    promise_test,
    promise_rejects_js: async (t, constructor, promise, description) =>
      checkJs(await rejection(promise, description), constructor, description),
    promise_rejects_dom: async (t, name, promise, description) =>
      checkDom(await rejection(promise, description), name, description),
    setup: (body) => (typeof body === 'function' ? body() : undefined),
    add_test_state_callback: (callback) => callbacks.begun.push(callback),
    add_result_callback: (callback) => callbacks.ended.push(callback),
    add_completion_callback: (callback) => callbacks.complete.push(callback),
  });
})();
