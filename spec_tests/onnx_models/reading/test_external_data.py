import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_same, parsed, run
from spec_tests.support.model_cache import cached
from webnn_py.onnx_models import InvalidModelError, ModelLimits, OnnxModel, UnsupportedModelError

X = np.arange(8, dtype=np.float32)


PLAIN = numpy_helper.from_array(X, "w")


def external(name="w", location="data.bin", dims=(8,), data_type=TensorProto.FLOAT, **entries):
    """Return a tensor whose data are in another file."""
    tensor = TensorProto(name=name, dims=dims, data_type=data_type, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def adding(*tensors, node=None, function=None):
    """Return a model that adds the first tensor to its input, with one more node or function."""
    proto = onnx.load_model_from_string(parsed("(float[8] y) { y = Add (x, w) }", inputs="float[8] x", opset=14))
    proto.graph.initializer.extend(tensors)
    proto.graph.node.extend([] if node is None else [node])
    proto.functions.extend([] if function is None else [function])
    return proto


def constant(**attributes):
    return helper.make_node("Constant", [], ["c"], **attributes)


def branch(tensor):
    nodes, outputs = [helper.make_node("Identity", ["w"], ["b"])], [onnx.ValueInfoProto(name="b")]
    graph = helper.make_graph(nodes, "branch", [], outputs, [tensor])
    return helper.make_node("If", ["c"], ["k"], then_branch=graph, else_branch=graph)


def sparse(tensor):
    indices = numpy_helper.from_array(np.arange(8), "indices")
    return onnx.SparseTensorProto(values=tensor, indices=indices, dims=[100])


def function(tensor, **defaults):
    protos = [helper.make_attribute(name, value) for name, value in defaults.items()]
    opsets = [helper.make_opsetid("", 14)]
    return helper.make_function("own", "F", [], ["c"], [constant(value=tensor)], opsets, attribute_protos=protos)


def in_a_sparse_initializer(tensor):
    proto = adding(PLAIN)
    proto.graph.sparse_initializer.append(sparse(tensor))
    return proto


def in_training_information(tensor):
    proto = adding(PLAIN)
    proto.training_info.add().initialization.initializer.append(tensor)
    return proto


PLACES = {
    "an initializer": adding,
    "an attribute": lambda tensor: adding(PLAIN, node=constant(value=tensor)),
    "a list of an attribute": lambda tensor: adding(PLAIN, node=constant(tensors=[tensor])),
    "a branch": lambda tensor: adding(PLAIN, numpy_helper.from_array(np.array(True), "c"), node=branch(tensor)),
    "a function": lambda tensor: adding(PLAIN, function=function(tensor)),
    "a default of a function": lambda tensor: adding(PLAIN, function=function(PLAIN, value=tensor)),
    "a sparse initializer": in_a_sparse_initializer,
    "a sparse attribute": lambda tensor: adding(PLAIN, node=constant(sparse_value=sparse(tensor))),
    "training information": in_training_information,
}


def written(folder, proto, *, has_data=True):
    """Write a model, and where ``has_data`` the file that it refers to; return the model's path."""
    if has_data:
        (folder / "data.bin").write_bytes(X.tobytes())
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    return folder / "model.onnx"


@pytest.mark.parametrize("place", PLACES)
def test_bytes_never_read_a_file(place, tmp_path, monkeypatch):
    path = written(tmp_path, PLACES[place](external()))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidModelError, match="bytes given refer to data in other files, as tensor 'w' does"):
        OnnxModel.load(path.read_bytes())


@pytest.mark.parametrize("place", PLACES)
def test_data_of_a_file_are_read_wherever_a_tensor_stands(place, tmp_path, monkeypatch):
    OnnxModel.load(written(tmp_path, PLACES[place](external())))
    monkeypatch.chdir(tmp_path)
    OnnxModel.load("model.onnx")


