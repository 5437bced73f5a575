"""Supplementary columns: how columns that were not in the fit relate to the components.

Numbers are correlated with the scores; labels define groups of rows, placed among the
components, as in FactoMineR [Lê, Josse & Husson 2008]. `gnomon.pca.measure` defines the symbols.
"""

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.compute.threads import fold_blocks, row_blocks
from gnomon.errors import MissingValueError, refuse
from gnomon.inputs import check_table, check_weights
from gnomon.numeric.scaling import Rows
from gnomon.pca.labels import Labels, holds_labels, read_labels
from gnomon.pca.measure import EPS, Measurement, ratio
from gnomon.records import Record
from gnomon.typing import Matrix, Vector

__all__ = ["Categories", "Supplements"]


@dataclass(frozen=True)
class Categories(Record):
    """Position of the rows of each category among the components; m categories.

    Attributes
    ----------
    variables : tuple of str
        Column of each category; empty if it has no name.
    names : tuple of str
    counts : array (m,)
        Rows of each category, or their total weight.
    coordinates : array (m, k)
        Barycentre: mean score of the category's rows.
    cos2 : array (m, k)
        Share of the barycentre's squared distance from the mean, in the space of all columns, that
        lies along each component.
    v_test : array (m, k)
        Distance between the barycentre and the mean of all rows, in standard errors of a random
        draw of as many rows: beyond ±1.96 it is unlikely (5 %) to be chance.
    """

    variables: tuple[str, ...]
    names: tuple[str, ...]
    counts: NDArray[Any]
    coordinates: Matrix
    cos2: Matrix
    v_test: Matrix

    def title(self) -> str:
        """One-line summary."""
        m, k = self.coordinates.shape
        return f"{m} {'category' if m == 1 else 'categories'}, components: {k}"

    def lines(self) -> list[tuple[str, str]]:
        """Count of each category, and the component where it stands out most."""
        lines = []
        for i, (variable, name) in enumerate(zip(self.variables, self.names, strict=True)):
            most = int(np.argmax(np.abs(self.v_test[i])))
            lines.append(
                (
                    f"{variable}: {name}" if variable else name,
                    f"{self.counts[i]:g} rows; component {most + 1}: coordinate "
                    f"{self.coordinates[i, most]:.3g}, cos² {self.cos2[i, most]:.2f}, "
                    f"v-test {self.v_test[i, most]:.2f}",
                )
            )
        return lines


