"""The moving picture of README.md: a real run of the command, and a reader on the page it writes.

python docs/film.py                    the bundled digits
python docs/film.py mnist.npz          a table of your own

runs `gnomon map` on the table, shows the lines that it writes when they come, opens the page
in Chromium, points at a row, draws a lasso, and writes `docs/pictures/film-light.webp` and
`docs/pictures/film-dark.webp`. Every picture is a screenshot; only the pointer is painted over it,
since a browser without a window has none. What comes after TABLE is passed on to `gnomon map`.
"""

import html
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from PIL import Image, ImageDraw
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browser.chromium import arguments, find
from browser.hands import on_screen

PICTURES = Path(__file__).parent / "pictures"
WINDOW = (1280, 720)  # pixels of the browser
SHOWN = (960, 540)  # pixels of the film
QUALITY = 60  # of WebP
TYPED_MS, STEP_MS, STILL_MS, POSTER_MS = 40, 60, 1700, 300
MOST_BYTES = 1_500_000
ARROW = np.array([(0, 0), (0, 21), (5, 16), (9, 25), (13, 23), (9, 15), (16, 15)])
TERMINAL = """<!doctype html><meta charset="utf-8"><style>
:root {{ color-scheme: light dark }}
body {{ margin: 0; padding: 44px 52px; background: light-dark(#f6f7f9, #14171c);
  color: light-dark(#1c2028, #dde1e8);
  font: 21px/1.62 "DejaVu Sans Mono", "Liberation Mono", monospace; white-space: pre-wrap }}
b {{ color: light-dark(#0067a3, #6bb9ec); font-weight: normal }}
i {{ font-style: normal; background: light-dark(#1c2028, #dde1e8) }}
</style><div id="text">{text}</div>"""

Line = tuple[float, str]
Frame = tuple[Image.Image, int]  # and milliseconds


def run_command(command: list[str], folder: Path) -> list[Line]:
    """Run the command twice, so that its kernels are compiled; lines of the second, with times."""
    lines: list[Line] = []
    for _ in range(2):
        lines = []
        start = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-c", "from gnomon.cli import main; main()", *command[1:], "--force"],
            cwd=folder,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            lines.extend((time.monotonic() - start, line.rstrip()) for line in process.stderr)
        if process.returncode:
            raise SystemExit("\n".join(line for _, line in lines))
    return lines


def seen(tab: Any, pointer: Any = None) -> Image.Image:
    """What the window shows, with the pointer at its place, in the size of the film."""
    with Image.open(BytesIO(tab.screenshot())) as shot:
        picture = shot.convert("RGB")
    if pointer is not None:
        shape = [tuple(each) for each in (ARROW + pointer).tolist()]
        ImageDraw.Draw(picture).polygon(shape, fill="black", outline="white", width=2)
    return picture.resize(SHOWN, Image.Resampling.LANCZOS)


def film_of_command(tab: Any, command: str, lines: list[Line]) -> Iterator[Frame]:
    """Show the command as it is typed, and its lines at the times at which they came."""

    def show(typed: str, said: list[str]) -> Image.Image:
        words = [f"<b>{html.escape(line[:8])}</b>{html.escape(line[8:])}" for line in said]
        prompt = f"$ {html.escape(typed)}" + ("" if said else "<i> </i>")
        tab.set_content(TERMINAL.format(text="\n".join([prompt, *words])))
        return seen(tab)

    for end in range(0, len(command) + 1, 2):
        yield show(command[:end], []), TYPED_MS * 2
    yield show(command, []), 500
    for i, (when, _) in enumerate(lines):
        later = lines[i + 1][0] if i + 1 < len(lines) else when
        wait = STILL_MS if i + 1 == len(lines) else max(STEP_MS, round(1000 * (later - when)))
        yield show(command, [line for _, line in lines[: i + 1]]), wait


