"""Stability of the points of a map: the same rows mapped repeatedly, in one frame.

1. The estimator is fitted `runs` times: on 90 % of the rows each time, every row left out about
   equally often, or on all rows from random starts. A start from PCA gives the same bits every
   time, so something must vary.
2. All maps are aligned in one consensus frame (`consensus.py`): rotated, reflected and scaled.
3. A point's displacement in a run is its distance from its mean position. The mean displacement
   of its nearest neighbours in the mean map is movement **with** them (a group that jumps as a
   whole); the rest is movement **alone** (a point without a stable position).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags

from gnomon.errors import refuse
from gnomon.inputs import check_choice, check_integer, check_real, random_generator
from gnomon.neighbors.search import find_neighbors
from gnomon.procrustes.consensus.fit import Consensus, consensus
from gnomon.records import Record
from gnomon.typing import Floats64

# Movement relative to the map's size from which a map counts as another one (docs/guide/trust.md),
# and share of points that stay among their neighbours on a stable map.
FAR, MOST = 0.2, 0.9

__all__ = ["Stability", "stability"]


@dataclass(frozen=True, eq=False)
class Stability(Record):
    """Dependence of a map, and of each of its points, on chance.

    Attributes
    ----------
    mean : array (n, k)
        The consensus map.
    spread : array (n,)
        Root mean squared distance of a point from its mean position, over the runs that held it,
        relative to the mean distance of its nearest neighbours in the consensus map. Below 1 the
        point stays among its neighbours.
    moved_with, moved_alone : array (n,)
        Movement shared with neighbours, and the rest. Their squares need not add up.
    counts : array (n,)
        Number of runs that held the point.
    runs : array (runs,)
        For each map: median distance of its points from their mean positions, relative to the size
        of the consensus map (root mean squared distance from its centre).
    score : float
        Score of the map: share of points with a `spread` below 1.
    vary : str
    n_neighbors : int
    consensus : Consensus
        All maps in one frame.
    """

    mean: Floats64 = field(repr=False)
    spread: Floats64 = field(repr=False)
    moved_with: Floats64 = field(repr=False)
    moved_alone: Floats64 = field(repr=False)
    counts: NDArray[np.intp] = field(repr=False)
    runs: Floats64
    score: float
    vary: str
    n_neighbors: int
    consensus: Consensus = field(repr=False)

    def title(self) -> str:
        """One-line summary."""
        return (
            f"{self.score:.1%} of {len(self.mean):,} points stay among their neighbours "
            f"in {len(self.runs)} maps (varied: {self.vary})"
        )

    @property
    def far(self) -> bool:
        """Whether points move by a good part of the map's size."""
        return float(np.median(self.runs)) >= FAR

    def verdict(self) -> str:
        """Say in one sentence what the movement means."""
        moved = 100 * float(np.median(self.runs))
        size = f"points move by {moved:.0f} % of the map's size (median)"
        if self.far:
            return f"Not stable: {size}, so groups change places."
        if self.score >= MOST:
            return f"Stable: groups stay in place, and so do points; {size}."
        return f"Stable as a whole, not in detail: groups stay in place; {size}."

    def lines(self) -> list[tuple[str, str]]:
        """Labelled numbers of the summary."""
        parts = (self.spread, self.moved_with, self.moved_alone)
        spread, together, alone = (float(np.median(part)) for part in parts)
        return [
            ("spread", f"median {spread:.2f} of the distance of {self.n_neighbors} neighbours"),
            ("with neighbours", f"median {together:.2f}"),
            ("alone", f"median {alone:.2f}"),
            (
                "maps",
                f"median movement {np.median(self.runs):.3f} of the map's size, "
                f"most {self.runs.max():.3f}",
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Fields as a dictionary, without the maps."""
        return {
            "score": self.score,
            "vary": self.vary,
            "n_neighbors": self.n_neighbors,
            "runs": self.runs.tolist(),
            **{k: v.tolist() for k, v in self.columns().items()},
        }

    def summary(self) -> dict[str, Any]:
        """Score, medians and settings, without a number for every point."""
        parts = {name: float(np.median(values)) for name, values in self.columns().items()}
        return {
            "score": self.score,
            "verdict": self.verdict(),
            "vary": self.vary,
            "n_neighbors": self.n_neighbors,
            "runs": self.runs.tolist(),
            "median": parts,
        }

    def columns(self) -> dict[str, Floats64]:
        """One number per point, by name, for a table or a report."""
        return {
            "spread": self.spread,
            "moved_with": self.moved_with,
            "moved_alone": self.moved_alone,
        }


def stability(
    estimator: Any,
    X: Any,
    *,
    runs: int = 8,
    vary: str = "rows",
    fraction: float = 0.9,
    n_neighbors: int = 15,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Stability:
    """Map the same rows several times and measure which points are stable.

    Parameters
    ----------
    estimator : scikit-learn estimator with `fit_transform` or `embedding_`
        Any such estimator, UMAP for instance; it is cloned, never changed.
    X : table (n, d)
        Any table that the estimator accepts; distances (n, n) if it accepts those.
    runs : int
        At least 2.
    vary : {"rows", "start"}
        Leave out other rows in every run, or start at random in every run (needs a parameter
        `random_state`; `init` is set to "random" if there is one).
    fraction : float
        Share of the rows in a run, from 0.5 to below 1, for ``vary="rows"``.
    n_neighbors : int
        Neighbours in the consensus map that a point is compared with; at most half of the others,
        since among all others a point always stays.
    random_state : int, Generator or None
        Seed for the choice of rows, or for the seeds of the runs.

    Examples
    --------
    >>> from gnomon import PCA, samples, stability
    >>> found = stability(PCA(2), samples.load("iris").X, runs=4)
    >>> found.score > 0.9
    True
    """
    runs = check_integer("runs", runs, 2)
    check_choice("vary", vary, ("rows", "start"))
    fraction = check_real("fraction", fraction, 0.5, 1.0)
    if fraction == 1.0:
        refuse("fraction", "be from 0.5 to below 1", fraction, "Use vary='start' for all rows.")
    n = _length(X)
    if n < 4:
        refuse("X", "have at least 4 rows", f"{n} rows")
    k = check_integer("n_neighbors", n_neighbors, 1)
    rng = random_generator(random_state)
    models = [clone(estimator) for _ in range(runs)]
    if vary == "start":
        _vary_starts(models, rng)
        rows = [np.arange(n)] * runs
    else:
        rows = _samples(n, runs, fraction, rng)
    maps = [_map(model, X, part) for model, part in zip(models, rows, strict=True)]
    found = consensus(maps, ids=[part.tolist() for part in rows], scaling=True, n_jobs=n_jobs)
    back = np.argsort(np.asarray(found.ids))  # consensus numbers points by first appearance
    return _measure(found, back, rows, min(k, (n - 1) // 2), vary, n_jobs)


def _length(X: Any) -> int:
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X)


def _samples(
    n: int, runs: int, fraction: float, rng: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Rows of each run: each leaves out the next stretch of a random order, cyclically."""
    order = rng.permutation(n)
    out = max(1, round(n * (1 - fraction)))
    parts = []
    for run in range(runs):
        left_out = order[(run * out + np.arange(out)) % n]
        parts.append(np.setdiff1d(np.arange(n), left_out))
    return parts


def _vary_starts(models: list[Any], rng: np.random.Generator) -> None:
    for model in models:
        parameters = model.get_params(deep=False)
        if "random_state" not in parameters:
            refuse("vary", "be 'rows' for an estimator without `random_state`", "start")
        model.set_params(random_state=int(rng.integers(2**31 - 1)))
        if "init" in parameters:
            model.set_params(init="random")


def _map(model: Any, X: Any, rows: NDArray[np.intp]) -> Floats64:
    """Positions of some rows, from a fresh fit."""
    part = X if len(rows) == _length(X) else _safe_indexing(X, rows)
    if get_tags(model).input_tags.pairwise and part is not X:
        part = _safe_indexing(part, rows, axis=1)
    Y = model.fit_transform(part) if hasattr(model, "fit_transform") else None
    Y = model.fit(part).embedding_ if Y is None else Y
    if getattr(model, "stop_reason_", "") == "interrupted":
        raise KeyboardInterrupt  # an interrupted map must not be compared with complete ones
    Y = np.asarray(Y, np.float64)
    if Y.ndim != 2 or len(Y) != len(rows):
        refuse("estimator", f"return positions of {len(rows)} rows", f"shape {Y.shape}")
    return Y


def _measure(
    found: Consensus,
    back: NDArray[np.intp],
    rows: list[NDArray[np.intp]],
    k: int,
    vary: str,
    n_jobs: int | None,
) -> Stability:
    mean = found.mean[back]
    n = len(mean)
    near = find_neighbors(mean, k, recall=1.0 if n <= 50_000 else 0.95, n_jobs=n_jobs)
    reach = near.distances.mean(axis=1)
    size = float(np.sqrt(((mean - mean.mean(axis=0)) ** 2).sum(axis=1).mean()))
    sq = {name: np.zeros(n) for name in ("all", "with", "alone")}
    counts, movements = np.zeros(n, np.intp), []
    for placed, part in zip(found.aligned, rows, strict=True):
        away, held = np.zeros_like(mean), np.zeros(n, bool)
        away[part], held[part] = placed - mean[part], True
        company = held[near.indices]
        theirs = np.einsum("ikc,ik->ic", away[near.indices], company.astype(np.float64))
        theirs /= np.maximum(company.sum(axis=1), 1)[:, None]
        for name, move in (("all", away), ("with", theirs), ("alone", away - theirs)):
            sq[name][part] += (move[part] ** 2).sum(axis=1)
        counts[part] += 1
        movements.append(np.median(np.linalg.norm(away[part], axis=1)) / (size or 1.0))
    floor = np.where(reach > 0, reach, np.finfo(np.float64).tiny)
    parts = {name: np.sqrt(total / counts) / floor for name, total in sq.items()}
    return Stability(
        mean=mean,
        spread=parts["all"],
        moved_with=parts["with"],
        moved_alone=parts["alone"],
        counts=counts,
        runs=np.asarray(movements),
        score=float(np.mean(parts["all"] < 1)),
        vary=vary,
        n_neighbors=k,
        consensus=found,
    )
