"""``webnn-py generate``: the text as it comes, how fast it came, and refusals."""

import io
import json
import signal
import subprocess
import sys
import wave

import attrs
import numpy as np
import pytest

from spec_tests.models import encoder_decoder_models
from spec_tests.models.decoder_models import SIZES, Form, make_tokenizer, write_folder
from webnn_py.command.generate import _laid_out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("tokenizers")
    return write_folder(tmp_path_factory.mktemp("decoder"), SIZES["tiny"], Form("genai"))


@pytest.fixture
def type_in(monkeypatch):
    """A function that sets the standard input."""
    return lambda stream: monkeypatch.setattr(sys, "stdin", stream)


def test_a_text_is_continued(command, folder, type_in):
    arguments = ("generate", folder, "--backend", "numpy", "--max-new-tokens", "5", "--prompt")
    ended = command(*arguments, "hello world").succeeded()
    report = command(*arguments, "hello world", "--json").report()
    assert ended.out == _laid_out(report["text"]) + "\n"
    assert ended.err.splitlines()[0].startswith("device  numpy (")
    assert ended.err.endswith(" tokens/s; 5 tokens\n")
    assert (len(report["tokens"]), report["finish"], report["prompt_tokens"]) == (5, "length", 9)
    type_in(io.StringIO("hello world"))
    assert command(*arguments, "-", "--json").report()["tokens"] == report["tokens"]
    command(*arguments, "a", "--top-k", "0", "--json").succeeded()
    drawn = [command(*arguments, "a", "--temperature", "2", "--seed", seed, "--json").report() for seed in "112"]
    assert drawn[0]["tokens"] == drawn[1]["tokens"] != drawn[2]["tokens"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-new-tokens", "300"], "gets 300; that is beyond the capacity of 256"),
        (["--top-p", "2"], "top_p is 2.0; it must be above 0"),
        (["--capacity", "257"], "capacity is 257; it must be from 1 to 256"),
        (["--file", "other.onnx"], "other.onnx: No such file"),
        (["--file", "genai_config.json"], "is no ONNX model"),
        (["--stop", ""], "stop is"),
        (["--prompt", "a\udcff"], "surrogates not allowed"),
        (["--top-k", "-1"], "top_k is -1; it must be from 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_line(command, folder, options, words):
    command("generate", folder, "--backend", "numpy", "--prompt", "a", *options).assert_refused(words)


@pytest.mark.parametrize(
    ("stdin", "words"),
    [
        (None, "the standard input, which is closed"),
        (io.TextIOWrapper(io.BytesIO(b"a\xff"), "utf-8"), "cannot read the standard input: 'utf-8' codec can't decode"),
    ],
)
def test_a_standard_input_that_cannot_be_read_is_refused(command, folder, type_in, stdin, words):
    type_in(stdin)
    command("generate", folder, "--prompt", "-").assert_refused(words)


def test_a_folder_without_a_decoder_is_refused(command, folder, tmp_path):
    command("generate", tmp_path, "--prompt", "a").assert_refused("has neither genai_config.json nor config.json")
    config = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))
    (tmp_path / "genai_config.json").write_text(json.dumps(config), encoding="utf-8")
    command("generate", tmp_path, "--prompt", "a").assert_refused("tokenizer.json: No such file or directory")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    command("generate", tmp_path, "--prompt", "a").assert_refused("tokenizer.json cannot be read as a tokenizer")


def test_control_characters_of_a_text_are_codes():
    assert _laid_out("a\n\tb\x1b[2J\u202e\r") == "a\n\tb\\u001b[2J\\u202e\\u000d"


@pytest.mark.sampled(8)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals for one process")
def test_ctrl_c_ends_it_between_tokens(tmp_path):
    pytest.importorskip("tokenizers")
    folder = write_folder(tmp_path, attrs.evolve(SIZES["tiny"], context=16384), Form("genai"))
    program = [sys.executable, "-m", "webnn_py", "generate", str(folder), "--backend", "numpy", "--prompt", "a"]
    program += ["--capacity", "16384"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as running:
        assert running.stdout.read(1)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert b"Traceback" not in errors
    assert errors.startswith(b"device  numpy")


@pytest.fixture(scope="module")
def listening(tmp_path_factory):
    pytest.importorskip("tokenizers")
    folder = encoder_decoder_models.write_folder(tmp_path_factory.mktemp("encoded"), encoder_decoder_models.Form())
    make_tokenizer(encoder_decoder_models.SIZE.words).save(str(folder / "tokenizer.json"))
    return folder


@pytest.fixture
def recording(tmp_path):
    with wave.open(str(tmp_path / "sound.wav"), "wb") as file:
        file.setparams((2, 2, 800, 0, "NONE", ""))  # another rate than the model's, and two channels
        file.writeframes(np.random.default_rng(0).integers(-9999, 9999, 400, np.int16).tobytes())
    return tmp_path / "sound.wav"


def test_a_recording_is_written_down(command, listening, folder, recording):
    arguments = ("--backend", "numpy", "--max-new-tokens", "4")
    heard = ("generate", listening, "--audio", recording, *arguments)
    report = command(*heard, "--json").report()
    assert (len(report["tokens"]), report["finish"], report["prompt_tokens"]) == (4, "length", 2)
    assert command(*heard, "--prompt", "hello", "--json").report()["prompt_tokens"] > 2
    assert command(*heard).succeeded().out == _laid_out(report["text"]) + "\n"
    command("generate", folder, "--audio", recording, *arguments).assert_refused("the model has no encoder")
    command("generate", listening, "--audio", listening / "config.json").assert_refused("cannot be read as a sound")
    command("generate", listening, "--prompt", "a", *arguments).assert_refused(
        "audio is missing; the model has an encoder"
    )
    command("generate", folder).assert_refused("give --prompt, the text to continue, or --audio, the recording")
