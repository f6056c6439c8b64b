// The colours of the style sheet, for the canvas; letters that fit; signs.

const COLOURS = ['paper', 'panel', 'lane', 'ink', 'muted', 'line', 'accent', 'bad', 'found', 'arrow'];
const WITH_LINES = ['write', 'dispatch', 'read', 'build', 'create', 'free', 'kernel', 'buffer', 'other'];
const palette = {families: {}};

function readPalette() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  for (const name of COLOURS) palette[name] = value(name);
  for (const name of WITH_LINES) palette.families[name] = {fill: value(`${name}-fill`), line: value(`${name}-line`)};
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const font = (size, weight = '') => `${weight} ${Math.round(size * view.letters * 2) / 2}px ${FONT}`;

const widths = new Map();
function widthOf(c, words) {
  const key = `${c.font}|${words}`;
  let width = widths.get(key);
  if (width === undefined) {
    if (widths.size > 20000) widths.clear();
    width = c.measureText(words).width;
    widths.set(key, width);
  }
  return width;
}

// As much of some words as fits; nothing if that is next to nothing.
function fitting(c, words, room) {
  if (room < 14) return '';
  const width = widthOf(c, words);
  if (width <= room) return words;
  const letters = Math.floor((words.length * (room - widthOf(c, '…'))) / width);
  return letters >= 2 ? `${words.slice(0, letters)}…` : '';
}

// Signs of about `size` pixels around a point; shape and colour both tell what it is.
const SIGNS = {
  rejected(c, x, y, size) {
    c.fillStyle = palette.bad;
    c.beginPath();
    c.moveTo(x, y - size * 0.62);
    c.lineTo(x + size * 0.62, y);
    c.lineTo(x, y + size * 0.62);
    c.lineTo(x - size * 0.62, y);
    c.closePath();
    c.fill();
    c.strokeStyle = palette.paper;
    c.lineWidth = 1.4;
    c.stroke();
  },
  refused(c, x, y, size) {
    c.beginPath();
    c.arc(x, y, size * 0.55, 0, 7);
    c.fillStyle = palette.bad;
    c.fill();
    c.fillStyle = palette.paper;
    c.fillRect(x - size * 0.34, y - 1.1, size * 0.68, 2.2);
  },
  dropped(c, x, y, size) {
    c.beginPath();
    c.arc(x, y, size * 0.55, 0, 7);
    c.fillStyle = palette.paper;
    c.fill();
    c.strokeStyle = palette.bad;
    c.lineWidth = 1.8;
    c.stroke();
    const reach = size * 0.38;
    c.beginPath();
    c.moveTo(x - reach, y + reach);
    c.lineTo(x + reach, y - reach);
    c.stroke();
  },
  failed(c, x, y, size) {
    c.fillStyle = palette.bad;
    c.beginPath();
    c.moveTo(x, y - size * 0.6);
    c.lineTo(x + size * 0.65, y + size * 0.5);
    c.lineTo(x - size * 0.65, y + size * 0.5);
    c.closePath();
    c.fill();
    c.fillStyle = palette.paper;
    c.fillRect(x - 0.8, y - size * 0.25, 1.6, size * 0.36);
    c.fillRect(x - 0.8, y + size * 0.22, 1.6, 1.6);
  },
  lost(c, x, y, size) {
    c.fillStyle = palette.bad;
    c.beginPath();
    c.moveTo(x + size * 0.2, y - size * 0.6);
    c.lineTo(x - size * 0.4, y + size * 0.12);
    c.lineTo(x - size * 0.02, y + size * 0.12);
    c.lineTo(x - size * 0.2, y + size * 0.6);
    c.lineTo(x + size * 0.4, y - size * 0.14);
    c.lineTo(x + size * 0.02, y - size * 0.14);
    c.closePath();
    c.fill();
  },
  written(c, x, y, size, colour) {
    wedge(c, x, y, size, colour, 1);
  },
  read(c, x, y, size, colour) {
    wedge(c, x, y, size, colour, -1);
  },
  allocated(c, x, y, size, colour) {
    disc(c, x, y, size * 0.32, colour);
  },
  built(c, x, y, size, colour) {
    disc(c, x, y, size * 0.32, colour);
  },
  created(c, x, y, size, colour) {
    disc(c, x, y, size * 0.32, colour);
  },
  dispatched(c, x, y, size, colour) {
    c.fillStyle = colour;
    c.beginPath();
    c.moveTo(x + size * 0.5, y);
    c.lineTo(x - size * 0.4, y - size * 0.5);
    c.lineTo(x - size * 0.4, y + size * 0.5);
    c.fill();
  },
  destroyed(c, x, y, size, colour) {
    const reach = size * 0.4;
    c.strokeStyle = colour;
    c.lineWidth = 2.2;
    c.beginPath();
    c.moveTo(x - reach, y - reach);
    c.lineTo(x + reach, y + reach);
    c.moveTo(x + reach, y - reach);
    c.lineTo(x - reach, y + reach);
    c.stroke();
  },
  released(c, x, y, size, colour) {
    c.fillStyle = colour;
    c.fillRect(x - size * 0.34, y - size * 0.34, size * 0.68, size * 0.68);
  },
};

// A wedge that points into the bar (written) or out of it (read).
function wedge(c, x, y, size, colour, way) {
  c.fillStyle = colour;
  c.beginPath();
  c.moveTo(x, y + size * 0.5 * way);
  c.lineTo(x - size * 0.52, y - size * 0.42 * way);
  c.lineTo(x + size * 0.52, y - size * 0.42 * way);
  c.closePath();
  c.fill();
}

function disc(c, x, y, radius, colour) {
  c.fillStyle = colour;
  c.beginPath();
  c.arc(x, y, radius, 0, 7);
  c.fill();
}

// Slanted lines over a rectangle: of what failed, or of a buffer that waits for its release.
function hatch(c, x, y, width, height, colour) {
  c.save();
  c.beginPath();
  c.rect(x, y, width, height);
  c.clip();
  c.strokeStyle = colour;
  c.lineWidth = 1.2;
  c.beginPath();
  const first = Math.max(x - height, Math.floor((view.gutter - height) / 7) * 7);
  const last = Math.min(x + width, view.width);
  for (let at = first - (first % 7); at < last; at += 7) {
    c.moveTo(at, y + height);
    c.lineTo(at + height, y);
  }
  c.stroke();
  c.restore();
}
