"""The command lines; nothing heavy is imported for them."""

import argparse
import math
from pathlib import Path
from typing import NoReturn

from webnn_py.core.device import registry
from webnn_py.core.message_text import visible
from webnn_py.extensions.browser_limits import NAMES as BROWSERS
from webnn_py.javascript.arguments import TRACE_HELP, positive, trace_file

INPUT_HELP = (
    "data for an input: a file (.npy, .npz or a picture), random, random:LOW,HIGH, or a number; NAME= may be omitted "
    "if there is only one input, or for an .npz file with an array for each (default: random)"
)


GRAPH_HELP = (
    "write the graph and what the device made of it: .html (a page to look around in, with weights' statistics), .svg, "
    ".mmd (mermaid), .dot, or .txt (with the changes by each pass of the device)"
)


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line, like all others of the command."""

    def error(self, message: str) -> NoReturn:
        """End the program with status 2."""
        self.exit(2, visible(f"{self.prog}: {message} (see --help)") + "\n")


def add_parsers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands that concern models and devices."""
    _add_run(commands)
    info = commands.add_parser("info", help="describe a model, and say whether it runs here")
    _add_model(info)
    _add_backend(info)
    _add_parts(info)
    info.add_argument("--graph", type=Path, metavar="FILE", help=GRAPH_HELP)
    info.add_argument(
        "--browser",
        action="append",
        default=[],
        choices=BROWSERS,
        metavar="NAME",
        help=f"list what would fail in this browser: {', '.join(BROWSERS)}",
    )
    convert = commands.add_parser(
        "convert", help="write a simpler model: inputs frozen, shapes fixed, constants folded"
    )
    _add_model(convert)
    convert.add_argument("out", type=Path, metavar="OUT", help="the file to write; with --js a folder")
    convert.add_argument("--overwrite", action="store_true", help="replace the file if it exists")
    convert.add_argument(
        "--js", action="store_true", help="write a folder that runs the model in browsers through navigator.ml"
    )
    check = commands.add_parser(
        "check", help="run a Python program, and report redundant work and what it never destroys"
    )
    check.add_argument("--error", action="store_true", help="make the status 1 where something is found")
    check.add_argument("--json", action="store_true", help="print the report as JSON, on the standard error, too")
    check.add_argument("script", type=Path, metavar="SCRIPT", help="the program, a .py file")
    check.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="the program's own arguments")
    _add_generate(commands)
    devices = commands.add_parser("devices", help="list the devices that contexts can run on")
    docs = commands.add_parser("docs", help="print the path of the documentation, or of one page")
    docs.add_argument("page", nargs="?", metavar="PAGE", help="for example sessions (default: list all pages)")
    spec = commands.add_parser("spec", help="list the operators; with --json, what is known of them")
    spec.add_argument("operators", nargs="*", metavar="OPERATOR", help="for example conv2d (default: all)")
    shells = commands.add_parser("completion", help="print a shell completion script")
    shells.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    for parser in (info, convert, devices, docs, spec):
        _add_json(parser)
    for parser in commands.choices.values():
        parser.add_argument("--debug", action="store_true", help="show tracebacks of errors")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="an .onnx file")
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=N,N,...",
        help="the shape of an input, or the size of a symbolic dimension",
    )
    parser.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="freeze an input to one number, comma-separated numbers, or a .npy file",
    )


def _add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend", choices=registry.names(), help="the device (default: a GPU, or else the fastest available)"
    )
    parser.add_argument(
        "--execution-provider", metavar="NAME", help="onnxruntime's execution provider, such as CUDAExecutionProvider"
    )
    parser.add_argument("--gpu-engine", metavar="NAME", help="the device wgpu's engine: wgpu-native (default) or dawn")


def _add_parts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", action="append", default=[], metavar="NAME", help="compute only this output; may be repeated"
    )
    parser.add_argument(
        "--narrow",
        action="append",
        default=[],
        choices=["int64"],
        help="convert this type to int32, as float64 to float32",
    )


def _add_run(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    run = commands.add_parser("run", help="run a model")
    _add_model(run)
    run.add_argument("--input", action="append", default=[], metavar="[NAME=]SOURCE", help=INPUT_HELP)
    run.add_argument("--seed", type=int, default=0, metavar="N", help="seed of random inputs (default: %(default)s)")
    _add_backend(run)
    _add_parts(run)
    run.add_argument(
        "--repeat",
        type=positive,
        default=1,
        metavar="N",
        help="number of timed runs, after a first one (default: %(default)s)",
    )
    run.add_argument("--compare", choices=["onnxruntime"], help="compare the outputs with those of onnxruntime")
    run.add_argument(
        "--tolerance",
        type=amount,
        metavar="X",
        help="with --compare: exit with status 1 if a difference exceeds X times the output's largest value",
    )
    run.add_argument(
        "--profile", action="store_true", help="print the time of each kernel, over 10 or more further runs"
    )
    run.add_argument(
        "--check-finite",
        action="store_true",
        help="name the first node whose result is NaN or infinite, and exit with status 1",
    )
    run.add_argument("--trace", type=trace_file, metavar="FILE", help=TRACE_HELP)
    run.add_argument("--save-outputs", type=Path, metavar="FILE.npz", help="write the outputs as numpy arrays")
    run.add_argument("--labels", type=Path, metavar="FILE", help="class names, one per line: print the top five")
    _add_pictures(run.add_argument_group("pictures"))
    _add_json(run)


def _add_generate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    command = commands.add_parser(
        "generate", help="continue a text by a language model, or write down a recording, token by token"
    )
    command.add_argument(
        "folder", type=Path, metavar="MODEL", help="the folder of a model, as onnxruntime-genai or optimum exports it"
    )
    command.add_argument(
        "--prompt",
        metavar="TEXT",
        help="the text to continue; - reads it from stdin (default with --audio: the model's first tokens)",
    )
    command.add_argument(
        "--audio", type=Path, metavar="FILE", help="the recording to write down: .wav, .flac or .ogg (encoder-decoders)"
    )
    command.add_argument("--file", metavar="NAME", help="the .onnx file in the folder (default: what the folder says)")
    _add_backend(command)
    command.add_argument("--max-new-tokens", type=positive, metavar="N", help="(default: what the capacity leaves)")
    command.add_argument(
        "--capacity", type=positive, metavar="N", help="most tokens, with those of the prompt (default: up to 2048)"
    )
    command.add_argument("--temperature", type=amount, metavar="X", help="0 takes the likeliest token each time")
    command.add_argument("--top-k", type=int, metavar="N", help="draw from the N likeliest tokens; 0 from all")
    command.add_argument("--top-p", type=amount, metavar="X", help="draw from the likeliest of this probability")
    command.add_argument("--repetition-penalty", type=amount, metavar="X", help="make earlier tokens less likely")
    command.add_argument("--seed", type=int, metavar="N", help="draw the same tokens each time")
    command.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end at this text; may be repeated"
    )
    _add_json(command)


def _add_pictures(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--scale", type=_finite, metavar="X", help="make pixels, 0..255, (pixel * X - mean) / std (default: 1/255)"
    )
    group.add_argument("--mean", type=_numbers, metavar="X,...", help="mean per channel, or one for all")
    group.add_argument("--std", type=_numbers, metavar="X,...", help="standard deviation per channel, or one for all")


def amount(text: str) -> float:
    """Return a number from 0."""
    number = _finite(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0")
    return number


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"{text!r} must be a number")
    return number


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(_finite(item) for item in text.split(","))
