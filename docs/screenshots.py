"""Screenshots of pages, to look at before they ship: light and dark, at three widths.

python docs/screenshots.py digits_map/report.html iris_map/report.html -o shots

writes one picture for each page, scheme and width, and a contact sheet of each page (`NAME.webp`),
which is what `docs/pictures/pages` holds. NAME is the folder of the page. An address within the
page may follow, such as a row or a shared view (`iris_map/report.html#row-106`). `--whole` adds
pictures of the whole page from top to bottom; `--sheets FOLDER` puts the contact sheets somewhere
else.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser.chromium import arguments, find

WINDOWS = ((1600, 1000), (1280, 860), (400, 860))  # pixels
SCHEMES = ("light", "dark")
TALL = 430  # of a window on the contact sheet
GAP = 12
QUALITY = 78  # of WebP


def main() -> None:
    """Read the command line, open each page in each window, and write the pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="+", metavar="PAGE")
    parser.add_argument("-o", "--out", type=Path, default=Path("shots"))
    parser.add_argument("--sheets", type=Path)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    sheets = given.sheets or given.out
    for folder in (given.out, sheets):
        folder.mkdir(parents=True, exist_ok=True)
    path = find()
    if path is None:
        parser.error("no Chromium or Chrome is installed; tests/browser/chromium.py installs one")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=arguments())
        for page in given.pages:
            name = Path(page.partition("#")[0]).resolve().parent.name
            shots = [given.out / f"{name}-{end}.png" for end, _ in views()]
            for shot, (_, window) in zip(shots, views(), strict=True):
                take(browser, page, shot, whole=given.whole, **window)
            sheet = sheets / f"{name}.webp"
            contact_sheet(shots).save(sheet, quality=QUALITY, method=6)
            print(f"{sheet}: {sheet.stat().st_size:,} bytes")
        browser.close()


def views() -> Iterator[tuple[str, dict[str, Any]]]:
    """How the name of each picture ends, and the window that it shows."""
    for scheme in SCHEMES:
        for size in WINDOWS:
            yield f"{scheme}-{size[0]}", {"scheme": scheme, "size": size}


def take(
    browser: Any, page: str, shot: Path, *, scheme: str, size: tuple[int, int], whole: bool
) -> None:
    """Open a page in a window of its own and save what is seen when all of it is there."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
    )
    tab = context.new_page()
    path, mark, fragment = page.partition("#")
    tab.goto(Path(path).resolve().as_uri() + mark + fragment, wait_until="commit")
    tab.wait_for_selector("#map[data-state=ready]", timeout=120_000)
    # Pictures and names are painted in the frame after the last change.
    tab.evaluate("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => d())))")
    tab.screenshot(path=shot)
    if whole:
        tab.screenshot(path=shot.with_stem(shot.stem + "-whole"), full_page=True)
    context.close()


def contact_sheet(shots: list[Path]) -> Image.Image:
    """All windows of one page in one picture, a line for each scheme."""
    small = []
    for shot in shots:
        with Image.open(shot) as image:
            width = round(image.width * TALL / image.height)
            small.append(image.convert("RGB").resize((width, TALL), Image.Resampling.LANCZOS))
    lines = [small[i : i + len(WINDOWS)] for i in range(0, len(small), len(WINDOWS))]
    width = sum(image.width + GAP for image in lines[0]) + GAP
    sheet = Image.new("RGB", (width, len(lines) * (TALL + GAP) + GAP), "#8a8f98")
    for row, line in enumerate(lines):
        left = GAP
        for image in line:
            sheet.paste(image, (left, GAP + row * (TALL + GAP)))
            left += image.width + GAP
    return sheet


if __name__ == "__main__":
    main()
