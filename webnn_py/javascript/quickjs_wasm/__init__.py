"""WebAssembly for quickjs-ng, which has none: wasmtime, called through its C API in the engine's process.

``quickjs_process.py`` loads this package by its path. ``js/quickjs_wasm.js`` makes the classes that scripts see out of
the functions that are here. Modules, memories, tables, globals and functions are numbers there; the store keeps all but
modules for as long as the process lives.

Scripts see a memory's own bytes: an ArrayBuffer over wasmtime's memory, which never moves and is never freed. One that
has grown is detached, and another made, wherever WebAssembly returns to or calls JavaScript.
"""

from .modules import WebAssembly as WebAssembly
