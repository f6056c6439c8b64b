"""The examples run as their first lines say, and the graph in two languages gives equal bits."""

from spec_tests.support.examples import EXAMPLES, output


def test_one_graph_in_both_languages_gives_equal_bits():
    from_javascript = output("-m", "webnn_py.cli", "node", "--backend", "numpy", EXAMPLES / "same_bits.js")
    assert from_javascript == output(EXAMPLES / "same_bits.py")
    words = from_javascript.split()
    assert len(words) == 12
    assert len(set(words)) == 12


def test_two_products():
    assert output("-m", "webnn_py.cli", "node", EXAMPLES / "two_products.js").splitlines() == [
        "y = Float32Array(4) [ 2, 3, 4, 5 ]",
        "y = Float32Array(4) [ 11, 12, 13, 14 ]",
        "InvalidStateError",
    ]
