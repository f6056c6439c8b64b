"""A cache without room drops the values that were not used for longest."""

import numpy as np
import pytest

from webnn_py.devices.wgpu.records.recently_used import RecentlyUsed, Room


@pytest.mark.parametrize("room", [Room(0, 100), Room(5, 0), Room(1, 40), Room(4, 1000), Room(100, 60)], ids=str)
def test_any_order_of_uses_keeps_what_a_plain_list_would(rng, room):
    kept = RecentlyUsed(room)
    model = []  # key, value and bytes, the longest unused first
    dropped = 0
    for step in range(2000):
        key, byte_length = (int(number) for number in rng.integers(0, [12, 30]))
        found = [item for item in model if item[0] == key]
        if rng.integers(2):
            assert kept.get(key) == (found[0][1] if found else None)
            model = [item for item in model if item[0] != key] + found
        else:
            kept.put(key, step, byte_length)
            model = [item for item in model if item[0] != key] + [(key, step, byte_length)]
            while len(model) > room.count or sum(item[2] for item in model) > room.byte_length:
                model.pop(0)
                dropped += 1
        assert len(kept) == len(model)
        assert kept.byte_length == sum(item[2] for item in model)
    assert kept.dropped == dropped
    assert dropped > 0


def test_with_less_room_the_rest_goes_and_what_is_used_last_stays():
    kept = RecentlyUsed(Room(10, 100))
    for key in range(10):
        kept.put(key, key, 10)
    kept.get(0)
    kept.resize(Room(3, 100))
    assert [kept.get(key) for key in range(10)] == [0, *[None] * 7, 8, 9]
    kept.resize(Room(3, 15))
    assert (len(kept), kept.byte_length) == (1, 10)
    kept.resize(Room(3, 100))
    kept.put(1, np.zeros(3), 90)
    assert (len(kept), kept.byte_length) == (2, 100)


def test_nothing_is_left_when_it_is_cleared():
    kept = RecentlyUsed(Room(10, 100))
    kept.put("a", 1, 10)
    kept.clear()
    assert (len(kept), kept.byte_length, kept.get("a"), kept.dropped) == (0, 0, None, 0)
