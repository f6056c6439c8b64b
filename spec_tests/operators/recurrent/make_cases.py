"""Make the cases of the recurrent networks and their cells.

A plain loop over directions and time steps computes in float64, gate by gate as the specification writes them.
onnxruntime computes the same in float32, and must agree; but its output gate sees the new cell state through its
peephole, so that it is left out where that weight is not 0.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import onnxruntime

from spec_tests.operators.oracle import FLOAT_TYPES, Cases, Options, by_onnxruntime, case, generator, rounded, write

ORACLE = (
    f"numpy {np.__version__} in float64, step by step, rounded once; onnxruntime {onnxruntime.__version__} agrees"
    " to 1e-5 (not asked about peepholes of the output gate, infinities, and NaN)"
)

Arrays = dict[str, np.ndarray]
Gates = Mapping[str, np.ndarray]

ACTIVATIONS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
}


@attrs.frozen
class Kind:
    """A sort of network.

    Attributes:
        step: the cell, on gates by name.
        layouts: the orders of the gates, the default first, and onnxruntime's last.
        activations: the defaults.
        states: what stands for the states of a network and of a cell.
        optional: the optional operands of the cell.
    """

    onnx_name: str
    step: Callable[..., tuple[np.ndarray, ...]]
    layouts: tuple[str, ...]
    activations: tuple[str, ...]
    states: tuple[str, ...]
    optional: tuple[str, ...]


# --- the cells ---------------------------------------------------------------------------------------------------


def gru_step(x: np.ndarray, states: Sequence[np.ndarray], p: Mapping[str, Gates], options: Options) -> tuple[Any, ...]:
    (h,) = states
    f, g = (ACTIVATIONS[name] for name in options["activations"])
    w, r, b, c = p["weight"], p["recurrent_weight"], p["bias"], p["recurrent_bias"]
    update = f(x @ w["z"].T + b["z"] + h @ r["z"].T + c["z"])
    reset = f(x @ w["r"].T + b["r"] + h @ r["r"].T + c["r"])
    if options["reset_after"]:
        new = g(x @ w["n"].T + b["n"] + reset * (h @ r["n"].T + c["n"]))
    else:
        new = g(x @ w["n"].T + b["n"] + (reset * h) @ r["n"].T + c["n"])
    return (update * h + (1 - update) * new,)


def lstm_step(x: np.ndarray, states: Sequence[np.ndarray], p: Mapping[str, Gates], options: Options) -> tuple[Any, ...]:
    h, cell = states
    f, g, k = (ACTIVATIONS[name] for name in options["activations"])
    w, r, b, d, peephole = p["weight"], p["recurrent_weight"], p["bias"], p["recurrent_bias"], p["peephole_weight"]
    sums = {gate: x @ w[gate].T + b[gate] + h @ r[gate].T + d[gate] for gate in "iofg"}
    i, o, forget = (f(sums[gate] + peephole[gate] * cell) for gate in "iof")
    new_cell = forget * cell + i * g(sums["g"])
    return o * k(new_cell), new_cell


GRU = Kind("GRU", gru_step, ("zrn", "rzn", "zrn"), ("sigmoid", "tanh"), ("hidden_state",), ("bias", "recurrent_bias"))
LSTM = Kind(
    "LSTM",
    lstm_step,
    ("iofg", "ifgo", "iofg"),
    ("sigmoid", "tanh", "tanh"),
    ("hidden_state", "cell_state"),
    ("bias", "recurrent_bias", "peephole_weight"),
)


# --- the networks ------------------------------------------------------------------------------------------------


def run(kind: Kind, arrays: Arrays, options: Options) -> list[np.ndarray]:
    """The last states, and the hidden states of all steps, in float64; operands and options are a network's."""
    sequence = arrays["input"].astype(np.float64)
    steps, batch, _ = sequence.shape
    hidden = options["hidden_size"]
    directions = {"forward": [1], "backward": [-1], "both": [1, -1]}[options["direction"]]
    last = [np.zeros((len(directions), batch, hidden)) for _ in kind.states]
    whole = np.zeros((steps, len(directions), batch, hidden))
    for direction, order in enumerate(directions):
        parameters = {
            name: by_gate(arrays[name][direction].astype(np.float64), layout, hidden)
            if name in arrays
            else dict.fromkeys(layout, np.zeros(hidden))
            for name, layout in layouts_of(kind, options["layout"]).items()
        }
        states = [
            arrays[f"initial_{name}"][direction].astype(np.float64)
            if f"initial_{name}" in arrays
            else np.zeros((batch, hidden))
            for name in kind.states
        ]
        for time in range(steps)[::order]:
            with np.errstate(all="ignore"):
                states = list(kind.step(sequence[time], states, parameters, options))
            whole[time, direction] = states[0]
        for output, state in zip(last, states, strict=True):
            output[direction] = state
    return [*last, whole]


