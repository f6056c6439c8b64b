"""The folder of saved graphs: a graph is loaded whole or not at all, whatever the folder contains."""

import json
import os
import re
import subprocess
import sys
import textwrap
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from webnn_py.core.descriptors import MLOperandDescriptor
from webnn_py.devices.saved_code import SavedCode, UnusableFileError
from webnn_py.saved_graphs import folder as folders
from webnn_py.saved_graphs import sealed
from webnn_py.saved_graphs.folder import GraphFolder, TooLargeError
from webnn_py.saved_graphs.record import SavedGraph

DEVICE = "numpy: nodes"
POSIX = pytest.mark.skipif(os.name != "posix", reason="what POSIX has")


def graph(seed=0, size=100):
    blobs = [np.random.default_rng([seed, part]).integers(0, 256, size, np.uint8).data for part in range(2)]
    code = SavedCode("nodes", {"seed": seed, "numbers": [1.5, float("inf"), None, "ü"]}, tuple(blobs))
    x = MLOperandDescriptor("float32", (2, 3))
    return SavedGraph({"x": x}, {"y": x, "z": MLOperandDescriptor("int8", ())}, 7, code)


def assert_same(loaded, saved):
    assert (loaded.inputs, loaded.outputs, loaded.operator_count) == (saved.inputs, saved.outputs, saved.operator_count)
    assert (loaded.code.form, loaded.code.document) == (saved.code.form, saved.code.document)
    assert [bytes(blob) for blob in loaded.code.blobs] == [bytes(blob) for blob in saved.code.blobs]


@pytest.fixture
def folder(tmp_path):
    return GraphFolder(tmp_path / "graphs")


def files(folder, suffix=folders.SUFFIX):
    return sorted(path for path in folder.path.iterdir() if path.name.endswith(suffix))


def file_of(folder, device, key):
    """Return the path of a graph's file: its name depends on the device and the key alone."""
    with TemporaryDirectory() as other:
        GraphFolder(Path(other)).save(device, key, graph(size=1))
        (name,) = (path.name for path in files(GraphFolder(Path(other))))
    return folder.path / name


def assert_refused(folder, words, key="k", device=DEVICE):
    """Check that a file is not loaded for a reason, and is not listed."""
    with pytest.raises(UnusableFileError, match=words):
        folder.load(device, key)
    assert folder.keys(device) == []


# --- saving and loading --------------------------------------------------------------------------------------------


def test_a_graph_is_loaded_as_it_was_saved(folder):
    folder.save(DEVICE, "k", graph())
    loaded = folder.load(DEVICE, "k")
    assert_same(loaded, graph())
    assert all(blob.readonly for blob in loaded.code.blobs)


def test_a_folder_that_is_not_there_has_no_graphs_and_is_not_made_by_looking(folder):
    assert folder.keys(DEVICE) == []
    with pytest.raises(UnusableFileError, match="there is none"):
        folder.load(DEVICE, "k")
    folder.delete(DEVICE, "k")
    assert not folder.path.exists()


def test_saving_again_replaces_and_deleting_forgets(folder):
    folder.save(DEVICE, "k", graph(1))
    folder.save(DEVICE, "k", graph(2))
    assert_same(folder.load(DEVICE, "k"), graph(2))
    folder.delete(DEVICE, "k")
    folder.delete(DEVICE, "k")
    assert folder.keys(DEVICE) == []
    assert files(folder) == []


def test_devices_have_graphs_of_their_own_under_one_key(folder):
    folder.save("a", "k", graph(1))
    folder.save("b", "k", graph(2))
    folder.save("b", "other", graph(3))
    assert_same(folder.load("a", "k"), graph(1))
    assert (folder.keys("a"), folder.keys("b"), folder.keys("c")) == (["k"], ["k", "other"], [])


HOSTILE_KEYS = ["", ".", "../../escaped", "/etc/passwd", "a/b", "a\\b", "nul", "C:", "x\0y", "\ud800", "é" * 4000, " "]


