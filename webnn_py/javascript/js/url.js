// URL and URLSearchParams: the URLs that programs meet, http(s), ws(s), ftp, file, data and blob, without punycode.
(function (runtime) {
  'use strict';

  const {own, install} = runtime;

  const PORTS = {'__proto__': null, 'http:': '80', 'https:': '443', 'ws:': '80', 'wss:': '443', 'ftp:': '21', 'file:': ''};
  const PARTS = /^([a-z][a-z0-9+.-]*:)?([^?#]*)(\?[^#]*)?(#[^]*)?$/i;
  const AUTHORITY = /^(?:([^/@:]*)(?::([^/@]*))?@)?(\[[0-9a-f:.]+\]|[^/:]*)(?::([0-9]*))?$/i;

  // Everything but printable ASCII, and what is not allowed in the part, percent-encoded.
  function encoded(text, refused) {
    let result = '';
    for (let at = 0; at < text.length; at += 1) {
      const code = own.charCodeAt(text, at);
      const wide = code >= 0xd800 && code <= 0xdbff && at + 1 < text.length;
      const character = own.slice(text, at, at + (wide ? 2 : 1));
      if (wide) at += 1;
      const plain = code > 0x20 && code < 0x7f && own.indexOf(refused, character) < 0;
      if (plain) result += character;
      else if (code > 0x7e) result += own.encodeURIComponent(own.toWellFormed(character));
      else result += `%${code < 16 ? '0' : ''}${hex(code)}`;
    }
    return result;
  }
  const DIGITS = '0123456789ABCDEF';
  const hex = (code) => `${code > 15 ? DIGITS[code >> 4] : ''}${DIGITS[code & 15]}`;

  // "." and ".." taken out of a path.
  function normalized(path) {
    const kept = own.list();
    const parts = split(path, '/');
    for (let index = 0; index < parts.length; index += 1) {
      const part = own.toLowerCase(parts[index]);
      const last = index === parts.length - 1;
      if (part === '..' || part === '%2e%2e') {
        if (kept.length > 1) kept.length -= 1;
        if (last) kept[kept.length] = '';
      } else if (part === '.' || part === '%2e') {
        if (last) kept[kept.length] = '';
      } else {
        kept[kept.length] = parts[index];
      }
    }
    return own.join(kept, '/');
  }
  function split(text, between) {
    const parts = own.list();
    for (let at = 0; at <= text.length;) {
      const end = own.indexOf(text, between, at);
      parts[parts.length] = own.slice(text, at, end < 0 ? text.length : end);
      at = end < 0 ? text.length + 1 : end + between.length;
    }
    return parts;
  }

  const trimmed = (text) => own.exec(/^[\0- ]*([^]*?)[\0- ]*$/, text)[1];

  // The parts of a URL, or null.
  function parse(text, base) {
    const found = own.exec(PARTS, trimmed(text));
    if (found === null) return null;
    const scheme = found[1] === undefined ? undefined : own.toLowerCase(found[1]);
    const search = found[3] === undefined || found[3] === '?' ? '' : encoded(found[3], '"<>\'');
    const hash = found[4] === undefined || found[4] === '#' ? '' : encoded(found[4], '"<>`');
    if (scheme !== undefined && !(scheme in PORTS)) {
      return {__proto__: null, ...NO_HOST, protocol: scheme, opaque: true, pathname: encoded(found[2], ''), search, hash};
    }
    let path = '';
    for (let at = 0; at < found[2].length; at += 1) path += found[2][at] === '\\' ? '/' : found[2][at];
    if (scheme !== undefined && (base?.protocol !== scheme || own.startsWith(path, '//'))) {
      return absolute(scheme, path, search, hash);
    }
    if (base === undefined || base === null || base.opaque) return null;
    return relative(base, path, search, hash, found[3] !== undefined);
  }
  const NO_HOST = {__proto__: null, username: '', password: '', hostname: '', port: ''};

  function absolute(scheme, path, search, hash) {
    const bare = own.exec(/^\/*([^]*)$/, path)[1];
    const slashes = path.length - bare.length;
    const rest = scheme === 'file:' ? (slashes === 2 ? bare : `/${bare}`) : bare;
    const at = own.indexOf(rest, '/');
    const authority = own.exec(AUTHORITY, at < 0 ? rest : own.slice(rest, 0, at));
    if (authority === null) return null;
    const hostname = own.toLowerCase(authority[3]);
    const port = authority[4] === undefined || authority[4] === PORTS[scheme] ? '' : authority[4];
    if ((hostname === '' && scheme !== 'file:') || +port > 65535 || own.exec(/[\0- "<>^`{|}%]/, hostname)) return null;
    return {
      __proto__: null, protocol: scheme, opaque: false,
      username: encoded(authority[1] ?? '', '"<>`'), password: encoded(authority[2] ?? '', '"<>`'),
      hostname, port: port === '' ? '' : `${+port}`,
      pathname: normalized(at < 0 ? '/' : encoded(own.slice(rest, at), '"<>`{}^')), search, hash,
    };
  }

  function relative(base, path, search, hash, asks) {
    if (own.startsWith(path, '//')) return absolute(base.protocol, path, search, hash);
    const folder = own.exec(/^[^]*\//, base.pathname)[0];
    const full = path === '' ? base.pathname : own.startsWith(path, '/') ? path : folder + path;
    const kept = path === '' && !asks ? base.search : search;
    return {__proto__: null, ...base, pathname: normalized(encoded(full, '"<>`{}^')), search: kept, hash};
  }

  class URLSearchParams {
    #pairs = own.list();
    #changed = () => {};
    constructor(given = '') {
      if (typeof given === 'object' && given !== null && own.iterator in given) {
        for (const [name, value] of given) this.#add(`${name}`, `${value}`);
      } else if (typeof given === 'object' && given !== null) {
        own.map(own.keys(given), (name) => this.#add(name, `${given[name]}`));
      } else {
        this.#read(`${given}`);
      }
    }
    static of(text, changed) {
      const params = new URLSearchParams(text);
      params.#changed = changed;
      return params;
    }
    static reread(params, text) {
      params.#pairs = own.list();
      params.#read(text);
    }
    #add(name, value) { this.#pairs[this.#pairs.length] = {__proto__: null, name, value}; }
    #read(text) {
      const parts = split(own.startsWith(text, '?') ? own.slice(text, 1) : text, '&');
      for (let index = 0; index < parts.length; index += 1) {
        if (parts[index] === '') continue;
        const at = own.indexOf(parts[index], '=');
        this.#add(words(at < 0 ? parts[index] : own.slice(parts[index], 0, at)),
                  at < 0 ? '' : words(own.slice(parts[index], at + 1)));
      }
    }
    #filter(test) {
      const kept = own.list();
      for (let index = 0; index < this.#pairs.length; index += 1) {
        if (test(this.#pairs[index])) kept[kept.length] = this.#pairs[index];
      }
      return kept;
    }
    get size() { return this.#pairs.length; }
    append(name, value) {
      this.#add(`${name}`, `${value}`);
      this.#changed();
    }
    delete(name) {
      this.#pairs = this.#filter((pair) => pair.name !== `${name}`);
      this.#changed();
    }
    get(name) { return own.find(this.#pairs, (pair) => pair.name === `${name}`)?.value ?? null; }
    getAll(name) { return own.map(this.#filter((pair) => pair.name === `${name}`), (pair) => pair.value); }
    has(name) { return own.find(this.#pairs, (pair) => pair.name === `${name}`) !== undefined; }
    set(name, value) {
      const first = own.find(this.#pairs, (pair) => pair.name === `${name}`);
      if (first === undefined) {
        this.#add(`${name}`, `${value}`);
      } else {
        first.value = `${value}`;
        this.#pairs = this.#filter((pair) => pair === first || pair.name !== `${name}`);
      }
      this.#changed();
    }
    forEach(callback, self) {
      own.map(this.#pairs, (pair) => own.apply(callback, self, [pair.value, pair.name, this]));
    }
    * entries() {
      for (let index = 0; index < this.#pairs.length; index += 1) {
        yield [this.#pairs[index].name, this.#pairs[index].value];
      }
    }
    * keys() { for (let index = 0; index < this.#pairs.length; index += 1) yield this.#pairs[index].name; }
    * values() { for (let index = 0; index < this.#pairs.length; index += 1) yield this.#pairs[index].value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return own.join(own.map(this.#pairs, ({name, value}) => `${form(name)}=${form(value)}`), '&'); }
  }
  const {of: paramsOf, reread} = URLSearchParams;
  delete URLSearchParams.of;
  delete URLSearchParams.reread;

  // A form's encoding: spaces are plus signs.
  function words(text) {
    let spaced = '';
    for (let at = 0; at < text.length; at += 1) spaced += text[at] === '+' ? ' ' : text[at];
    try {
      return own.decodeURIComponent(spaced);
    } catch {
      return spaced;
    }
  }
  const form = (text) => {
    let result = '';
    const whole = encoded(text, '!"#$%&\'()+,/:;<=>?@[\\]^`{|}~ ');
    for (let at = 0; at < whole.length; at += 1) {
      const space = own.startsWith(whole, '%20', at);
      result += space ? '+' : whole[at];
      if (space) at += 2;
    }
    return result;
  };

  class URL {
    #parts;
    #params;
    constructor(url, base = undefined) {
      const parts = parsed(url, base);
      if (parts === null) throw runtime.ours(new own.TypeError(`${own.stringify(`${url}`)} is no URL`));
      this.#parts = parts;
      this.#params = paramsOf(parts.search, () => {
        const text = `${this.#params}`;
        this.#parts.search = text === '' ? '' : `?${text}`;
      });
    }
    static canParse(url, base = undefined) { return parsed(url, base) !== null; }
    static parse(url, base = undefined) { return parsed(url, base) === null ? null : new URL(url, base); }
    get href() {
      const {protocol, opaque, username, password, pathname, search, hash} = this.#parts;
      const user = username === '' ? '' : `${username}${password === '' ? '' : `:${password}`}@`;
      return `${protocol}${opaque ? '' : `//${user}${this.host}`}${pathname}${search}${hash}`;
    }
    set href(url) {
      const parts = parsed(url, undefined);
      if (parts === null) throw runtime.ours(new own.TypeError(`${own.stringify(`${url}`)} is no URL`));
      this.#parts = parts;
      reread(this.#params, parts.search);
    }
    get origin() {
      return this.#parts.opaque || this.#parts.protocol === 'file:' ? 'null' : `${this.#parts.protocol}//${this.host}`;
    }
    get protocol() { return this.#parts.protocol; }
    get username() { return this.#parts.username; }
    get password() { return this.#parts.password; }
    get host() { return `${this.#parts.hostname}${this.#parts.port === '' ? '' : `:${this.#parts.port}`}`; }
    get hostname() { return this.#parts.hostname; }
    get port() { return this.#parts.port; }
    get pathname() { return this.#parts.pathname; }
    set pathname(path) {
      if (this.#parts.opaque) return;
      const text = `${path}`;
      this.#parts.pathname = normalized(encoded(own.startsWith(text, '/') ? text : `/${text}`, '"<>`{}^?#'));
    }
    get search() { return this.#parts.search; }
    set search(search) {
      const text = `${search}`;
      const bare = own.startsWith(text, '?') ? own.slice(text, 1) : text;
      this.#parts.search = bare === '' ? '' : `?${encoded(bare, '"<>\'#')}`;
      reread(this.#params, this.#parts.search);
    }
    get searchParams() { return this.#params; }
    get hash() { return this.#parts.hash; }
    set hash(hash) {
      const text = `${hash}`;
      const bare = own.startsWith(text, '#') ? own.slice(text, 1) : text;
      this.#parts.hash = bare === '' ? '' : `#${encoded(bare, '"<>`')}`;
    }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }

  function parsed(url, base) {
    if (base === undefined) return parse(`${url}`, null);
    const root = parse(`${base}`, null);
    return root === null ? null : parse(`${url}`, root);
  }

  install('URL', URL);
  install('URLSearchParams', URLSearchParams);

  // Where a program is: the root of its URLs is its folder.
  runtime.openProgram = function ({href}) {
    const url = new URL(href);
    const location = {toString: () => href};
    for (const name of ['href', 'protocol', 'host', 'hostname', 'port', 'pathname', 'search', 'hash']) {
      location[name] = url[name];
    }
    location.origin = 'file://';  // as Chrome has it: a base of URLs
    install('location', Object.freeze(location));
  };
})
