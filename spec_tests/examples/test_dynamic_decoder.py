"""The decoder with one graph for all lengths computes what graphs of each length do."""

from argparse import Namespace

import dynamic_decoder
import trio


def test_both_ways_give_the_same_numbers(capsys):
    sizes = {"layers": 1, "heads": 2, "width": 8, "first": 1, "steps": 3, "repeats": 1}
    trio.run(dynamic_decoder.main, Namespace(backend="numpy", **sizes))
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("numpy")
    assert said[-1].endswith("the numbers are the same")
