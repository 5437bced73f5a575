"""The page: how large it is, how soon its map is drawn, and how quickly it follows the hand.

A real Chromium opens each page from disk, at 1280 × 900 pixels. Where there is no graphics
card WebGL is drawn by the processor (SwiftShader): the table says so, and the page does not use it.

The page of MNIST is made as users make it, from a PCA and the t-SNE map of all rows. Pages of more
points are of generated clusters, whose positions are given: how they look is not the question.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.environment import THREADS, BenchmarkError, Settings, peer
from benchmarks.table import Report, Table, number, verdict
from tests.browser.webgl import IN_SOFTWARE, WITHOUT_WEBGL

IMAGES = "mnist"
SIZES = {"100k": 100_000, "1m": 1_000_000}
COLUMNS, KINDS = 4, 12
OPENINGS = 7
REST = 2.0  # seconds before each, in which the browser ends what the page before began
FRAMES = 40  # of each movement, after the first few
RECOLOURINGS = 5
TARGET_BYTES = 3_000_000
TARGET_SECONDS = 2.0
WINDOW = {"width": 1280, "height": 900}
WAYS = {"webgl": "WebGL", "canvas": "plain canvas"}

# Events as a hand makes them, one for each frame; what is measured is the time between frames.
MOVE = """async ([kind, frames]) => {
  const stage = document.getElementById("map-stage");
  stage.setPointerCapture = () => {};  // there is no real pointer
  const box = stage.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const send = (name, across, buttons) => stage.dispatchEvent(new PointerEvent(name, {
    pointerId: 1, clientX: x + across, clientY: y + across / 2, button: 0, buttons}));
  const next = () => new Promise((done) => requestAnimationFrame(done));
  if (kind === "pan") send("pointerdown", 0, 1);
  const times = [];
  for (let i = 1; i <= frames; i++) {
    const swing = Math.sin(i / 6);
    if (kind === "pan") send("pointermove", 120 * swing, 1);
    else stage.dispatchEvent(new WheelEvent("wheel", {
      clientX: x, clientY: y, deltaY: swing > 0 ? -40 : 40, ctrlKey: true, cancelable: true}));
    times.push(await next());
  }
  if (kind === "pan") send("pointerup", 0, 0);
  return times;
}"""
# From the choice in the menu until the points have their colours; reading a pixel waits until what
# the browser was told to draw is there.
RECOLOUR = """async ([choice]) => {
  const stage = document.getElementById("map-stage");
  const menu = document.getElementById("map-colour");
  const name = menu.options[choice].textContent;
  const before = performance.now();
  menu.selectedIndex = choice;
  menu.dispatchEvent(new Event("change"));
  while (stage.dataset.colour !== name) await new Promise(requestAnimationFrame);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const pencil = canvas.getContext("2d", {willReadFrequently: true});
  pencil.drawImage(document.getElementById("map-points"), 0, 0);
  pencil.getImageData(0, 0, 1, 1);
  return performance.now() - before;
}"""
SEEN = """() => ({
  drawn: performance.getEntriesByName("gnomon-map-drawn")[0].startTime / 1000,
  ready: performance.getEntriesByName("gnomon-ready")[0].startTime / 1000,
  drawing: document.getElementById("map-stage").dataset.drawing,
})"""
RENDERER = """() => {
  const gl = document.createElement("canvas").getContext("webgl");
  const more = gl && gl.getExtension("WEBGL_debug_renderer_info");
  return more ? gl.getParameter(more.UNMASKED_RENDERER_WEBGL) : "none";
}"""
# What the page draws by is its own choice; to measure the other way it is told other things.
TOLD = {"webgl": IN_SOFTWARE, "canvas": WITHOUT_WEBGL}

Make = Callable[[], tuple[Any, float]]


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One page after the other."""
    makes: dict[str, Make] = {IMAGES: lambda: make_images(settings.data)}
    makes |= {name: lambda n=n: make_clusters(n) for name, n in SIZES.items()}
    if not any(map(settings.wants, makes)):
        raise BenchmarkError(
            f"--only must be part of a row's name; got {settings.only}: {', '.join(makes)}"
        )
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        for name, make in makes.items():
            if not settings.wants(name):
                continue
            print(f"page: {name}", file=sys.stderr, flush=True)
            page, seconds = make()
            path = page.save(Path(folder) / f"{name}.html")
            about = {
                "name": name,
                "rows": page.content.n,
                "columns": page.content.d,
                "bytes": path.stat().st_size,
                "build": seconds,
            }
            openings = settings.pairs or OPENINGS
            yield "pages", about | measure_openings(chromium, path, openings)
            for way in TOLD:
                pace = measure_pace(chromium, path, way)
                yield "pace", {"name": f"{name} {way}", "rows": page.content.n, **pace}


