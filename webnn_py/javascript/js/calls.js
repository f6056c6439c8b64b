// Messages to the host, and promises that the host settles.
(function (runtime) {
  'use strict';

  const {own} = runtime;
  const capabilities = new own.Map();
  const MOST_COLLECTED = 1000;
  let collected = own.list();

  function makeError({name, message}) {
    return runtime.ours(name === 'TypeError' ? new own.TypeError(message) : new runtime.DOMException(message, name));
  }

  // Errors of this package's own making, whose stacks are to begin with the caller's frame: runtime.entered sees to it
  // however deep our own frames are.
  const errors = new own.WeakSet();
  runtime.ours = (error) => {
    own.note(errors, error);
    runtime.trimStack(error);
    return error;
  };

  // Call what a script has called by `entry`, a function that it sees, and let errors of ours show none of its insides.
  runtime.entered = (entry, self, values, body) => {
    try {
      return body(self, values);
    } catch (error) {
      if (own.noted(errors, error)) {
        own.forget(errors, error);
        runtime.cutStack(error, entry);
      }
      throw error;
    }
  };

  // Take what is to be let go of: of many objects, as many as keep a message short.
  function takeCollected() {
    const taken = own.list();
    const rest = own.list();
    for (let index = 0; index < collected.length; index += 1) {
      const list = index < MOST_COLLECTED ? taken : rest;
      list[list.length] = collected[index];
    }
    collected = rest;
    return taken;
  }

  // Send a message; what the host settled meanwhile is settled before the answer is looked at. A call that has numbered its
  // promise itself is not waited for.
  function ask(message, bytes = null) {
    const gone = collected.length > 0 ? takeCollected() : null;
    const text = own.json(gone === null ? message : {__proto__: null, ...message, collected: gone});
    if (own.hasOwn(message, 'promise')) {
      runtime.post(text, bytes);
      return {__proto__: null, answer: {__proto__: null, promise: message.promise}, bytes: null};
    }
    const sent = runtime.send(text, bytes);
    const answer = own.bare(own.parse(sent[0]));
    if (answer.settled !== undefined) {
      for (let index = 0; index < answer.settled.length; index += 1) settle(answer.settled[index], null);
    }
    if (answer.unread && gone !== null) {
      for (let index = 0; index < gone.length; index += 1) collected[collected.length] = gone[index];
    }
    if (answer.error !== undefined) throw makeError(answer.error);
    return {__proto__: null, answer, bytes: sent[1]};
  }

  function capability(id, type) {
    let entry = own.mapGet(capabilities, id);
    if (entry === undefined) {
      entry = {__proto__: null, settlement: null, bytes: null, type: undefined, target: null};
      entry.promise = new own.Promise((resolve, reject) => {
        entry.resolve = resolve;
        entry.reject = reject;
      });
      own.mapSet(capabilities, id, entry);
    }
    if (type !== undefined) {
      entry.type = type;
      if (entry.settlement !== null) finish(id, entry);
    }
    return entry;
  }

  // A settlement may come inside the very call that hands out the promise, before its type is known.
  function settle(settlement, bytes) {
    const entry = capability(own.bare(settlement).promise);
    entry.settlement = settlement;
    entry.bytes = bytes;
    if (entry.type !== undefined) finish(settlement.promise, entry);
  }

  function finish(id, entry) {
    own.mapDelete(capabilities, id);
    const {settlement, type, bytes, target, resolve, reject} = entry;
    if (settlement.error !== undefined) {
      reject(makeError(settlement.error));
    } else if (target !== null) {
      fill(target, bytes, resolve, reject);
    } else {
      resolve(runtime.fromHost(settlement.value, type, bytes));
    }
  }

  // What was asked to be filled may have been detached while the promise was pending.
  function fill(target, bytes, resolve, reject) {
    const room = runtime.bytesOf(target);
    if (own.typedBytes(room) < own.bufferBytes(bytes)) {
      const words = 'readTensor(): the output buffer was detached while the read was pending';
      reject(runtime.ours(new own.TypeError(words)));
      return;
    }
    own.typedSet(room, new own.Uint8Array(bytes));
    resolve(undefined);
  }

  // Settle all that is pending when there is no host any more: contexts are lost, anything else is rejected.
  function abandon(message) {
    const pending = own.list();
    own.mapForEach(capabilities, (entry, id) => { pending[pending.length] = {__proto__: null, id, entry}; });
    for (let index = 0; index < pending.length; index += 1) {
      const {id, entry} = pending[index];
      if (entry.type === undefined) continue;
      const loss = entry.type.kind === 'dictionary' && entry.type.name === 'MLContextLostInfo';
      settle({__proto__: null, promise: id, ...(loss ? {value: {message}} : {error: {name: 'UnknownError', message}})}, null);
    }
  }

  const registry = new own.FinalizationRegistry((handle) => { collected[collected.length] = handle; });

  Object.assign(runtime, {
    ask, settle, capability, abandon,
    // Have the host let go of what a handle stands for when the object is gone.
    keepFor: (object, handle) => own.register(registry, object, handle),
  });
})
