"""Keys tell arrays apart by samples, compare them whole where these agree, and hash them only where they must."""

import gc

import numpy as np
import pytest

from spec_tests.support.stand_ins import noted
from webnn_py import MLGraphBuilder
from webnn_py.devices import content_keys
from webnn_py.devices.content_keys import ContentKey
from webnn_py.devices.shared_constants import SharedConstants


@pytest.fixture
def array():
    return np.arange(4096, dtype=np.float32)


@pytest.fixture
def hashed(monkeypatch):
    """The number of bytes of each array that is hashed."""
    return noted(monkeypatch, content_keys, "blake2b", lambda data, **_: data.nbytes)


def alike(array):
    """Return an array that differs from another one in an element that is not among the samples."""
    other = array.copy()
    other[1500] = 0
    assert hash(ContentKey(other)) == hash(ContentKey(array))
    return other


def test_keys_are_equal_where_bytes_are_and_hash_only_arrays_that_look_alike_and_differ(array, hashed):
    same, greater, other = array.copy(), array + 1, alike(array)
    key = ContentKey(array)
    assert key == ContentKey(same)
    assert hash(key) == hash(ContentKey(same))
    assert key != ContentKey(greater)
    assert key != b"another kind of key"
    assert hashed == []
    assert key != ContentKey(other)
    assert hashed == [array.nbytes] * 2
    assert key != ContentKey(alike(array)), "compared by digests, as one of them is known"
    assert hashed == [array.nbytes] * 3
    assert repr(ContentKey(array, key.digest)) == repr(ContentKey(same))


def test_a_key_keeps_no_array_and_then_equals_none_but_itself(array):
    key, copy = ContentKey(array.copy()), array.copy()
    gc.collect()
    assert key != ContentKey(copy)
    assert key == key  # noqa: PLR0124 - that is the question
    with pytest.raises(ReferenceError, match="the array of a key is gone"):
        key.digest  # noqa: B018 - it raises


def test_a_key_whose_digest_is_known_needs_no_array(array):
    key = ContentKey(array.copy(), ContentKey(array).digest)
    other = alike(array)
    assert key == ContentKey(array)
    assert key != ContentKey(other)


def test_keys_that_were_found_equal_stay_so_as_long_as_one_of_their_arrays_is_there(array):
    gone, kept, later = array.copy(), array.copy(), array.copy()
    first, second = ContentKey(gone), ContentKey(kept)
    assert first == second
    del gone
    assert first == second
    assert first == ContentKey(later), "compared with what is there"
    del kept, later
    assert first == second


@pytest.mark.parametrize(
    "view", [lambda a: a[8:40], lambda a: a.reshape(64, 64)[2:4], lambda a: a.reshape(64, 64).T.T[1:]]
)
def test_any_view_keeps_the_bytes_that_a_key_compares(array, view):
    key, held, copy = ContentKey(view(array)), view(array).reshape(-1), view(array).copy()
    del array
    assert key == ContentKey(copy)
    assert held.size == copy.size
    buffer = np.frombuffer(copy.tobytes(), np.float32)
    key, held = ContentKey(buffer[4:]), buffer[4:]
    del buffer
    assert key == ContentKey(copy.reshape(-1)[4:])
    assert held.size


async def test_a_build_hashes_no_weights_and_graphs_share_equal_ones(context, array, hashed):
    array.flags.writeable = False
    copies = [array, array.copy()]
    copies[1].flags.writeable = False
    graphs, live = [], []
    for weights in copies:
        builder = MLGraphBuilder(context)
        x = builder.input("x", data_type="float32", shape=[4096])
        weight = builder.constant_shared(weights, ContentKey(weights))
        graphs.append(await builder.build({"y": builder.div(x, builder.add(x, weight))}))
        live.append(context.statistics().live_bytes)
    if context.backend.name != "reference":
        assert live[1] - live[0] <= live[0] - array.nbytes, "the weights are there twice"
    assert hashed == []


def test_the_digest_of_what_is_computed_in_many_steps_is_that_of_the_same_steps_elsewhere(array):
    digests = []
    for _ in range(2):
        constants = SharedConstants()
        identity = constants.identity("constant", ContentKey(array))
        for step in range(5000):
            identity = constants.identity(f"step {step}", identity, identity)
        digests.append(identity.digest)
    assert digests[0] == digests[1] is not None


def test_identities_of_arrays_that_are_gone_have_no_digest(array):
    identity = SharedConstants().identity("step", SharedConstants().identity("constant", ContentKey(array.copy())))
    gc.collect()
    assert identity.digest is None
