"""The builder's operator methods show ``help``, ``inspect`` and editors what was declared."""

import inspect
import pydoc
import traceback
import typing
from pathlib import Path

import pytest

import webnn_py
from spec_tests.support.cells import cells
from webnn_py import MLGraphBuilder, MLOperand
from webnn_py.core.operators.registry import OPERATORS

EVERY_OPERATOR = cells("name", OPERATORS)


@EVERY_OPERATOR
def test_a_method_has_its_public_name(name):
    method = getattr(MLGraphBuilder, name)
    assert (method.__module__, method.__qualname__, method.__name__) == ("webnn_py", f"MLGraphBuilder.{name}", name)
    assert inspect.isfunction(method)


@EVERY_OPERATOR
def test_a_method_has_the_declared_signature(name):
    operator, signature = OPERATORS[name], inspect.signature(getattr(MLGraphBuilder, name))
    own, *parameters = signature.parameters.values()
    assert own.name == "self"
    assert parameters == list(operator.signature.parameters.values())
    returns = list[MLOperand] if operator.returns_sequence else MLOperand
    assert signature.return_annotation == returns
    hints = typing.get_type_hints(getattr(MLGraphBuilder, name), include_extras=True)
    assert hints == {**operator.hints, "return": returns}


async def test_a_bound_method_has_the_signature_without_self(numpy_context):
    bound = MLGraphBuilder(numpy_context).conv2d
    assert inspect.ismethod(bound)
    assert list(inspect.signature(bound).parameters)[:2] == ["input", "filter"]
    assert inspect.getdoc(bound) == inspect.getdoc(MLGraphBuilder.conv2d)


@EVERY_OPERATOR
def test_the_source_of_a_method_is_its_declaration(name):
    operator, method = OPERATORS[name], getattr(MLGraphBuilder, name)
    assert Path(inspect.getsourcefile(method)).name == f"{operator.category}.py"
    shared = operator.function.__name__.startswith("_")
    assert inspect.getsource(method).startswith("@family(" if shared else f'@operator("{operator.spec_name}"')
    assert inspect.getsource(method) == inspect.getsource(operator.function)


async def test_a_traceback_shows_the_declaration(numpy_context):
    builder = MLGraphBuilder(numpy_context)
    with pytest.raises(TypeError) as caught:
        builder.conv2d(1, 2)
    frame = traceback.extract_tb(caught.value.__traceback__)[1]
    assert (frame.name, Path(frame.filename).name, frame.line) == ("conv2d", "convolution.py", "def conv2d(")


async def test_help_shows_every_method_with_its_parameters_and_documentation(numpy_context):
    shown = pydoc.plain(pydoc.render_doc(MLGraphBuilder))
    for name in OPERATORS:
        assert f"\n |  {name}(" in shown, name
    for thing in (MLGraphBuilder.add, MLGraphBuilder(numpy_context).add):
        text = pydoc.plain(pydoc.render_doc(thing))
        assert "add(" in text
        assert "label: str = ''" in text
        assert "Add element by element: a + b." in text


def test_help_of_the_package_shows_the_public_names():
    shown = pydoc.plain(pydoc.render_doc(webnn_py))
    for name in ("MLGraphBuilder", "open_ml", "DOMException"):
        assert f"class {name}(" in shown