async def test_a_part_of_a_file_is_read(context, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "data.bin").write_bytes(bytes(12) + X.tobytes() + bytes(5))
    path = written(tmp_path, adding(external(location="inner/data.bin", offset=12, length=32)), has_data=False)
    assert_same(await run(context, path, {"x": X}), [X + X])


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (external(location="../data.bin"), "'../data.bin'; it must be a path inside the model's folder"),
        (external(location="a/../data.bin"), "'a/../data.bin'; it must be a path inside"),
        (external(location="..\\data.bin"), "it must be a path inside"),
        (external(location="/etc/passwd"), "'/etc/passwd'; it must be a path inside"),
        (external(location="C:\\data.bin"), "it must be a path inside"),
        (external(location="C:data.bin"), "it must be a path inside"),
        (external(location=""), "in another file, '', which is no name of one"),
        (external(location="a\0b"), "which is no name of one"),
        (external(location="."), "which is no regular file"),
        (external(location="out.bin"), "'out.bin', a link that leads out of the model's folder"),
        (
            external(location="out/secret.bin"),
            "'out/secret.bin', by 'out', a link that leads out of the model's folder",
        ),
        (external(location="within/data.bin"), "'within/data.bin', by 'within', a link that leads out of"),
        (external(offset=-1), "the offset of its data is '-1'; it must be an integer, at least 0"),
        (external(offset="9" * 5000), "the offset of its data is "),
        (external(length="1e3"), "the length of its data is '1e3'"),
        (external(offset=8, length=32), "its data at 8 to 40 of 'data.bin', which has 32 bytes"),
        (external(offset=33), "has -1 bytes of data in 'data.bin'; its shape [8] needs 32"),
        (external(length=16), "has 16 bytes of data in 'data.bin'; its shape [8] needs 32"),
        (
            external(dims=[2**40]),
            "has 32 bytes of data in 'data.bin'; its shape [1099511627776] needs 4,398,046,511,104",
        ),
        (external(dims=[-8]), "has the shape [-8]; it must be at least 0 everywhere"),
        (external(data_type=TensorProto.STRING), "has strings as raw data; they must stand in string_data"),
        (external(data_type=99), "has the element type number 99, which does not exist"),
    ],
)
def test_data_outside_the_folder_or_of_another_length_are_refused(tensor, text, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(X.tobytes())
    (folder / "out.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "out").symlink_to(tmp_path)
    (folder / "within").symlink_to("out")
    (tmp_path / "data.bin").write_bytes(X.tobytes())
    path = written(folder, adding(tensor))
    with pytest.raises(InvalidModelError) as caught:
        OnnxModel.load(path)
    assert text in str(caught.value)
    assert len(str(caught.value)) < 1000


async def test_a_link_inside_the_folder_is_followed(context, tmp_path):
    (tmp_path / "real.bin").write_bytes(X.tobytes())
    (tmp_path / "data.bin").symlink_to("real.bin")
    path = written(tmp_path, adding(external()), has_data=False)
    assert_same(await run(context, path, {"x": X}), [X + X])


@pytest.mark.parametrize("inner", ["", "onnx/deep"], ids=["in the snapshot", "in a folder of it"])
async def test_a_model_in_a_hugging_face_cache_is_read(context, tmp_path, inner):
    folder = tmp_path / "fresh" / inner
    folder.mkdir(parents=True)
    written(folder, adding(external()))
    path = cached(tmp_path / "fresh", tmp_path / "hub") / inner / "model.onnx"
    assert path.is_symlink()
    assert_same(await run(context, path, {"x": X}), [X + X])
    (tmp_path / "linked hub").symlink_to("hub")
    path = tmp_path / "linked hub" / path.relative_to(tmp_path / "hub")
    assert_same(await run(context, path, {"x": X}), [X + X])


def test_links_of_a_cache_to_another_repository_are_refused(tmp_path):
    folder = tmp_path / "fresh"
    folder.mkdir()
    written(folder, adding(external()), has_data=False)
    snapshot = cached(folder, tmp_path / "hub")
    other = tmp_path / "hub" / "models--org--other" / "blobs" / "secret"
    other.parent.mkdir(parents=True)
    other.write_bytes(X.tobytes())
    (snapshot / "data.bin").symlink_to(other)
    with pytest.raises(
        InvalidModelError, match=r"'data\.bin', a link that leads out of the model's folder, to .*secret'"
    ):
        OnnxModel.load(snapshot / "model.onnx")


def test_data_that_a_model_beside_a_cache_links_to_are_refused(tmp_path):
    """The model's own file is no link, so nothing else is its own."""
    snapshot, blobs = tmp_path / "home" / "snapshots" / "1", tmp_path / "home" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "1").write_bytes(X.tobytes())
    (snapshot / "data.bin").symlink_to("../../blobs/1")
    path = written(snapshot, adding(external()), has_data=False)
    with pytest.raises(InvalidModelError, match="a link that leads out of the model's folder"):
        OnnxModel.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a POSIX system's")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "data.bin")
    path = written(tmp_path, adding(external()), has_data=False)
    with pytest.raises(InvalidModelError, match="which is no regular file"):
        OnnxModel.load(path)


def test_the_same_data_read_again_and_again_are_limited(tmp_path):
    path = written(tmp_path, adding(external(), *(external(f"w{index}") for index in range(99))))
    OnnxModel.load(path, limits=ModelLimits(bytes=3200))
    with pytest.raises(UnsupportedModelError, match=r"tensor 'w98': it takes up to 32 bytes beside 3,168 so far"):
        OnnxModel.load(path, limits=ModelLimits(bytes=3199))