def film_of_page(tab: Any, table: Any) -> Iterator[Frame]:
    """Show a reader on the page: at two rows, around a group, and at what is selected."""
    tab.wait_for_selector("#map[data-state=ready]", timeout=120_000)
    tab.evaluate("scrollTo(0, document.querySelector('header').getBoundingClientRect().height)")
    settle(tab)
    places = np.column_stack([table["tsne1"].to_numpy(), table["tsne2"].to_numpy()])
    window = on_screen(tab, places)
    here = np.array([700.0, 640.0])
    yield seen(tab, here), 900
    for row in rows_to_see(places, window):
        for step in between(here, window[row], 7):
            here = step
            tab.mouse.move(*here)
            yield seen(tab, here), STEP_MS
        tab.wait_for_timeout(250)
        settle(tab)
        yield seen(tab, here), STILL_MS
    button = tab.locator("#map-lasso").bounding_box()
    corners = around(window, group_of(table, window))
    top = tab.locator("#map-stage").bounding_box()["y"] + 12
    stops = (
        (button["x"] + button["width"] / 2, button["y"] + button["height"] / 2),
        (corners[0][0], top),  # past the map, so that no row's card is in the way
        corners[0],
    )
    for i, stop in enumerate(stops):
        for step in between(here, stop, 5):
            here = step
            tab.mouse.move(*here)
            yield seen(tab, here), STEP_MS
        if i == 0:
            tab.mouse.click(*here)
            yield seen(tab, here), 400
    tab.mouse.down()
    for here in corners[1:]:
        tab.mouse.move(*here)
        settle(tab)
        yield seen(tab, here), STEP_MS
    tab.mouse.up()
    tab.wait_for_selector("#map-selection h4")
    tab.wait_for_timeout(400)
    settle(tab)
    yield seen(tab, here), round(2.2 * STILL_MS)


def settle(tab: Any) -> None:
    """Wait for the frame after the last change."""
    tab.evaluate("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => d())))")


def between(start: Any, end: Any, steps: int) -> Any:
    """Points of the way from `start` to `end`, slower at both ends."""
    share = (1 - np.cos(np.linspace(0, np.pi, steps + 1)[1:])) / 2
    return start + share[:, None] * (np.asarray(end) - start)


def rows_to_see(places: Any, window: Any) -> list[int]:
    """A row left of the middle of the map and one above it, both among many others."""
    middle = np.median(window, axis=0)
    wishes = middle + np.array([[-150, 40], [60, -130]])
    return [int(np.argmin(np.hypot(*(window - wish).T))) for wish in wishes]


def group_of(table: Any, window: Any) -> Any:
    """Which rows belong to the group that stands furthest to the left."""
    labels = np.asarray(table.column(table.column_names.index("tsne1") - 1).to_pylist())
    names = np.unique(labels)
    leftmost = min(names, key=lambda name: np.median(window[labels == name, 0]))
    return labels == leftmost


def around(window: Any, group: Any) -> Any:
    """A closed line (25, 2) around nine tenths of a group."""
    centre = np.median(window[group], axis=0)
    reach = np.quantile(np.abs(window[group] - centre), 0.9, axis=0) + 14
    angles = np.linspace(-np.pi / 2, 1.5 * np.pi, 25)
    return centre + reach * np.column_stack([np.cos(angles), np.sin(angles)])


def write(frames: list[Frame], path: Path) -> None:
    """Write an animation that begins, and ends, with its last picture: some show only the first."""
    pictures, times = zip((frames[-1][0], POSTER_MS), *frames, strict=True)
    pictures[0].save(
        path,
        save_all=True,
        append_images=pictures[1:],
        duration=list(times),
        loop=0,
        quality=QUALITY,
        allow_mixed=True,  # without a shadow of the page on the terminal
        method=6,
        minimize_size=False,
    )
    size = path.stat().st_size
    print(f"{path}: {len(pictures)} pictures, {sum(times) / 1000:.0f} s, {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} is larger than {MOST_BYTES:,} bytes.")


def main(given: list[str]) -> None:
    """Run the command once, and film it and the page in light and in dark."""
    data, *options = given or ["digits"]
    table = Path(data)
    browser_path = find()
    if browser_path is None:
        raise SystemExit("no Chromium or Chrome is installed; tests/browser/chromium.py has one")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as play:
        folder = Path(name)
        if table.exists():
            (folder / table.name).symlink_to(table.resolve())
        command = ["gnomon", "map", table.name, *options]
        lines = run_command(command, folder)
        results = folder / f"{table.name.split('.')[0]}_map"
        rows = pq.read_table(results / "map.parquet")
        browser = play.chromium.launch(executable_path=browser_path, args=arguments())
        for scheme in ("light", "dark"):
            tab = browser.new_context(
                viewport={"width": WINDOW[0], "height": WINDOW[1]},
                color_scheme=scheme,
                reduced_motion="reduce",
            ).new_page()
            frames = list(film_of_command(tab, " ".join(command), lines))
            tab.goto((results / "report.html").as_uri(), wait_until="commit")
            frames += film_of_page(tab, rows)
            write(frames, PICTURES / f"film-{scheme}.webp")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
