"""The C types that wgpu-py asks for are found by their names, as cffi's parser finds them."""

import pytest
from cffi import FFI

from webnn_py.devices.wgpu.c_types import find_by_name

HEADER = """
    typedef struct WGPUAdapterImpl* WGPUAdapter;
    typedef enum WGPUFeature { WGPUFeature_One = 1 } WGPUFeature;
    typedef struct WGPULimits { int size; WGPUAdapter adapter; } WGPULimits;
    typedef const struct WGPULimits WGPUFixed;
    typedef int WGPUBool;
    typedef void (*WGPUCallback)(WGPULimits const *, void *);
"""
NAMES = ("WGPUAdapter", "WGPUFeature", "WGPULimits", "WGPUFixed", "WGPUBool", "WGPUCallback")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["{} *", "{}*", "{} * ", "{}[]", "{} []", "{}[3]"])
def test_a_type_is_what_the_parser_says(name, form):
    ffi = FFI()
    ffi.cdef(HEADER)
    text = form.format(name)
    found, parsed = find_by_name(ffi._parser, text), ffi._parser.parse_type(text)
    assert found is not None
    assert (type(found), found) == (type(parsed), parsed)
    with ffi._lock:
        assert ffi._get_cached_btype(found) is ffi._get_cached_btype(parsed)


@pytest.mark.parametrize("text", ["WGPUNone *", "int *", "WGPULimits", "WGPULimits **", "void(WGPULimits *)", "char[]"])
def test_what_is_no_plain_name_is_the_parsers(text):
    ffi = FFI()
    ffi.cdef(HEADER)
    assert find_by_name(ffi._parser, text) is None


def test_wgpu_py_asks_the_parser_for_no_plain_name(monkeypatch):
    from wgpu.backends.wgpu_native._ffi import ffi  # noqa: PLC0415 - wgpu-py's own, of this process

    monkeypatch.setattr(type(ffi._parser), "parse_type_and_quals", None)
    monkeypatch.setattr(ffi, "_parsed_types", {})
    assert ffi.typeof("WGPUBindGroupEntry *").item.cname == "WGPUBindGroupEntry"
