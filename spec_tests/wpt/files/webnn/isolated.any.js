// META: title=a page that its headers isolate

'use strict';

test(() => {
  assert_true(crossOriginIsolated);
}, 'the headers isolate the page');
