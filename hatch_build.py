"""The README as package indexes show it, where nothing stands beside it: a hook of hatchling's."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^]]*)\]\((?!\w+:|#)(?P<path>[^)]+)\)")


def for_package_index(text: str, source: str | None) -> str:
    """A document whose links lead to the repository at ``source``, or, where that is not known, are text."""

    def absolute(link: re.Match[str]) -> str:
        if source is not None:
            kind = "raw" if link["image"] else "blob"
            return f"{link['image']}[{link['text']}]({source.rstrip('/')}/{kind}/HEAD/{link['path']})"
        return "" if link["image"] else link["text"]

    return RELATIVE_LINK.sub(absolute, text)


class ReadmeHook(MetadataHookInterface):
    """Puts the README into the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_package_index(text, source)}
