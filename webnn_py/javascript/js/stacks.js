// Stacks as a script is to see them: a caller's frames, and none of this package's or of what runs it.
(function (runtime) {
  'use strict';

  const {own, folder} = runtime;

  const marks = ['webnn_py:', 'node:', '[eval', folder];
  const isInside = (line) => own.find(marks, (mark) => own.indexOf(line, mark) >= 0) !== undefined;

  runtime.trimmed = function (stack) {
    let text = '';
    for (let at = 0; at < stack.length;) {
      const end = own.indexOf(stack, '\n', at);
      const line = own.slice(stack, at, end < 0 ? stack.length : end);
      at = end < 0 ? stack.length : end + 1;
      if (line !== '' && !isInside(line)) text += `${text === '' ? '' : '\n'}${line}`;
    }
    return text;
  };
  runtime.trimStack = function (error) {
    const {stack} = error;
    if (typeof stack !== 'string') return;
    own.define(error, 'stack', {__proto__: null, value: runtime.trimmed(stack), writable: true, configurable: true});
  };
  runtime.cutStack = function (error, entry) {
    own.captureStackTrace(error, entry);
    runtime.trimStack(error);
  };
})
