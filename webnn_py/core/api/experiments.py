"""The proposals that ``open_ml(experimental=…)`` switches on; docs/proposals has a page for each."""

from collections.abc import Collection

from webnn_py.core.descriptors import sequence_of
from webnn_py.core.extension import SHORT_FORMS, Extension
from webnn_py.core.message_text import shown
from webnn_py.core.operators.idl import enumeration


def known() -> tuple[str, ...]:
    """Return the names of the proposals that can be asked for."""
    return tuple(sorted(SHORT_FORMS))


def experiments(value: object) -> frozenset[str]:
    """Convert ``open_ml(experimental=…)``."""
    return frozenset(sequence_of(value, enumeration(known()), f"names of proposals: {', '.join(known())}"))


def extensions(value: object, names: Collection[str]) -> tuple[Extension, ...]:
    """Convert ``open_ml(extensions=…)``, and add those that names of proposals stand for."""

    def extension(item: object) -> Extension:
        if not isinstance(item, Extension):
            raise TypeError(f"is {shown(item)}; it must be an Extension")
        return item

    given = sequence_of(value, extension, "extensions")
    return (*given, *(SHORT_FORMS[name]() for name in SHORT_FORMS if name in names))
