"""Users' values and texts in messages: short, on one line, and without fail, whatever the value does."""

import reprlib
from collections.abc import Iterable, Sequence
from typing import Final, cast

LONGEST: Final = 100
"""The characters of a value or of a label that a message shows at most."""

LONGEST_OF_DEVICE: Final = 1000
"""The characters of a device's text that a message shows at most."""

CONTEXT_DESTROYED: Final = "destroy() was called on the context"
"""The reason for the loss of a context that was destroyed."""

_LONGEST_INTEGER: Final = 128
"""The bits of the longest integer that is written out: digits take time that grows with the square."""


class _Repr(reprlib.Repr):
    """``repr()`` of the first items of containers, some levels deep, and of the first characters of all else."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxarray = self.maxdict = self.maxset = self.maxfrozenset = 16
        self.maxstring = self.maxother = LONGEST

    def repr_int(self, x: int, level: int) -> str:
        if x.bit_length() > _LONGEST_INTEGER:
            return f"an integer of {x.bit_length()} bits"
        return repr(x)

    def repr_instance(self, x: object, level: int) -> str:
        try:
            return shortened(plain(repr(x)), self.maxother)
        except Exception:  # noqa: BLE001 - the repr is the user's, and may do anything
            return f"<{kind(x)} whose repr raises>"


_REPR: Final = _Repr()


def shown(value: object) -> str:
    """Return a value for a message: its repr, cut short."""
    try:
        text = _REPR.repr(value)
    except Exception:  # noqa: BLE001 - names of classes may be misleading
        text = f"<{kind(value)} that cannot be shown>"
    return visible(" ".join(text.split()))


def listed(values: Sequence[object]) -> str:
    """Return the items of a sequence for a message, as a list; of many, the first ones."""
    return shown(list(values[: _REPR.maxlist + 1]))


def nearest(value: object, known: Iterable[str]) -> str:
    """A question behind the refusal of a name that is like a known one, "; did you mean 'name'?"; else nothing."""
    from difflib import get_close_matches  # noqa: PLC0415 - slow to import

    if not isinstance(value, str) or len(value) > LONGEST:
        return ""
    lower = {name.casefold(): name for name in known}
    found = get_close_matches(plain(value).casefold(), lower, n=1)
    return f"; did you mean {lower[found[0]]!r}?" if found else ""


def in_brackets(label: object) -> str:
    """Return a label for a message, " [label]", cut short; nothing for none, and for what is no text."""
    if not issubclass(type(label), str):
        return ""
    text = plain(cast("str", label))
    return f" [{visible(shortened(text, LONGEST))}]" if text else ""


def named_by(label: str) -> str:
    """Return a label that stands before a description, quoted and cut short, with a space; nothing for none."""
    return f"{shown(label)} " if label else ""


def kind(value: object) -> str:
    """Return the name of a value's type, which a metaclass cannot change."""
    return cast("str", type.__dict__["__name__"].__get__(type(value)))


def words_of(error: Exception) -> str:
    """Return the text of another package's error, cut short; its type, if it has no text."""
    words = error.args[0] if error.args else None
    if type(words) is not str or not words:
        return kind(error)
    return visible(shortened(" ".join(words.split()), 2 * LONGEST))


def device_text(said: object) -> str:
    """Return a device's error or text for a message: one line, escaped, cut short; its type, if it has no text."""
    try:
        text = plain(str(said))
    except Exception:  # noqa: BLE001 - an engine's exception may do anything
        text = ""
    return shortened(visible(" ".join(text.split())), LONGEST_OF_DEVICE) or kind(said)


def plain(text: str) -> str:
    """Return the characters of a text, whatever methods a class derived from ``str`` overrides."""
    return str.__str__(text)


def shortened(text: str, length: int = 60) -> str:
    """Return a text of at most ``length`` characters, the rest being three dots."""
    return text if len(text) <= length else f"{text[: length - 3]}..."


def visible(text: str) -> str:
    """A text in which characters that cannot be seen, or that change the direction of others, are shown as codes."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)
