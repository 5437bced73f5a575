"""Audit of any map: rows placed better than at random, misplaced, or no better than in noise.

A row's score is its trustworthiness at k = 15, in the space and metric of the table given.

1. For any map, p is the share of places on the map that suit the row at least as well as its own
   (`gnomon.scores.placement`). It gives one of three answers:

   - *placed*: better than at random, by Benjamini and Hochberg's limit of 5 % over all rows
     [Benjamini & Hochberg 1995];
   - *misplaced*: p ≥ 1/2, at least half of the places suit the row as well or better;
   - *undecided*: neither. Where groups are few, a random place is often in the right one, and the
     test cannot tell.

   p of a randomly placed row is uniform, so half of such rows are misplaced, and twice the share
   of misplaced rows estimates the share that lies as if at random [Storey 2002].
2. If the map can be recomputed, a row is *unsupported* if its score is not significantly higher
   than in maps of tables with each column shuffled (`gnomon.scores.shuffled`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse
from gnomon.inputs import as_table, check_integer, is_sparse, random_generator
from gnomon.records import Record
from gnomon.scores.few_rows import trusted
from gnomon.scores.neighbourhoods import USUAL, trustworthiness_by_chance
from gnomon.scores.placement import placement_p_values
from gnomon.scores.sample import none_if_nan
from gnomon.scores.shuffled import Remake, noise_test, remake_by_model, remake_with, space_of
from gnomon.scores.summary import MapScores, score_map
from gnomon.scores.table_pair import read_pair
from gnomon.typing import Floats64, Indices

LEVEL = 0.05  # limit of the false discovery rate
HALF = 0.5  # share of places that suit a misplaced row at least as well as its own
SHUFFLES = 3  # shuffled tables: default, and minimum

PLACED, UNDECIDED, MISPLACED = "placed", "undecided", "misplaced"

Bools = NDArray[np.bool_]

__all__ = ["LEVEL", "MISPLACED", "PLACED", "SHUFFLES", "UNDECIDED", "Audit", "audit"]


@dataclass(frozen=True, eq=False)
class Audit(Record):
    """Result of an audit of a map, overall and row by row.

    Attributes
    ----------
    scores : MapScores
        Trustworthiness, continuity, neighbours kept, rank correlation of distances.
    n_neighbors : int
        Size k of the tested neighbourhoods: 15, or fewer in a small table.
    p_misplaced : array (m,)
        Share of the other places on the map that suit a row at least as well as its own; for the
        rows `rows`.
    p_unsupported : array (m,) or None
        Probability of a row's score in tables of shuffled columns; None if this was not requested
        or is withheld.
    null_mean : float or None
        Mean trustworthiness of the maps of shuffled tables.
    withheld : str
        Why there is no `p_unsupported`, as a sentence; empty if there is.
    shuffles : int
        Number of shuffled tables that were mapped.
    """

    scores: MapScores
    n_neighbors: int
    p_misplaced: Floats64 = field(repr=False)
    p_unsupported: Floats64 | None = field(repr=False, default=None)
    null_mean: float | None = None
    withheld: str = ""
    shuffles: int = 0

    @property
    def n(self) -> int:
        """Number of rows of the table."""
        return self.scores.n

    @property
    def rows(self) -> Indices:
        """Rows that were tested, (m,), ascending; all, or a random sample."""
        return self.scores.rows

    @property
    def trustworthiness(self) -> Floats64:
        """Score (m,) of each of `rows`."""
        at = self.scores.n_neighbors.index(self.n_neighbors)
        points: Floats64 = self.scores.trustworthiness.points[:, at]
        return points

    @cached_property
    def misplaced(self) -> Bools:
        """Whether at least half of the places suit each of `rows` as well or better; (m,)."""
        return self.p_misplaced >= HALF

    @cached_property
    def placed(self) -> Bools:
        """Whether each of `rows` is significantly better placed than at random; (m,)."""
        return ~_not_rejected(self.p_misplaced)

    @cached_property
    def undecided(self) -> Bools:
        """Whether each of `rows` is neither placed nor misplaced; (m,)."""
        return ~(self.placed | self.misplaced)

    @property
    def at_random(self) -> float:
        """Estimated share of the rows that lie as if at random."""
        return min(1.0, float(self.misplaced.mean()) / HALF)

    @cached_property
    def unsupported(self) -> Bools | None:
        """Whether each of `rows` does not score significantly higher than in shuffled tables."""
        return None if self.p_unsupported is None else _not_rejected(self.p_unsupported)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Columns of the table's length, by name; NaN or None for rows that were not tested."""
        found: dict[str, NDArray[Any]] = {
            "trustworthiness": self.trustworthiness,
            "placement": self._placement(),
            "misplaced": self.misplaced,
        }
        if self.unsupported is not None:
            found["unsupported"] = self.unsupported
        return {name: self._every_row(values) for name, values in found.items()}

    def _placement(self) -> NDArray[np.object_]:
        """Answer for each of `rows`: "placed", "undecided" or "misplaced"."""
        answers = np.full(len(self.rows), UNDECIDED, dtype=object)
        answers[self.placed] = PLACED
        answers[self.misplaced] = MISPLACED
        return answers

    def _every_row(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values for every row of the table: None or NaN for rows that were not tested."""
        if len(values) == self.n:
            return values
        text = values.dtype.kind == "O"
        every = np.full(self.n, None, dtype=object) if text else np.full(self.n, np.nan)
        every[self.rows] = values
        return every

    def title(self) -> str:
        """One-line summary."""
        return f"Audit of a {self.scores.title()[0].lower()}{self.scores.title()[1:]}"

    def lines(self) -> list[tuple[str, str]]:
        """Shares of rows, and the scores behind them."""
        k = self.n_neighbors
        mean = float(self.trustworthiness.mean())
        found = [
            ("trustworthiness", f"{mean:.3f} for {k} neighbours; by chance {self.by_chance:.3f}"),
            (PLACED, f"{self.say_share(self.placed)}: better than at random"),
            (
                UNDECIDED,
                f"{self.say_share(self.undecided)}: not shown either way (the test is weak where "
                "groups are few)",
            ),
            (
                MISPLACED,
                f"{self.say_share(self.misplaced)}: at least half of the places on the map would "
                "suit them as well",
            ),
            (
                "at random",
                f"about {100 * self.at_random:.0f} % of the rows lie as if at random (estimate)",
            ),
        ]
        if len(self.rows) < self.n:
            found.insert(0, ("tested", f"{len(self.rows):,} of {self.n:,} rows, drawn at random"))
        if self.unsupported is not None:
            found.append(
                (
                    "unsupported",
                    f"{self.say_share(self.unsupported)}: no more faithful than with "
                    f"independent columns, whose maps score {self.null_mean:.3f}",
                )
            )
        elif self.withheld:
            found.append(("unsupported", self.withheld))
        return [*found, *self.scores.lines()[-2:]]

    @property
    def by_chance(self) -> float:
        """Expected trustworthiness of a random map."""
        return trustworthiness_by_chance(self.n_neighbors, self.n)

    def share_of(self, flagged: Bools) -> tuple[float, float]:
        """Share of flagged rows, and its standard error as an estimate for all rows."""
        m, share = len(flagged), float(flagged.mean())
        if m == self.n:
            return share, 0.0
        return share, float(np.sqrt(share * (1 - share) / (m - 1) * (1 - m / self.n)))

    def say_share(self, flagged: Bools) -> str:
        """Format a share of the rows, with its standard error if rows were sampled."""
        share, error = self.share_of(flagged)
        said = f"{100 * share:.1f} % of the rows"
        return said if error == 0 else f"{said} (± {100 * error:.1f})"

    def to_dict(self) -> dict[str, Any]:
        """Shares, standard errors and means; numbers per row are in `columns`."""
        found: dict[str, Any] = {
            "n_neighbors": self.n_neighbors,
            "level": LEVEL,
            "trustworthiness": float(self.trustworthiness.mean()),
            "trustworthiness_by_chance": self.by_chance,
            "placed": self._share_dict(self.placed),
            "undecided": self._share_dict(self.undecided),
            "misplaced": self._share_dict(self.misplaced),
            "at_random": self.at_random,
            "unsupported": None,
            "shuffles": self.shuffles,
            "null_mean": None if self.null_mean is None else none_if_nan(self.null_mean),
            "withheld": self.withheld or None,
        }
        if self.unsupported is not None:
            found["unsupported"] = self._share_dict(self.unsupported)
        return found | {"scores": self.scores.to_dict()}

    def _share_dict(self, flagged: Bools) -> dict[str, Any]:
        share, error = self.share_of(flagged)
        return {"rows": int(flagged.sum()), "share": share, "standard_error": error}


def audit(
    X: Any,
    Y: Any,
    *,
    labels: Any = None,
    metric: str | None = None,
    refit: Callable[[NDArray[Any]], Any] | None = None,
    shuffles: int = SHUFFLES,
    sample: int | str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Audit:
    """Test how far a map can be trusted, row by row and against chance.

    Parameters
    ----------
    X : array-like (n, d)
        The table that the map was computed from, dense: the input of UMAP or t-SNE, such as the
        scores of a PCA.
    Y : array-like (n, p), or fitted TSNE
        Map of the same rows in the same order, by any program. A `TSNE` fitted to `X` is
        recomputed for `unsupported`; give its ``embedding_`` to leave that out.
    labels : sequence of n labels, optional
        Labels for the scores of classes.
    metric : str, optional
        Metric of the data: ``"euclidean"``, the default, or ``"cosine"``; a `TSNE` has its own.
    refit : callable, optional
        Computes the map of another table of the same shape: ``refit(table) -> (n, p)``, such as
        ``lambda T: umap.UMAP().fit_transform(T)``. Needed to test for unsupported rows.
    shuffles : int
        Number of tables of shuffled columns that are mapped for that, at least 3.
    sample : int, "all" or None
        Number of rows to test; None tests all of up to 5,000, and 1,000 of more.
    random_state : int, Generator or None
        Seed for rows, positions and shuffles; None means 0.
    n_jobs : int, optional
        Threads; they do not change the result.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import gnomon
    >>> X = gnomon.samples.load("iris").X
    >>> found = gnomon.audit(X, gnomon.PCA(2).fit_transform(X))
    >>> round(float(found.trustworthiness.mean()), 3), int(found.misplaced.sum())
    (0.986, 0)
    """
    shuffles = check_integer("shuffles", shuffles, SHUFFLES)
    table = as_table(X)
    table = table if is_sparse(table) else np.asarray(table)  # `score_map` refuses sparse ones
    remake: Remake | None = None
    space = table
    if hasattr(Y, "embedding_"):
        if refit is not None:
            refuse("refit", "be None if `Y` is a TSNE, which recomputes its own map", refit)
        metric = str(Y.metric) if metric is None else metric
        space, remake, Y = space_of(Y, table), remake_by_model(Y), Y.embedding_
    elif callable(refit):
        remake = remake_with(refit)
    elif refit is not None:
        refuse("refit", "be a function from a table to its map", refit, kind=True)
    Z, W = read_pair(space, Y, metric := metric or "euclidean")
    k = trusted(len(Z))
    scores = score_map(
        space,
        Y,
        labels,
        n_neighbors=sorted({k} | {size for size in USUAL if 2 * size < len(Z)}),
        metric=metric,
        sample=sample,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    generator = random_generator(random_state).spawn(1)[0]
    p_misplaced = placement_p_values(Z, W, scores.rows, k, generator, n_jobs=n_jobs)
    found = Audit(scores, k, p_misplaced)
    if remake is None:
        return found
    test = noise_test(
        table,
        remake,
        found.trustworthiness,
        scores.rows,
        k,
        metric=metric,
        shuffles=shuffles,
        generator=generator,
        n_jobs=n_jobs,
    )
    return replace(
        found,
        p_unsupported=test.p_values,
        null_mean=test.null_mean,
        withheld=test.withheld,
        shuffles=0 if test.null_mean is None else shuffles,
    )


def _not_rejected(p_values: Floats64) -> Bools:
    """Rows whose null hypothesis is not rejected at `LEVEL` by the Benjamini–Hochberg procedure."""
    from scipy.stats import false_discovery_control

    kept: Bools = false_discovery_control(p_values) > LEVEL
    return kept
