"""Random sequences of a context's methods: what each comes to, and in which order promises are settled."""

import numpy as np

from spec_tests.labs.differential.program import Program, Step

START = """\
const context = await open();
let pending = 0;
const told = [], tensors = [], graphs = [], floats = {dataType: 'float32', shape: [2]};
const outcome = {};
const say = (name, words) => { told.push(name); outcome[name] = words; };
// Start something; what it throws at once, and what its promise comes to.
const start = (name, body, keep) => {
  let promise;
  try {
    promise = body();
  } catch (error) {
    say(name, `throws ${error.name}`);
    return;
  }
  if (!(promise instanceof Promise)) { say(name, 'returns'); return; }
  pending += 1;
  const settled = (words) => { pending -= 1; say(name, words); };
  promise.then(
      (value) => {
        settled(value instanceof ArrayBuffer ? `[${new Float32Array(value)}]` : 'resolves');
        keep?.(value);
      },
      (error) => settled(`rejects ${error.name}`));
};
context.lost.then(() => told.push('lost'));
const build = () => {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', floats);
  return builder.build({y: builder.add(x, builder.constant('float32', 1))});
};
for (let index = 0; index < 3; index += 1) {
  tensors.push(await context.createTensor({...floats, readable: true, writable: true}));
}
graphs.push(await build());
const turn = () => new Promise((done) => setTimeout(done, 0));"""

END = """\
// A promise that is never settled is waited for no longer than this.
for (let round = 0; round < 200 && pending > 0; round += 1) await new Promise((done) => setTimeout(done, 5));
return {outcomes: outcome, order: told.filter((name) => name.endsWith('*'))};"""

ACTIONS = (
    ("create*", "() => context.createTensor({...floats, readable: true, writable: true}), (it) => tensors.push(it)", 2),
    ("read*", "() => context.readTensor(tensors[T])", 6),
    ("readInto*", "() => context.readTensor(tensors[T], new Float32Array(2))", 2),
    ("build*", "build, (it) => graphs.push(it)", 2),
    ("write", "() => context.writeTensor(tensors[T], new Float32Array([V, W]))", 5),
    ("dispatch", "() => context.dispatch(graphs[0], {x: tensors[T]}, {y: tensors[U]})", 5),
    ("destroyTensor", "() => tensors[T].destroy()", 1),
    ("destroyGraph", "() => graphs[0].destroy()", 0.3),
    ("destroyContext", "() => context.destroy()", 0.4),
)


def generate(number, seed, _profile):
    """The ``number``-th program of a seed."""
    rng = np.random.default_rng([seed, number, 3])
    weights = np.array([weight for *_, weight in ACTIONS])
    lines, used, of_tensors, ended = [START], set(), {}, set()
    for index in range(int(rng.integers(3, 14))):
        kind, body, _ = ACTIONS[rng.choice(len(ACTIONS), p=weights / weights.sum())]
        source, target = (int(at) for at in rng.permutation(3)[:2])
        numbers = {"T": source, "U": target, "V": int(rng.integers(-9, 10)), "W": int(rng.integers(-9, 10))}
        for word, value in numbers.items():
            body = (
                body.replace(f"[{word}]", f"[{value}]")
                .replace(f"[{word},", f"[{value},")
                .replace(f" {word}]", f" {value}]")
            )
        name = f"{index:02}{kind}"
        lines.append(f"start('{name}', {body});")
        used.add(kind)
        of_tensors[name] = {source, target} if kind == "dispatch" else {source}
        ended |= {source} if kind == "destroyTensor" else set()
        if rng.random() < 0.15:
            lines.append("await turn();")
    lines.append(END)
    of_ended = tuple(name for name, read in of_tensors.items() if read & ended)
    return Program("events", number, "\n".join(lines), {"events": Step("events", frozenset(used), of_ended)})
