"""``webnn-py docs``: where the documentation is."""

import argparse
import json
import runpy
from pathlib import Path

from webnn_py.command.failures import BadInputError, CommandFailedError
from webnn_py.command.printing import print_json, print_lines
from webnn_py.core.distribution import documentation
from webnn_py.core.message_text import nearest, shown
from webnn_py.javascript.words import say
from webnn_py.text_tables import table


def docs(options: argparse.Namespace) -> int:
    """Print the path of a page, or the names and titles of all.

    Raises:
        BadInputError: there is no such page.
        CommandFailedError: the documentation is not installed.
    """
    folder = documentation()
    if options.page is None or _plain(options.page).startswith("operators/"):
        _write_operator_pages(folder)
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


def _write_operator_pages(folder: Path) -> None:
    """Write the pages of operators in a checkout; wheels have them.

    Raises:
        CommandFailedError: they cannot be written there.
    """
    script = folder / "make_operator_pages.py"
    if not script.exists():
        return
    try:
        runpy.run_path(str(script))["write"](folder / "operators")
    except OSError as error:
        raise CommandFailedError(f"the pages of operators cannot be written: {error}") from error


def _plain(name: str) -> str:
    return name.removeprefix("docs/").removesuffix(".md")


def _found(name: str, pages: dict[str, Path]) -> Path:
    plain = _plain(name)
    if plain in pages:
        return pages[plain]
    raise BadInputError(f"no page {shown(name)}; webnn-py docs lists them{nearest(plain, pages)}")


def _title(path: Path) -> str:
    """Return the first heading; of a page that has none, nothing."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.removeprefix("# ") for line in lines if line.startswith("# ")), "")
