// What is selected, in words: attributes, operands, results, statistics of weights, and what became of it on the device.

function bytes(length) {
  const units = ['B', 'kB', 'MB', 'GB'];
  let step = 0;
  for (; length >= 1000 && step < units.length - 1; step += 1) length /= 1000;
  return `${Number(length.toPrecision(3))} ${units[step]}`;
}

function select(item, {isRevealed = true} = {}) {
  const wasInPanel = panel.contains(document.activeElement);
  state.previous = state.selected;
  state.selected = item;
  state.lit = new Set();
  for (const box of item ? boxesOf(item) : []) {
    for (const way of follow(leaving(box), true)) state.lit.add(way);
    for (const way of follow(arriving(box), false)) state.lit.add(way);
  }
  panel.replaceChildren(...(item ? detailsOf(item) : legend()));
  panel.classList.toggle('empty', !item);
  panel.scrollTop = 0;
  live.textContent = item ? sentence(item) : 'Nothing is selected.';
  if (wasInPanel) panel.focus();
  if (item && isRevealed) {
    if (stage.clientHeight !== view.height) resize(); // the panel may have taken room
    reveal(item);
  }
  requestDrawing();
}

function sentence(item) {
  const parts = [nameOf(item)];
  if (item.type === 'box') {
    const operator = operatorOf(item);
    if (operator) parts.push(...operator.results.map(typeOf), operator.fate);
    else parts.push(typeOf(item.value));
    parts.push(`read by ${item.readers.length}`);
  } else if (item.type === 'weight') parts.push(typeOf(item.index));
  else parts.push(item.name, count(item.operators.length, 'operator'));
  return `${parts.filter(Boolean).join(', ')}.`;
}

function link(item, words = nameOf(item)) {
  const button = element('button', {type: 'button', className: 'plain'}, words);
  button.addEventListener('click', () => select(item));
  return button;
}

const links = (all) =>
  element(
    'ul',
    {className: 'links'},
    ...all.map((item) => {
      const words = item.type === 'kernel' ? `${nameOf(item)}: ${item.name}` : nameOf(item);
      return element('li', {}, link(item, words));
    }),
  );

function facts(rows) {
  const list = element('dl');
  for (const [term, value, className = ''] of rows)
    list.append(element('dt', {}, term), element('dd', {className}, ...(Array.isArray(value) ? value : [value])));
  return list;
}

function detailsOf(item) {
  const close = element('button', {type: 'button', className: 'close', title: 'Close (Escape)', 'aria-label': 'Close details'}, '×');
  close.addEventListener('click', () => {
    select(null);
    canvas.focus();
  });
  const of = {box: detailsOfBox, weight: detailsOfWeight, kernel: detailsOfKernel};
  return [close, element('h2', {}, nameOf(item)), ...of[item.type](item)];
}

function detailsOfBox(box) {
  const operator = operatorOf(box);
  if (!operator) {
    const other = box.kind === 'input' ? ['read by', links(box.readers)] : ['computed by', links(box.sources)];
    return [facts([['data type, shape', typeOf(box.value)]]), element('h3', {}, other[0]), other[1]];
  }
  const parts = [element('p', {className: 'where'}, `operator ${box.operator + 1} of ${data.operators.length}`)];
  if (operator.fate) parts.push(element('h3', {}, 'on the device'));
  if (operator.kernels.length) parts.push(links(operator.kernels.map((index) => kernels[index])));
  else if (operator.fate) parts.push(element('p', {}, operator.fate));
  const together = box.frame ? box.frame.boxes.filter((other) => other !== box) : [];
  if (together.length) parts.push(element('h3', {}, 'computed together with'), links(together));
  parts.push(element('h3', {}, 'operands'));
  parts.push(
    facts(
      operator.operands.map(([parameter, index]) => {
        const weight = weights.get(index);
        const from = weight ? link(weight, 'a weight') : link(originOf(index));
        return [parameter, [from, `\n${typeOf(index)}`]];
      }),
    ),
  );
  const given = operator.options.filter(([, , isDefault]) => !isDefault);
  const defaults = operator.options.filter(([, , isDefault]) => isDefault);
  if (given.length) parts.push(element('h3', {}, 'attributes'), facts(given));
  if (defaults.length) parts.push(element('h3', {}, 'attributes left at their defaults'), facts(defaults.map(([name, text]) => [name, text])));
  parts.push(element('h3', {}, operator.results.length > 1 ? 'results' : 'result'));
  parts.push(facts(operator.results.map((index, port) => [`${port + 1}`, typeOf(index)])));
  parts.push(element('h3', {}, 'read by'), links(box.readers));
  for (const weight of new Set(box.weights)) {
    const {parameter} = weight.uses.find((use) => use.box === box);
    parts.push(element('h3', {}, `weight ${parameter}`), statistics(weight));
  }
  return parts;
}

function statistics(weight) {
  const rows = [['data type, shape', typeOf(weight.index)], ['elements', weight.elements.toLocaleString('en')], ['size', bytes(weight.bytes)]];
  const found = weight.statistics;
  if (!found) return facts([...rows, ['statistics', data.without]]);
  const share = (number) => `${number.toLocaleString('en')} (${Number(((100 * number) / weight.elements).toPrecision(3))} %)`;
  for (const name of ['min', 'max', 'mean', 'std']) rows.push([name, found[name] ?? 'none']);
  rows.push(['zeros', share(found.zeros)]);
  rows.push(['NaN', found.nan ? share(found.nan) : '0', found.nan ? 'bad' : '']);
  rows.push(['infinite', found.infinite ? share(found.infinite) : '0', found.infinite ? 'bad' : '']);
  return facts(rows);
}

function detailsOfWeight(weight) {
  return [statistics(weight), element('h3', {}, 'read by'), links([...new Set(weight.uses.map(({box}) => box))])];
}

function detailsOfKernel(kernel) {
  const computed = kernel.operators.map((index) => boxOfOperator.get(index));
  return [
    element('p', {className: 'where'}, `kernel ${kernel.index + 1} of ${kernels.length}, in the order in which they run`),
    facts([['name', kernel.name]]),
    element('h3', {}, computed.length === 1 ? 'it computes' : 'it computes together'),
    links(computed),
  ];
}

const KIND_WORDS = {
  input: 'input',
  output: 'output',
  operator: 'operator',
  folded: 'computed at build: it depends on no input',
  view: 'no kernel: another view of the same elements',
  kernel: 'computed together by one kernel, or by kernels in common',
};

function legend() {
  const signs = element('div', {className: 'signs'});
  for (const [kind, words] of Object.entries(KIND_WORDS)) {
    const sample = element('span', {'aria-hidden': 'true'});
    sample.style.background = `var(--${kind}-fill)`;
    sample.style.borderColor = `var(--${kind}-line)`;
    if (kind === 'folded' || kind === 'view') sample.style.borderStyle = kind === 'folded' ? 'dashed' : 'dotted';
    signs.append(sample, element('span', {}, words));
  }
  return [
    element('h2', {}, 'What you see'),
    element('p', {className: 'hint'}, 'Click an operator, a weight (a coloured line in a box) or a frame to see what is known of it. Drag to move, turn the wheel to zoom.'),
    signs,
    element('h3', {}, 'this graph'),
    ...data.summary.map((line) => element('p', {className: 'where'}, line)),
  ];
}
