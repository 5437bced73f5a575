"""How far a map moves when the data grow by a quarter, with and without alignment.

A map of 80 % of the rows, then maps of all of them: made afresh, made afresh and laid over the
first one afterwards, and made in its frame (`TSNE(align_to=former)`). For PCA, the scores of two
components with and without `fit(like=former)`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.environment import THREADS, Settings
from benchmarks.table import Report, Table, number, verdict

ROWS, SHARE, COLUMNS = 20_000, 0.8, 50
TARGET = 0.1  # of the map's size


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row after the other, with the section it belongs to."""
    for name, measure in (("t-SNE", measure_tsne), ("PCA", measure_pca)):
        if settings.wants(name):
            print(f"staying: {name}", file=sys.stderr, flush=True)
            yield "movement", {"name": name, **measure(settings)}


def measure_tsne(settings: Settings) -> dict[str, Any]:
    from gnomon import PCA, TSNE, Procrustes

    X = PCA(COLUMNS, random_state=0).fit_transform(data.images(settings.data)[:ROWS])
    first = int(SHARE * ROWS)
    former = TSNE(n_jobs=THREADS).fit(X[:first])
    fresh = TSNE(n_jobs=THREADS).fit(X)
    other = TSNE(n_jobs=THREADS, init="random", random_state=1).fit(X)
    kept = TSNE(n_jobs=THREADS, align_to=former).fit(X)
    places = former.embedding_.astype(np.float64)

    def laid_over(Y: Any) -> Any:
        return Procrustes(scaling=True, robust="tukey").fit(Y[:first], places).transform(Y)

    maps = {
        "afresh": fresh.embedding_,
        "afresh, laid over": laid_over(fresh.embedding_.astype(np.float64)),
        "random start": other.embedding_,
        "random start, laid over": laid_over(other.embedding_.astype(np.float64)),
        "align_to": kept.embedding_,
    }
    movement = {name: _movement(Y[:first], places) for name, Y in maps.items()}
    models = {"former": former, "afresh": fresh, "align_to": kept}
    return _result(X, movement, {name: model.kl_divergence_ for name, model in models.items()})


def measure_pca(settings: Settings) -> dict[str, Any]:
    from gnomon import PCA

    X = data.images(settings.data)[:ROWS]
    first = int(SHARE * ROWS)
    former = PCA(2, random_state=0).fit(X[:first])
    places = former.transform(X[:first]).astype(np.float64)
    models = {
        "afresh": PCA(2, random_state=0).fit(X),
        "align_to": PCA(2, random_state=0).fit(X, like=former),
    }
    movement = {name: _movement(m.transform(X[:first]), places) for name, m in models.items()}
    return _result(X, movement, {})


def _result(X: Any, movement: dict[str, float], kl: dict[str, float]) -> dict[str, Any]:
    missed = movement["align_to"] >= TARGET
    return {
        "shape": list(X.shape),
        "shared": int(SHARE * ROWS),
        "movement": movement,
        "kl": kl,
        "complaints": [f"movement of {TARGET} or more"] if missed else [],
    }


def _movement(Y: Any, places: Any) -> float:
    """Median distance from the former places, relative to their root mean squared spread."""
    size = np.sqrt(((places - places.mean(axis=0)) ** 2).sum(axis=1).mean())
    return float(np.median(np.linalg.norm(Y - places, axis=1)) / size)


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The table of the rows that there are."""
    ways = ("afresh", "afresh, laid over", "random start", "random start, laid over", "align_to")
    lines = []
    for row in raw.get("movement", ()):
        n, d = row["shape"]
        kl = " / ".join(number(value) for value in row["kl"].values()) or "–"
        cells = [number(row["movement"].get(way)) for way in ways]
        lines.append(
            [
                row["name"],
                f"{n:,} × {d}",
                f"{row['shared']:,}",
                *cells,
                kl,
                verdict(row["complaints"]),
            ]
        )
    header = ["map", "rows × columns", "shared", *ways, "KL former / afresh / aligned", "target"]
    table = Table("Median movement of shared rows, relative to the map's size.", header, lines)
    return Report("Maps that stay put", [table], NOTES)


NOTES = (
    "The former map holds the first 80 % of the rows, the others all of them. t-SNE: MNIST's first "
    "20,000 rows by 50 principal scores with --data, generated ones without. PCA: the same rows as "
    "they are; `align_to` is `fit(like=former)`.",
    "Laid over: turned, mirrored and scaled onto the former places of shared rows, robustly.",
    f"To reach: below {TARGET} with `align_to`.",
)
