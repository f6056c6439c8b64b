// Where calls are made. Loaded only while a trace is on, for it costs a stack for each call: every message to the host that
// is a call of the API then says at which place in the script.
(function (runtime) {
  'use strict';

  const {own, ask, settle} = runtime;

  // How many promises this realm has seen settled: calls with the same number have not waited for one another.
  let settled = 0;

  runtime.settle = (settlement, bytes) => {
    settled += 1;
    settle(settlement, bytes);
  };

  // The first frame that has a file: native ones and code of eval() have none.
  const frame = /\n {4}at (?:async )?(?:(.*) \()?([^()<\n][^()\n]*?):(\d+)(?::\d+)?\)?(?=\n|$)/;

  // A script can make stacks what it likes: what cannot be read is left out, and so is what is too long to be a place.
  function place() {
    let found;
    try {
      found = own.exec(frame, `\n${runtime.trimmed(new own.Error('').stack)}`);
    } catch {
      found = null;
    }
    if (found === null || found[0].length > 1000) return undefined;
    return {__proto__: null, file: found[2], line: found[3], function: found[1], settled: `${settled}`};
  }

  runtime.ask = (message, bytes = null) =>
      ask(own.hasOwn(message, 'call') ? {__proto__: null, ...message, at: place()} : message, bytes);
})
