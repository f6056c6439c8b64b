// Programs as they are usually written, without a fault. Each is a function of navigator.ml, by its name.
const D = {dataType: 'float32', shape: [8]};
const ROWS = Array.from({length: 12}, (_, row) => Float32Array.from({length: 8}, (_, at) => at + row));
const later = (milliseconds = 0) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const tensor = (context, more = {}) => context.createTensor({...D, readable: true, writable: true, ...more});

async function negation(context, times = 1) {
  const builder = new MLGraphBuilder(context);
  const x = builder.input('x', D);
  const factor = builder.constant(D, new Float32Array(8).fill(times));
  return builder.build({y: builder.mul(builder.neg(x), factor)});
}

async function opened() {
  const context = await navigator.ml.createContext();
  const [graph, x, y] = await Promise.all([negation(context), tensor(context), tensor(context)]);
  const run = async (row, from = x, to = y) => {
    context.writeTensor(from, row);
    context.dispatch(graph, {x: from}, {y: to});
    return new Float32Array(await context.readTensor(to));
  };
  return {context, graph, x, y, run};
}

const PROGRAMS = {
  async oneRun() {
    const {context, run} = await opened();
    await run(ROWS[1]);
    context.destroy();
  },
  async eachTensorIsDestroyed() {
    const {context, graph, x, y, run} = await opened();
    await run(ROWS[1]);
    for (const one of [graph, x, y, context]) one.destroy();
  },
  async aLoopOverImages() {
    const {context, run} = await opened();
    for (const row of ROWS) Math.max(...await run(row.map((pixel) => pixel / 255)));
    context.destroy();
  },
  async aBufferForTheOutput() {
    const {context, graph, x, y} = await opened();
    const output = new Float32Array(8);
    for (const row of ROWS) {
      context.writeTensor(x, row);
      context.dispatch(graph, {x}, {y});
      await context.readTensor(y, output);
    }
    context.destroy();
  },
  async warmUp() {
    const {context, run} = await opened();
    await run(new Float32Array(8));
    for (const row of ROWS) await run(row);
    context.destroy();
  },
  async timesOfTheSameInput() {
    const {context, graph, x, y} = await opened();
    context.writeTensor(x, ROWS[3]);
    const times = [];
    for (let at = 0; at < 10; at += 1) {
      const began = performance.now();
      context.dispatch(graph, {x}, {y});
      await context.readTensor(y);
      times.push(performance.now() - began);
    }
    context.destroy();
  },
  async framesOfATimer() {
    const {context, run} = await opened();
    let left = 5;
    await new Promise((resolve) => {
      const timer = setInterval(async () => {
        left -= 1;
        const frame = left;  // the next one may begin before this one is done
        if (frame === 0) clearInterval(timer);
        await run(ROWS[frame]);
        if (frame === 0) resolve();
      }, 1);
    });
    context.destroy();
  },
  async allAtOnceWithTensorsOfTheirOwn() {
    const {context, run} = await opened();
    await Promise.all(ROWS.map(async (row) => {
      const [x, y] = await Promise.all([tensor(context), tensor(context)]);
      try {
        await run(row, x, y);
      } finally {
        x.destroy();
        y.destroy();
      }
    }));
    context.destroy();
  },
  async doubleBuffering() {
    const {context, x, y, run} = await opened();
    const sides = [[x, y], await Promise.all([tensor(context), tensor(context)])];
    let pending = null;
    for (const [index, row] of ROWS.entries()) {
      const next = run(row, ...sides[index % 2]);
      await pending;
      pending = next;
    }
    await pending;
    context.destroy();
  },
  async twoOutputsTogether() {
    const context = await navigator.ml.createContext();
    const builder = new MLGraphBuilder(context);
    const x = builder.input('x', D);
    const graph = await builder.build({boxes: builder.neg(x), scores: builder.sigmoid(x)});
    const [input, boxes, scores] = await Promise.all([tensor(context), tensor(context), tensor(context)]);
    for (const row of ROWS) {
      context.writeTensor(input, row);
      context.dispatch(graph, {x: input}, {boxes, scores});
      await Promise.all([context.readTensor(boxes), context.readTensor(scores)]);
    }
    context.destroy();
  },
  async boxesWhereThereAreSome() {
    const {context, x, run} = await opened();
    for (const [index, row] of ROWS.entries()) {
      const scores = await run(row);
      if (scores[0] < -4 && index > 0) await context.readTensor(x);
    }
    context.destroy();
  },
  async aCacheThatIsSwapped() {
    const context = await navigator.ml.createContext();
    const builder = new MLGraphBuilder(context);
    const longer = builder.add(builder.input('cache', D), builder.input('token', D));
    const graph = await builder.build({after: longer, logits: builder.reshape(builder.softmax(builder.reshape(longer, [1, 8]), 1), [8])});
    const [token, logits, first, second] = await Promise.all([1, 2, 3, 4].map(() => tensor(context)));
    let [old, after] = [first, second];
    context.writeTensor(old, new Float32Array(8));
    let chosen = 2;
    for (let step = 0; step < 12; step += 1) {
      context.writeTensor(token, Float32Array.from({length: 8}, (_, at) => Number(at === chosen)));
      context.dispatch(graph, {cache: old, token}, {after, logits});
      const found = new Float32Array(await context.readTensor(logits));
      chosen = found.indexOf(Math.min(...found));
      [old, after] = [after, old];
    }
    context.destroy();
  },
  async aStateThatStaysOnTheDevice() {
    const {context, graph, x, y} = await opened();
    context.writeTensor(x, ROWS[1]);
    let [from, to] = [x, y];
    for (let step = 0; step < 5; step += 1) {
      context.dispatch(graph, {x: from}, {y: to});
      [from, to] = [to, from];
    }
    await context.readTensor(from);
    context.destroy();
  },
  async anUtteranceAfterTheOther() {
    const {context, graph, x, y} = await opened();
    const start = Float32Array.from({length: 8}, (_, at) => Math.sin(at));
    for (let utterance = 0; utterance < 3; utterance += 1) {
      context.writeTensor(x, start);
      let [from, to] = [x, y];
      for (let step = 0; step < 3; step += 1) {
        context.dispatch(graph, {x: from}, {y: to});
        [from, to] = [to, from];
      }
      await context.readTensor(from);
    }
    context.destroy();
  },
  async aStateThatIsRestored() {
    const {context, x, y, run} = await opened();
    const saved = await run(ROWS[2]);
    for (const row of ROWS.slice(3, 6)) {
      await run(row);
      context.writeTensor(y, saved);
    }
    context.destroy();
  },
  async aChainOfModels() {
    const {context, graph, x, y} = await opened();
    const [second, z] = await Promise.all([negation(context, 3), tensor(context)]);
    for (const row of ROWS) {
      context.writeTensor(x, row);
      context.dispatch(graph, {x}, {y});
      context.dispatch(second, {x: y}, {y: z});
      await context.readTensor(z);
    }
    context.destroy();
  },
  async whatTheHostDoesInBetween() {
    const {context, run} = await opened();
    const second = await negation(context, 2);
    const [x, y] = await Promise.all([tensor(context), tensor(context)]);
    for (const row of ROWS) {
      const found = await run(row);
      context.writeTensor(x, found.map((value) => value - found[0]));
      context.dispatch(second, {x}, {y});
      await context.readTensor(y);
    }
    context.destroy();
  },
  async anEnsemble() {
    const context = await navigator.ml.createContext();
    const graphs = await Promise.all([2, 3, 4].map((times) => negation(context, times)));
    const [x, ...outputs] = await Promise.all([0, ...graphs].map(() => tensor(context)));
    for (const row of ROWS) {
      context.writeTensor(x, row);
      graphs.forEach((graph, at) => context.dispatch(graph, {x}, {y: outputs[at]}));
      await Promise.all(outputs.map((one) => context.readTensor(one)));
    }
    context.destroy();
  },
  async readsThatAreStartedSlowly() {
    const {context} = await opened();
    const [x, z] = await Promise.all([tensor(context), tensor(context)]);
    for (const row of ROWS) {
      context.writeTensor(x, row);
      context.writeTensor(z, row.map((value) => 2 * value));
      const reads = [x, z].map((one) => {
        const read = context.readTensor(one);
        for (const until = performance.now() + 20; performance.now() < until;);  // the host reads meanwhile
        return read;
      });
      await Promise.all(reads);
    }
    context.destroy();
  },
  async outputsThatAreReadTogetherAtTheEnd() {
    const {context, graph, x, y} = await opened();
    const outputs = [y];
    for (const row of ROWS) {
      context.writeTensor(x, row);
      context.dispatch(graph, {x}, {y: outputs.at(-1)});
      outputs.push(await tensor(context));
    }
    await Promise.all(outputs.map((one) => context.readTensor(one)));
    outputs.forEach((one) => one.destroy());
    context.destroy();
  },
  async aGraphForEachSize() {
    const context = await navigator.ml.createContext();
    const graphs = new Map();
    for (const size of [2, 4, 2, 8, 4, 2]) {
      const descriptor = {dataType: 'float32', shape: [size]};
      if (!graphs.has(size)) {
        const builder = new MLGraphBuilder(context);
        graphs.set(size, await builder.build({y: builder.relu(builder.input('x', descriptor))}));
      }
      const [x, y] = await Promise.all([tensor(context, descriptor), tensor(context, descriptor)]);
      context.writeTensor(x, ROWS[1].subarray(0, size));
      context.dispatch(graphs.get(size), {x}, {y});
      await context.readTensor(y);
      x.destroy();
      y.destroy();
    }
    context.destroy();
  },
  async sharedWeights() {
    const context = await navigator.ml.createContext();
    const weights = await context.createConstantTensor(D, ROWS[2]);
    const [x, y] = await Promise.all([tensor(context), tensor(context)]);
    context.writeTensor(x, ROWS[1]);
    for (const name of ['add', 'mul']) {
      const builder = new MLGraphBuilder(context);
      const graph = await builder.build({y: builder[name](builder.input('x', D), builder.constant(weights))});
      context.dispatch(graph, {x}, {y});
      await context.readTensor(y);
      graph.destroy();
    }
    context.destroy();
  },
  async twoContexts() {
    const [one, other] = await Promise.all([opened(), opened()]);
    await other.run(await one.run(ROWS[1]));
    one.context.destroy();
    other.context.destroy();
  },
  async aRefusedCallAndThenTheRightOne() {
    const {context, x, run} = await opened();
    try {
      context.writeTensor(x, new Float32Array(3));
    } catch {
      await run(ROWS[1]);
    }
    context.destroy();
  },
  async aBuildThatFails() {
    const {context, run} = await opened();
    const builder = new MLGraphBuilder(context);
    try {
      builder.add(builder.input('x', D), builder.input('y', {dataType: 'float32', shape: [3]}));
    } catch {
      await run(ROWS[1]);
    } finally {
      context.destroy();
    }
  },
  async whatAnErrorLeavesIsDestroyed() {
    const {context, run} = await opened();
    for (let at = 0; at < 10; at += 1) {
      const x = await tensor(context);
      try {
        await run(ROWS[at], x);
        if (at % 2 === 1) throw new Error('no such file');
      } catch {
        continue;
      } finally {
        x.destroy();
      }
    }
    context.destroy();
  },
  async workersThatTakeJobs() {
    const {context, run} = await opened();
    const jobs = [...ROWS, ...ROWS];
    await Promise.all([1, 2, 3].map(async () => {
      const [x, y] = await Promise.all([tensor(context), tensor(context)]);
      for (let row = jobs.pop(); row !== undefined; row = jobs.pop()) await run(row, x, y);
      x.destroy();
      y.destroy();
    }));
    context.destroy();
  },
  async aPoolOfTensors() {
    const {context, run} = await opened();
    const free = [];
    const take = async () => free.pop() ?? tensor(context);
    for (const row of ROWS) {
      const [x, y] = [await take(), await take()];
      await run(row, x, y);
      free.push(x, y);
    }
    context.destroy();
  },
  async aGenerator() {
    const {context, run} = await opened();
    async function* results() {
      for (const row of ROWS) yield await run(row);
    }
    for await (const result of results()) result.reduce((a, b) => a + b);
    context.destroy();
  },
  async descent() {
    const context = await navigator.ml.createContext();
    const builder = new MLGraphBuilder(context);
    const weights = builder.input('weights', D);
    const error = builder.sub(builder.mul(builder.input('x', D), weights), builder.constant(D, new Float32Array(8).fill(1)));
    const graph = await builder.build({after: builder.sub(weights, builder.mul(error, builder.constant('float32', 0.01))), error});
    const [x, lost, ...both] = await Promise.all([1, 2, 3, 4].map(() => tensor(context)));
    for (const [at, row] of [...ROWS, ...ROWS].entries()) {
      context.writeTensor(x, row);
      context.dispatch(graph, {x, weights: both[at % 2]}, {after: both[1 - at % 2], error: lost});
      if (at % 6 === 0) await context.readTensor(lost);
    }
    await context.readTensor(both[0]);
    context.destroy();
  },
  async aContextThatIsLostAndMadeAgain() {
    for (let life = 0; life < 2; life += 1) {
      const {context, run} = await opened();
      await run(ROWS[life]);
      context.destroy();
      await context.lost;
    }
  },
  async resultsThatArriveLate() {
    const {context, run} = await opened();
    for (const row of ROWS.slice(0, 4)) {
      const pending = run(row);
      await later();
      await pending;
    }
    context.destroy();
  },
};

for (const name of Object.keys(PROGRAMS)) await PROGRAMS[name]();
console.log(Object.keys(PROGRAMS).length);
