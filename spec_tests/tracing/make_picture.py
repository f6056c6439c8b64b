"""Write docs/pictures/timeline.png: the page of a buffer that is destroyed in flight, as Chromium shows it."""

import io
import tempfile
from pathlib import Path

from PIL import Image

from spec_tests.support.chromium import Chromium, installed
from spec_tests.support.trace_documents import destroyed_in_flight
from webnn_py.tracing.page import page_of

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "timeline.png"
REJECTION = "timeline.state.trace.items.find((item) => item.kind === 'rejection')"


def main():
    path = installed()
    if path is None:
        raise SystemExit("no Chromium is installed")
    browser = Chromium(path)
    try:
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "trace.html")
            page.write_text(page_of(destroyed_in_flight(), "A buffer is destroyed in flight"), encoding="utf-8")
            browser.prefer("light")
            browser.size(1320, 620, ratio=1.5)
            browser.open(page)
            browser.run(f"timeline.select({REJECTION}, {{isRevealed: false}})")
            browser.frame()
            taken = browser.picture()
    finally:
        browser.close()
    picture = Image.open(io.BytesIO(taken)).convert("RGB")
    # A palette takes a third of the room: the colours that most pixels have, as they are.
    often = sorted(picture.getcolors(2**24), reverse=True)[:256]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in often for part in colour])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
