"""Web IDL conversions as a script meets them."""

import json

import pytest

SCENE = """
const f32 = (shape) => ({dataType: 'float32', shape});
const told = (error) => `${error.name}`;
async function result_of(body) {
  const context = await navigator.ml.createContext();
  const builder = new MLGraphBuilder(context);
  let result;
  try {
    result = await body(builder, context, builder.input('x', f32([4, 4])));
  } catch (error) {
    result = told(error);
  }
  console.log(JSON.stringify(result));
}
"""


@pytest.fixture
def outcomes(run):
    """Run bodies in one program, and return their results by name."""

    def in_this_process(bodies):
        scenes = ",\n".join(f"async (builder, context, x) => {{ {body} }}" for body in bodies.values())
        lines = run(f"{SCENE}\nfor (const body of [{scenes}]) await result_of(body);")
        return dict(zip(bodies, map(json.loads, lines), strict=True))

    return in_this_process


@pytest.fixture
def outcome(outcomes):
    """Run one body, and return its result."""
    return lambda body: outcomes({"": body})[""]


ACCEPTED = {
    "a fraction is cut off": ("return builder.input('y', f32([2.9])).shape", [2]),
    "a numeric string is a number": ("return builder.input('y', f32(['3'])).shape", [3]),
    "any iterable is a sequence": ("return builder.input('y', f32(new Set([2, 3]))).shape", [2, 3]),
    "unknown members are ignored": ("return builder.input('y', {...f32([1]), colour: 'red'}).shape", [1]),
    "null is an empty dictionary": ("return builder.softmax(x, 1, null).shape", [4, 4]),
    "undefined takes the default": ("return builder.softmax(x, 1, undefined).shape", [4, 4]),
    "anything is a boolean": ("return builder.reduceSum(x, {axes: [0], keepDimensions: 'no'}).shape", [1, 4]),
    "an axis without EnforceRange wraps": ("return builder.cumulativeSum(x, 2 ** 32 + 1).shape", [4, 4]),
    "NaN wraps to zero": ("return builder.cumulativeSum(x, NaN).shape", [4, 4]),
    "minus zero is zero": ("return builder.softmax(x, -0).shape", [4, 4]),
    "an infinite MLNumber is accepted": ("return builder.clamp(x, {maxValue: Infinity}).shape", [4, 4]),
    "a BigInt is an MLNumber": ("return builder.constant('uint64', 2n ** 64n - 1n).dataType", "uint64"),
    "a union of a number and a sequence": (
        "return [builder.split(x, 2).length, builder.split(x, [1, 3]).map((part) => part.shape)]",
        [2, [[1, 4], [3, 4]]],
    ),
    "a typed array of 16-bit floats": (
        "return builder.constant({dataType: 'float16', shape: [2]}, Float16Array.of(1, 2)).shape",
        [2],
    ),
    "a part of a buffer": (
        "return builder.constant(f32([1]), new Float32Array(new ArrayBuffer(12), 4, 1)).shape",
        [1],
    ),
    "a shared buffer": ("return builder.constant(f32([1]), new SharedArrayBuffer(4)).shape", [1]),
    "a buffer without its prototype": (
        "return builder.constant(f32([1]), Object.setPrototypeOf(new ArrayBuffer(4), null)).shape",
        [1],
    ),
    "a view that tells another length": (
        (
            "const view = Object.defineProperty(new Float32Array(1), 'byteLength', {value: 4000});"
            "return builder.constant(f32([1]), view).shape"
        ),
        [1],
    ),
    "names may hold NUL and lone surrogates": (
        (
            "const y = builder.input('a\\0\\ud800', f32([1])); await builder.build({'b\\0\\udfff': builder.neg(y)});"
            "return 'built'"
        ),
        "built",
    ),
}

REFUSED = {
    "a resizable buffer": "builder.constant(f32([1]), new ArrayBuffer(4, {maxByteLength: 8}))",
    "a view of a resizable buffer": (
        "builder.constant(f32([1]), new Float32Array(new ArrayBuffer(4, {maxByteLength: 8}), 0, 1))"
    ),
    "a view that follows its buffer's length": (
        "builder.constant(f32([1]), new Float32Array(new ArrayBuffer(4, {maxByteLength: 8})))"
    ),
    "a growable shared buffer": "builder.constant(f32([1]), new SharedArrayBuffer(4, {maxByteLength: 8}))",
    "a view of a growable shared buffer": (
        "builder.constant(f32([1]), new Float32Array(new SharedArrayBuffer(4, {maxByteLength: 8}), 0, 1))"
    ),
    "a resizable buffer to write": (
        "const t = await context.createTensor({...f32([1]), writable: true});"
        "context.writeTensor(t, new ArrayBuffer(4, {maxByteLength: 8}))"
    ),
    "a resizable buffer to read into": (
        "const t = await context.createTensor({...f32([1]), readable: true});"
        "await context.readTensor(t, new ArrayBuffer(4, {maxByteLength: 8}))"
    ),
    "a value whose name throws": ("builder.relu({get constructor() { throw new RangeError('mine'); }})"),
    "a BigInt of many digits for an integer": "builder.softmax(x, 10n ** 100000n)",
    "a long string for an enumeration": "builder.cast(x, 'f'.repeat(1e6))",
    "a negative dimension": "builder.input('y', f32([-1]))",
    "a dimension that is too large": "builder.input('y', f32([2 ** 32]))",
    "NaN with EnforceRange": "builder.softmax(x, NaN)",
    "a BigInt for an integer": "builder.softmax(x, 1n)",
    "a symbol for a string": "builder.input(Symbol(), f32([1]))",
    "a string for a sequence": "builder.input('y', f32('12'))",
    "an unknown enumeration value": "builder.cast(x, 'float64')",
    "an infinite double": "builder.elu(x, {alpha: Infinity})",
    "a scale that overflows a float": "builder.resample2d(builder.reshape(x, [1, 1, 4, 4]), {scales: [1e39, 1]})",
    "a plain object for an operand": "builder.relu({})",
    "an operand's prototype for an operand": "builder.relu(Object.create(MLOperand.prototype))",
    "a number for a dictionary": "builder.softmax(x, 1, 5)",
    "a missing required member": "builder.input('y', {dataType: 'float32'})",
    "too few arguments": "builder.add(x)",
    "undefined in a record": "await builder.build({y: undefined})",
    "a view of the wrong type": "builder.constant(f32([1]), new Int32Array(1))",
    "a DataView, which has no data type": "builder.constant(f32([1]), new DataView(new ArrayBuffer(4)))",
    "a detached buffer": "const b = new ArrayBuffer(4); b.transfer(); builder.constant(f32([1]), b)",
    "an array for a buffer": "builder.constant(f32([1]), [1])",
    "a getter of the wrong object": "Object.getOwnPropertyDescriptor(MLOperand.prototype, 'shape').get.call(builder)",
    "a GPUDevice that is none": "await navigator.ml.createContext(7)",
}


