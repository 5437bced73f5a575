"""All scores of one map, as one record."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.inputs import random_generator
from gnomon.records import Record
from gnomon.scores.classes import read_codes
from gnomon.scores.distances import PAIRS, RankCorrelation, correlate_pairs
from gnomon.scores.neighbourhoods import check_sizes, recall_by_chance, score_rows
from gnomon.scores.sample import PointScores, choose_rows, say
from gnomon.scores.table_pair import read_data_or_distances

__all__ = ["MapScores", "score_map"]


@dataclass(frozen=True, eq=False)
class MapScores(Record):
    """Scores of a map, overall and point by point.

    Attributes
    ----------
    n, n_columns, n_dimensions : int
        Rows, columns of the data, columns of the map.
    metric : str
        Metric of the data.
    n_neighbors : tuple of int
        Sizes k of the neighbourhoods.
    rows : array (m,)
        Rows that were scored, ascending; all n, or those drawn by `random_state`.
    random_state : int or None
        None if a generator was given.
    trustworthiness, continuity, recall : PointScores
        Scores of `gnomon.scores.neighbourhoods`.
    order : PointScores
        Spearman's ρ between the distances to a point's k neighbours in the data and the distances
        to the same k in the map; NaN if all are equal.
    distances : RankCorrelation
        Spearman's ρ between the distances of pairs of all points.
    class_accuracy, class_accuracy_in_data : PointScores or None
        1 if the k neighbours in the map, or in the data, vote for the point's own label; None
        if no labels were given.
    """

    n: int
    n_columns: int
    n_dimensions: int
    metric: str
    n_neighbors: tuple[int, ...]
    rows: NDArray[np.int64] = field(repr=False)
    random_state: int | None
    trustworthiness: PointScores
    continuity: PointScores
    recall: PointScores
    order: PointScores
    distances: RankCorrelation
    class_accuracy: PointScores | None = None
    class_accuracy_in_data: PointScores | None = None

    @property
    def exact(self) -> bool:
        """Whether all rows were scored."""
        return len(self.rows) == self.n

    def columns(self, *, every_row: bool = False) -> dict[str, NDArray[Any]]:
        """Scores of points by name, such as ``"recall_15"``, for a dataframe or a report.

        Parameters
        ----------
        every_row : bool
            Whether columns are as long as the table, with NaN for rows that were not scored;
            otherwise as long as ``"row"``, the numbers of the scored rows.
        """
        columns: dict[str, NDArray[Any]] = {"row": np.arange(self.n) if every_row else self.rows}
        for name, score in self._point_scores().items():
            for k, points in zip(self.n_neighbors, score.points.T, strict=True):
                column = np.full(self.n, np.nan) if every_row else points.copy()
                if every_row:
                    column[self.rows] = points
                columns[f"{name}_{k}"] = column
        return columns

    def title(self) -> str:
        """One-line summary."""
        what = "1 column" if self.n_columns == 1 else f"{self.n_columns:,} columns"
        metric = "" if self.metric == "euclidean" else f", by {self.metric}"
        return f"Map of {self.n:,} rows, {what} to {self.n_dimensions}{metric}"

    def lines(self) -> list[tuple[str, str]]:
        """Table with one line per score and one column per k."""
        table = self._table()
        widths = [max(map(len, column)) for column in zip(*(c for _, c in table), strict=True)]
        lines = [
            (name, "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
            for name, cells in table
        ]
        return [*lines, *self._remarks()]

    def _repr_html_(self) -> str:
        """Rows of the table in HTML, with a cell for each k, since HTML collapses spaces."""
        cell = "<td style='text-align:left'{}>{}</td>"
        rows = [(name, [cell.format("", text) for text in cells]) for name, cells in self._table()]
        wide = f" colspan='{len(self.n_neighbors)}'"
        rows += [(name, [cell.format(wide, html.escape(text))]) for name, text in self._remarks()]
        body = "".join(
            f"<tr><th style='text-align:left'>{name}</th>{''.join(cells)}</tr>"
            for name, cells in rows
        )
        return f"<table><caption>{html.escape(self.title())}</caption>{body}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Means and standard errors; scores of points are in `columns`."""
        scores = {name: score.to_dict() for name, score in self._point_scores().items()}
        return {
            "n": self.n,
            "n_columns": self.n_columns,
            "n_dimensions": self.n_dimensions,
            "metric": self.metric,
            "n_neighbors": list(self.n_neighbors),
            "rows_scored": len(self.rows),
            "exact": self.exact,
            "random_state": self.random_state,
            **scores,
            "distances": self.distances.to_dict(),
        }

    def _point_scores(self) -> dict[str, PointScores]:
        scores = {
            "trustworthiness": self.trustworthiness,
            "continuity": self.continuity,
            "recall": self.recall,
            "order": self.order,
        }
        if self.class_accuracy is not None and self.class_accuracy_in_data is not None:
            scores["class_accuracy"] = self.class_accuracy
            scores["class_accuracy_in_data"] = self.class_accuracy_in_data
        return scores

    def _table(self) -> list[tuple[str, list[str]]]:
        """Names of scores, with a cell for each k."""
        table = [("neighbours", [str(k) for k in self.n_neighbors])]
        for name, score in self._point_scores().items():
            table.append((name.replace("_", " "), score.cells()))
            if name == "recall":
                chance = [say(recall_by_chance(k, self.n)) for k in self.n_neighbors]
                table.append(("recall by chance", chance))
        return table

    def _remarks(self) -> list[tuple[str, str]]:
        return [("distances", self._say_distances()), ("scored", self._say_rows())]

    def _say_distances(self) -> str:
        found = self.distances
        exact = found.pairs == found.of
        value = say(found.value, None if exact else found.standard_error)
        return f"{value} (rank correlation of {found.pairs:,}{' sampled' * (not exact)} pairs)"

    def _say_rows(self) -> str:
        if self.exact:
            return "all rows"
        state = "a generator" if self.random_state is None else f"random_state={self.random_state}"
        return (
            f"{len(self.rows):,} rows drawn by {state}, each against all rows; "
            "± is one standard error"
        )