def make_images(folder: Path | None) -> tuple[Any, float]:
    """The page of MNIST by digit, or of generated rows of its shape, and the seconds it took."""
    from gnomon import PCA, TSNE, report

    X = data.images(folder)
    digits = np.arange(len(X)) % 10 if folder is None else data.image_labels(folder)
    pca = PCA(0.95, random_state=0, n_jobs=THREADS).fit(X)
    tsne = TSNE(random_state=0, n_jobs=THREADS).fit(X)
    return timed(lambda: report(X, pca=pca, tsne=tsne, labels={"digit": digits}, n_jobs=THREADS))


def make_clusters(n: int) -> tuple[Any, float]:
    """The page of `n` generated points, and the seconds it took."""
    from gnomon import PCA, report

    X, kinds = data.clusters(n, COLUMNS, KINDS)
    pca = PCA(COLUMNS, random_state=0, n_jobs=THREADS).fit(X)
    room = 40 * n + TARGET_BYTES  # for all columns
    return timed(lambda: report(X, pca=pca, labels={"kind": kinds}, page_budget=room))


def timed(make: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    made = make()
    return made, time.perf_counter() - start


@contextmanager
def browser() -> Iterator[Any]:
    """A running Chromium: the one that the page is tested in."""
    start = peer("playwright.sync_api", "sync_playwright", "playwright")
    from tests.browser.chromium import arguments, find

    path = find()
    if path is None:
        raise BenchmarkError("No Chromium or Chrome was found: tests/browser/chromium.py gets one.")
    with start() as play:
        chromium = play.chromium.launch(executable_path=path, args=arguments())
        yield chromium
        chromium.close()


@contextmanager
def opened(chromium: Any, path: Path, way: str | None = None) -> Iterator[Any]:
    """The page in a window of its own, when all of it is there, drawn in its own way or another."""
    context = chromium.new_context(viewport=WINDOW)
    page = context.new_page()
    if way is not None:
        page.add_init_script(TOLD[way])
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_selector("#map[data-state=ready]", timeout=300_000)
    yield page
    context.close()


def measure_openings(chromium: Any, path: Path, openings: int) -> dict[str, Any]:
    """Seconds from navigation to the drawn map, and until every tool is there."""
    times = []
    for _ in range(openings + 1):
        time.sleep(REST)
        with opened(chromium, path) as page:
            times.append(page.evaluate(SEEN))
    times = times[1:]  # the first opening wakes the browser
    with opened(chromium, path) as page:
        renderer = page.evaluate(RENDERER)
    return {
        "drawn": [one["drawn"] for one in times],
        "ready": [one["ready"] for one in times],
        "drawing": times[0]["drawing"],
        "browser": chromium.version,
        "renderer": renderer,
    }


def measure_pace(chromium: Any, path: Path, way: str) -> dict[str, Any]:
    """Milliseconds between frames while the map is moved, and seconds for other colours."""
    with opened(chromium, path, way) as page:
        page.evaluate("document.getElementById('map').scrollIntoView({behavior: 'instant'})")
        drawing = page.evaluate(SEEN)["drawing"]
        if drawing != way:
            raise BenchmarkError(f"{path.name} was drawn by {drawing}: nothing was measured.")
        found: dict[str, Any] = {"drawing": drawing}
        for kind in ("pan", "zoom"):
            found[kind] = np.diff(page.evaluate(MOVE, [kind, FRAMES]))[3:].tolist()
        choices = page.locator("#map-colour option").count()
        found["recolour"] = [
            page.evaluate(RECOLOUR, [1 + i % (choices - 1)]) / 1000 for i in range(RECOLOURINGS)
        ]
        return found


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The tables of the rows that there are."""
    tables = []
    if pages := raw.get("pages"):
        header = [
            "page",
            "rows × columns",
            "bytes",
            "build, s",
            "drawn, s [range]",
            "all tools, s [range]",
            "then drawn by",
            "target",
            "verdict",
        ]
        browsers = ", ".join(sorted({row["browser"] for row in pages}))
        caption = f"Size, and seconds from navigation to the drawn map, in Chromium {browsers}."
        tables.append(Table(caption, header, [_page_cells(row) for row in pages]))
    if pace := raw.get("pace"):
        header = [
            "page",
            "points",
            "drawn by",
            "pan, ms a frame [nine of ten]",
            "zoom, ms a frame [nine of ten]",
            "recolour, s [range]",
        ]
        cards = sorted({row["renderer"] for row in pages or ()})
        caption = (
            f"Milliseconds between frames while the map is moved; WebGL by {', '.join(cards)}."
        )
        # The page itself knows processors that play the card, and draws without them.
        software = any(row["drawing"] == "canvas" for row in pages or ())
        tables.append(Table(caption, header, [_pace_cells(row, software) for row in pace]))
    return Report("The page", tables, NOTES)


def _page_cells(row: Mapping[str, Any]) -> list[str]:
    cells = [
        row["name"],
        f"{row['rows']:,} × {row['columns']:,}",
        f"{row['bytes']:,}",
        number(row["build"], ".1f"),
        _middle(row["drawn"]),
        _middle(row["ready"]),
        WAYS[row["drawing"]],
    ]
    if row["name"] != IMAGES:
        return [*cells, "–", "–"]
    complaints = []
    if row["bytes"] >= TARGET_BYTES:
        complaints.append(f"{row['bytes']:,} bytes are not below {TARGET_BYTES:,}")
    if np.median(row["drawn"]) >= TARGET_SECONDS:
        complaints.append(f"{np.median(row['drawn']):.2f} s are not below {TARGET_SECONDS:g} s")
    target = f"< {TARGET_BYTES / 1e6:g} MB, drawn < {TARGET_SECONDS:g} s"
    return [*cells, target, verdict(complaints)]


def _pace_cells(row: Mapping[str, Any], software: bool) -> list[str]:
    way = WAYS[row["drawing"]] + " in software" * (software and row["drawing"] == "webgl")
    moved = [
        f"{np.median(row[kind]):.0f} [{np.percentile(row[kind], 90):.0f}]"
        for kind in ("pan", "zoom")
    ]
    return [row["name"], f"{row['rows']:,}", way, *moved, _middle(row["recolour"])]


def _middle(seconds: Sequence[float]) -> str:
    low, high = number(min(seconds), ".2f"), number(max(seconds), ".2f")
    return f"{number(float(np.median(seconds)), '.2f')} [{low}, {high}]"


NOTES = (
    f"Chromium, headless, {WINDOW['width']} × {WINDOW['height']} pixels, from disk; median of "
    f"{OPENINGS} openings, {REST:g} s apart, after one that is not counted.",
    "Drawn: the map is on the screen, in its colours. All tools: search, cards and lasso are there "
    "as well, and WebGL, which draws from then on where there is a graphics card for it.",
    "The page chooses how it is drawn; for the second table it is kept from choosing.",
    f"Frames: {FRAMES} movements of the pointer or turns of the wheel, one a frame. 16.7 ms is "
    "what a screen can show.",
    "Recolour: from the choice of another column until the points have its colours.",
    "Build: `gnomon.report` with the models at hand, neighbours and scores of the map included.",
)
