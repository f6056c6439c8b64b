"""The configuration of a decoder: ``genai_config.json`` of onnxruntime-genai, or optimum's ``config.json``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from os.path import lexists
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Final, Literal, cast

import attrs

from webnn_py.core.descriptors import converted, unsigned_long
from webnn_py.core.message_text import shown
from webnn_py.regular_files import read_regular

Layout = Literal["onnxruntime-genai", "optimum"]

GENAI_FILE: Final = "genai_config.json"

OPTIMUM_MODELS: Final = ("model.onnx", "decoder_model_merged.onnx", "decoder_with_past_model.onnx")
"""The files of a decoder with a cache, in optimum's exports, the best one first."""

MERGED: Final = re.compile(r"decoder_model_merged(.*)\.onnx")
"""The name of a decoder with and without a cache in one file, of an encoder-decoder, with that of a variant."""

WITH_PAST: Final = re.compile(r"decoder_with_past_model(.*)\.onnx")

LAYERS: Final = ("decoder_num_hidden_layers", "decoder_layers", "num_decoder_layers", "num_hidden_layers")
"""The names of the number of a decoder's layers in ``config.json``, the most special one first."""

CONTEXTS: Final = ("max_target_positions", "max_position_embeddings")
"""The names of the most tokens of a decoder."""

DEFAULT_CAPACITY: Final = 2048
"""The tokens that caches hold where no capacity is given, unless the model knows fewer positions."""

MOST_LAYERS: Final = 10_000
"""The most layers of a decoder; the largest models have a hundred."""

SOUND_SETTINGS: Final[Mapping[str, tuple[str, int]]] = {
    "rate": ("sampling_rate", 1_000_000),
    "mels": ("feature_size", 1024),
    "hop": ("hop_length", 1 << 16),
    "window": ("n_fft", 1 << 16),
    "frames": ("nb_max_frames", 1 << 16),
}
"""The names of an encoder's settings in ``preprocessor_config.json``, and the most of each."""

MOST_NUMBERS: Final = 1 << 24
"""The most numbers of an array that making spectra takes; of a sound 17 minutes at 16 kHz."""

REFUSED_SEARCH: Final[Mapping[str, float]] = {
    "num_beams": 1,
    "no_repeat_ngram_size": 0,
    "num_return_sequences": 1,
    "min_p": 0,
    "typical_p": 1,
    "penalty_alpha": 0,
}
"""Settings of the search that are not supported, with the values that switch them off."""

WHOLE_SEARCH: Final = frozenset({"top_k", "min_length", "max_length"})
"""Settings of the search that are integers."""


@attrs.frozen
class SearchDefaults:
    """How tokens are chosen where a call does not say otherwise.

    Attributes:
        do_sample: whether tokens are drawn at random; else the likeliest is taken.
        temperature: the divisor of logits before they become probabilities.
        top_k: the number of likeliest tokens of which one is drawn; 0 for all.
        top_p: those of the likeliest tokens are drawn from that together have this probability, the nucleus.
        repetition_penalty: positive logits of earlier tokens are divided by it, negative ones multiplied.
        min_length: no sequence ends with fewer tokens, those of the prompt included.
        max_length: the most tokens of a sequence, those of the prompt included; None for the capacity.
    """

    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    min_length: int = 0
    max_length: int | None = None


@attrs.frozen
class DecoderNames:
    """The names of a decoder's inputs and outputs.

    Attributes:
        tokens: the input of the new tokens, [batch, new].
        attention_mask: the input that is 1 for each token that there is, [batch, old and new].
        positions: the input of the new tokens' positions, [batch, new]; a model may lack it.
        past: the inputs of keys and values of each layer, with ``%d`` for its number.
        logits: the output of a score for each token, [batch, new, tokens].
        present: the outputs that become the next step's ``past``.
    """

    tokens: str = "input_ids"
    attention_mask: str = "attention_mask"
    positions: str = "position_ids"
    past: tuple[str, str] = ("past_key_values.%d.key", "past_key_values.%d.value")
    logits: str = "logits"
    present: tuple[str, str] = ("present.%d.key", "present.%d.value")


