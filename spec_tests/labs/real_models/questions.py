"""Questions to models: lines and pages of text, digits, faces, files, a voice; the same in every run."""

import wave
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont, ImageOps

from spec_tests.labs.real_models import contents
from spec_tests.labs.real_models.comparison import feeds_of, results_of, session_of
from spec_tests.labs.real_models.listed import LIST, Model, Package, listed
from spec_tests.labs.real_models.packages import path_of

FONT = Model(
    package=Package("@fontsource/noto-sans-sc", "5.3.0", "OFL-1.1", "npm"),
    file="package/files/noto-sans-sc-chinese-simplified-400-normal.woff",
    sha256="dc20a86875ff056a6332c353bc9a82d199bb2e5aae1d444f912c1fbff783bfa5",
    inputs={},
)
RECORDING = Model(
    package=Package("useful-moonshine-onnx", "20251121", "MIT"),
    file="moonshine_onnx/assets/beckett.wav",
    sha256="e5a26b3d29e5b0bc8dbd72c11d16a3808a4ec0ac45b21f12a27d2a2fe5c5ae61",
    inputs={},
)
SENTENCES = (
    "Trains leave at 10:45",
    "图像中的文字",
    "Order no. 38-2715",
    "人工神经网络",
    "Quite SMALL letters",
    "0123456789",
)
"""In two scripts, with digits."""
REPOSITORY = "../../.."
FILES = (
    "listed.py",
    "models.toml",
    *(f"{REPOSITORY}/{name}" for name in ("README.md", "LICENSE", "docs/onnx.md", "pyproject.toml")),
)
FRAMES = 100
SAMPLES, BEFORE = 384, 127
"""Of a state of the speech model, and before the first."""
FIRST_WORD = 1


def question(text, number, folder):
    """The array of a question of a kind and a shape: "line 1 3 48 320"."""
    kind, *shape = text.split()
    make, _ = QUESTIONS[kind]
    return make([int(size) for size in shape], number, folder)


def asked_of(model, folder):
    """Yield the arrays of each question to a listed model, by input."""
    kind = next(iter(model.asked.values())).split()[0]
    for number in range(QUESTIONS[kind][1]):
        yield {name: question(text, number, folder) for name, text in model.asked.items()}