def layouts_of(kind: Kind, layout: str) -> dict[str, str]:
    """The order of the gates in each parameter."""
    names = ("weight", "recurrent_weight", *kind.optional)
    return {name: "iof" if name == "peephole_weight" else layout for name in names}


def by_gate(array: np.ndarray, layout: str, hidden: int) -> Gates:
    return {gate: array[index * hidden : (index + 1) * hidden] for index, gate in enumerate(layout)}


# --- onnxruntime -------------------------------------------------------------------------------------------------


def check(kind: Kind, arrays: Arrays, options: Options, expected: Sequence[np.ndarray]) -> None:
    """Compare with onnxruntime, if it can tell."""
    hidden = options["hidden_size"]
    peephole = arrays.get("peephole_weight")
    if peephole is not None and peephole[:, hidden : 2 * hidden].any():
        return
    if not all(np.isfinite(array).all() for array in arrays.values()):
        return
    directions, batch = expected[0].shape[:2]
    arrays = {name: array.astype(np.float32) for name, array in arrays.items()}

    def in_order(name: str) -> np.ndarray:
        if name not in arrays:
            return np.zeros((directions, len(options["layout"]) * hidden), np.float32)
        parts = [by_gate(array, options["layout"], hidden) for array in arrays[name]]
        return np.stack([np.concatenate([gates[gate] for gate in kind.layouts[-1]]) for gates in parts])

    zeros = np.zeros((directions, batch, hidden), np.float32)
    feeds = {"X": arrays["input"], "W": in_order("weight"), "R": in_order("recurrent_weight")}
    feeds["B"] = np.concatenate([in_order("bias"), in_order("recurrent_bias")], 1)
    attributes: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": {"backward": "reverse", "both": "bidirectional"}.get(options["direction"], "forward"),
        "activations": [name.capitalize() for name in options["activations"]] * directions,
    }
    outputs = ["Y", "last"]
    feeds |= {"": zeros, "H": arrays.get("initial_hidden_state", zeros)}
    if kind is GRU:
        attributes["linear_before_reset"] = int(options["reset_after"])
    else:
        feeds["C"] = arrays.get("initial_cell_state", zeros)
        feeds["P"] = np.zeros((directions, 3 * hidden), np.float32) if peephole is None else arrays["peephole_weight"]
        outputs = [*outputs, "cell"]
    whole, *last = by_onnxruntime(kind.onnx_name, feeds, outputs, **attributes)
    for got, wanted in zip([*last, whole], expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, err_msg=f"{kind.onnx_name}, {options}")


# --- cases -------------------------------------------------------------------------------------------------------


def tolerance_of(data_type: str, expected: Sequence[np.ndarray]) -> dict[str, Any]:
    """For float32 four ULP of the largest element, or of what is below 1; float16 is rounded once."""
    if data_type == "float16":
        return {"ulp": 1}
    largest = max(float(np.nanmax(np.abs(array))) for array in expected)
    return {"absolute": 2.0**-22 * max(1.0, 2.0 ** np.floor(np.log2(max(largest, 1))))}


def network_case(
    kind: Kind, name: str, arrays: Arrays, options: Options, constants: Sequence[str] = ()
) -> dict[str, Any]:
    data_type = arrays["input"].dtype.name
    defaults = {
        "reset_after": True,
        "return_sequence": False,
        "direction": "forward",
        "layout": kind.layouts[0],
        "activations": kind.activations,
    }
    everything = defaults | dict(options)
    computed = run(kind, arrays, everything)
    check(kind, arrays, everything, computed)
    outputs = computed if everything["return_sequence"] else computed[:-1]
    expected = [rounded(array, data_type) for array in outputs]
    options = {"steps": len(arrays["input"])} | dict(options)
    tolerance = tolerance_of(data_type, expected)
    name = f"{data_type}, {name}"
    return case(name, arrays, expected, options=options, tolerance=tolerance, constants=constants)


