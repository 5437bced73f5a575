"""What a reader does with the map, and what they see."""

import csv
import io
import time

import numpy as np

PATIENCE = 30  # seconds, as long as Playwright itself waits: machines may be slow or busy


def view(page, prefix="map"):
    """The middle of what is seen, the pixels of a unit, and the stage's box."""
    stage = f"#{prefix}-stage"
    x, y, scale = map(float, page.get_attribute(stage, "data-view").split())
    return x, y, scale, page.locator(stage).bounding_box()


def on_screen(page, positions, prefix="map"):
    """Where places of the map (n, 2) are in the window."""
    x, y, scale, box = view(page, prefix)
    # The stage has a border of one pixel, and its drawing begins within.
    across = box["x"] + 1 + (box["width"] - 2) / 2 + scale * (positions[:, 0] - x)
    down = box["y"] + 1 + (box["height"] - 2) / 2 - scale * (positions[:, 1] - y)
    return np.column_stack([across, down])


def inside(polygon, points):
    """Which points (n, 2) lie inside a polygon (m, 2), and how far the nearest is from its edge."""
    result = np.zeros(len(points), dtype=bool)
    nearest = np.inf
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        crosses = (y1 > points[:, 1]) != (y2 > points[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            at = (x2 - x1) * (points[:, 1] - y1) / (y2 - y1) + x1
        result ^= crosses & (points[:, 0] < at)
        edge = np.array([x2 - x1, y2 - y1])
        along = np.clip((points - [x1, y1]) @ edge / (edge @ edge), 0, 1)
        away = np.linalg.norm(points - [x1, y1] - along[:, None] * edge, axis=1)
        nearest = min(nearest, away.min())
    return result, nearest


def point(page, place):
    page.mouse.move(float(place[0]), float(place[1]))


def lasso(page, polygon, *, shift=True):
    """Draw around a polygon in the window."""
    if shift:
        page.keyboard.down("Shift")
    corners = np.asarray(polygon).tolist()
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in [*corners[1:], corners[0]]:
        page.mouse.move(*corner, steps=4)
    page.mouse.up()
    if shift:
        page.keyboard.up("Shift")


def until(page, holds):
    """Wait until something is drawn or told: WebGL needs some frames, more on a busy machine."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"it did not happen within {PATIENCE} seconds"
        page.wait_for_timeout(60)


def painted(page):
    """Wait until what a change has to be drawn is on the screen: that is done in the next frame."""
    page.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
    )


def pixels(page):
    """The points as they are drawn, as one text."""
    return page.evaluate("document.getElementById('map-points').toDataURL()")


def drawn(page, least=200):
    """The points as they are drawn, as one text, when there are any: that may take some frames."""
    until(page, lambda: colours_seen(page) > least)
    return pixels(page)


def colours_seen(page):
    """How many pixels of the map have a colour of their own."""
    return page.evaluate(
        """() => {
          const points = document.getElementById("map-points");
          const canvas = document.createElement("canvas");  // theirs may be drawn by WebGL
          [canvas.width, canvas.height] = [points.width, points.height];
          const pencil = canvas.getContext("2d", {willReadFrequently: true});
          pencil.drawImage(points, 0, 0);
          const {data} = pencil.getImageData(0, 0, canvas.width, canvas.height);
          let seen = 0;
          for (let i = 0; i < data.length; i += 4) {
            const [r, g, b, a] = data.subarray(i, i + 4);
            if (a > 40 && Math.max(r, g, b) - Math.min(r, g, b) > 40) seen++;
          }
          return seen;
        }"""
    )


def download(page, button):
    """The bytes of the file that a button gives, and its name."""
    with page.expect_download() as waiting:
        page.click(button)
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def overflow(page):
    """By how many pixels the page is wider than its window."""
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
