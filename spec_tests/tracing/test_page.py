"""The page of a trace as a text: all of the trace is in it, nothing of the trace is markup, nothing is fetched."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import attrs
import pytest

from spec_tests.support.trace_documents import HOSTILE, destroyed_in_flight, many, with_everything
from webnn_py.html_page import SHARED_SCRIPTS
from webnn_py.tracing.page import SCRIPTS, page_of

ASSETS = files("webnn_py.tracing.page") / "assets"
DOCUMENTS = {"destroyed": destroyed_in_flight, "everything": with_everything, "thousand": lambda: many(1000)}


@attrs.define
class Page(HTMLParser):
    """The elements of a page, with their attributes and the text before their first child."""

    elements: list = attrs.Factory(list)
    is_within: bool = False

    def __attrs_post_init__(self):
        HTMLParser.__init__(self)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), []))
        self.is_within = True

    def handle_endtag(self, tag):
        self.is_within = False

    def handle_data(self, text):
        if self.is_within:
            self.elements[-1][2].append(text)

    def texts(self, tag):
        return ["".join(parts) for name, _, parts in self.elements if name == tag]


def read(text):
    page = Page()
    page.feed(text)
    page.close()
    return page


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_trace_in_the_page_is_the_document(name):
    document = DOCUMENTS[name]()
    trace, _ = read(page_of(document, "a trace")).texts("script")
    assert json.loads(trace) == document


def test_labels_and_titles_are_no_markup():
    plain = read(page_of(destroyed_in_flight(), "a trace"))
    hostile = read(page_of(with_everything(), HOSTILE))
    assert [tag for tag, _, _ in hostile.elements] == [tag for tag, _, _ in plain.elements]
    assert hostile.texts("title") == hostile.texts("h1") == [HOSTILE]


@pytest.mark.parametrize("label", ["<!--<script>", "</SCRIPT >", "\u2028", "\ud800", "é日🎉", "$style ${script}"])
def test_any_label_comes_back(label):
    document = {"traceEvents": [{"ph": "X", "name": label, "ts": 0, "dur": 1, "pid": 0, "tid": 1}]}
    text = page_of(document, f"of {label}")
    text.encode("utf-8")
    trace, script = read(text).texts("script")
    assert json.loads(trace) == document
    assert script.startswith("(() => {")


def test_nothing_is_fetched():
    page = read(page_of(destroyed_in_flight(), "a trace"))
    addresses = [
        values[key] for _, values, _ in page.elements for key in ("src", "href", "action", "data") if key in values
    ]
    assert addresses == ["data:,"]  # in place of an icon, which browsers ask for where none is named
    assert "@import" not in (style := page.texts("style")[0])
    assert "url(" not in style


def test_the_policy_allows_this_style_and_this_script_alone():
    page = read(page_of(with_everything(), HOSTILE))
    (policy,) = [values["content"] for tag, values, _ in page.elements if "http-equiv" in values]
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    digests = {
        name: f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for name, text in (("style-src", page.texts("style")[0]), ("script-src", page.texts("script")[1]))
    }
    assert allowed == {
        "default-src": "'none'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        **digests,
    }


def names_of_scripts(assets, own):
    """Return what the scripts of a page define, those of all pages among them."""
    shared = [files("webnn_py.html_page") / "assets" / f"{name}.js" for name in SHARED_SCRIPTS]
    scripts = [*shared, *(assets / f"{name}.js" for name in own)]
    text = "\n".join(script.read_text(encoding="utf-8") for script in scripts)
    return re.findall(r"^(?:async )?(?:function|const|let) (\w+)", text, re.MULTILINE)


def test_scripts_share_one_scope_without_taking_each_others_names():
    names = names_of_scripts(ASSETS, SCRIPTS)
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))
