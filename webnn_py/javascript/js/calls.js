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

  // Send a message. A call that has numbered its promise itself is not waited for.
  function ask(message, bytes = null) {
    const gone = collected.length > 0 ? takeCollected() : null;
    const text = own.json(gone === null ? message : {__proto__: null, ...message, collected: gone});
    if (own.hasOwn(message, 'promise')) {
      runtime.post(text, bytes);
      return {__proto__: null, answer: {__proto__: null, promise: message.promise}, bytes: null};
    }
    const sent = runtime.send(text, bytes);
    const answer = own.bare(own.parse(sent[0]));
    if (answer.error !== undefined) throw makeError(answer.error);
    return {__proto__: null, answer, bytes: sent[1]};
  }

  // The promise of a number, whose value will be of a type. Settlements come in tasks of their own, hence later than this.
  function capability(id, type) {
    const entry = {__proto__: null, type, target: null, reads: null, destroyed: null};
    entry.promise = new own.Promise((resolve, reject) => {
      entry.resolve = resolve;
      entry.reject = reject;
    });
    own.mapSet(capabilities, id, entry);
    return entry;
  }

  function settle(settlement, bytes) {
    const {promise: id, error, value} = own.bare(settlement);
    const entry = own.mapGet(capabilities, id);
    own.mapDelete(capabilities, id);
    const {type, target, destroyed, resolve, reject} = entry;
    if (error !== undefined) reject(makeError(error));
    else if (destroyed !== null) rejectAsDestroyed(destroyed, reject);
    else if (target !== null) fill(target, bytes, resolve, reject);
    else resolve(runtime.fromHost(value, type, bytes));
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

  // Have the reads rejected that are pending when their tensor or its context is destroyed, though the host may have read
  // before it got to know of it. What the host itself refuses or rejects keeps the host's error. `loss` is the number of the
  // promise `lost` of a context, which settles before its reads.
  function rejectReads(handle, name, loss) {
    const lost = loss === undefined ? null : own.mapGet(capabilities, loss).promise;
    const message = `readTensor(): destroy() was called on the ${name} while the read was pending`;
    own.mapForEach(capabilities, (entry) => {
      if (entry.reads !== null && own.includes(entry.reads, handle)) {
        entry.destroyed ??= {__proto__: null, message, lost};
      }
    });
  }

  function rejectAsDestroyed({message, lost}, reject) {
    const rejectNow = () => reject(makeError({__proto__: null, name: 'InvalidStateError', message}));
    if (lost === null) rejectNow();
    else void own.then(lost, rejectNow);
  }

  // Settle all that is pending when there is no host any more: contexts are lost, anything else is rejected.
  function abandon(message) {
    const pending = own.list();
    own.mapForEach(capabilities, (entry, id) => { pending[pending.length] = {__proto__: null, id, entry}; });
    for (let index = 0; index < pending.length; index += 1) {
      const {id, entry} = pending[index];
      const loss = entry.type.kind === 'dictionary' && entry.type.name === 'MLContextLostInfo';
      settle({__proto__: null, promise: id, ...(loss ? {value: {message}} : {error: {name: 'UnknownError', message}})}, null);
    }
  }

  const registry = new own.FinalizationRegistry((handle) => { collected[collected.length] = handle; });

  Object.assign(runtime, {
    ask, settle, capability, rejectReads, abandon,
    // Have the host let go of what a handle stands for when the object is gone.
    keepFor: (object, handle) => own.register(registry, object, handle),
  });
})
