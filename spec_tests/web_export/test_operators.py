"""Every operator, saved as JavaScript and played in Node, gives the bits that Python gives."""

import trio

from spec_tests.operators.cases import decode, load_all
from spec_tests.support.saved_js import Player, differences, save_and_compute
from webnn_py.core.operators.registry import CATEGORIES, OPERATORS


def chosen_cases():
    """Return the case with the most options of each operator, by the operator's category."""
    chosen = {category: [] for category in CATEGORIES}
    for file in load_all():
        category = OPERATORS[file.operator].category
        chosen[category].append(max(file.cases, key=lambda case: (len(case.options), len(case.inputs))))
    return chosen


def draw(builder, case, given):
    """Draw a case; every second operand is a constant, the others are inputs, whose arrays are put into ``given``."""

    def drawn(tensor):
        array = decode(tensor)
        count[0] += 1
        if tensor.get("constant", False) or count[0] % 2 == 0:
            return builder.constant(array)
        name = f"{case.operator} {count[0]}"
        given[name] = array
        return builder.input(name, data_type=array.dtype, shape=array.shape)

    count = [0]
    operands = {
        name: [drawn(item) for item in tensor] if isinstance(tensor, list) else drawn(tensor)
        for name, tensor in case.inputs.items()
    }
    results = getattr(builder, case.operator)(**operands, **case.options, label=f"{case.operator}: a case")
    results = results if isinstance(results, list) else [results]
    return {f"{case.operator} {index}": result for index, result in enumerate(results)}


def drawing_of(cases):
    def draw_cases(builder):
        given, outputs = {}, {}
        for case in cases:
            outputs |= draw(builder, case, given)
        return outputs, given

    return draw_cases


def test_every_operator_has_a_case():
    assert {case.operator for cases in chosen_cases().values() for case in cases} == set(OPERATORS)


def test_a_graph_of_every_category_gives_the_same_bits(tmp_path):
    drawings = {category: drawing_of(cases) for category, cases in chosen_cases().items()}
    given, expected = trio.run(save_and_compute, tmp_path, drawings)
    assert not differences(Player(tmp_path).play(given), expected)
