"""What a map costs by the number of its points, stage by stage; ours alone."""

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.environment import Settings
from benchmarks.memory import peak_megabytes, save_table
from benchmarks.table import number
from benchmarks.tsne_programs import (
    COLUMNS,
    GENERATED,
    Points,
    fit_gnomon,
    seconds_of,
    shape_cell,
    warm_up,
)
from benchmarks.tsne_section import Section

SIZES = {
    "1k": 1_000,
    "3k": 3_000,
    "10k": 10_000,
    "30k": 30_000,
    "100k": 100_000,
    "200k": 200_000,
    "million": 1_000_000,
}
FIRST_EDITION_MILLION = 121.0  # seconds of one fit, 750 iterations, on two threads
STAGES = ("neighbors", "affinities", "start", "descent", "certificate")


def measure(n: int, settings: Settings) -> dict[str, Any]:
    """Seconds of one fit of n generated rows, and the peak memory of another in a fresh process."""
    points = Points(*data.clusters(n, COLUMNS), GENERATED)
    warm_up()
    seconds, model = seconds_of(partial(fit_gnomon, points.X, 2))
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_megabytes(fit_gnomon, save_table(points.X, Path(folder)), 2)
    return {
        **points.describe(),
        "seconds": seconds,
        "peak_megabytes": peak,
        "stages": dict(model.timings_),
        "iterations": model.n_iter_,
        "kl": model.kl_divergence_,
        "edges": int(model.affinities_.nnz),
        "recall": model.certificate_.recall,
        "force_error": model.certificate_.force_error,
        "repulsion": model.certificate_.repulsion,
    }


def lines(found: Mapping[str, Any]) -> list[list[str]]:
    """The one line of a size."""
    each = found["stages"]["descent"] / found["iterations"]
    return [
        [
            shape_cell(found),
            number(found["seconds"]),
            *(number(found["stages"].get(stage)) for stage in STAGES),
            number(1e3 * each),
            number(1e9 * each / found["shape"][0]),
            number(found["recall"], ".3f"),
            f"{found['force_error']:.1%}",
            found["repulsion"],
            number(found["peak_megabytes"], ".0f"),
        ]
    ]


SECTION = Section(
    name="size",
    caption="our seconds by stage.",
    header=[
        "row",
        "data",
        "s in all",
        *(f"{stage}, s" for stage in STAGES),
        "ms an iteration",
        "ns a point",
        "recall",
        "force error",
        "repulsion at the end",
        "peak MB above input",
    ],
    rows={name: partial(measure, n) for name, n in SIZES.items()},
    lines=lines,
    notes=(
        "size: one run each, after kernels are loaded, and another in a fresh process for its peak "
        "memory; ns a point is of one iteration. The row million is measured only with `--only "
        f"million`; the first edition (commit 0f849c1) took {FIRST_EDITION_MILLION:g} s for it, "
        "right after ours on 2026-11-19.",
    ),
    on_request=frozenset({"million"}),
)