class Supplements(Measurement):
    """Methods of `PCA` that relate other columns to the components."""

    def correlate(self, X: Any, Z: Any, sample_weight: Any = None) -> Matrix | Categories:
        """Relate supplementary columns `Z`, which were not in the fit, to the components.

        Parameters
        ----------
        X : table (n, d)
            Rows, usually those that the model was fitted on.
        Z : array or table (n,) or (n, m)
            Numbers, or labels: text, booleans, objects and categorical columns are labels. Numbers
            that are names of groups go to `categories`.
        sample_weight : array (n,), optional
            The rows' weights in `fit`.

        Returns
        -------
        array (m, k)
            For numbers: the correlation of each column of `Z` with each component's scores, both
            taken about their means over these rows; 0 for a constant column.
        Categories
            For labels: see `categories`.
        """
        if holds_labels(Z):
            return self.categories(X, Z, sample_weight)
        scores = self._scores(self._rows(X))[:, : self.rank_]
        n, k = scores.shape[0], self.components_.shape[0]
        columns = self._numbers(Z, n)
        weights = _frequencies(sample_weight, n)
        found = np.zeros((columns.shape[1], k))
        with one_blas_thread():
            product = _standardised(columns, weights).T @ _standardised(scores, weights)
        found[:, : self.rank_] = np.clip(product, -1.0, 1.0)
        return found

    def categories(self, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
        """Barycentres, cos² and v-tests of groups of rows, as FactoMineR's ``quali.sup``.

        With the mean score t̄_g of the n_g rows of a category, their mean working row z̄_g, and the
        mean t̄ and variance s² (divisor n − 1) of the scores of all n rows:

            cos² = t̄_g² / ‖z̄_g‖²,     v = (t̄_g − t̄) / √(s²/n_g · (n − n_g)/n).

        Parameters
        ----------
        X : table (n, d)
            Rows, usually those that the model was fitted on.
        labels : array or table (n,) or (n, m)
            One or several columns of labels of any type; numbers count as names. A row whose label
            is missing (None, NaN) is in no category. Categories are sorted, or in the order of
            a categorical column; those without rows are left out.
        sample_weight : array (n,), optional
            The rows' weights in `fit`: frequencies, n is their sum. Weights that sum to less than
            the number of rows are first scaled up to it.
        """
        rows = self._rows(X)
        n = rows.shape[0]
        columns = read_labels(labels, n)
        weights = _frequencies(sample_weight, n)
        scores = self._scores(rows)
        starts = np.cumsum([0, *(len(column.levels) for column in columns)])
        barycentres, sizes = _barycentres(rows, columns, starts, weights, self.n_jobs)
        coordinates = barycentres @ self.components_.T
        norms = np.linalg.norm(barycentres, axis=1)[:, None]
        total = float(weights.sum())
        mean = weights @ scores / total
        variance = weights @ (scores - mean) ** 2 / max(total - 1.0, EPS)
        variance[self.rank_ :] = 0.0
        left = (total - sizes).clip(0.0) / total
        error = np.sqrt(variance * ratio(left, sizes)[:, None])
        counts: NDArray[Any] = np.rint(sizes).astype(np.intp)
        if sample_weight is not None:
            counts = sizes * (float(np.sum(sample_weight)) / total)
        return Categories(
            variables=tuple(c.variable for c in columns for _ in c.levels),
            names=tuple(level for c in columns for level in c.levels),
            counts=counts,
            coordinates=np.ldexp(coordinates, self._unit),
            cos2=ratio(coordinates, norms) ** 2,
            v_test=ratio(coordinates - mean, error),
        )

    def _numbers(self, Z: Any, n: int) -> Matrix:
        """Supplementary columns of numbers, shape (n, m)."""
        if nw.dependencies.is_into_series(Z):
            Z = nw.from_native(Z, series_only=True).to_numpy()
        if not hasattr(Z, "columns") and np.ndim(Z) == 1:
            Z = np.asarray(Z)[:, None]
        table = check_table(type(self)(), Z, reset=True, min_rows=0, sparse=False)
        if table.shape[0] != n:
            refuse("Z", f"have {n} rows, as many as `X`", table.shape[0])
        columns: Matrix = table.astype(np.float64, order="C")
        if not np.isfinite(columns).all():
            row, column = np.argwhere(~np.isfinite(columns))[0]
            raise MissingValueError(
                f"`Z` must hold finite numbers; got {columns[row, column]} at row {row}, column "
                f"{column} (from 0). Drop those rows from both `X` and `Z`."
            )
        return columns


def _frequencies(sample_weight: Any, n: int) -> Vector:
    """Weights scaled to sum to at least the number of rows that have one."""
    weights = check_weights("sample_weight", sample_weight, n, of="row")
    if weights is None:
        return np.ones(n)
    total = float(weights.sum())
    if total == 0:
        refuse("sample_weight", "have a weight above zero", "every weight zero")
    return weights * max(1.0, np.count_nonzero(weights) / total)


def _standardised(A: Matrix, weights: Vector) -> Matrix:
    """Columns centred on their weighted mean, times √weight, of length 1; constant ones are 0."""
    scale = np.frexp(np.abs(A).max(axis=0, initial=0.0))[1]
    A = np.ldexp(A, -scale)  # so that squares do not overflow
    mean = weights @ A / weights.sum()
    A -= mean
    A *= np.sqrt(weights)[:, None]
    norms = np.linalg.norm(A, axis=0)
    constant = norms <= 4 * EPS * np.abs(mean) * np.sqrt(weights.sum())
    return ratio(A, np.where(constant, 0.0, norms))


def _barycentres(
    rows: Rows,
    columns: list[Labels],
    starts: NDArray[np.intp],
    weights: Vector,
    n_jobs: int | None,
) -> tuple[Matrix, Vector]:
    """Mean working row (m, d) and total weight (m,) of every category."""
    n, d = rows.shape
    m = int(starts[-1])
    sums, sizes = np.zeros((m, d)), np.zeros(m)

    def member(start: int, stop: int) -> Matrix:
        """Weights of the rows in the categories, shape (stop − start, m)."""
        table = np.zeros((stop - start, m))
        for column, first in zip(columns, starts, strict=False):
            at = np.flatnonzero(column.codes[start:stop] >= 0)
            table[at, first + column.codes[start + at]] = weights[start + at]
        return table

    def block(start: int, stop: int) -> tuple[Matrix, Vector]:
        belongs = member(start, stop)
        return belongs.T @ rows.read(start, stop), belongs.sum(axis=0)

    def add(part: tuple[Matrix, Vector]) -> None:
        sums.__iadd__(part[0])
        sizes.__iadd__(part[1])

    fold_blocks(block, row_blocks(n, rows.scaling.block_rows()), add, n_jobs=n_jobs)
    return ratio(sums, sizes[:, None]), sizes
