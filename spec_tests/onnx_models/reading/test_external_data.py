import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from spec_tests.onnx_models.single_node import assert_same, make_model, run
from webnn_py.onnx_models import InvalidModelError, ModelLimits, OnnxModel, UnsupportedModelError

X = np.arange(8, dtype=np.float32)


def external(name="w", location="data.bin", dims=(8,), data_type=TensorProto.FLOAT, **entries):
    """A tensor that says that its data lie elsewhere."""
    tensor = TensorProto(name=name, dims=dims, data_type=data_type, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def adding(tensor):
    """A model that adds a tensor to its input."""
    proto = onnx.load_model_from_string(
        make_model([helper.make_node("Add", ["x", "w"], ["y"])], {"x": X}, ["y"], opset=14)
    )
    proto.graph.initializer.append(tensor)
    return proto


def branch(tensor):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["b"])], "branch", [], [onnx.ValueInfoProto(name="b")], [tensor]
    )
    return helper.make_node("If", ["c"], ["k"], then_branch=graph, else_branch=graph)


def sparse(tensor):
    indices = numpy_helper.from_array(np.arange(8), "indices")
    return onnx.SparseTensorProto(values=tensor, indices=indices, dims=[100])


def in_a_function(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.append(helper.make_attribute("value", tensor))
    proto.functions.append(helper.make_function("own", "F", [], ["c"], [constant], [helper.make_opsetid("", 14)]))
    return proto


def in_a_default_of_a_function(tensor):
    proto = in_a_function(numpy_helper.from_array(X))
    proto.functions[0].attribute_proto.append(helper.make_attribute("value", tensor))
    return proto


def in_an_attribute(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["k"], value=tensor))
    return proto


def in_a_list_of_an_attribute(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    proto.graph.node[0].attribute.append(helper.make_attribute("tensors", [tensor]))
    return proto


def in_a_branch(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    proto.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    proto.graph.node.insert(0, branch(tensor))
    return proto


def in_a_sparse_initializer(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    proto.graph.sparse_initializer.append(sparse(tensor))
    return proto


def in_a_sparse_attribute(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    proto.graph.node.insert(0, helper.make_node("Constant", [], ["k"], sparse_value=sparse(tensor)))
    return proto


def in_what_training_needs(tensor):
    proto = adding(numpy_helper.from_array(X, "w"))
    proto.training_info.add().initialization.initializer.append(tensor)
    return proto


PLACES = [
    adding,
    in_an_attribute,
    in_a_list_of_an_attribute,
    in_a_branch,
    in_a_function,
    in_a_default_of_a_function,
    in_a_sparse_initializer,
    in_a_sparse_attribute,
    in_what_training_needs,
]


@pytest.mark.parametrize("place", PLACES)
def test_bytes_never_read_a_file(place, tmp_path, monkeypatch):
    (tmp_path / "data.bin").write_bytes(X.tobytes())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidModelError, match="bytes given refer to data in other files, as tensor 'w' does"):
        OnnxModel.load(place(external()).SerializeToString())


@pytest.mark.parametrize("place", PLACES)
def test_data_of_a_file_are_read_wherever_a_tensor_stands(place, tmp_path, monkeypatch):
    (tmp_path / "data.bin").write_bytes(X.tobytes())
    (tmp_path / "model.onnx").write_bytes(place(external()).SerializeToString())
    OnnxModel.load(tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    OnnxModel.load("model.onnx")


async def test_a_part_of_a_file_is_read(context, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "data.bin").write_bytes(bytes(12) + X.tobytes() + bytes(5))
    tensor = external(location="inner/data.bin", offset=12, length=32)
    (tmp_path / "model.onnx").write_bytes(adding(tensor).SerializeToString())
    assert_same(await run(context, tmp_path / "model.onnx", {"x": X}), [X + X])


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
        (external(location="out/secret.bin"), "a link that leads out of the model's folder"),
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
    (folder / "data.bin").write_bytes(X.tobytes())
    (folder / "out.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "out").symlink_to(tmp_path)
    (folder / "model.onnx").write_bytes(adding(tensor).SerializeToString())
    with pytest.raises(InvalidModelError) as caught:
        OnnxModel.load(folder / "model.onnx")
    assert text in str(caught.value)
    assert len(str(caught.value)) < 1000


async def test_a_link_inside_the_folder_is_followed(context, tmp_path):
    (tmp_path / "real.bin").write_bytes(X.tobytes())
    (tmp_path / "data.bin").symlink_to("real.bin")
    (tmp_path / "model.onnx").write_bytes(adding(external()).SerializeToString())
    assert_same(await run(context, tmp_path / "model.onnx", {"x": X}), [X + X])


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "data.bin").symlink_to("data.bin")
    (tmp_path / "model.onnx").write_bytes(adding(external()).SerializeToString())
    with pytest.raises((InvalidModelError, OSError), match=r"data\.bin"):
        OnnxModel.load(tmp_path / "model.onnx")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a POSIX system's")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "data.bin")
    (tmp_path / "model.onnx").write_bytes(adding(external()).SerializeToString())
    with pytest.raises(InvalidModelError, match="which is no regular file"):
        OnnxModel.load(tmp_path / "model.onnx")


def test_a_missing_data_file_is_an_os_error(tmp_path):
    (tmp_path / "model.onnx").write_bytes(adding(external()).SerializeToString())
    with pytest.raises(FileNotFoundError, match=r"data\.bin"):
        OnnxModel.load(tmp_path / "model.onnx")


def test_the_same_data_read_again_and_again_are_limited(tmp_path):
    proto = adding(external())
    proto.graph.initializer.extend(external(f"w{index}") for index in range(99))
    (tmp_path / "data.bin").write_bytes(X.tobytes())
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    OnnxModel.load(tmp_path / "model.onnx", limits=ModelLimits(bytes=3200))
    with pytest.raises(UnsupportedModelError, match=r"tensor 'w98': it takes up to 32 bytes beside 3,168 so far"):
        OnnxModel.load(tmp_path / "model.onnx", limits=ModelLimits(bytes=3199))
