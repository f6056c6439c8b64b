// Boxes in rows: single ones, several merged into one with their number, and bars of buffers with marks.

const NARROW = 3; // pixels; what is narrower is merged with such neighbours
const LONGEST_RUN = 110; // pixels, so that the numbers on merged boxes tell where there is much

const signSize = () => 12 * view.letters;
const footprint = (item) => (item.kind === 'rejection' || item.bad === 'dropped' || item.kind === 'instant' ? 9 : 1);

// Draw what is in view of a row; neighbours narrower than a few pixels become one box that says how many they are.
function drawRow(c, row, y, height, paint, paintRun) {
  const {items, reach} = row;
  const by = scale();
  const left = (item) => view.gutter + (item.start - view.from) * by;
  for (let first = firstAtLeast(reach, view.from); first < items.length && items[first].start <= view.to;) {
    const item = items[first];
    const start = left(item);
    const width = (item.end - item.start) * by;
    let next = first + 1;
    let end = start + Math.max(width, footprint(item));
    while ((width < NARROW || row.isOver) && next < items.length) {
      const other = items[next];
      const otherStart = left(other);
      const otherWidth = (other.end - other.start) * by;
      if (otherStart - end > 1.5) break;
      if (!row.isOver && (otherWidth >= NARROW || otherStart - start > LONGEST_RUN)) break;
      end = Math.max(end, otherStart + Math.max(otherWidth, footprint(other)));
      next += 1;
    }
    const room = (next < items.length ? left(items[next]) - (items[next].bad ? 8 : 0) : view.width) - end;
    if (next === first + 1) {
      paint(c, item, start, y, width, height, room);
      state.drawn.boxes += 1;
    } else {
      paintRun(c, items, first, next, start, y, end - start, height, room);
      state.drawn.merged += next - first;
    }
    first = next;
  }
}

function addHit(x, y, width, height, item, run = null) {
  const least = 8;
  const wider = Math.max(0, least - width) / 2;
  state.hits.push({left: x - wider, right: x + width + wider, top: y, bottom: y + height, item, run});
}

function paintBox(c, item, x, y, width, height, room) {
  const {fill, line} = palette.families[item.family];
  const top = y + 1.5;
  const tall = height - 3;
  const start = Math.max(x, view.gutter - 4);
  const shown = Math.min(x + width, view.width + 4) - start;
  addHit(x, y, width, height, item);
  const isPoint = footprint(item) > 1;
  if (!isPoint) {
    c.fillStyle = shown < NARROW ? line : fill;
    c.fillRect(start, top, Math.max(shown, 2), tall);
    if (['failed', 'rejected', 'refused'].includes(item.bad)) hatch(c, start, top, Math.max(shown, 2), tall, palette.bad);
    if (shown >= NARROW) {
      c.strokeStyle = item.bad ? palette.bad : line;
      c.lineWidth = item.bad ? 1.6 : 1;
      c.strokeRect(start + 0.5, top + 0.5, shown - 1, tall - 1);
    }
  }
  const size = signSize();
  const middle = y + height / 2;
  const isInside = shown > size * 2.4;
  const reach = item.bad || item.kind === 'loss' ? size * 0.62 : 0;
  if (item.bad) SIGNS[item.bad](c, isInside ? start + 4 + reach : x + Math.max(width, 0) / 2, middle, size);
  else if (item.kind === 'loss') SIGNS.destroyed(c, x, middle, size, line);
  else if (isPoint) disc(c, x, middle, 4, line);
  writeCaption(c, item, {start, shown, end: Math.max(x + width, x + reach), isInside, reach, room}, middle);
}

