'use strict';
promise_test(async () => {}, 'one that ends');
promise_test(() => new Promise(() => {}), 'one that never ends');
promise_test(async () => {}, 'one that never runs');
