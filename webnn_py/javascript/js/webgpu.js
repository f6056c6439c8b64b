// The proposal "webgpu-interop": tensors that a GPUDevice gets as GPUBuffers, and gives back.
//
// The device lives here and the tensor with the host, so contents are copied, by way of the host's memory, both ways. The
// order is explicit: GPU work that is asked for after exportToGPU() waits at a gate until the contents have come, and the
// host keeps what is asked for after the GPUBuffer's destroy() waiting until they are back.
(function (runtime) {
  'use strict';

  const {own, slots, ask, capability} = runtime;
  const global = globalThis;
  const [MAP_READ, MAP_WRITE, COPY_SRC, COPY_DST] = [0x1, 0x2, 0x4, 0x8];  // GPUBufferUsage's
  const [READ, WRITE] = [1, 2];  // GPUMapMode's
  const LOST = 'the GPUDevice is lost';

  const isObject = (value) => typeof value === 'object' && value !== null;
  const when = (promise, fulfilled, rejected) =>
      void own.then(new own.Promise((resolve) => resolve(promise)), fulfilled, rejected);
  const report = (error) => void new own.Promise((_, reject) => reject(error));  // an unhandled rejection

  // --- the gate --------------------------------------------------------------------------------------------------

  // What waits, in the order of the calls: {isOpen, run}. One for all devices, so that no two can wait for each other.
  let queue = own.list();
  let first = 0;
  let running = false;

  const isClosed = () => running || first < queue.length;

  function pump() {
    if (running) return;
    running = true;
    while (first < queue.length && queue[first].isOpen) {
      const pending = queue[first].run();  // a promise where what is behind has to wait for it
      if (pending === undefined) first += 1;
      else pass(pending, queue[first] = {__proto__: null, isOpen: false, run() {}});
    }
    running = false;
    if (first < queue.length) return;
    queue = own.list();
    first = 0;
  }

  function open(item) {
    item.isOpen = true;
    pump();
  }

  const pass = (pending, item) => when(pending, () => open(item), () => open(item));  // a lost device fails

  // Do something in its turn: at once while nothing waits. What it throws then is reported, for nobody can catch it.
  function inTurn(run) {
    if (!isClosed()) return run();
    queue[queue.length] = {
      __proto__: null,
      isOpen: true,
      run() {
        try {
          run();
        } catch (error) {
          report(error);
        }
      },
    };
    return undefined;
  }

  // --- WebGPU's methods, which wait at the gate ------------------------------------------------------------------

  const originals = new own.Map();  // by prototype and name

  function call(object, name, ...values) {
    let method;
    for (let at = object; at !== null && method === undefined; at = own.prototypeOf(at)) {
      method = own.mapGet(originals, at)?.[name];
    }
    return own.apply(method ?? object[name], object, values);
  }

  // The data of a write as they are now; offsets and sizes count the elements of the view that is given.
  function copied(data) {
    const bytes = new own.Uint8Array(runtime.bytesOf(data));
    const kind = own.isView(data) ? own.typeOfView(data) : undefined;
    return kind === undefined || kind === 'Uint8Array' ? bytes : new global[kind](own.typedBuffer(bytes));
  }

  const SNAPSHOTS = {
    __proto__: null,
    submit: (values) => [[...values[0]]],
    writeBuffer: ([buffer, offset, data, ...rest]) => [buffer, offset, copied(data), ...rest],
    writeTexture: ([to, data, ...rest]) => [{...to}, copied(data), ...rest],
  };
  const PROMISING = ['mapAsync', 'onSubmittedWorkDone'];

  function holdBack(prototype, names) {
    if (own.mapHas(originals, prototype)) return;
    const kept = {__proto__: null};
    own.mapSet(originals, prototype, kept);
    for (const name of names) {
      const method = prototype[name];
      if (method === undefined) continue;
      kept[name] = method;
      const {[name]: held} = {
        [name](...values) {
          if (!isClosed()) return own.apply(method, this, values);
          const given = SNAPSHOTS[name] === undefined ? values : SNAPSHOTS[name](values);
          const run = () => own.apply(method, this, given);
          if (!own.includes(PROMISING, name)) return inTurn(run);
          return new own.Promise((resolve, reject) => inTurn(() => {
            try {
              resolve(run());
            } catch (error) {
              reject(error);
            }
          }));
        },
      };
      own.define(prototype, name, {__proto__: null, value: held, writable: true, configurable: true, enumerable: true});
    }
  }

  // --- devices ---------------------------------------------------------------------------------------------------

  const devices = new WeakMap();  // what is known of a GPUDevice: whether it is lost, and what it has

  function known(device) {
    let found = own.weakGet(devices, device);
    if (found !== undefined) return found;
    found = {__proto__: null, isLost: false, exports: new own.Set()};
    own.weakSet(devices, device, found);
    own.then(device.lost, () => {
      found.isLost = true;
      own.setForEach(found.exports, (one) => one.giveUp());
    });
    holdBack(own.prototypeOf(device), ['destroy']);
    holdBack(own.prototypeOf(device.queue),
             ['submit', 'writeBuffer', 'writeTexture', 'copyExternalImageToTexture', 'onSubmittedWorkDone']);
    const samples = [['createBuffer', {size: 4, usage: COPY_DST}, ['mapAsync', 'unmap', 'destroy']],
                     ['createTexture', {size: [1], format: 'r8unorm', usage: 2}, ['destroy']],
                     ['createQuerySet', {type: 'occlusion', count: 1}, ['destroy']]];
    for (const [create, descriptor, names] of samples) {
      if (device[create] === undefined) continue;
      const sample = device[create](descriptor);
      holdBack(own.prototypeOf(sample), names);
      call(sample, 'destroy');
    }
    return found;
  }

  // A GPUDevice of any package, by what it has.
  const isDevice = (value) => isObject(value) && typeof value.createBuffer === 'function' &&
      own.tagOf(value.lost) === '[object Promise]' && isObject(value.queue) && typeof value.queue.submit === 'function';

  // --- exports ---------------------------------------------------------------------------------------------------

  // Contents are written into a buffer and copied out of it, which takes usages that a script may not have asked for.
  const usageOf = (usage) => usage | (usage & MAP_READ ? COPY_DST : usage & MAP_WRITE ? COPY_SRC : COPY_SRC | COPY_DST);

  const roundedUp = (count) => 4 * own.trunc((count + 3) / 4);

  // Put contents into a buffer; returns a promise where that takes its time.
  function fill(device, buffer, usage, contents) {
    if ((usage & MAP_WRITE) === 0) {
      let padded = contents;
      if (contents.length < buffer.size) {
        padded = new own.Uint8Array(buffer.size);
        own.typedSet(padded, contents);
      }
      return void call(device.queue, 'writeBuffer', buffer, 0, padded);
    }
    return own.then(call(buffer, 'mapAsync', WRITE), () => {
      own.typedSet(new own.Uint8Array(buffer.getMappedRange()), contents);
      call(buffer, 'unmap');
    });
  }

  // Give `take` the contents of a buffer, and destroy it.
  async function drain(device, buffer, usage, take) {
    if (usage & (MAP_READ | MAP_WRITE) && buffer.mapState !== 'unmapped') call(buffer, 'unmap');
    let source = buffer;
    if ((usage & MAP_READ) === 0) {
      source = device.createBuffer({size: buffer.size, usage: MAP_READ | COPY_DST});
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, 0, source, 0, buffer.size);
      call(device.queue, 'submit', [encoder.finish()]);
      call(buffer, 'destroy');
    }
    try {
      await call(source, 'mapAsync', READ);
      take(source.getMappedRange());
    } finally {
      call(source, 'destroy');
    }
  }

  // The call of exportToGPU(): nothing but the device's loss is checked here, the rest by the host.
  function lend(message, tensor) {
    const slot = own.weakGet(slots, tensor);
    if (slot.exports === undefined) return void ask(message);  // which the host refuses
    const {device, usage, byteLength} = slot.exports;
    const state = known(device);
    if (state.isLost) throw runtime.ours(new runtime.DOMException(`exportToGPU(): ${LOST}`, 'InvalidStateError'));
    const real = usageOf(usage);
    const buffer = device.createBuffer({label: 'MLTensor', size: roundedUp(byteLength), usage: real});
    let pending;
    try {
      pending = capability(ask(message).answer.promise, {__proto__: null, kind: 'ArrayBuffer'}).promise;
    } catch (error) {
      call(buffer, 'destroy');
      throw error;
    }
    let contents = null;  // stays so where there are none
    const item = queue[queue.length] = {
      __proto__: null,
      isOpen: false,
      run: () => contents === null ? undefined : fill(device, buffer, real, contents),
    };
    when(pending, (bytes) => {
      contents = new own.Uint8Array(bytes);
      open(item);
    }, (error) => {
      open(item);
      if (error.name !== 'InvalidStateError') report(error);  // else context.lost says it
    });

    // The tensor is held as long as it may be needed, for the host lets go of what a script has let go of.
    const tell = (name, args, bytes = null) => {
      const {handle} = own.weakGet(slots, tensor);
      return ask({__proto__: null, call: name, interface: 'MLTensor', this: handle, args}, bytes).answer.value;
    };
    const end = () => tell('endExport', []);
    const give = (arrival, bytes, failure) => {
      const view = {__proto__: null, type: 'Uint8Array', byteLength: own.typedBytes(bytes)};
      tell('returnContents', [arrival, {__proto__: null, buffer: view}, failure], bytes);
    };
    const fail = (arrival, reason) => give(arrival, new own.Uint8Array(0), reason);
    let isOut = true;
    const exported = {
      __proto__: null,
      giveUp() {
        if (!isOut) return;
        isOut = false;
        const arrival = end();
        if (arrival !== null) fail(arrival, LOST);
      },
    };
    const {destroy} = {
      destroy() {
        if (!isOut) return;
        isOut = false;
        own.setDelete(state.exports, exported);
        const arrival = end();
        inTurn(() => {
          if (arrival === null) return void call(buffer, 'destroy');
          const take = (contents) => give(arrival, new own.Uint8Array(contents, 0, byteLength), null);
          const reason = (error) => state.isLost ? LOST : `the GPUBuffer could not be read: ${error.message}`;
          return void own.then(drain(device, buffer, real, take), undefined, (error) => fail(arrival, reason(error)));
        });
      },
    };
    own.setAdd(state.exports, exported);
    own.define(buffer, 'destroy', {__proto__: null, value: destroy, writable: true, configurable: true});
    own.define(buffer, 'usage', {__proto__: null, value: usage, configurable: true, enumerable: true});
    return buffer;
  }

  runtime.gpu = {
    __proto__: null,
    isDevice,
    lend,

    // The answer to createExportableTensor(): the tensor, which knows its device, unless that is lost by then.
    created(promise, device) {
      const state = known(device);
      return own.then(promise, (tensor) => {
        if (state.isLost) {
          tensor.destroy();
          throw new runtime.DOMException(`createExportableTensor(): ${LOST}`, 'InvalidStateError');
        }
        own.weakGet(slots, tensor).exports.device = device;
        return tensor;
      });
    },
  };
})