def test_values_are_accepted(outcomes):
    given = outcomes({name: body for name, (body, _) in ACCEPTED.items()})
    assert given == {name: expected for name, (_, expected) in ACCEPTED.items()}


def test_values_are_refused_with_a_type_error(outcomes):
    assert outcomes(REFUSED) == dict.fromkeys(REFUSED, "TypeError")


def test_members_of_dictionaries_are_read_in_the_order_of_web_idl(outcome):
    body = """
      const order = [];
      const spy = (target) => new Proxy(target, {get: (object, key) => (order.push(key), object[key])});
      await context.createTensor(spy({dataType: 'float32', shape: [1]}));
      return order;
    """
    assert outcome(body) == ["dataType", "shape", "readable", "writable"]


def test_numbers_keep_every_bit(outcome):
    body = """
      const values = [-0, NaN, -Infinity, 1.1, 5e-324, 2 ** 53];
      const results = [];
      const tensor = await context.createTensor({...f32([1]), readable: true});
      const own = new MLGraphBuilder(context);
      const given = values.map((value) => own.identity(own.constant('float32', value)));
      const graph = await own.build(Object.fromEntries(given.map((operand, index) => [`v${index}`, operand])));
      const outputs = {};
      for (const index of values.keys()) {
        outputs[`v${index}`] = await context.createTensor({...f32([]), readable: true});
      }
      context.dispatch(graph, {}, outputs);
      for (const [index, value] of values.entries()) {
        const [result] = new Float32Array(await context.readTensor(outputs[`v${index}`]));
        results.push(Object.is(result, Math.fround(value)));
      }
      return results;
    """
    assert outcome(body) == [True] * 6


def test_bigints_keep_every_bit(outcome):
    body = """
      const values = {int64: [-(2n ** 63n), 2n ** 53n + 1n], uint64: [2n ** 64n - 1n, 2n ** 63n + 1n]};
      const results = [];
      for (const [dataType, numbers] of Object.entries(values)) {
        for (const number of numbers) {
          const own = new MLGraphBuilder(context);
          const graph = await own.build({y: own.identity(own.constant(dataType, number))});
          const y = await context.createTensor({dataType, shape: [], readable: true});
          context.dispatch(graph, {}, {y});
          const bytes = await context.readTensor(y);
          const [result] = dataType === 'int64' ? new BigInt64Array(bytes) : new BigUint64Array(bytes);
          results.push(result === number);
        }
      }
      return results;
    """
    assert outcome(body) == [True] * 4


BIGINTS = {
    "uint8": [255, 0],
    "int8": [127, -128],
    "int32": [2**31 - 1, -(2**31)],
    "uint32": [2**32 - 1, 0],
    "int64": [2**63 - 1, -(2**63)],
    "uint64": [2**64 - 1, 0],
    "float32": ["Infinity", "-Infinity"],
    "float16": ["Infinity", "-Infinity"],
}


@pytest.mark.parametrize("digits", [30, 400, 5000])
def test_a_huge_bigint_clamps_to_the_data_type(outcome, digits):
    body = f"""
      const views = {{uint8: Uint8Array, int8: Int8Array, int32: Int32Array, uint32: Uint32Array,
                     int64: BigInt64Array, uint64: BigUint64Array, float32: Float32Array, float16: Float16Array}};
      const results = {{}};
      for (const [dataType, View] of Object.entries(views)) {{
        const own = new MLGraphBuilder(context);
        const huge = 10n ** {digits}n;
        const constants = [huge, -huge].map((value) => own.identity(own.constant(dataType, value)));
        const graph = await own.build({{a: constants[0], b: constants[1]}});
        const scalar = () => context.createTensor({{dataType, shape: [], readable: true}});
        const [a, b] = [await scalar(), await scalar()];
        context.dispatch(graph, {{}}, {{a, b}});
        results[dataType] = [];
        for (const tensor of [a, b]) {{
          results[dataType].push(String(new View(await context.readTensor(tensor))[0]));
        }}
      }}
      return results;
    """
    expected = {data_type: [str(value) for value in values] for data_type, values in BIGINTS.items()}
    if digits == 30:
        expected["float32"] = ["1.0000000150474662e+30", "-1.0000000150474662e+30"]
    assert outcome(body) == expected