def cell_case(kind: Kind, name: str, arrays: Arrays, options: Options, constants: Sequence[str] = ()) -> dict[str, Any]:
    """A cell is a network of one step; its operands are a network's without the first dimension."""
    whole = network_case(kind, name, arrays, options, constants)
    of_network = {f"initial_{state}": state for state in kind.states}
    for tensor in (*whole["inputs"].values(), *whole["expected"]):
        del tensor["shape"][0]
    inputs = {of_network.get(key, key): tensor for key, tensor in whole["inputs"].items()}
    return whole | {"inputs": inputs, "options": dict(options)}


def random(
    kind: Kind, data_type: str, key: str, names: Sequence[str], sizes: Sequence[int], *, directions: int = 1
) -> Arrays:
    """Operands of a network, multiples of 1/8; of the optional ones those that are named."""
    rng = generator(kind.onnx_name, data_type, key, names)
    steps, batch, features, hidden = sizes
    gates = len(kind.layouts[0]) * hidden

    def eighths(shape: Sequence[int], largest: int) -> np.ndarray:
        return np.asarray(rng.integers(-largest, largest, shape, endpoint=True) / 8).astype(data_type)

    arrays = {
        "input": eighths((steps, batch, features), 12),
        "weight": eighths((directions, gates, features), 7),
        "recurrent_weight": eighths((directions, gates, hidden), 7),
    }
    state = (directions, batch, hidden)
    shapes: dict[str, Sequence[int]] = {
        "bias": (directions, gates),
        "recurrent_bias": (directions, gates),
        "peephole_weight": (directions, 3 * hidden),
        "initial_hidden_state": state,
        "initial_cell_state": state,
    }
    return arrays | {name: eighths(shapes[name], 6) for name in shapes if name in names}


SMALL = (3, 2, 2, 2)
ONE_STEP = (1, 2, 3, 2)
SIZES = ((1, 1, 1, 1), (1, 2, 3, 1), (4, 1, 1, 2), (2, 1, 4, 3), (5, 3, 1, 1), (2, 2, 1, 5))
"""Time steps, batch, features, hidden size."""


def all_states(kind: Kind) -> list[str]:
    return [f"initial_{state}" for state in kind.states]


def subsets(names: Sequence[str]) -> list[Sequence[str]]:
    """None of the names, each alone, all but each, and all."""
    few = [(), *((name,) for name in names), *(tuple(n for n in names if n != name) for name in names), tuple(names)]
    return list(dict.fromkeys(few))


def said(options: Options) -> str:
    return ", ".join(f"{name} {'/'.join(v) if isinstance(v, tuple) else v}" for name, v in options.items())


def of_names(names: Sequence[str]) -> str:
    return f"with {', '.join(names)}" if names else "required operands alone"


def mixed_activations(kind: Kind) -> list[tuple[str, ...]]:
    return list(itertools.product(ACTIVATIONS, repeat=len(kind.activations)))


def option_sets(kind: Kind) -> list[Options]:
    """All combinations of direction, layout, and flags."""
    choices: dict[str, Sequence[Any]] = {
        "direction": ("forward", "backward", "both"),
        "layout": kind.layouts[:2],
        "return_sequence": (False, True),
    }
    if kind is GRU:
        choices["reset_after"] = (True, False)
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


