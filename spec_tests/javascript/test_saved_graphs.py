"""The members of WebNN's cache explainer, which scripts have with ``webnn-py node --graph-cache FOLDER`` alone."""

PROGRAM = """
const context = await navigator.ml.createContext();
console.log(JSON.stringify(await context.listGraphs()));
let graph;
try {
  graph = await context.loadGraph('k');
} catch (error) {
  console.log(error.name, error instanceof DOMException, error.code);
  const builder = new MLGraphBuilder(context);
  const x = builder.input('__proto__', {dataType: 'float32', shape: [2]});
  graph = await builder.build({y: builder.neg(x), z: builder.reshape(x, [1, 2])});
  console.log(await context.saveGraph('k', graph));
}
const options = {dataType: 'float32', shape: [2], writable: true, readable: true};
const [x, y, z] = await Promise.all([[2], [2], [1, 2]].map((shape) => context.createTensor({...options, shape})));
context.writeTensor(x, new Float32Array([1, 2]));
context.dispatch(graph, {['__proto__']: x}, {y, z});
console.log(...new Float32Array(await context.readTensor(y)));
console.log(JSON.stringify(Object.entries(graph.inputs)), JSON.stringify(graph.outputs));
console.log(Object.isFrozen(graph.outputs), graph.outputs === graph.outputs);
"""

REFUSALS = """
const [context, other] = [await navigator.ml.createContext(), await navigator.ml.createContext()];
const builder = new MLGraphBuilder(other);
const graph = await builder.build({y: builder.neg(builder.input('x', {dataType: 'float32', shape: []}))});
const told = async (promise) => { try { await promise; } catch ({name, message}) { console.log(name, message); } };
await told(context.saveGraph('k'));
await told(context.saveGraph('k', {}));
await told(context.saveGraph('k', graph));
await told(context.saveGraph('k'.repeat(5000), graph));
try { context.deleteGraph(); } catch ({name}) { console.log(name); }
context.destroy();
try { context.deleteGraph('k'); } catch ({name}) { console.log(name); }
await told(context.listGraphs());
await told(other.saveGraph(7, graph));
console.log(JSON.stringify(await other.listGraphs()));
other.deleteGraph('7');
"""


def test_a_second_program_loads_the_graph_that_the_first_has_saved(run, tmp_path):
    options = ["--graph-cache", str(tmp_path / "graphs")]
    first, second = run(PROGRAM, *options), run(PROGRAM, *options)
    assert first[:3] == ["[]", "NotFoundError true 8", "undefined"]
    assert second[0] == '["k"]'
    assert first[3:] == second[1:]
    assert second[1] == "-1 -2"
    inputs = '[["__proto__",{"dataType":"float32","shape":[2]}]]'
    outputs = '{"y":{"dataType":"float32","shape":[2]},"z":{"dataType":"float32","shape":[1,2]}}'
    assert second[2:] == [f"{inputs} {outputs}", "true true"]


def test_wrong_arguments_are_refused(run, tmp_path):
    lines = run(REFUSALS, "--graph-cache", str(tmp_path / "graphs"))
    assert [line.split()[0] for line in lines[:-1]] == [*["TypeError"] * 5, *["InvalidStateError"] * 2]
    assert "belongs to another context" in lines[2]
    assert lines[-1] == '["7"]', "a key is converted to a string, as Web IDL says"
    assert list((tmp_path / "graphs").glob("*.webnn")) == [], "what a program deletes last is deleted, too"


def test_without_a_folder_the_members_are_missing(run):
    names = "['listGraphs', 'loadGraph', 'saveGraph', 'deleteGraph'].some((name) => name in MLContext.prototype)"
    source = f"console.log({names}, 'inputs' in MLGraph.prototype, 'outputs' in MLGraph.prototype)"
    assert run(source) == ["false false false"]