// The name in the box, or beside it where the box is too narrow and its neighbour far away.
function writeCaption(c, item, {start, shown, end, isInside, reach, room}, middle) {
  c.font = font(12.5);
  c.textBaseline = 'middle';
  const words = caption(item);
  const inset = isInside && reach ? reach * 2 + 8 : 4;
  const within = shown - inset - 3;
  const inside = widthOf(c, words) <= within ? words : fitting(c, shortName(item), within);
  if (inside && (!inside.endsWith('…') || room < within * 1.5)) {
    if (item.bad) {
      // the hatching would cross the letters
      c.fillStyle = palette.families[item.family].fill;
      c.fillRect(start + inset - 2, middle - 8 * view.letters, widthOf(c, inside) + 4, 16 * view.letters);
    }
    c.fillStyle = palette.ink;
    c.fillText(inside, start + inset, middle + 0.5);
    return;
  }
  if (room < 30 || end < view.gutter) return;
  c.fillStyle = item.bad ? palette.bad : palette.muted;
  const beside = widthOf(c, words) <= room - 10 ? words : fitting(c, shortName(item), room - 10);
  c.fillText(beside, end + (reach && !isInside ? reach : 0) + 4, middle + 0.5);
}

function paintRun(c, items, first, last, x, y, width, height, room) {
  const top = y + 1.5;
  const tall = height - 3;
  addHit(x, y, width, height, items[first], {items, first, last});
  c.fillStyle = palette.families.other.fill;
  c.fillRect(x, top, width, tall);
  for (let at = 0; at < width; at += 3) {
    // a pile of thin boxes, in the colours of what is there
    const item = items[first + Math.floor((at / width) * (last - first))];
    c.fillStyle = palette.families[item.family].line;
    c.fillRect(x + at, top, 1.5, tall);
  }
  const sign = worstOf(items, first, last);
  const middle = y + height / 2;
  const size = signSize();
  if (sign) SIGNS[sign](c, x + Math.min(width / 2, size), middle, size);
  c.font = font(11.5, '600');
  c.textBaseline = 'middle';
  const words = `×${(last - first).toLocaleString('en')}`;
  const wide = widthOf(c, words);
  const inset = sign ? size * 1.8 : 3;
  if (wide + inset + 4 <= width) {
    c.fillStyle = palette.paper;
    c.fillRect(x + inset, middle - 8 * view.letters, wide + 4, 16 * view.letters);
    c.fillStyle = palette.ink;
    c.fillText(words, x + inset + 2, middle + 0.5);
  } else if (wide + 14 <= room) {
    c.fillStyle = sign ? palette.bad : palette.muted;
    c.fillText(words, x + width + (sign ? size * 0.5 : 0) + 3, middle + 0.5);
  }
}

// What went wrong first among them, if anything did.
function worstOf(items, first, last) {
  for (let at = first; at < last; at += 1) if (items[at].bad) return items[at].bad;
  return '';
}

function paintWait(c, item, x, y, width, height) {
  const start = Math.max(x, view.gutter - 2);
  const shown = Math.max(Math.min(x + width, view.width + 2) - start, 1);
  const {line} = palette.families[item.target.family];
  c.fillStyle = line;
  c.globalAlpha = 0.45;
  c.fillRect(start, y + height * 0.28, shown, Math.max(2, height * 0.44));
  c.globalAlpha = 1;
  c.fillRect(x, y, 1.5, height);
  addHit(x, y, width, height, item);
}

function paintWaitRun(c, items, first, last, x, y, width, height) {
  const start = Math.max(x, view.gutter - 2);
  const shown = Math.max(x + width - start, 1);
  c.fillStyle = palette.muted;
  c.globalAlpha = 0.5;
  c.fillRect(start, y + 1, shown, height - 2);
  c.globalAlpha = 1;
  c.font = font(10, '600');
  c.textBaseline = 'middle';
  const words = `×${(last - first).toLocaleString('en')} waiting`;
  if (widthOf(c, words) + 12 < shown) {
    c.fillStyle = palette.paper;
    c.fillRect(start + 4, y, widthOf(c, words) + 6, height);
    c.fillStyle = palette.ink;
    c.fillText(words, start + 7, y + height / 2 + 0.5);
  }
  addHit(x, y, width, height, items[first], {items, first, last});
}

