"""What was measured: rows of benchmarks/results, how they are written, and the chart of speeds."""

import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnomon.charts.canvas import LEFT, RIGHT, Canvas
from gnomon.charts.chart import Chart

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
# Bars of the chart, in units of the drawing.
ROW, BAR, NAMES = 25, 13, 330
REACHED, MISSED = "accent", "c1"
# What the rows of benchmarks/results/pca.json are, where their shape does not say it.
KINDS = {
    "decaying": ", decaying variances",
    "flat": ", flat variances",
    "sparse": ", sparse",
    "stream": ", in batches",
}

Row = dict[str, Any]


class Results:
    """Rows of benchmarks/results by question, section and name."""

    def __init__(self, folder: Path = RESULTS) -> None:
        self.folder = folder

    def rows(self, question: str, section: str) -> dict[str, Row]:
        """Every row of a section, in order; names without the section's own."""
        data = self.sections(question)
        return {row["name"].removeprefix(f"{section} "): row for row in data[section]}

    def sections(self, question: str) -> dict[str, Any]:
        """Everything that a question's file holds."""
        found: dict[str, Any] = json.loads((self.folder / f"{question}.json").read_text("utf-8"))
        return found

    def version(self, question: str, package: str) -> str:
        """The version of a package that a question was measured with, as 1.9."""
        versions = self.sections(question)["environment"]["versions"]
        return ".".join(versions[package].split(".")[:2])


# How numbers are written


def seconds(value: float) -> str:
    """Write seconds as 0.26 s, 2.7 s or 85 s."""
    return f"{value:.2g} s" if value < 9.95 else f"{value:.0f} s"


def times(value: float) -> str:
    """Write how many times as fast as 1.1, 2.9 or 13: two digits."""
    return f"{value:.2g}" if value < 9.95 else f"{value:.0f}"


def percent(part: float, digits: int = 0) -> str:
    """Write a share in per cent; one below 1 is never rounded up to 100 %."""
    text = f"{100 * part:.{digits}f}"
    return "99.9 %" if float(text) == 100 and part < 1 else f"{text} %"


def exponent(value: float) -> str:
    """Write a small number as 9·10⁻⁴."""
    base, _, power = f"{value:.0e}".partition("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{base}·10{raised}"


def gigabytes(bytes_: float) -> str:
    """Write bytes as 0.32 GB."""
    return f"{bytes_ / 1e9:.2g} GB"


def shape(row: Row) -> str:
    """Write the shape of a table as 1,797 × 64."""
    return " × ".join(f"{each:,}" for each in row["shape"])


def listed(words: list[str]) -> str:
    """List words as in a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def table(header: list[str], lines: list[list[str]]) -> str:
    """A table of Markdown."""
    rule = ["---"] * len(header)
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *lines])


def median_ratio(row: Row, peer: str) -> float:
    """Median over pairs of a peer's time over ours."""
    pairs = zip(row["seconds"][peer], row["seconds"]["gnomon"], strict=True)
    return statistics.median(theirs / ours for theirs, ours in pairs)


# What was measured against a peer, for the chart and for the targets that are missed


@dataclass(frozen=True)
class Measured:
    """One ratio of times: what, against whom, how many times as fast, and the target."""

    method: str
    what: str
    peer: str
    ratio: float
    target: float

    @property
    def missed(self) -> bool:
        """Whether the ratio is below its target."""
        return self.ratio < self.target


def all_measured(results: Results) -> list[Measured]:
    """Every speed that has a target."""
    found = []
    for row in results.rows("tsne", "maps").values():
        for peer, target in row["target_ratios"].items():
            what = f"{row['shape'][0]:,} × {row['shape'][1]}"
            found.append(Measured("t-SNE", what, peer, median_ratio(row, peer), target))
    for name, row in results.rows("pca", "rows").items():
        peer = "IncrementalPCA" if name == "stream" else row["fastest_peer"]
        what = shape(row) + KINDS.get(name, "")
        found.append(Measured("PCA", what, peer, row["timing"]["ratio"], row["target_ratio"]))
    for name, row in results.rows("outofcore", "rows").items():
        if row.get("ratio"):
            what = f"{name.split()[0].capitalize()} file of 8 GB".replace("Npy", ".npy")
            found.append(Measured("PCA", what, "IncrementalPCA", row["ratio"], 10))
    for row in results.rows("procrustes", "rows").values():
        target = row["target_ratio"]
        found.append(Measured("Procrustes", shape(row), "SciPy", row["timing"]["ratio"], target))
    return found


def draw_speed(results: Results) -> Chart:
    """Bars of every ratio on a scale of factors of ten, with its target as a line."""
    found = all_measured(results)
    missed = sum(each.missed for each in found)
    canvas = Canvas(
        "How many times as fast",
        f"Time of the fastest other program (or the one that is named) over ours, on two cores. "
        f"A line marks the target. {missed} of {len(found)} targets are missed: orange.",
    )
    left, right = LEFT + NAMES, RIGHT - 42
    low = 0.7
    high = max(60.0, 1.2 * max(max(each.ratio, each.target) for each in found))

    def at(value: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return left + (right - left) * min(max(share, 0), 1)

    y = canvas.top - 8.0
    top, bottom = y + 8, y
    rows: list[tuple[float, Measured]] = []
    former = None
    for each in found:
        if each.method != former:
            y += 26
            canvas.text(LEFT, y + 4, each.method, "label ink")
            former = each.method
        y += ROW
        rows.append((y, each))
        bottom = y
    for tick in (1, 3, 10, 30):
        canvas.line(at(tick), top, at(tick), bottom + 14, "axis" if tick == 1 else "grid")
        canvas.text(at(tick), bottom + 32, f"{tick}", "tick soft", "middle")
    for y, each in rows:
        tip = f"{each.method}, {each.what}: {times(each.ratio)} times as fast as {each.peer}; "
        tip += f"target {each.target:g}" + (", missed" if each.missed else "")
        canvas.text(LEFT, y + 4, f"{each.what} · {each.peer}", "tick soft")
        start, end = sorted((at(1), at(each.ratio)))
        style = MISSED if each.missed else REACHED
        canvas.rect(start, y - BAR / 2, max(end - start, 1.5), BAR, style, tip=tip)
        canvas.line(at(each.target), y - 9, at(each.target), y + 9, "line line-ink")
        said = f"{times(each.ratio)}" + (" missed" if each.missed else "")
        canvas.text(max(end, at(each.target)) + 6, y + 4, said, "tick ink")
    details = "; ".join(
        f"{each.method} {each.what} against {each.peer} {times(each.ratio)} "
        f"(target {each.target:g})"
        for each in found
    )
    return canvas.finish(bottom + 46, details)