@attrs.frozen
class EncoderConfiguration:
    """The settings of an encoder-decoder in addition to those of a decoder with a cache.

    Attributes:
        file: the ONNX model of the encoder.
        first: the ONNX model of the decoder's first step, which has no cache; the decoder's own file if that is merged.
        forced: tokens of the decoder behind the start token.
        suppressed: tokens that never come.
        suppressed_first: tokens that do not come first.
        rate: samples of a second of audio.
        mels: frequencies of a spectrum.
        hop: samples from one spectrum to the next.
        window: samples of a spectrum.
        frames: spectra that the encoder takes.
    """

    file: Path
    first: Path
    forced: tuple[int, ...] = ()
    suppressed: frozenset[int] = frozenset()
    suppressed_first: frozenset[int] = frozenset()
    rate: int = 16000
    mels: int = 80
    hop: int = 160
    window: int = 400
    frames: int = 3000


@attrs.frozen
class DecoderConfiguration:
    """The configuration of a decoder, read from its folder.

    Attributes:
        layout: whose layout the folder has.
        file: the ONNX model.
        layers: how many layers have a cache.
        context_length: the most tokens that a sequence may have.
        end_tokens: the tokens that end a sequence.
        start_token: the token that begins a sequence, if there is one.
        names: of inputs and outputs.
        search: how tokens are chosen by default.
        encoder: what an encoder-decoder has in addition; None for a decoder alone.
    """

    layout: Layout
    file: Path
    layers: int
    context_length: int
    end_tokens: frozenset[int]
    start_token: int | None
    names: DecoderNames
    search: SearchDefaults
    encoder: EncoderConfiguration | None = None

    @property
    def begin(self) -> tuple[int, ...]:
        """The tokens that a sequence begins with which has no prompt."""
        start = () if self.start_token is None else (self.start_token,)
        return start if self.encoder is None else (*start, *self.encoder.forced)

    def capacity(self, given: int | None) -> int:
        """Return how many tokens the caches hold.

        Args:
            given: the argument of ``create_generator()``; None for the default.

        Raises:
            TypeError: it is no integer.
            ValueError: the model knows fewer positions, or it is not positive.
        """
        if given is None:
            return min(self.context_length, DEFAULT_CAPACITY)
        capacity = converted("create_generator(): capacity", unsigned_long, given)
        if not 1 <= capacity <= self.context_length:
            raise ValueError(
                f"create_generator(): capacity is {capacity}; it must be from 1 to {self.context_length}, "
                "what the model knows"
            )
        return capacity


def read_configuration(folder: Path, file: str | None, given: Mapping[str, Any] | None = None) -> DecoderConfiguration:
    """Read the configuration of a decoder.

    Args:
        folder: has ``genai_config.json``, or ``config.json`` and maybe ``generation_config.json``.
        file: the model's file in the folder; by default the configuration, or optimum's usual names, say it.
        given: what ``config.json`` would have, in its place.

    Raises:
        OSError: a file cannot be read.
        ValueError: there is no configuration, or it lacks something, or asks for what is not supported.
    """
    if given is not None:
        return _optimum(folder, given, file)
    if lexists(folder / GENAI_FILE):
        return _genai(folder, _json(folder / GENAI_FILE), file)
    if lexists(folder / "config.json"):
        return _optimum(folder, _json(folder / "config.json"), file)
    raise ValueError(f"{folder} has neither {GENAI_FILE} nor config.json; it must be the folder of a decoder's export")


def _genai(folder: Path, config: Mapping[str, Any], file: str | None) -> DecoderConfiguration:
    path = folder / GENAI_FILE
    model = _given(path, config, "model", dict)
    decoder = _given(path, model, "decoder", dict)
    if "encoder" in model:
        raise ValueError(f"{path}: the model has an encoder; encoder-decoders are supported in optimum's layout alone")
    inputs, outputs = (_given(path, decoder, name, dict, {}) for name in ("inputs", "outputs"))
    usual = DecoderNames()
    names = DecoderNames(
        _given(path, inputs, "input_ids", str, usual.tokens),
        _given(path, inputs, "attention_mask", str, usual.attention_mask),
        _given(path, inputs, "position_ids", str, usual.positions),
        (
            _numbered(path, inputs, "past_key_names", usual.past[0]),
            _numbered(path, inputs, "past_value_names", usual.past[1]),
        ),
        _given(path, outputs, "logits", str, usual.logits),
        (
            _numbered(path, outputs, "present_key_names", usual.present[0]),
            _numbered(path, outputs, "present_value_names", usual.present[1]),
        ),
    )
    return DecoderConfiguration(
        "onnxruntime-genai",
        folder / (_file_name(path, decoder) if file is None else file),
        _count(path, decoder, "num_hidden_layers", MOST_LAYERS),
        _given(path, model, "context_length", int),
        _tokens(path, model.get("eos_token_id")),
        _start(path, model.get("bos_token_id")),
        names,
        _search(path, _given(path, config, "search", dict, {})),
    )


