// Search: every word is to be found in the name, label, buffer, graph, source or reason, or as #17 in the number.

const searchTexts = new Map();
function searchText(item) {
  let words = searchTexts.get(item);
  if (words === undefined) {
    const names = [
      ...objectsOf(state.trace, item, 'reads'),
      ...objectsOf(state.trace, item, 'writes'),
      ...objectsOf(state.trace, item, 'graph'),
    ];
    const about = item.object ? item.object.name : '';
    const parts = [
      caption(item),
      item.bad,
      about,
      ...names.map(objectName),
      sourceOf(item),
      item.args.why ?? '',
      item.operation === undefined ? '' : `#${item.operation} `,
    ];
    if (Array.isArray(item.args.operators)) parts.push(...item.args.operators);
    words = `${parts.join('\n')} `.toLowerCase();
    searchTexts.set(item, words);
  }
  return words;
}

const searchedItems = () => state.trace.items;

// The next match after the last one shown, or the first in view.
function goToMatch(way) {
  const {matches} = state;
  if (!matches.length) return;
  if (state.match < 0) {
    const first = matches.findIndex((item) => item.end >= view.from);
    state.match = way > 0 ? Math.max(first, 0) : (Math.max(first, 0) - 1 + matches.length) % matches.length;
  } else state.match = (state.match + way + matches.length) % matches.length;
  showFound();
  select(matches[state.match]);
}