def drawn(sentence, height, folder):
    """A sentence in black on white, as high as is asked for."""
    font = ImageFont.truetype(path_of(FONT, folder), height * 2 // 3)
    picture = Image.new("L", (round(font.getlength(sentence)) + height // 2, height), 255)
    ImageDraw.Draw(picture).text((height // 4, height // 2), sentence, fill=0, font=font, anchor="lm")
    return picture


def line(shape, number, folder):
    """A sentence at the left of a grey picture, from -1 to 1; the same in each channel."""
    written = drawn(SENTENCES[number], shape[2], folder)
    return _planes(_fitted(written, shape[3], shape[2]), shape)


def turned_line(shape, number, folder):
    """A sentence as in :func:`line`; every second one is upside down."""
    written = drawn(SENTENCES[number // 2], shape[2], folder)
    written = ImageOps.flip(ImageOps.mirror(written)) if number % 2 else written
    return _planes(_fitted(written, shape[3], shape[2]), shape)


def page(shape, number, folder):
    """Some sentences below each other; the pages differ in size of the letters."""
    height, width = shape[2:]
    picture, size = Image.new("L", (width, height), 255), height // (4 + number)
    for index in range(3):
        written = drawn(SENTENCES[(number + index) % len(SENTENCES)], size, folder)
        picture.paste(written.crop((0, 0, width, size)), (width // 20, index * height // 3 + size // 8))
    return _planes(picture, shape)


def turned_page(shape, number, folder):
    """A page, turned by quarters."""
    upright = page(shape, 2, folder)
    return np.rot90(upright, number, (2, 3))


def digit(shape, number, folder):
    """A digit in white on black, from 0 to 255."""
    height, width = shape[2:]
    picture = Image.new("L", (width, height), 255)
    written = drawn(str(number), height * 9 // 10, folder)
    picture.paste(written, ((width - written.width) // 2, height // 20))
    return np.asarray(ImageOps.invert(picture), np.float32).reshape(shape)


def face(shape, number, _):
    """The drawn faces, as they are and in a mirror."""
    faces = contents.face(shape)
    return faces[..., ::-1] if number else faces


def small_face(shape, number, _):
    """The drawn faces in red, green, blue, from -1 to 1."""
    return (face(shape, number, None)[:, ::-1] - 127) / 128


def file(shape, number, _):
    """The bytes that a file begins and ends with."""
    content = np.frombuffer((LIST.parent / FILES[number]).read_bytes().strip(), np.uint8)
    half, tokens = shape[1] // 2, np.full(shape, 256)
    begin, end = content[:half], content[-(shape[1] - half) :]
    tokens[0, : len(begin)] = begin
    tokens[0, shape[1] - len(end) :] = end
    return tokens


def voice(shape, number, folder):
    """A stretch of the recording, each begins where the one before ends; of 576 samples 64 are those before."""
    samples = _samples(path_of(RECORDING, folder))
    repeated = 64 if shape[-1] % 512 else 0
    step = shape[-1] - repeated
    start = number * shape[0] * step
    places = start + step * np.arange(shape[0])[:, np.newaxis] + np.arange(shape[1])
    return samples.take(places, mode="wrap")


def letters(shape, number, _):
    """Numbers of letters that every vocabulary has, other ones each time."""
    return np.random.default_rng(100 + number).integers(1, 30, shape)


def heard(shape, number, folder):
    """Return the output of the listed speech model's encoder, in onnxruntime, for a stretch of the recording."""
    samples = _samples(path_of(RECORDING, folder))
    start, length = number * SAMPLES * shape[1], SAMPLES * (shape[1] + 1) + BEFORE
    encoder = session_of(str(path_of(_speech("encoder_model.onnx"), folder)))
    (states,) = encoder.run(None, {"input_values": samples[np.newaxis, start : start + length]})
    return states.reshape(shape)


def spoken(shape, number, folder):
    """The words that its decoder then writes there: each the likeliest behind those before."""
    model = _speech("decoder_model_merged.onnx")
    decoder = session_of(str(path_of(model, folder)))
    feeds, _ = feeds_of(model, decoder)
    kind = model.asked["encoder_hidden_states"]
    feeds["encoder_hidden_states"] = question(kind, number, folder)
    said = [FIRST_WORD]
    while len(said) < shape[1]:
        logits = results_of(decoder, {**feeds, "input_ids": np.array([said])})["logits"]
        said.append(int(logits[0, -1].argmax()))
    return np.array([said])


def _speech(file):
    (model,) = (item for item in listed() if "moonshine" in item.name and item.file.endswith(file))
    return model


@cache
def _samples(path):
    with wave.open(str(path)) as opened:
        return np.frombuffer(opened.readframes(opened.getnframes()), "<i2").astype(np.float32) * np.float32(2**-15)


def _fitted(written, width, height):
    picture = Image.new("L", (width, height), 128)
    picture.paste(written if written.width <= width else written.resize((width, height)))
    return picture


def _planes(picture, shape):
    return np.broadcast_to(np.asarray(picture, np.float32) / 127.5 - 1, shape)


QUESTIONS = {
    "digit": (digit, 10),
    "face": (face, 2),
    "file": (file, len(FILES)),
    "letters": (letters, 6),
    "line": (line, len(SENTENCES)),
    "page": (page, 3),
    "small_face": (small_face, 2),
    "heard": (heard, 2),
    "spoken": (spoken, 2),
    "turned_line": (turned_line, 2 * len(SENTENCES)),
    "turned_page": (turned_page, 4),
    "voice": (voice, FRAMES),
}
"""Kinds, and how many questions there are of each."""