def _optimum(folder: Path, config: Mapping[str, Any], file: str | None) -> DecoderConfiguration:
    path = folder / "config.json"
    text = _given(path, config, "text_config", dict, config)
    more_path = folder / "generation_config.json"
    more = _json(more_path) if lexists(more_path) else {}
    ends = more.get("eos_token_id", config.get("eos_token_id", text.get("eos_token_id")))
    has_encoder = config.get("is_encoder_decoder") is True
    start = "decoder_start_token_id" if has_encoder else "bos_token_id"
    model = _encoded_model(folder, file) if has_encoder else _optimum_model(folder, file)
    return DecoderConfiguration(
        "optimum",
        model,
        _count(path, text, next((name for name in LAYERS if name in text), LAYERS[-1]), MOST_LAYERS),
        _given(path, text, next((name for name in CONTEXTS if name in text), CONTEXTS[-1]), int),
        _tokens(path, ends),
        _start(path, more.get(start, text.get(start)), start),
        _encoded_names() if has_encoder else DecoderNames(),
        _search(more_path, more),
        _encoder(folder, model, {**config, **more}) if has_encoder else None,
    )


def _optimum_model(folder: Path, file: str | None) -> Path:
    return folder / file if file is not None else _found(folder, OPTIMUM_MODELS)


def _encoded_model(folder: Path, file: str | None) -> Path:
    """Return the file of a decoder that has a cache and attends to an encoder."""
    model = folder / file if file is not None else _found(folder, OPTIMUM_MODELS[1:])
    if not (MERGED.fullmatch(model.name) or WITH_PAST.fullmatch(model.name)):
        raise ValueError(
            f"{model}: the decoder of an encoder-decoder must be called {' or '.join(OPTIMUM_MODELS[1:])}, which may "
            "have a variant's name before .onnx, so that its other files are found"
        )
    return model


def _found(folder: Path, names: Sequence[str]) -> Path:
    """Return the first of some files that is in an export's folder."""
    for name in names:
        for path in (folder / name, folder / "onnx" / name):
            if path.is_file():
                return path
    raise ValueError(f"{folder} has none of {', '.join(names)}; name its model's file by file=")


def _encoded_names() -> DecoderNames:
    kinds = ("key", "value")
    past, present = ([f"{begin}.%d.decoder.{kind}" for kind in kinds] for begin in ("past_key_values", "present"))
    return DecoderNames(past=(past[0], past[1]), present=(present[0], present[1]))


def _encoder(folder: Path, model: Path, config: Mapping[str, Any]) -> EncoderConfiguration:
    variant = next((found[1] for kind in (MERGED, WITH_PAST) if (found := kind.fullmatch(model.name))), "")
    first = model if MERGED.fullmatch(model.name) else model.with_name(f"decoder_model{variant}.onnx")
    path = folder / "preprocessor_config.json"
    sound = _json(path) if lexists(path) else {}
    usual = EncoderConfiguration(model, first)
    numbers = {
        name: _count(path, sound, setting, most, getattr(usual, name))
        for name, (setting, most) in SOUND_SETTINGS.items()
    }
    for one, other in (("hop", "frames"), ("window", "frames"), ("mels", "frames"), ("mels", "window")):
        if numbers[one] * numbers[other] > MOST_NUMBERS:
            both = " × ".join(f"{SOUND_SETTINGS[name][0]} {numbers[name]}" for name in (one, other))
            raise ValueError(f"{path}: {both} is {numbers[one] * numbers[other]}; it must be at most {MOST_NUMBERS}")
    return EncoderConfiguration(
        model.with_name(f"encoder_model{variant}.onnx"),
        first,
        _forced(folder, config.get("forced_decoder_ids")),
        _tokens(folder, config.get("suppress_tokens"), "suppress_tokens"),
        _tokens(folder, config.get("begin_suppress_tokens"), "begin_suppress_tokens"),
        **numbers,
    )


