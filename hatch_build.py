"""The README as package indexes show it, where nothing stands beside it: a hook of hatchling's."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PATH = r"\((?!\w+:|#)(?P<path>[^)]+)\)"
PICTURE = re.compile(r"!\[(?P<text>[^]]*)\]" + PATH)
LINK = re.compile(r"(?<!!)\[(?P<text>(?:!\[[^]]*\]\([^)]*\)|[^]])*)\]" + PATH)
"""Its text may be a picture."""


def for_package_index(text: str, source: str | None) -> str:
    """A document whose links lead to the repository at ``source``, or, where that is not known, are text."""
    if source is None:
        return LINK.sub(r"\g<text>", PICTURE.sub("", text))
    there = source.rstrip("/")
    text = PICTURE.sub(rf"![\g<text>]({there}/raw/HEAD/\g<path>)", text)
    return LINK.sub(rf"[\g<text>]({there}/blob/HEAD/\g<path>)", text)


class ReadmeHook(MetadataHookInterface):
    """Puts the README into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_package_index(text, source)}
