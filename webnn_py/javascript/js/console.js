// The console: values as text, in the manner of the engines' own consoles.
(function (runtime) {
  'use strict';

  const {own, textOf, isError} = runtime;
  const MOST_ITEMS = 100;
  const MOST_DEPTH = 3;

  // --- values as text --------------------------------------------------------------------------------------------

  const attempt = (getter, value) => {
    try {
      return getter(value);
    } catch {
      return undefined;
    }
  };
  const isTyped = (value) => own.isView(value) && own.typeOfView(value) !== undefined;

  function inspected(value, depth = 0) {
    if (typeof value === 'string') return depth === 0 ? value : own.stringify(value);
    if (typeof value === 'bigint') return `${value}n`;
    if (typeof value === 'symbol') return own.symbolText(value);
    if (typeof value === 'function') return `[function ${attempt((one) => `${one.name}`, value) ?? ''}]`;
    if (typeof value !== 'object' || value === null) return own.is(value, -0) ? '-0' : `${value}`;
    if (isError(value)) return textOf(value);
    return inspectedBuiltin(value, depth) ?? inspectedObject(value, depth);
  }

  function inspectedBuiltin(value, depth) {
    const bytes = attempt(own.bufferBytes, value);
    if (bytes !== undefined) return `ArrayBuffer(${bytes})`;
    if (own.isArray(value)) return listed(value.length, (index) => value[index], depth);
    if (isTyped(value)) {
      const length = own.typedLength(value);
      return `${own.typeOfView(value)}(${length}) ${listed(length, (index) => value[index], depth)}`;
    }
    const time = attempt(own.dateValue, value);
    if (time !== undefined) return attempt(own.dateText, value) ?? 'Invalid Date';
    if (attempt(own.regExpFlags, value) !== undefined && own.inherits(own.RegExp.prototype, value)) {
      return `/${own.regExpSource(value)}/${own.regExpFlags(value)}`;
    }
    if (attempt(own.mapSize, value) !== undefined) return inspectedMap(value, depth);
    return attempt(own.setSize, value) === undefined ? undefined : inspectedSet(value, depth);
  }

  function listed(length, at, depth) {
    if (depth > MOST_DEPTH) return '[…]';
    const items = own.list();
    for (let index = 0; index < own.min(length, MOST_ITEMS); index += 1) {
      items[index] = inspected(attempt(at, index), depth + 1);
    }
    if (length > MOST_ITEMS) items[items.length] = `… ${length - MOST_ITEMS} more`;
    return `[${own.join(items, ', ')}]`;
  }

  function collection(name, size, depth, each) {
    if (depth > MOST_DEPTH) return `${name}(${size}) {…}`;
    const items = own.list();
    each((text) => { if (items.length < MOST_ITEMS) items[items.length] = text(); });
    if (size > MOST_ITEMS) items[items.length] = `… ${size - MOST_ITEMS} more`;
    return `${name}(${size}) {${own.join(items, ', ')}}`;
  }
  const inspectedMap = (value, depth) => collection('Map', own.mapSize(value), depth, (add) =>
    own.mapForEach(value, (item, key) => add(() => `${inspected(key, depth + 1)} => ${inspected(item, depth + 1)}`)));
  const inspectedSet = (value, depth) => collection('Set', own.setSize(value), depth, (add) =>
    own.setForEach(value, (item) => add(() => inspected(item, depth + 1))));

  function inspectedObject(value, depth) {
    const tag = attempt((one) => one[own.toStringTag] ?? one.constructor?.name, value);
    const name = tag === undefined || tag === 'Object' ? '' : `${attempt((one) => `${one}`, tag) ?? ''} `;
    if (depth > MOST_DEPTH) return `${name}{…}`;
    const pairs = own.map(attempt(own.keys, value) ?? [], (key) =>
      `${key}: ${inspected(attempt((one) => one[key], value), depth + 1)}`);
    return `${name}{${own.join(pairs, ', ')}}`;
  }

  // --- what %-signs stand for ------------------------------------------------------------------------------------

  const whole = (value) => typeof value === 'bigint' ? `${value}n` : `${own.trunc(asNumber(value))}`;
  const asNumber = (value) => typeof value === 'object' || typeof value === 'symbol' ? NaN : own.Number(value);
  const FORMATS = {
    __proto__: null,
    s: (value) => inspected(value),
    d: (value) => typeof value === 'bigint' ? `${value}n` : `${asNumber(value)}`,
    i: whole,
    f: (value) => `${asNumber(value)}`,
    o: (value) => inspected(value, 1),
    O: (value) => inspected(value, 1),
    j: (value) => attempt((one) => own.stringify(one), value) ?? 'undefined',
    c: () => '',
  };

  function formatted(values) {
    let text = '';
    let used = 0;
    if (typeof values[0] === 'string' && values.length > 0) {
      const format = values[0];
      used = 1;
      for (let at = 0; at < format.length; at += 1) {
        const letter = format[at] === '%' && at + 1 < format.length ? format[at + 1] : '';
        if (letter === '%' && values.length > 1) {
          text += '%';
          at += 1;
        } else if (letter in FORMATS && used < values.length) {
          text += FORMATS[letter](values[used]);
          used += 1;
          at += 1;
        } else {
          text += format[at];
        }
      }
    }
    for (; used < values.length; used += 1) text += `${used > 0 ? ' ' : ''}${inspected(values[used])}`;
    return text;
  }

  // --- its methods -----------------------------------------------------------------------------------------------

  let indent = '';
  function say(level, text) {
    const lines = indent === '' ? text : `${indent}${own.join(split(text), `\n${indent}`)}`;
    runtime.ask({log: level, text: lines});
  }
  function split(text) {
    const lines = own.list();
    for (let at = 0; at <= text.length;) {
      const end = own.indexOf(text, '\n', at);
      lines[lines.length] = own.slice(text, at, end < 0 ? text.length : end);
      at = end < 0 ? text.length + 1 : end + 1;
    }
    return lines;
  }

  const INDEX = '(index)';
  const VALUES = 'Values';
  function table(data, columns) {
    if (typeof data !== 'object' || data === null) return formatted([data]);
    const rows = own.list();
    const names = own.list();
    const addRow = (index, value) => {
      const cells = {__proto__: null};
      cells[INDEX] = index;
      const isRow = typeof value === 'object' && value !== null;
      const keys = isRow ? own.keys(value) : [VALUES];
      for (let at = 0; at < keys.length; at += 1) {
        if (isRow && own.isArray(columns) && !own.includes(columns, keys[at])) continue;
        cells[keys[at]] = inspected(isRow ? attempt((one) => one[keys[at]], value) : value, 1);
        if (!own.includes(names, keys[at])) names[names.length] = keys[at];
      }
      rows[rows.length] = cells;
    };
    if (attempt(own.mapSize, data) !== undefined) {
      own.mapForEach(data, (value, key) => addRow(inspected(key), value));
    } else if (attempt(own.setSize, data) !== undefined) {
      own.setForEach(data, (value) => addRow(`${rows.length}`, value));
    } else {
      own.map(own.keys(data), (key) => addRow(key, data[key]));
    }
    const all = own.list();
    all[0] = INDEX;
    for (let at = 0; at < names.length; at += 1) all[all.length] = names[at];
    return drawn(rows, all);
  }

  function drawn(rows, names) {
    const cell = (row, name) => (name in row ? row[name] : '');
    const widths = own.map(names, (name) => {
      let most = name.length;
      for (let index = 0; index < rows.length; index += 1) most = own.max(most, cell(rows[index], name).length);
      return most;
    });
    const rule = (left, between, right) =>
        `${left}${own.join(own.map(widths, (width) => own.repeat('─', width + 2)), between)}${right}`;
    const line = (cells) =>
        `│${own.join(own.map(cells, (text, at) => ` ${own.padEnd(text, widths[at])} `), '│')}│`;
    let text = `${rule('┌', '┬', '┐')}\n${line(names)}\n${rule('├', '┼', '┤')}`;
    for (let index = 0; index < rows.length; index += 1) {
      text += `\n${line(own.map(names, (name) => cell(rows[index], name)))}`;
    }
    return `${text}\n${rule('└', '┴', '┘')}`;
  }

  const counts = {__proto__: null};
  const clocks = {__proto__: null};
  function elapsed(label, values) {
    if (!(label in clocks)) return say('warn', `Timer '${label}' does not exist`);
    const rest = values.length > 0 ? ` ${formatted(values)}` : '';
    return say('log', `${label}: ${own.toFixed(runtime.now() - clocks[label], 3)}ms${rest}`);
  }

  const console = {};
  for (const level of ['log', 'info', 'warn', 'error', 'debug']) {
    console[level] = (...values) => say(level, formatted(values));
  }
  Object.assign(console, {
    assert: (condition, ...values) => {
      if (!condition) say('error', `Assertion failed${values.length > 0 ? `: ${formatted(values)}` : ''}`);
    },
    count: (label = 'default') => {
      counts[label] = (counts[label] ?? 0) + 1;
      say('log', `${label}: ${counts[label]}`);
    },
    countReset: (label = 'default') => { delete counts[label]; },
    dir: (value) => say('log', inspected(value)),
    group: (...values) => {
      if (values.length > 0) say('log', formatted(values));
      indent += '  ';
    },
    groupEnd: () => { indent = own.slice(indent, 2); },
    table: (data, columns) => say('log', table(data, columns)),
    time: (label = 'default') => { clocks[label] = runtime.now(); },
    timeEnd: (label = 'default') => {
      elapsed(label, []);
      delete clocks[label];
    },
    timeLog: (label = 'default', ...values) => elapsed(label, values),
    trace: (...values) => {
      const stack = runtime.trimmed(own.stackOf(new own.Error('')));
      say('error', `Trace${values.length > 0 ? `: ${formatted(values)}` : ''}\n${own.startsWith(stack, 'Error') ?
        own.slice(stack, own.indexOf(stack, '\n') + 1) : stack}`);
    },
  });
  console.dirxml = console.log;
  console.groupCollapsed = console.group;
  runtime.install('console', console);
})