def _forced(path: Path, value: object) -> tuple[int, ...]:
    """Return tokens of a setting that has pairs of a position, from 1 on, and a token; None where it is free."""
    pairs: list[Any] = [] if value is None else value if isinstance(value, list) else [value]
    tokens = []
    for place, pair in enumerate(pairs, 1):
        match pair:
            case [int(at), int(token)] if at == place:
                tokens.append(token)
            case [int(at), None] if at == place:
                break
            case _:
                raise ValueError(
                    f"{path}: forced_decoder_ids is {shown(value)}; it must have pairs of a position, counted from 1, "
                    "and a token"
                )
    return tuple(tokens)


def _json(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(read_regular(path).decode("utf-8-sig"))  # some editors begin a file with a byte order mark
    except (ValueError, RecursionError) as error:  # a ValueError of its encoding, its syntax, or of very long integers
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} is {shown(found)}; it must be a JSON object")  # noqa: TRY004 - a file, no argument
    return found


def _given(path: Path, config: Mapping[str, Any], name: str, kind: type, default: Any = None) -> Any:
    """Return a setting of a type; ``default``, unless that is None, where it is absent or null."""
    value: Any = config.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and cast("int", value) < 1):
        there = "lacks it" if value is None else f"has {shown(value)}"
        raise ValueError(
            f"{path}: {name} must be {kind.__name__ if kind is not int else 'an integer from 1'}; it {there}"
        )
    return value


def _file_name(path: Path, decoder: Mapping[str, Any]) -> str:
    """Return the model's file; a configuration that somebody else wrote names none outside of its folder."""
    name: str = _given(path, decoder, "filename", str)
    for kind in (PurePosixPath, PureWindowsPath):
        if not kind(name).name or not name.isprintable() or kind(name).anchor or ".." in kind(name).parts:
            raise ValueError(f"{path}: filename is {shown(name)}; it must be in the folder, or give file= instead")
    return name


def _count(path: Path, config: Mapping[str, Any], name: str, most: int, default: int | None = None) -> int:
    count: int = _given(path, config, name, int, default)
    if count > most:
        raise ValueError(f"{path}: {name} is {shown(count)}; it must be at most {most}")
    return count


def _numbered(path: Path, config: Mapping[str, Any], name: str, usual: str) -> str:
    """Return the name of an input or output of each layer."""
    pattern: str = _given(path, config, name, str, usual)
    if pattern.count("%d") != 1:
        raise ValueError(f"{path}: {name} is {shown(pattern)}; it must have %d once, where the layer's number is")
    return pattern


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _tokens(path: Path, value: object, name: str = "eos_token_id") -> frozenset[int]:
    """Return the tokens of a setting that has one, several or none."""
    several: list[Any] = value if isinstance(value, list) else [] if value is None else [value]
    if not all(map(_is_integer, several)):
        raise ValueError(f"{path}: {name} is {shown(value)}; it must be a token's number, or a list of them")
    return frozenset(several)


def _start(path: Path, value: object, name: str = "bos_token_id") -> int | None:
    if value is not None and not _is_integer(value):
        raise ValueError(f"{path}: {name} is {shown(value)}; it must be a token's number")
    return cast("int | None", value)


def _search(path: Path, config: Mapping[str, Any]) -> SearchDefaults:
    for name, off in REFUSED_SEARCH.items():
        if config.get(name) not in (None, off):
            raise ValueError(
                f"{path}: {name} is {shown(config[name])}; only {off}, which switches it off, is supported"
            )
    known = {item.name: config[item.name] for item in attrs.fields(SearchDefaults) if config.get(item.name) is not None}
    for name, value in known.items():
        if name == "do_sample":
            is_right, allowed = isinstance(value, bool), "true or false"
        elif name in WHOLE_SEARCH:
            is_right, allowed = _is_integer(value) and value >= 0, "an integer from 0"
        else:
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            is_finite = is_number and abs(value) <= sys.float_info.max
            is_right, allowed = is_finite and value >= 0, "a finite number from 0"
        if not is_right:
            raise ValueError(f"{path}: {name} is {shown(value)}; it must be {allowed}")
    return SearchDefaults(**known)
