"""Documents: their blocks of code, and what these print.

The blocks of a page that are Python run one after the other in one namespace, which begins with ``np``, ``trio``,
``webnn_py``, and an open ``ml`` with a ``context``; top-level ``await`` is allowed. A block that calls ``trio.run()``
or ``asyncio.run()``, or imports the blocking form, is a program: it runs by itself, with no names but its own. One that
explores interleavings, which runs trio, too, runs in a thread.

What a block prints stands in comments behind its calls of ``print()``, or in the block of text right behind it, whose
last line may be the error with which it ends; ``…`` stands for anything.
"""

import ast
import contextlib
import inspect
import io
import itertools
import re
from pathlib import Path
from types import CodeType

import attrs
import numpy as np
import onnx
import trio
from onnx import TensorProto

import webnn_py
from spec_tests.support import onnx_programs

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/proposals/*.md")])
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"\*Not run by the tests: (.+)\.\*")
RUNS_TRIO = re.compile(r"\b(interleavings|replay)\(")
LONGEST = 60
"""Seconds that a page may take."""
PROGRAM = re.compile(r"\b(trio|asyncio)\.run\(|\bfrom webnn_py\.runtime(\.| import )blocking\b")


@attrs.frozen
class Block:
    """A block of code.

    Attributes:
        page: the document's path in the repository.
        line: that of its first line of code.
        language: what stands behind the backquotes.
        code: its text.
        output: the text of the block of text right behind it, or None.
        not_run: the reason why the tests do not run it, which the document tells above it, or None.
    """

    page: str
    line: int
    language: str
    code: str
    output: str | None
    not_run: str | None

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_program(self):
        return PROGRAM.search(self.code) is not None

    @property
    def runs_trio(self):
        """Return whether it must be run outside of trio, with the names of its page."""
        return RUNS_TRIO.search(self.code) is not None

    @property
    def needs_adapter(self):
        """Return whether it names WebGPU as its device."""
        return 'backend="wgpu"' in self.code

    def printed(self, comment="#"):
        """The lines that it says it prints, or None if it does not say."""
        if self.output is not None:
            return self.output.splitlines()
        call = re.compile(rf"^.*\b(?:print|console\.log)\(.*\)[ ;]*  {comment} (.*)$", re.MULTILINE)
        return [text.rstrip() for text in call.findall(self.code)] or None

    def compiled(self):
        """Its code, with the lines' numbers of the document."""
        source = "\n" * (self.line - 1) + self.code
        return compile(source, self.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def blocks_of(path):
    """The blocks of a document."""
    text = path.read_text(encoding="utf-8")
    found = list(FENCE.finditer(text))
    blocks = []
    for block, following in itertools.pairwise([*found, None]):
        output = None
        if following is not None and following[2] == "text" and not text[block.end() : following.start()].strip():
            output = following[3]
        above = text[: block.start()].rstrip().rpartition("\n")[2]
        told = NOT_RUN.fullmatch(above)
        line = text[: block.start(3)].count("\n") + 1
        page = path.relative_to(ROOT).as_posix()
        blocks.append(Block(page, line, block[2].strip(), block[3], output, told and told[1]))
    return blocks


def agree(printed, expected):
    """Return whether lines are as expected, where ``…`` matches anything."""
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in expected]
    return len(printed) == len(patterns) and all(map(re.fullmatch, patterns, printed))


def run_page(blocks):
    """Run blocks of Python, and yield each with the lines that it printed."""
    return trio.run(_run_page, blocks)


async def _run_page(blocks):
    results = []
    with trio.fail_after(LONGEST):
        async with webnn_py.open_ml() as ml:
            names = {"np": np, "trio": trio, "webnn_py": webnn_py, "ml": ml, "__name__": "__main__"}
            names["context"] = await ml.create_context(backend="numpy")
            for block in blocks:
                output = io.StringIO()
                with contextlib.redirect_stdout(output):
                    await _run(block, names, output)
                results.append((block, output.getvalue().splitlines()))
    return results


async def _run(block, names, output):
    code = block.compiled()
    try:
        if block.is_program:
            await trio.to_thread.run_sync(exec, code, {"__name__": "__main__"})
        elif block.runs_trio:
            await trio.to_thread.run_sync(exec, code, names)
        else:
            await _run_here(code, names)
    except Exception as error:
        if block.output is None:
            error.add_note(f"in the block of {block.place}")
            raise
        output.write(f"{type(error).__name__}: {error}\n")


async def _run_here(code: CodeType, names):
    result = eval(code, names)  # noqa: S307 - what is run is what the document shows
    if inspect.iscoroutine(result):
        await result


def make_models(folder):
    """The models that documents name."""
    kind = ("float32", ["batch", 3])
    double = onnx.load_from_string(onnx_programs.program([("Add", ["x", "x"], ["y"], {})], {"x": kind}, {"y": kind}))
    double.ir_version = 10  # onnxruntime reads it, too, and lags behind onnx
    onnx.save(double, folder / "model.onnx")
    inputs = {"ids": ("int64", ["batch", "length"]), "training": ("bool", [])}
    nodes = [("Cast", ["training"], ["number"], {"to": TensorProto.INT64}), ("Add", ["ids", "number"], ["y"], {})]
    opened = onnx_programs.program(nodes, inputs, {"y": inputs["ids"]})
    (folder / "open.onnx").write_bytes(opened)