def test_no_key_leaves_the_folder(folder):
    for key in HOSTILE_KEYS:
        folder.save(DEVICE, key, graph(size=10))
    assert folder.keys(DEVICE) == sorted(HOSTILE_KEYS)
    assert len(files(folder)) == len(HOSTILE_KEYS)
    assert [path.name for path in folder.path.parent.iterdir()] == [folder.path.name]
    assert_same(folder.load(DEVICE, "../../escaped"), graph(size=10))


def test_one_graph_makes_one_sequence_of_bytes(folder):
    folder.save(DEVICE, "k", graph())
    first = file_of(folder, DEVICE, "k").read_bytes()
    folder.save(DEVICE, "k", graph())
    assert file_of(folder, DEVICE, "k").read_bytes() == first


CALLS = (
    lambda folder: folder.save(DEVICE, "k", graph()),
    lambda folder: folder.load(DEVICE, "k"),
    lambda folder: folder.keys(DEVICE),
)


# --- refused files -------------------------------------------------------------------------------------------------


def test_a_file_with_any_bit_flipped_is_refused(folder):
    folder.save(DEVICE, "k", graph(size=40))
    path = file_of(folder, DEVICE, "k")
    whole = path.read_bytes()
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        # What lies between the blobs for the sake of alignment is part of what is sealed, too.
        with pytest.raises(UnusableFileError):
            folder.load(DEVICE, "k")
        assert folder.keys(DEVICE) in ([], ["k"]), "a list reads no contents, and survives all of them"


def test_a_file_of_any_other_length_is_refused_and_not_listed(folder):
    folder.save(DEVICE, "k", graph(size=40))
    path = file_of(folder, DEVICE, "k")
    whole = path.read_bytes()
    for data in [*(whole[:length] for length in range(len(whole))), whole + b"\0", whole * 2]:
        path.write_bytes(data)
        assert_refused(folder, None)


def test_a_file_that_another_secret_has_sealed_is_refused(folder, tmp_path):
    other = GraphFolder(tmp_path / "other")
    for place in (folder, other):
        place.save(DEVICE, "k", graph())
    file_of(other, DEVICE, "k").replace(file_of(folder, DEVICE, "k"))
    assert_refused(folder, "seal")


def test_a_file_under_anothers_name_is_refused(folder):
    folder.save(DEVICE, "a", graph())
    file_of(folder, DEVICE, "a").replace(file_of(folder, DEVICE, "b"))
    assert_refused(folder, "another key", "b")
    file_of(folder, DEVICE, "b").replace(file_of(folder, "c", "a"))
    assert_refused(folder, "another device", "a", "c")


@pytest.mark.parametrize("name", ["format", "package"])
def test_a_file_of_another_version_is_refused(folder, name):
    folder.save(DEVICE, "k", graph())
    path, secret = file_of(folder, DEVICE, "k"), (folder.path / folders.SECRET).read_bytes()
    written = path.read_bytes()
    start = len(sealed.MAGIC) + 4
    end = start + sealed.DIGEST_BYTES
    length = int.from_bytes(written[len(sealed.MAGIC) : start], "little")
    label = json.dumps({**json.loads(written[end : end + length]), name: "9"}).encode()
    seal = blake2b(label, digest_size=sealed.DIGEST_BYTES, key=secret).digest()
    path.write_bytes(sealed.MAGIC + len(label).to_bytes(4, "little") + seal + label + written[end + length :])
    assert_refused(folder, f"another version: {name} 9, not ")


@POSIX
def test_other_things_in_the_folder_are_not_listed_and_not_removed(folder):
    folder.save(DEVICE, "k", graph())
    (folder.path / f"empty{folders.SUFFIX}").touch()
    (folder.path / f"text{folders.SUFFIX}").write_text("WebNN-py and more text than a label has", encoding="utf-8")
    (folder.path / f"folder{folders.SUFFIX}").mkdir()
    (folder.path / f"link{folders.SUFFIX}").symlink_to(file_of(folder, DEVICE, "k"))
    (folder.path / "notes.txt").touch()
    os.mkfifo(folder.path / f"pipe{folders.SUFFIX}")
    assert folder.keys(DEVICE) == ["k"]
    GraphFolder(folder.path, file_of(folder, DEVICE, "k").stat().st_size).save(DEVICE, "l", graph())
    assert folder.keys(DEVICE) == ["l"]
    names = {path.name for path in folder.path.iterdir()}
    assert {"notes.txt", *(f"{name}{folders.SUFFIX}" for name in ("folder", "link", "pipe"))} <= names


