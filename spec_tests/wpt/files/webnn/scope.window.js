// META: title=the scope of a test file

'use strict';

test(() => {
  assert_true(self === window && window === globalThis);
  assert_equals(typeof document, 'undefined');
  assert_equals(location.search, '');
  assert_false(crossOriginIsolated);
  assert_true(isSecureContext);
}, 'window without a document');

promise_test(async () => {
  const answer = await fetch('resources/helpers.js');
  assert_equals(answer.status, 200);
  assert_true((await answer.text()).includes('newContext'));
  assert_equals((await fetch('/webnn/nothing.js')).status, 404);
}, 'fetch() of files of the checkout');

promise_test(async () => {
  const order = [];
  const timers = [300, 0, 150].map((delay) => new Promise((resolve) => {
    setTimeout(() => {
      order.push(delay);
      resolve();
    }, delay);
  }));
  queueMicrotask(() => order.push('microtask'));
  await Promise.all(timers);
  assert_array_equals(order, ['microtask', 0, 150, 300]);
}, 'timers fire in the order of their times, after microtasks');
