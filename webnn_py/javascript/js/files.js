// What libraries with WebAssembly load their files by, where there is no fetch() of them: Blob and its URLs,
// XMLHttpRequest. And the class of WebGPU's devices, which they look at, and which none is of here.
(function (runtime) {
  'use strict';

  const {own, install, DOMException, EventTarget, dispatch, setTimer} = runtime;

  // --- blobs -----------------------------------------------------------------------------------------------------

  class Blob {
    #bytes;
    #type;
    constructor(parts = [], options = undefined) {
      const pieces = own.list();
      let size = 0;
      for (const part of parts) {
        const isBytes = own.isView(part) || own.tagOf(part) === '[object ArrayBuffer]';
        const piece = isBytes ? runtime.bytesOf(part) : isBlob(part) ? part.#bytes : runtime.encoded(`${part}`);
        pieces[pieces.length] = piece;
        size += own.typedBytes(piece);
      }
      this.#bytes = new own.Uint8Array(size);
      let at = 0;
      for (let index = 0; index < pieces.length; index += 1) {
        own.typedSet(this.#bytes, pieces[index], at);
        at += own.typedBytes(pieces[index]);
      }
      this.#type = own.toLowerCase(`${options?.type ?? ''}`);
    }
    static is(value) { return typeof value === 'object' && value !== null && #bytes in value; }
    static bytes(blob) { return own.bufferSlice(own.typedBuffer(blob.#bytes), 0); }
    get size() { return own.typedBytes(this.#bytes); }
    get type() { return this.#type; }
    slice(start = 0, end = this.size, type = '') {
      const within = (at) => own.min(own.max(at < 0 ? this.size + at : at, 0), this.size);
      const first = within(start);
      const copied = own.bufferSlice(own.typedBuffer(this.#bytes), first, own.max(first, within(end)));
      return new Blob([copied], {type});
    }
    async arrayBuffer() { return bytesOfBlob(this); }
    async bytes() { return new own.Uint8Array(bytesOfBlob(this)); }
    async text() { return runtime.decoded(this.#bytes); }
    stream() { return runtime.streamOf(bytesOfBlob(this)); }
  }
  const {is: isBlob, bytes: bytesOfBlob} = Blob;
  delete Blob.is;
  delete Blob.bytes;
  install('Blob', Blob);

  const blobs = new own.Map();
  const {Response, URL} = globalThis;
  const define = (target, name, value) => own.define(target, name, {
    __proto__: null, value, writable: true, enumerable: true, configurable: true});
  define(URL, 'createObjectURL', (blob) => {
    if (!isBlob(blob)) throw runtime.ours(new own.TypeError('createObjectURL(): it needs a Blob'));
    const url = `blob:null/${globalThis.crypto.randomUUID()}`;
    own.mapSet(blobs, url, blob);
    return url;
  });
  define(Response.prototype, 'blob', async function () { return new Blob([await this.arrayBuffer()]); });
  define(URL, 'revokeObjectURL', (url) => void own.mapDelete(blobs, `${url}`));
  runtime.bytesOfUrl = (url) => {
    const blob = own.mapGet(blobs, url);
    return blob === undefined ? undefined : bytesOfBlob(blob);
  };

  // --- XMLHttpRequest --------------------------------------------------------------------------------------------

  // GET of what fetch() may read. Compiled libraries read `file:` URLs so.
  class XMLHttpRequest extends EventTarget {
    #url = null;
    #waits = true;
    #loaded = null;
    readyState = 0;
    responseType = '';
    status = 0;
    statusText = '';
    timeout = 0;
    onload = null;
    onerror = null;
    onloadend = null;
    onreadystatechange = null;
    open(method, url, asynchronous = true) {
      if (own.toLowerCase(`${method}`) !== 'get') {
        throw runtime.ours(new DOMException(`open(): the method is ${method}; it must be GET`, 'NotSupportedError'));
      }
      this.#url = `${url}`;
      this.#waits = !asynchronous;
      this.#loaded = null;
      this.readyState = 1;
    }
    setRequestHeader() {}
    overrideMimeType() {}
    getResponseHeader(name) {
      const isLength = own.toLowerCase(`${name}`) === 'content-length';
      return isLength && this.#loaded !== null ? `${own.bufferBytes(this.#loaded)}` : null;
    }
    abort() { this.#url = null; }
    send() {
      if (this.#url === null) throw runtime.ours(new DOMException('send(): it is not open', 'InvalidStateError'));
      if (this.#waits) {
        const error = this.#load();
        if (error !== undefined) throw runtime.ours(new DOMException(`send(): ${error}`, 'NetworkError'));
        return;
      }
      const url = this.#url;
      setTimer(() => {
        if (this.#url !== url) return;
        const failed = this.#load() !== undefined;
        dispatch(this, 'readystatechange', {});
        dispatch(this, failed ? 'error' : 'load', {});
        dispatch(this, 'loadend', {});
      }, 0, false, []);
    }
    #load() {
      this.readyState = 4;
      try {
        const {status, bytes} = runtime.read(this.#url);
        this.status = status;
        this.statusText = status === 200 ? 'OK' : 'Not Found';
        this.#loaded = bytes;
        return undefined;
      } catch (error) {
        return error.message;
      }
    }
    get responseText() { return this.#loaded === null ? '' : runtime.decoded(this.#loaded); }
    get response() {
      if (this.#loaded === null) return this.responseType === '' || this.responseType === 'text' ? '' : null;
      if (this.responseType === 'arraybuffer') return this.#loaded;
      if (this.responseType === 'blob') return new Blob([this.#loaded]);
      const text = this.responseText;
      return this.responseType === 'json' ? own.parse(text) : text;
    }
  }
  install('XMLHttpRequest', XMLHttpRequest);

  class GPUDevice {
    constructor() { throw runtime.ours(new own.TypeError('Illegal constructor: GPUDevice')); }
  }
  install('GPUDevice', GPUDevice);
})