def network_cases(kind: Kind) -> Cases:
    cases = []
    types = itertools.cycle(FLOAT_TYPES)
    hidden_2 = {"hidden_size": 2}
    optional = [*kind.optional, *all_states(kind)]
    of_options = itertools.cycle(subsets(optional))
    for index, options in enumerate(option_sets(kind)):
        data_type, names, name = FLOAT_TYPES[(index + index // 2) % 2], next(of_options), said(options)
        directions = 2 if options["direction"] == "both" else 1
        arrays = random(kind, data_type, name, names, SMALL, directions=directions)
        cases.append(network_case(kind, f"{name}, {of_names(names)}", arrays, hidden_2 | dict(options)))
    for names in subsets(optional):
        data_type = next(types)
        arrays = random(kind, data_type, "operands", names, SMALL)
        cases.append(network_case(kind, of_names(names), arrays, hidden_2))
    for activations in mixed_activations(kind)[:: len(kind.activations) + 1]:
        options = {"direction": "both", "activations": activations, "return_sequence": True}
        arrays = random(kind, next(types), said(options), optional, (3, 1, 1, 2), directions=2)
        cases.append(network_case(kind, said(options), arrays, hidden_2 | options))
    for sizes in SIZES:
        for direction in ("forward", "both"):
            options = {"hidden_size": sizes[-1], "return_sequence": True, "direction": direction}
            directions = 2 if direction == "both" else 1
            arrays = random(kind, next(types), direction, optional, sizes, directions=directions)
            name = "{} steps, batch {}, {} features, {} hidden".format(*sizes)
            cases.append(network_case(kind, f"{name}, {direction}", arrays, options))
    cases += both_kinds(kind, network_case, SMALL)
    return cases


def cell_cases(kind: Kind) -> Cases:
    cases = []
    types = itertools.cycle(FLOAT_TYPES)
    hidden_2 = {"hidden_size": 2}
    states = all_states(kind)
    for layout in kind.layouts[:2]:
        for names in subsets(kind.optional):
            data_type = next(types)
            options: dict[str, Any] = {"layout": layout}
            if kind is GRU:
                options["reset_after"] = len(names) % 2 == (layout == "zrn")
            arrays = random(kind, data_type, said(options), [*names, *states], ONE_STEP)
            cases.append(cell_case(kind, f"{said(options)}, {of_names(names)}", arrays, hidden_2 | options))
    if kind is GRU:
        for data_type, reset_after in itertools.product(FLOAT_TYPES, (True, False)):
            options = {"reset_after": reset_after}
            arrays = random(kind, data_type, said(options), [*kind.optional, *states], ONE_STEP)
            cases.append(cell_case(kind, said(options), arrays, hidden_2 | options))
    for activations in mixed_activations(kind):
        options = {"activations": activations, "layout": kind.layouts[len(cases) % 2]}
        arrays = random(kind, next(types), said(options), [*kind.optional, *states], (1, 2, 1, 2))
        cases.append(cell_case(kind, said(options), arrays, hidden_2 | options))
    for names in ((), kind.optional):
        arrays = random(kind, next(types), "defaults", [*names, *states], ONE_STEP)
        cases.append(cell_case(kind, f"no options, {of_names(names)}", arrays, hidden_2))
    for _, *sizes in SIZES[:4]:
        arrays = random(kind, next(types), "sizes", [*kind.optional, *states], (1, *sizes))
        name = "batch {}, {} features, {} hidden".format(*sizes)
        cases.append(cell_case(kind, name, arrays, {"hidden_size": sizes[-1]}))
    cases += both_kinds(kind, cell_case, ONE_STEP)
    return cases


def both_kinds(kind: Kind, make: Callable[..., dict[str, Any]], sizes: Sequence[int]) -> Cases:
    """Constants and extreme values, of networks and of cells."""
    cases = []
    optional, states = kind.optional, all_states(kind)
    everything = [*optional, *states]
    hidden_2 = {"hidden_size": 2}
    for constants in (["weight", "recurrent_weight", *optional], states, ["input"]):
        arrays = random(kind, "float32", "constants", everything, sizes)
        cases.append(make(kind, f"constant {', '.join(constants)}", arrays, hidden_2, constants))
    for data_type in FLOAT_TYPES:
        arrays = random(kind, data_type, "extremes", states, sizes)
        arrays["weight"] = np.where(arrays["weight"] == 0, arrays["weight"].dtype.type(1), arrays["weight"])
        large = arrays | {"input": arrays["input"] * arrays["input"].dtype.type(1000)}
        cases.append(make(kind, "large inputs", large, hidden_2))
        rare = arrays["input"].copy()
        rare[0, 0, 0], rare[-1, 1, 1] = np.inf, np.nan
        cases.append(make(kind, "NaN and infinity", arrays | {"input": rare}, hidden_2))
        if kind is LSTM:
            for gate, index in {"input": 0, "forget": 2}.items():
                arrays = random(kind, data_type, f"peephole {gate}", everything, sizes)
                kept = np.repeat(np.arange(3) == index, 2)
                arrays["peephole_weight"] *= kept.astype(data_type)
                for layout in kind.layouts[:2]:
                    name = f"peepholes of the {gate} gate, layout {layout}"
                    cases.append(make(kind, name, arrays, hidden_2 | {"layout": layout}))
    return cases


def main() -> None:
    """Write the files of the category."""
    write(__file__, "gru", ORACLE, network_cases(GRU))
    write(__file__, "gru_cell", ORACLE, cell_cases(GRU))
    write(__file__, "lstm", ORACLE, network_cases(LSTM))
    write(__file__, "lstm_cell", ORACLE, cell_cases(LSTM))


if __name__ == "__main__":
    main()
