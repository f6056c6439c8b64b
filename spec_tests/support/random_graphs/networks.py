"""Random calls of the recurrent networks and their cells, with what is known of their states from step to step."""

import attrs

from spec_tests.support.random_graphs.bounds import SMOOTH, Known, float16_unit, total
from spec_tests.support.random_graphs.bounds import product as product_of
from spec_tests.support.random_graphs.drawer import FLOATS

WEIGHT = Known(-0.25, 0.25, 2.0**-5)
STATE = Known(-1, 1, 2.0**-4)
GATE = Known(-1, 1, 0)


def recurrent(drawer):
    return drawer.choose(gru, lstm)(drawer)


def activations(drawer, count):
    """Bounded ones only: the states stay between known bounds, whatever the number of steps."""
    return [drawer.choose("sigmoid", "tanh") for _ in range(count)] if drawer.flag() else None


@attrs.define
class Network:
    """The operands of a network, drawn.

    Attributes:
        drawer: draws them.
        gates: how many gates.
        is_cell: whether it takes one step only.
    """

    drawer: object
    gates: int
    is_cell: bool
    x: object = None
    weight: object = None
    recurrent: object = None
    directions: int = 1
    direction: str = "forward"
    hidden: int = 1
    options: dict = attrs.field(factory=dict)

    def operand(self, *shape, known=WEIGHT):
        shape = shape if self.is_cell else (self.directions, *shape)
        return self.drawer.operand(self.x.data_type, shape, known)

    def draw(self):
        drawer = self.drawer
        self.x = drawer.pick(FLOATS, rank=2 if self.is_cell else 3, within=(-4, 4), most=256)
        if not self.is_cell and self.x.shape[0] > 3:
            sizes = [drawer.integer(1, 3), *self.x.shape[1:]]
            self.x = drawer.move("slice", self.x, [0, 0, 0], sizes)
        if self.x.shape[-1] > 16:
            self.x = drawer.move("slice", self.x, [0] * self.x.rank, [*self.x.shape[:-1], 16])
        if not self.is_cell:
            self.direction = drawer.choose("forward", "backward", "both")
            self.directions = 2 if self.direction == "both" else 1
        self.hidden = drawer.integer(1, 5)
        self.weight = self.operand(self.gates * self.hidden, self.x.shape[-1])
        self.recurrent = self.operand(self.gates * self.hidden, self.hidden)
        for name in ("bias", "recurrent_bias"):
            if drawer.flag():
                self.options[name] = self.operand(self.gates * self.hidden)

    def state(self):
        return self.operand(self.x.shape[-2], self.hidden, known=STATE)

    def known_of(self, name):
        return self.options[name].known if name in self.options else Known(0, 0, 1)

    def gate(self, hidden, cell=None):
        """Return the bounds of gates, with errors of products and sums (slopes are at most 1) and the activation."""
        size = self.x.shape[-1]
        terms = [total("float32", size, product_of(self.x.known, self.weight.known))]
        terms.append(total("float32", self.hidden, product_of(hidden, self.recurrent.known)))
        terms += [self.known_of("bias"), self.known_of("recurrent_bias")]
        if cell is not None:
            terms.append(product_of(cell, self.known_of("peephole_weight")))
        most, apart = sum(term.most for term in terms), sum(term.error for term in terms)
        return attrs.evolve(GATE, error=apart + (4 * most + SMOOTH) * 2**-23)

    def steps(self):
        return 1 if self.is_cell else self.x.shape[0]

    def arguments(self):
        sizes = () if self.is_cell else (self.steps(),)
        return sizes, {} if self.is_cell else {"direction": self.direction, "return_sequence": self.drawer.flag()}


def mixed(*pairs):
    """The sum of products of two values each."""
    terms = [product_of(a, b) for a, b in pairs]
    most = sum(term.most for term in terms)
    return Known(-most, most, 0, sum(term.error for term in terms) + 4 * most * 2**-23)


def result(data_type, known):
    """A state as an output, rounded once."""
    return attrs.evolve(known, error=known.error + float16_unit(data_type, known.most))


def gru(drawer):
    network = Network(drawer, 3, drawer.flag())
    network.draw()
    state = network.state() if network.is_cell or drawer.flag() else None
    hidden = worst = state.known if state is not None else Known(0, 0, 1)
    for _ in range(network.steps()):
        update = network.gate(hidden)
        # The reset gate multiplies the state before the product, or the product after it.
        reset = mixed((hidden, update))
        new = attrs.evolve(network.gate(attrs.evolve(hidden, error=reset.error)), error=2 * network.gate(reset).error)
        hidden = mixed((update, hidden), (Known(0, 2, 0, update.error), new))
        worst = attrs.evolve(hidden, low=min(worst.low, hidden.low), high=max(worst.high, hidden.high))
    options = network.options | {"reset_after": drawer.flag(), "layout": drawer.choose("zrn", "rzn")}
    options["activations"] = activations(drawer, 2)
    known = result(network.x.data_type, worst)
    sizes, more = network.arguments()
    if network.is_cell:
        args = (network.x, network.weight, network.recurrent, state, network.hidden)
        return drawer.call("gru_cell", *args, known=known, **options)
    if state is not None:
        options["initial_hidden_state"] = state
    args = (network.x, network.weight, network.recurrent, *sizes, network.hidden)
    return drawer.call("gru", *args, known=known, **options, **more)[0]


def lstm(drawer):
    network = Network(drawer, 4, drawer.flag())
    network.draw()
    if drawer.flag():
        network.options["peephole_weight"] = network.operand(3 * network.hidden)
    zero = Known(0, 0, 1)
    states = [network.state() if network.is_cell or drawer.flag() else None for _ in range(2)]
    hidden, cell = (state.known if state is not None else zero for state in states)
    for _ in range(network.steps()):
        gate = network.gate(hidden, cell)
        cell = mixed((gate, cell), (gate, gate))
        hidden = mixed((gate, attrs.evolve(GATE, error=cell.error + SMOOTH * 2**-23)))
    options = network.options | {"layout": drawer.choose("iofg", "ifgo"), "activations": activations(drawer, 3)}
    knowns = [result(network.x.data_type, item) for item in (hidden, cell)]
    sizes, more = network.arguments()
    if network.is_cell:
        args = (network.x, network.weight, network.recurrent, *states, network.hidden)
        return drawer.call("lstm_cell", *args, known=knowns, **options)[0]
    if more["return_sequence"]:
        knowns.append(knowns[0])
    for name, state in zip(("initial_hidden_state", "initial_cell_state"), states, strict=True):
        if state is not None:
            options[name] = state
    args = (network.x, network.weight, network.recurrent, *sizes, network.hidden)
    return drawer.call("lstm", *args, known=knowns, **options, **more)[0]
