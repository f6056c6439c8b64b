"""Which files of a checkout run, as which variants, with which scripts and limits."""

import pytest

from spec_tests.support.scripts import FILES
from webnn_py.javascript import checkout


def test_meta_lines_are_those_above_the_code():
    source = "// META: title=a\n// a comment\n\n// META: timeout=long \nlet x;\n// META: title=b\n"
    assert checkout.read_meta(source) == [("title", "a"), ("timeout", "long")]


@pytest.mark.parametrize(
    ("base", "reference", "path"),
    [
        ("webnn/a/b.any.js", "../resources/utils.js", "webnn/resources/utils.js"),
        ("webnn/a/b.any.js", "./c.js", "webnn/a/c.js"),
        ("webnn/a/b.any.js", "/resources/idlharness.js", "resources/idlharness.js"),
        ("webnn/a.any.js", "/resources/WebIDLParser.js", "resources/webidl2/lib/webidl2.js"),
    ],
)
def test_references_are_resolved_like_urls(base, reference, path):
    assert checkout.resolve(base, reference) == path


def test_a_reference_out_of_the_checkout_is_refused():
    with pytest.raises(ValueError, match="leaves the checkout"):
        checkout.resolve("webnn/a.any.js", "../../etc/passwd")


@pytest.mark.parametrize(
    ("device", "variant", "runs"),
    [
        ("cpu", "?cpu", True),
        ("cpu", "?gpu", False),
        ("npu", "?op=add&device=npu", True),
        ("cpu", "?op=add&device=npu", False),
        ("cpu", "", True),
        ("gpu", "?op=add", True),
    ],
)
def test_variants_for_a_device(device, variant, runs):
    assert checkout.is_for(device, variant) is runs


def test_all_files_of_the_folder_run_without_names_and_no_helper_does():
    found = checkout.find(FILES, [], "cpu")
    assert {test.path for test in found} == {
        path.relative_to(FILES).as_posix() for path in (FILES / "webnn").iterdir() if path.suffix == ".js"
    }


def test_time_limits_scripts_and_headers_are_read():
    graphs, isolated, tensors = (
        checkout.find(FILES, [name], "cpu")[0] for name in ("graphs.any.js", "isolated.any.js", "webnn/tensors.any.js")
    )
    assert (graphs.seconds, tensors.seconds) == (60, 10)
    assert graphs.scripts == ("webnn/resources/helpers.js",)
    assert (isolated.isolated, graphs.isolated) == (True, False)
    assert tensors.id == "webnn/tensors.any.js?cpu"


def test_a_name_that_is_no_file_is_refused():
    with pytest.raises(FileNotFoundError, match=r"nothing\.any\.js"):
        checkout.find(FILES, ["nothing.any.js"], "cpu")
