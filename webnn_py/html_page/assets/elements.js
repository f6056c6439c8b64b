// The elements that every page has, how others are made, and when the picture is drawn again.

const canvas = document.getElementById('canvas');
const stage = document.getElementById('stage');
const searchBox = document.getElementById('search');
const found = document.getElementById('found');
const table = document.getElementById('table');
const panel = document.getElementById('details');
const live = document.getElementById('live');

// An element with text in it, never markup.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-') || name === 'role') made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter((child) => child !== null && child !== ''));
  return made;
}

const count = (number, one, many = `${one}s`) => `${number.toLocaleString('en')} ${number === 1 ? one : many}`;

function fillStage() {
  view.width = stage.clientWidth;
  view.height = stage.clientHeight;
  const ratio = globalThis.devicePixelRatio || 1;
  canvas.width = Math.round(view.width * ratio);
  canvas.height = Math.round(view.height * ratio);
  canvas.style.width = `${view.width}px`;
  canvas.style.height = `${view.height}px`;
}

let isRequested = false;
function requestDrawing() {
  if (isRequested) return;
  isRequested = true;
  requestAnimationFrame(() => {
    isRequested = false;
    draw();
  });
}