def score_map(
    X: Any,
    Y: Any,
    labels: Any = None,
    *,
    n_neighbors: int | Sequence[int] | None = None,
    metric: str = "euclidean",
    sample: int | str | None = None,
    pairs: int = PAIRS,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> MapScores:
    """Compute all scores of a map, overall and point by point.

    Distances are recomputed as needed, so there is no n × n matrix. Every scored
    row is ranked exactly against all n; with more than 5,000 rows only 1,000 are scored unless
    `sample` says otherwise, and means have a standard error.

    Parameters
    ----------
    X : array-like (n, d)
        The data, dense. A wide table is scored faster, and by the standard by which its map was
        computed, after the same reduction by PCA.
    Y : array-like (n, p)
        The map of the same rows.
    labels : sequence of n labels, optional
        Labels of any type; None and NaN mean no label.
    n_neighbors : int or sequence of int, optional
        Sizes k of the neighbourhoods, each below n/2. None means those of 5, 15 and 50 that are.
    metric : str
        Metric of the data: ``"euclidean"``, ``"cosine"``, or ``"precomputed"`` if `X` holds
        distances (n, n). Distances in the map are Euclidean.
    sample : int, "all" or None
        Number of rows to score; None scores all of up to 5,000, and 1,000 of more. ``"all"`` of
        70,000 rows takes seventy times as long as the sample.
    pairs : int
        Maximum number of pairs of points whose distances are compared.
    random_state : int, Generator or None
        Seed for rows and pairs; None means 0.
    n_jobs : int, optional
        Threads; they do not change the result.

    Examples
    --------
    >>> from gnomon import PCA, samples, scores
    >>> X = samples.load("iris").X
    >>> found = scores.score_map(X, PCA(2).fit_transform(X))
    >>> found.trustworthiness.mean.round(3)
    array([0.979, 0.986, 0.997])
    """
    Z, W = read_data_or_distances(X, Y, metric)
    n = len(Z)
    sizes = check_sizes(n_neighbors, n)
    codes = None if labels is None else read_codes(labels, n)
    generator = random_generator(random_state)
    rows = choose_rows(n, sample, generator)
    distances = correlate_pairs(Z, W, pairs, generator, n_jobs=n_jobs)
    found = score_rows(Z, W, rows, sizes, codes, n_jobs=n_jobs)

    def points(score: NDArray[np.float64]) -> PointScores:
        return PointScores(sizes, score, n)

    return MapScores(
        n=n,
        n_columns=Z.shape[1],
        n_dimensions=W.shape[1],
        metric=metric,
        n_neighbors=sizes,
        rows=rows,
        random_state=_seed(random_state),
        trustworthiness=points(found.trustworthiness),
        continuity=points(found.continuity),
        recall=points(found.recall),
        order=points(found.order),
        distances=distances,
        class_accuracy=None if codes is None else points(found.votes_in_map),
        class_accuracy_in_data=None if codes is None else points(found.votes_in_data),
    )


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return 0
    return int(random_state) if hasattr(random_state, "__index__") else None
