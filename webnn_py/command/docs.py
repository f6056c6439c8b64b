"""``webnn-py docs``: where the documentation is."""

import argparse
import difflib
import json
from pathlib import Path

from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.printing import print_json, print_lines
from webnn_py.distribution import documentation
from webnn_py.javascript.words import say
from webnn_py.message_text import shown, table


def docs(options: argparse.Namespace) -> int:
    """Print the path of a page, or the names and titles of all.

    Raises:
        BadInputError: there is no such page.
        CommandFailedError: the documentation is not installed.
    """
    folder = documentation()
    pages = {path.relative_to(folder).with_suffix("").as_posix(): path for path in sorted(folder.rglob("*.md"))}
    if not pages:
        raise CommandFailedError(f"there is no documentation in {folder}; install a wheel, or look into a checkout")
    if options.page is not None:
        path = _found(options.page, pages)
        say(json.dumps({"path": str(path)}) if options.json else str(path))
        return 0
    titles = {name: _title(path) for name, path in pages.items()}
    if options.json:
        print_json({"folder": str(folder), "pages": titles})
    else:
        print_lines([str(folder), *table(titles.items(), "  ")])
    return 0


def _found(name: str, pages: dict[str, Path]) -> Path:
    plain = name.removeprefix("docs/").removesuffix(".md")
    if plain in pages:
        return pages[plain]
    near = difflib.get_close_matches(plain, pages, 3)
    hint = f"; there is {', '.join(near)}" if near else "; webnn-py docs lists them"
    raise BadInputError(f"there is no page {shown(name)}{hint}")


def _title(path: Path) -> str:
    """Return the first heading; of a page that has none, nothing."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "")
