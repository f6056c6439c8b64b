// A GPUDevice for tests: its queue does in later tasks, in order, what WebGPU's would, and fails where that would.
class GPUDevice {
  constructor() {
    this.queue = new GPUQueue(this);
    this.log = [];
    this.lost = new Promise((resolve) => { this.lose = resolve; });
  }
  createBuffer({size, usage}) { return new GPUBuffer(this, size, usage); }
  createCommandEncoder() {
    const commands = [];
    return {
      copyBufferToBuffer(from, at, to, there, size) {
        commands.push({uses: [from, to], run: () => to.bytes.set(from.bytes.subarray(at, at + size), there)});
      },
      double(buffer) {  // in the place of a compute pass
        const run = () => {
          const floats = new Float32Array(buffer.bytes.buffer);
          floats.forEach((value, index) => { floats[index] = 2 * value; });
        };
        commands.push({uses: [buffer], run});
      },
      finish: () => ({commands}),
    };
  }
  destroy() { this.queue.later(() => this.lose({reason: 'destroyed', message: ''})); this.isLost = true; }
}

class GPUQueue {
  #device;
  #work = Promise.resolve();
  constructor(device) { this.#device = device; }
  later(run) {
    this.#work = this.#work.then(() => new Promise((resolve) => { setTimeout(() => resolve(run()), 1); }));
    return this.#work;
  }
  submit(buffers) {
    for (const {commands} of buffers) {
      for (const {uses, run} of commands) {
        for (const {state, mapState} of uses) {
          if (state !== 'alive' || mapState !== 'unmapped') throw new Error(`submitted with a buffer ${state}, ${mapState}`);
        }
        this.#device.log.push('submit');
        this.later(run);
      }
    }
  }
  writeBuffer(buffer, offset, data) {
    const bytes = new Uint8Array(data.buffer ?? data).slice();
    this.#device.log.push('write');
    this.later(() => buffer.bytes.set(bytes, offset));
  }
  onSubmittedWorkDone() { return this.later(() => {}); }
}

class GPUBuffer {
  #device;
  state = 'alive';
  mapState = 'unmapped';
  constructor(device, size, usage) {
    this.#device = device;
    this.bytes = new Uint8Array(size);
    this.size = size;
    Object.defineProperty(this, 'usage', {value: usage, configurable: true});
    this.asked = usage;
  }
  async mapAsync() {
    this.mapState = 'pending';
    await this.#device.queue.later(() => {});
    if (this.#device.isLost) throw new Error('lost');
    this.mapState = 'mapped';
  }
  getMappedRange() { return this.bytes.buffer; }
  unmap() { this.mapState = 'unmapped'; }
  destroy() { this.state = 'destroyed'; }
}

async function contents(device, buffer, Type = Float32Array) {
  const staging = device.createBuffer({size: buffer.size, usage: 0x9});
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(1);
  return new Type(staging.getMappedRange().slice(0)).join();
}

function double(device, buffer) {
  const encoder = device.createCommandEncoder();
  encoder.double(buffer);
  device.queue.submit([encoder.finish()]);
}

const said = async (promise) => console.log(await Promise.resolve().then(promise).then(
    (value) => value, ({name, message}) => `${name} ${message}`));