@POSIX
@pytest.mark.parametrize("make", ["link", "pipe", "folder"])
@pytest.mark.parametrize("of", ["graph", "secret"])
def test_other_things_than_files_are_refused_without_waiting(folder, tmp_path, make, of):
    folder.save(DEVICE, "k", graph())
    path = file_of(folder, DEVICE, "k") if of == "graph" else folder.path / folders.SECRET
    target = path.replace(tmp_path / "elsewhere")
    {"link": lambda: path.symlink_to(target), "pipe": lambda: os.mkfifo(path), "folder": path.mkdir}[make]()
    for call in CALLS if of == "secret" else (CALLS[1],):
        with pytest.raises((UnusableFileError, OSError), match=re.escape(str(path))):
            call(folder)


@POSIX
def test_a_secret_that_others_may_know_is_not_used(folder):
    folder.save(DEVICE, "k", graph())
    (folder.path / folders.SECRET).chmod(0o644)
    for call in CALLS:
        with pytest.raises(PermissionError, match="readable by nobody else"):
            call(folder)


@POSIX
def test_files_are_readable_by_their_user_alone(folder):
    folder.save(DEVICE, "k", graph())
    assert {path.stat().st_mode & 0o777 for path in folder.path.iterdir()} == {0o600}


# --- room ----------------------------------------------------------------------------------------------------------


def test_the_least_recently_used_graph_is_removed_first(folder):
    folder.save(DEVICE, "a", graph())
    size = files(folder)[0].stat().st_size
    folder = GraphFolder(folder.path, 3 * size + 2)
    for key in "bc":
        folder.save(DEVICE, key, graph())
    for key, seconds in zip("abc", (1000, 2000, 3000), strict=True):
        os.utime(file_of(folder, DEVICE, key), (seconds, seconds))
    folder.load(DEVICE, "a")
    folder.save(DEVICE, "d", graph())
    assert folder.keys(DEVICE) == ["a", "c", "d"]
    folder.save(DEVICE, "d", graph(1))
    assert folder.keys(DEVICE) == ["a", "c", "d"], "what is replaced makes room for its successor"


def test_a_graph_larger_than_the_folder_changes_nothing(folder):
    folder.save(DEVICE, "k", graph(1))
    with pytest.raises(TooLargeError, match=r"it takes \d+ bytes; the folder may have 200"):
        GraphFolder(folder.path, 200).save(DEVICE, "k", graph(2))
    assert_same(folder.load(DEVICE, "k"), graph(1))


# --- processes -----------------------------------------------------------------------------------------------------

PROCESS = """
    import sys
    from pathlib import Path
    from spec_tests.saved_graphs.test_folder import DEVICE, graph
    from webnn_py.saved_graphs.folder import GraphFolder
    from webnn_py.devices.saved_code import UnusableFileError

    folder, own = GraphFolder(Path(sys.argv[1]), 60_000), int(sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    misses = 0
    for turn in range(60):
        folder.save(DEVICE, "k", graph(own, 10_000))
        folder.save(DEVICE, f"{own} {turn % 4}", graph(own, 10_000))
        try:
            found = folder.load(DEVICE, "k")
        except UnusableFileError as error:
            assert str(error) == "there is none", error
            misses += 1
        else:
            seed = found.code.document["seed"]
            assert [bytes(blob) for blob in found.code.blobs] == [bytes(b) for b in graph(seed, 10_000).code.blobs]
        folder.keys(DEVICE)
    print(misses)
"""


def test_processes_that_begin_at_once_share_a_new_folder(folder):
    """They make its secret, replace each other's graphs and remove each other's to make room."""
    program = [sys.executable, "-c", textwrap.dedent(PROCESS), str(folder.path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen([*program, str(own)], **pipes) for own in (1, 2)]
    for process in running:
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate() for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert folder.keys(DEVICE)
    assert files(folder, folders.UNFINISHED) == []
