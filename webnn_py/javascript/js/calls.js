// Messages to the host, and promises that the host settles.
(function (runtime) {
  'use strict';

  const capabilities = new Map();
  const collected = [];

  function makeError({name, message}) {
    return name === 'TypeError' ? new TypeError(message) : new DOMException(message, name);
  }

  // Send a message; what the host settled meanwhile is settled before the answer is looked at.
  function ask(message, bytes = null) {
    if (collected.length > 0) message.collected = collected.splice(0);
    const [text, answerBytes] = runtime.send(JSON.stringify(message), bytes);
    const answer = JSON.parse(text);
    for (const settlement of answer.settled ?? []) settle(settlement, null);
    if (answer.error) throw makeError(answer.error);
    return {answer, bytes: answerBytes};
  }

  function capability(id, type) {
    if (!capabilities.has(id)) capabilities.set(id, {...Promise.withResolvers(), settlement: null});
    const entry = capabilities.get(id);
    if (type !== undefined) {
      entry.type = type;
      if (entry.settlement) finish(id, entry);
    }
    return entry;
  }

  // A settlement may come inside the very call that hands out the promise, before its type is known.
  function settle(settlement, bytes) {
    const entry = capability(settlement.promise);
    Object.assign(entry, {settlement, bytes});
    if (entry.type !== undefined) finish(settlement.promise, entry);
  }

  function finish(id, entry) {
    capabilities.delete(id);
    const {settlement, type, bytes, target, resolve, reject} = entry;
    if (settlement.error) {
      reject(makeError(settlement.error));
    } else if (target) {
      fill(target, bytes, resolve, reject);
    } else {
      resolve(runtime.fromHost(settlement.value, type, bytes));
    }
  }

  // What was asked to be filled may have been detached or shrunk while the promise was pending.
  function fill(target, bytes, resolve, reject) {
    const room = runtime.bytesOf(target);
    if (room.byteLength < bytes.byteLength) {
      reject(new TypeError('readTensor(): the output buffer was detached or resized while the read was pending'));
      return;
    }
    room.set(new Uint8Array(bytes));
    resolve(undefined);
  }

  Object.assign(runtime, {ask, settle, capability, collected});
})
