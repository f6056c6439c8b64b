// Stacks as a script is to see them: a caller's frames, and none of this package's or of what runs it.
(function (runtime) {
  'use strict';

  const {own, folder} = runtime;

  const marks = ['webnn_py:', 'node:', '[eval'];
  if (folder !== undefined) marks.push(folder);
  const isInside = (line) => own.find(marks, (mark) => own.indexOf(line, mark) >= 0) !== undefined;
  const isNative = (line) => own.indexOf(line, '(native)') >= 0;

  function trimmed(stack) {
    const lines = own.list();
    for (let at = 0; at < stack.length;) {
      const end = own.indexOf(stack, '\n', at);
      lines[lines.length] = own.slice(stack, at, end < 0 ? stack.length : end);
      at = end < 0 ? stack.length : end + 1;
    }
    let text = '';
    for (let index = 0; index < lines.length; index += 1) {
      const line = lines[index];
      const next = index + 1 < lines.length ? lines[index + 1] : '';
      if (line === '' || isInside(line) || (isNative(line) && isInside(next))) continue;
      text += `${text === '' ? '' : '\n'}${line}`;
    }
    return text;
  }

  const defineStack = (error, stack) => own.define(error, 'stack', {
    __proto__: null, value: stack, writable: true, configurable: true});

  Object.assign(runtime, {trimmed, defineStack});
  runtime.trimStack = function (error) {
    const stack = own.stackOf(error);
    if (typeof stack === 'string') defineStack(error, trimmed(stack));
  };
  runtime.cutStack = function (error, entry) {
    own.captureStackTrace(error, entry);
    runtime.trimStack(error);
  };
})