// A buffer or a graph: dashed until it is allocated, hatched from its destruction to its release.
function paintObject(c, item, x, y, width, height) {
  const {fill, line} = palette.families[item.family];
  const top = y + 2;
  const tall = height - 5;
  const start = Math.max(x, view.gutter - 4);
  const end = Math.min(x + width, view.width + 4);
  const at = (name) => item.marks.find((mark) => mark.name === name)?.start;
  const allocated = Math.min(Math.max(at('allocated') === undefined ? start : toX(at('allocated')), start), end);
  const destroyed = Math.min(Math.max(at('destroyed') === undefined ? end : toX(at('destroyed')), allocated), end);
  addHit(x, y, width, height, item);
  c.lineWidth = 1;
  c.strokeStyle = line;
  c.setLineDash([3, 3]);
  if (allocated > start + 1) c.strokeRect(start + 0.5, top + 0.5, allocated - start, tall - 1);
  if (end > destroyed + 1) {
    hatch(c, destroyed, top, end - destroyed, tall, palette.families.free.line);
    c.strokeRect(destroyed, top + 0.5, end - destroyed - 0.5, tall - 1);
  }
  c.setLineDash([]);
  c.fillStyle = fill;
  c.fillRect(allocated, top, Math.max(destroyed - allocated, 1), tall);
  c.strokeRect(allocated + 0.5, top + 0.5, Math.max(destroyed - allocated - 1, 0), tall - 1);
  if (item.isOpen && end < view.width) {
    // lives on
    c.fillStyle = line;
    c.beginPath();
    c.moveTo(end, top);
    c.lineTo(end + 7, top + tall / 2);
    c.lineTo(end, top + tall);
    c.fill();
  }
  c.font = font(12);
  c.textBaseline = 'middle';
  c.fillStyle = palette.ink;
  c.fillText(fitting(c, item.name, end - start - 8), start + 5, top + tall * 0.29);
  paintMarks(c, item, top + tall * 0.74);
}

const MARK_FAMILIES = {
  allocated: 'create',
  destroyed: 'free',
  released: 'free',
  written: 'write',
  read: 'read',
  built: 'build',
  loaded: 'build',
  saved: 'build',
  dispatched: 'dispatch',
};

// Marks that lie too close to tell apart become one with its number, or a band where they go on and on.
function paintMarks(c, object, y) {
  const {marks} = object;
  const size = 12 * view.letters;
  const by = scale();
  const xOf = (mark) => view.gutter + (mark.start - view.from) * by;
  c.font = font(10.5);
  for (let first = 0; first < marks.length;) {
    const x = xOf(marks[first]);
    let end = x;
    let next = first + 1;
    for (; next < marks.length; next += 1) {
      const other = xOf(marks[next]);
      if (other - end > size * 0.75 || other - x > LONGEST_RUN) break;
      end = other;
    }
    const number = next - first;
    if (end > view.gutter - size && x < view.width + size) {
      const shown =
        number === 1
          ? marks[first]
          : (marks.slice(first, next).find((mark) => mark.name === 'destroyed') ?? marks[first]);
      const colour = palette.families[MARK_FAMILIES[shown.name] ?? 'other'].line;
      const room = next < marks.length ? xOf(marks[next]) - end : 99;
      if (end - x > size * 2) paintBand(c, marks, first, next, x, y, end - x, size);
      else {
        (SIGNS[shown.name] ?? SIGNS.created)(c, x, y, size, colour);
        c.fillStyle = palette.muted;
        if (number > 1) c.fillText(fitting(c, `×${number}`, room + end - x - size), x + size * 0.6, y);
      }
      state.drawn.marks += number;
      addHit(
        x - size / 2,
        y - size * 0.7,
        end - x + size,
        size * 1.4,
        shown,
        number > 1 ? {items: marks, first, last: next} : null,
      );
    }
    first = next;
  }
}

function paintBand(c, marks, first, last, x, y, width, size) {
  for (let at = 0; at < width; at += 4) {
    const mark = marks[first + Math.floor((at / width) * (last - first))];
    c.fillStyle = palette.families[MARK_FAMILIES[mark.name] ?? 'other'].line;
    c.fillRect(x + at, y - size * 0.35, 2, size * 0.7);
  }
  const words = `×${(last - first).toLocaleString('en')}`;
  const wide = widthOf(c, words);
  if (wide + 6 > width) return;
  c.fillStyle = palette.families.buffer.fill;
  c.fillRect(x + (width - wide) / 2 - 3, y - size * 0.5, wide + 6, size);
  c.fillStyle = palette.ink;
  c.fillText(words, x + (width - wide) / 2, y);
}
