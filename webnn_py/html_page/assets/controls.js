// Search, help, theme, and the keys and buttons that every page has.

// Find the items that have every word; #17 is the number of an operator or an operation.
function search(query) {
  const words = query
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => (/^#\d+$/.test(word) ? `${word} ` : word));
  const hasAll = (item) => words.every((word) => searchText(item).includes(word));
  state.matches = words.length ? searchedItems().filter(hasAll) : [];
  state.matching = new Set(state.matches);
  state.match = -1;
  showFound();
  if (!table.hidden) fillTable();
  requestDrawing();
}

function showFound() {
  const number = state.matches.length.toLocaleString('en');
  if (searchBox.value.trim() === '') found.textContent = '';
  else found.textContent = state.match < 0 ? `${number} found` : `${(state.match + 1).toLocaleString('en')} of ${number}`;
  for (const id of ['previous', 'next']) document.getElementById(id).disabled = state.matches.length === 0;
}

function showHelp(title, ...content) {
  const dialog = document.getElementById('keys');
  const close = element('button', {type: 'button', className: 'close', 'aria-label': 'Close help'}, '×');
  close.addEventListener('click', () => dialog.close());
  dialog.setAttribute('aria-label', title);
  dialog.replaceChildren(close, element('h2', {}, title), ...content);
  dialog.showModal();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById('theme').textContent = theme === 'dark' ? 'Light' : 'Dark';
  showTheme();
  requestDrawing();
}

function keyDown(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById('keys').open) return;
  const isTyping = event.target === searchBox;
  if (event.key === 'Escape') {
    if (isTyping) {
      searchBox.value = '';
      search('');
      canvas.focus();
    } else if (state.selected) select(null);
    return;
  }
  if (isTyping) {
    if (event.key === 'Enter') goToMatch(event.shiftKey ? -1 : 1);
    return;
  }
  const key = Object.hasOwn(KEYS, event.key) ? event.key : event.key.toLowerCase();
  const isElsewhere = table.contains(event.target) || panel.contains(event.target);
  if (event.target === canvas && walk(event)) event.preventDefault();
  else if (Object.hasOwn(KEYS, key) && !(isElsewhere && key.length > 1)) {
    event.preventDefault();
    KEYS[key]();
  } else if (event.target === document.body && event.key.startsWith('Arrow') && walk(event)) event.preventDefault();
}

// Connect what every page has, and the page's own buttons: what each does, by its id.
function connectControls(ownButtons, resized) {
  const buttons = {
    fit,
    list: toggleTable,
    help: openHelp,
    next: () => goToMatch(1),
    previous: () => goToMatch(-1),
    theme: () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark'),
    ...ownButtons,
  };
  for (const [id, act] of Object.entries(buttons)) document.getElementById(id).addEventListener('click', act);
  searchBox.addEventListener('input', () => search(searchBox.value));
  canvas.addEventListener('pointerdown', pointerDown);
  canvas.addEventListener('pointermove', pointerMove);
  for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, pointerUp);
  canvas.addEventListener('wheel', wheel, {passive: false});
  document.addEventListener('keydown', keyDown);
  new ResizeObserver(resized).observe(stage);
  const preference = matchMedia('(prefers-color-scheme: dark)');
  preference.addEventListener('change', () => setTheme(preference.matches ? 'dark' : 'light'));
  setTheme(preference.matches ? 'dark' : 'light');
}
