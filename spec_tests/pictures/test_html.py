"""The page of a graph as a text: everything is in it, nothing of a graph is markup, nothing is loaded."""

import json
import math
from importlib.resources import files

import numpy as np
import pytest

from spec_tests.pictures.drawings import HOSTILE, draw_relu, draw_residual_block
from spec_tests.tracing.test_page import names_of_scripts, read
from webnn_py import MLGraphBuilder, pictures
from webnn_py.pictures.page import SCRIPTS, WITHOUT

ASSETS = files("webnn_py.pictures.page") / "assets"


def document_of(page):
    data, script = read(page).texts("script")
    assert script.startswith("(() => {")
    return json.loads(data)


async def test_operators_values_and_kernels_are_in_the_page(context, backend):
    if backend == "onnxruntime":
        pytest.skip("it shows no kernels")
    picture = await draw_residual_block(context).built_picture()
    document = document_of(picture.to_html())
    assert [operator["name"] for operator in document["operators"]].count("conv2d") == 1
    convolution = next(operator for operator in document["operators"] if operator["name"] == "conv2d")
    assert convolution["label"] == "first"
    assert ["padding", "[1, 1, 1, 1]", 0] in convolution["options"]
    assert ["groups", "1", 1] in convolution["options"]
    assert [name for name, _ in convolution["operands"]] == ["input", "filter"]
    assert {box["kind"] for box in document["boxes"]} >= {"input", "output", "operator", "folded", "view"}
    plan = picture.plan
    assert [kernel["name"] for kernel in document["kernels"]] == [kernel.name for kernel in plan.kernels]
    assert len(document["frames"]) == (1 if backend == "wgpu" else 0)
    for frame in document["frames"]:
        names = [document["operators"][document["boxes"][place]["operator"]]["name"] for place in frame["members"]]
        assert names == ["conv2d", "add", "relu"]
        assert [document["kernels"][index]["name"] for index in frame["kernels"]] == [frame["title"].split(": ", 1)[1]]


async def test_weights_have_statistics(numpy_context):
    b = MLGraphBuilder(numpy_context)
    x = b.input("x", data_type="float32", shape=[1, 2])
    weights = b.constant(np.float32([[1, 0], [math.nan, 4]]))
    document = document_of(pictures.picture({"y": b.matmul(x, weights)}).to_html())
    (weight,) = (value for value in document["values"] if value["kind"] == "constant")
    assert (weight["type"], weight["elements"], weight["bytes"]) == ("float32 [2, 2]", 4, 16)
    told = {"min": "0", "max": "4", "mean": "1.66667", "std": "1.69967", "zeros": 1, "nan": 1, "infinite": 0}
    assert weight["statistics"] == told


async def test_a_constant_on_the_device_has_no_statistics(numpy_context):
    held = await numpy_context.create_constant_buffer(np.ones(3, np.float32), data_type="float32", shape=[3])
    b = MLGraphBuilder(numpy_context)
    x = b.input("x", data_type="float32", shape=[3])
    document = document_of(pictures.picture({"y": b.add(x, b.constant(held))}).to_html())
    assert [value["statistics"] for value in document["values"] if value["kind"] == "constant"] == [None]
    assert document["without"] == WITHOUT


@pytest.mark.parametrize(
    "text", [*HOSTILE, "</script><script>alert(1)</script>", "<!--<script>", "</SCRIPT >", "$style"]
)
async def test_names_and_labels_are_no_markup(numpy_context, text):
    def page(name):
        return draw_relu(numpy_context, name, name).picture().to_html(name)

    hostile, plain = read(page(text)), read(page("plain"))
    assert [tag for tag, _, _ in hostile.elements] == [tag for tag, _, _ in plain.elements]
    assert hostile.texts("title") == [text]
    (operator,) = document_of(page(text))["operators"]
    assert operator["label"] == text.replace("\n", "\\u000a").replace("\u202e", "\\u202e")


async def test_nothing_is_loaded_and_only_this_style_and_script_are_allowed(numpy_context):
    page = read(draw_residual_block(numpy_context).picture().to_html())
    addresses = [values[key] for _, values, _ in page.elements for key in ("src", "href", "action") if key in values]
    assert addresses == ["data:,"]
    assert "url(" not in page.texts("style")[0]
    (policy,) = [values["content"] for _, values, _ in page.elements if "http-equiv" in values]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_scripts_share_one_scope_without_taking_each_others_names():
    names = names_of_scripts(ASSETS, SCRIPTS)
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))
