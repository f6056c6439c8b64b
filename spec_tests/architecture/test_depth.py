"""Which tests a run has depends on their names and the options alone."""

from collections import Counter

import pytest

from spec_tests.support.depth import has_turn, share, turn

NAMES = [f"test[{number}]" for number in range(1000)]


class Config:
    """The part of pytest's configuration that chooses a share."""

    def __init__(self, seed=0):
        self.option = type("Options", (), {"seed": seed})


def test_a_share_is_the_same_every_time():
    assert [turn(Config(), name, 100) for name in ("a", "b", "test_file.py::test[1]")] == [50, 46, 72]
    assert turn(Config(), "\ud800", 100) == turn(Config(), "\\ud800", 100)


def test_another_test_changes_the_turn_of_none():
    some, all_of_them = share(Config(), NAMES[::2], 7), share(Config(), NAMES, 7)
    assert some == all_of_them & set(NAMES[::2])


@pytest.mark.parametrize("parts", [2, 5, 13])
def test_the_seeds_divide_the_names_in_parts_of_about_the_same_size(parts):
    shares = [share(Config(seed), NAMES, parts) for seed in range(parts)]
    assert set(Counter(name for names in shares for name in names).values()) == {1}
    assert set().union(*shares) == set(NAMES)
    assert min(map(len, shares)) > 0.7 * len(NAMES) / parts


def test_a_share_has_at_least_one_where_there_are_as_many_names_as_parts():
    for few in (NAMES[at : at + 5] for at in range(200)):
        assert share(Config(), few, 5)
    assert any(not share(Config(), few, 6) for few in (NAMES[at : at + 5] for at in range(200)))
    assert len(share(Config(), NAMES[:5], 100, least=2)) == 2


def test_what_has_its_turn_is_in_the_share():
    assert {name for name in NAMES if has_turn(Config(), name, 3)} == share(Config(), NAMES, 3)
