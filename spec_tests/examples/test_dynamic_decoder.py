"""The decoder with one graph for all lengths computes what graphs of each length do."""

from argparse import Namespace

import dynamic_decoder
import pytest
import trio

from spec_tests.labs.benchmarks import dynamic_decoders


def test_both_ways_give_the_same_numbers(capsys):
    sizes = {"layers": 1, "heads": 2, "width": 8, "first": 1, "steps": 3, "repeats": 1}
    trio.run(dynamic_decoder.main, Namespace(backend="numpy", **sizes))
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("numpy")
    assert said[-1].endswith("the numbers are the same")


def test_a_table_compares_four_ways(capsys):
    options = dynamic_decoders.parser().parse_args(["--decoder", "1x16:1-2", "--repeats", "1"])
    trio.run(dynamic_decoders.main, options)
    _, _, *rows = (line.split("|")[2:5] for line in capsys.readouterr().out.splitlines())
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["fixed", "2", "2"],
        ["sizes", "1", "1"],
        ["names", "1", "1"],
        ["operands", "1", "1"],
    ]
    with pytest.raises(SystemExit):
        dynamic_decoders.parser().parse_args(["--decoder", "2x256"])
    assert "'2x256' is not LAYERSxWIDTH:FIRST-LAST" in capsys.readouterr().err
