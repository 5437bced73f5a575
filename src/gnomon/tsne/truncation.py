"""What KL over the neighbours kept leaves out: the change to KL over all pairs.

P holds the k nearest neighbours of each row. With a_ij for p_{j|i}, and a star for P over all
pairs, every sum over P is a mean over its rows,

    Σ_ij p_ij f_ij = Σ_i (w_i / Σw) Σ_j a_ij f_ij        for symmetric f,

and Z is the same for both. So KL* − KL is the mean over rows of

    D_i = Σ_j (a*_ij log p*_ij − a_ij log p_ij) + (α+1)/2 Σ_j (a*_ij − a_ij) log(1 + d_ij/α)

and is estimated from m rows, drawn independently with probabilities q_i:

    KL* − KL ≈ mean of T_i = D_i w_i / (q_i Σw),        standard error² = Σ (T_i − mean)² / m(m−1)

Both are unbiased for any q, as long as the error of every T_i has mean 0 and is its own.

1. Most rows lose next to nothing and a few lose much: the kurtosis of D_i is 60 on 20,000 digits.
   Rows whose last neighbours kept are still likely are the latter, so that q_i grows with that
   probability, and T_i has shorter tails. (Regression on it has the same aim, but understates its
   error: residuals are largest where the regressor is, 0.027 for 0.032 on those digits.)
2. a*_i needs the distances to all rows. Of those beyond the neighbours kept, a column j is taken
   with a probability π_j in proportion to a_ij at the σ of the neighbours kept, at most 1, and
   stands for 1/π_j columns: at most about `COLUMNS` in all, by random numbers of the row's own. So
   σ*_i, found by the same search as σ_i, hardly differs from that of all columns: what is left of
   bias falls as 1/`COLUMNS`, to a twentieth of the standard error. (Columns that all rows share,
   each as likely as the other, made errors that rows share too, which no standard error over rows
   can tell, and moved the mean of D_i with their number.)
3. log p*_ij needs a*_ji too. With the σ of row j's neighbours kept in place of σ*_j, only a small
   remainder is missing; its mean over j ~ a*_i is estimated from one such j, the row's partner,
   whose a*_j is found as in 2.

This does not depend on the map, and is done once; then any map's KL costs m (k + `COLUMNS`)
logarithms. Tables of up to `EXACT_UP_TO` rows are summed over all rows and pairs. With weights p_ij
is the mass between all copies, and logarithms are of single copies' shares
(`attraction.log_masses`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.neighbors.search import Neighbors
from gnomon.tsne.affinities import Conditional, calibrate
from gnomon.typing import Floats64, Indices, Table

Distances = Callable[[Indices, Any, Floats64], Floats64]

# Rows of a table that is summed as a whole: 0.1 s for 400, growing with their square. A sample
# takes a tenth of that, with a standard error of 0.002 (`benchmarks/crossovers.py`, "exact-kl").
EXACT_UP_TO = 400
# Time against error: the standard error falls with √ROWS, the bias with COLUMNS (step 2).
ROWS = 32  # rows that are sampled
COLUMNS = 2048  # columns that stand for all, beside a row's neighbours kept
PILOT = 256  # columns from which a row's probability beyond the neighbours kept is guessed
LAG = 61  # numbers between the random numbers of two rows
EVENLY = 0.2  # share of the rows that are drawn with equal probability
CHUNK = 4096  # columns at a time: 1 MB of distances

__all__ = ["Truncation", "learn_truncation"]


@dataclass(frozen=True, eq=False)
class Truncation:
    """How P over all pairs differs from the P of a map, on some rows.

    Attributes
    ----------
    rows : array (m,)
        Sampled rows; none where P is complete.
    entropy : array (m,)
        Σ_j (a*_ij log p*_ij − a_ij log p_ij) of each, times w_i / (q_i Σw).
    change : CSR array (m, n)
        a*_ij − a_ij, times the same.
    share : float
        1 if these are all rows, 0 if they were drawn independently; in files of former versions the
        share of rows drawn without replacement, which lowers the standard error.
    """

    rows: Indices = field(repr=False)
    entropy: Floats64 = field(repr=False)
    change: Table = field(repr=False)
    share: float

    @classmethod
    def none(cls, n: int) -> "Truncation":
        """P of `n` rows is complete."""
        nothing = sp.csr_array((0, n), dtype=np.float32)
        return cls(np.empty(0, np.int64), np.empty(0), nothing, 1.0)

    def kl_change(self, Y: NDArray[Any], dof: float) -> tuple[float, float]:
        """KL over all pairs less KL over the neighbours kept, for a map; and its standard error."""
        m = self.rows.size
        if m == 0:
            return 0.0, 0.0
        Y = np.asarray(Y, np.float64)
        at = np.repeat(np.arange(m), np.diff(self.change.indptr))
        sq = ((Y[self.rows[at]] - Y[self.change.indices]) ** 2).sum(axis=1)
        stretch = np.bincount(at, self.change.data * np.log1p(sq / dof), minlength=m)
        each = self.entropy + (dof + 1) / 2 * stretch
        if self.share == 1:
            return float(each.mean()), 0.0
        error = float(np.sqrt(np.square(each - each.mean()).sum() / (m - 1) / m))
        return float(each.mean()), error * float(np.sqrt(1 - self.share))


def learn_truncation(
    P: Table,
    kept: Conditional,
    near: Neighbors,
    distances: Distances,
    perplexities: Sequence[float],
    *,
    weights: Floats64 | None,
    seed: int,
    n_jobs: int | None,
) -> Truncation:
    """Compare the rows of P with those over all pairs.

    Parameters
    ----------
    P : CSR array (n, n)
    kept : Conditional
        What P was made from.
    near : Neighbors
        Of the same rows and columns.
    distances : callable
        From the numbers of m rows, c columns (or a slice of all), and the size from which on digits
        matter, shape (m,), to distances (m, c).
    """
    n, k = near.indices.shape
    if k >= n - 1 and near.recall == 1.0:
        return Truncation.none(n)
    rng = np.random.default_rng(seed)
    full = _FullRows(P, kept, near, distances, perplexities, weights, rng, n_jobs)
    if n <= EXACT_UP_TO:
        return _of_all_rows(P, kept, full)
    uneven = full.uneven()
    q = full.weights * uneven
    rows = rng.choice(n, ROWS, p=q / q.sum())
    draws = rng.random(ROWS)
    parts = [full.compare(row, draw) for row, draw in zip(full.of(rows), draws, strict=True)]
    partners = full.of(np.array([part.partner for part in parts]), also=rows)
    back = [float(row.p[-1] / row.masses[-1]) for row in partners]
    factors = 1 / uneven[rows]
    entropy = np.array([part.entropy(a) for part, a in zip(parts, back, strict=True)]) * factors
    changes = [part.changes * factor for part, factor in zip(parts, factors, strict=True)]
    return Truncation(rows, entropy, _csr([part.columns for part in parts], changes, n), 0.0)


@dataclass(frozen=True)
class _Row:
    """One row of conditional probabilities over all others.

    Attributes
    ----------
    columns : array (c,)
        First the `kept` neighbours, in order, then others.
    masses : array (c,)
        How many copies each column stands for, those of columns left out included.
    p : array (c,)
        Probability of all of those.
    own : float
        Probability of the row's own copies.
    """

    i: int
    kept: int
    columns: Indices
    distances: Floats64
    masses: Floats64
    p: Floats64
    own: float


@dataclass(frozen=True)
class _Part:
    """What a sampled row adds, but for a*_ji of its partner j."""

    partner: int
    base: float  # with the guess of log p*
    weight: float  # of the remainder
    given: float  # a*_ij per copy of j
    guess: float  # of a*_ij and a*_ji together, per copy
    columns: Indices
    changes: Floats64

    def entropy(self, back: float) -> float:
        """Σ_j (a*_ij log p*_ij − a_ij log p_ij), its remainder estimated from the partner."""
        return float(self.base + self.weight * np.log((self.given + back) / self.guess))


class _FullRows:
    """Conditional probabilities of some rows over all others."""

    def __init__(
        self,
        P: Table,
        kept: Conditional,
        near: Neighbors,
        distances: Distances,
        perplexities: Sequence[float],
        weights: Floats64 | None,
        rng: np.random.Generator,
        n_jobs: int | None,
    ) -> None:
        self.P, self.near, self.kept, self.distances = P, near, kept, distances
        self.perplexities, self.rng, self.n_jobs = perplexities, rng, n_jobs
        self.weighted = weights is not None
        self.alone = not self.weighted and len(perplexities) == 1  # σ can be read from what is kept
        n = len(near.indices)
        self.weights = np.ones(n) if weights is None else weights
        self.total = float(self.weights.sum())
        # log a_ji per copy of i, extrapolated as −(d/edge)² from the neighbours kept of a row j:
        # from the first to the last of them that has all of its probability.
        last = np.full(n, kept.rows.shape[1] - 1)
        some = np.flatnonzero(kept.rows[:, -1] == 0)
        last[some] = np.count_nonzero(kept.rows[some], axis=1) - 1
        last = last if weights is None else np.maximum(last - 1, 0)
        likely = [self._per_copy(np.zeros(n, np.int64)), self._per_copy(last)]
        self.edge = near.distances[np.arange(n), last]
        with np.errstate(all="ignore"):  # in units of the edge: squares may not exist in others
            slope = np.log(likely[0] / likely[1]) / (1 - (near.distances[:, 0] / self.edge) ** 2)
            # 0 where it cannot be read
            self.slope = np.where((slope > 0) & np.isfinite(slope), slope, 0.0)
            self.level = np.log(np.maximum(likely[1], 1e-300)) + self.slope
        self.last = likely[1]

    def _per_copy(self, at: Indices) -> Floats64:
        """Probability of each row's neighbour number `at`, of a single copy of it."""
        rows = np.arange(at.size)
        found: Floats64 = self.kept.rows[rows, at] / self.weights[self.near.indices[rows, at]]
        return found

    def uneven(self) -> Floats64:
        """How much more often than evenly each row is drawn, shape (n,); its mean is 1."""
        mean = float(self.last @ self.weights) / self.total
        return EVENLY + (1 - EVENLY) * self.last / mean if mean > 0 else np.ones(self.last.size)

    def of(self, rows: Indices, also: Indices | None = None) -> list[_Row]:
        """Probabilities of each of `rows`; with `also`, shape (m,), that is their last column."""
        n = len(self.weights)
        fine = self.near.distances[rows, -1]
        apart = [self.near.indices[rows].astype(np.int64), rows[:, None]]
        apart += [] if also is None else [also[:, None]]
        known = np.concatenate(apart, axis=1)
        by_column = np.argsort(known, axis=None)
        sorted_known = known.ravel()[by_column]
        level = self.level[rows] - self._log_unit(rows, fine)
        # Columns are taken where their share exceeds a random number. Rows have the same numbers,
        # but begin at different ones: no column has the same for two rows.
        random = -self.rng.standard_exponential(n + LAG * rows.size)
        lagged = sliding_window_view(random, n)[::LAG]

        def chunk(start: int, stop: int) -> tuple[Any, ...]:
            far = self.distances(rows, slice(start, stop), fine)
            logs = self._log_shares(rows, far, level)
            if self.weighted:
                logs += np.log(self.weights[start:stop])
            inside = slice(*np.searchsorted(sorted_known, [start, stop]))
            logs[by_column[inside] // known.shape[1], sorted_known[inside] - start] = -np.inf
            at, column = np.nonzero(logs > lagged[: rows.size, start:stop])
            share = np.exp(np.minimum(logs[at, column], 0.0))
            return at, start + column, far[at, column], self.weights[start + column] / share

        chunks = map_blocks(chunk, row_blocks(n, CHUNK), n_jobs=self.n_jobs)
        at, *found = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        order = np.argsort(at, kind="stable")
        ends = np.searchsorted(at[order], np.arange(rows.size + 1))
        places = [order[ends[m] : ends[m + 1]] for m in range(rows.size)]
        last: list[tuple[int, float] | None] = [None] * rows.size
        if also is not None:
            apart_distances = np.diag(self.distances(rows, also, fine))
            last = list(zip(also.tolist(), apart_distances.tolist(), strict=True))
        return [
            self._row(int(i), [part[place] for part in found], extra)
            for i, place, extra in zip(rows, places, last, strict=True)
        ]

    def _log_unit(self, rows: Indices, fine: Floats64) -> Floats64:
        """Log of the probability that one column drawn stands for, shape (m,)."""
        n = len(self.weights)
        if n <= EXACT_UP_TO:
            return np.full(rows.size, -np.inf)  # all are taken
        columns = np.sort(self.rng.choice(n, min(n, PILOT), replace=False))
        logs = self._log_shares(rows, self.distances(rows, columns, fine), self.level[rows])
        beyond = np.exp(np.minimum(logs, 0.0)) @ self.weights[columns] * (n / columns.size)
        return np.log((1 + beyond) / COLUMNS)

    def _log_shares(self, rows: Indices, far: Floats64, level: Floats64) -> Floats64:
        """Log a_ij − log of the unit, per copy, at the σ of the neighbours kept, shape (m, c)."""
        # A mean over several σ falls more slowly beyond the neighbours kept than within them.
        part = 1.0 if len(self.perplexities) == 1 else 0.5
        slope, edge = part * self.slope[rows], np.maximum(self.edge[rows], 1e-300)
        level = level - (1 - part) * self.slope[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            sq = np.square(far / edge[:, None])
            sq *= slope[:, None]
            logs: Floats64 = np.subtract(level[:, None], sq, out=sq)
        for m in np.flatnonzero(slope == 0):  # nothing is likely beyond what is equally near
            logs[m] = np.where(far[m] <= self.edge[rows[m]], np.inf, -np.inf)
        return logs

    def _row(self, i: int, beyond: Sequence[NDArray[Any]], extra: tuple[int, float] | None) -> _Row:
        outside, far, copies = beyond
        inside, near = self.near.indices[i].astype(np.int64), self.near.distances[i]
        end, last = inside[:0], near[:0]
        if extra is not None:
            end, last, left = np.array([extra[0]]), np.array([extra[1]]), inside != extra[0]
            if not left.all():  # it is one of the neighbours kept
                last = near[~left]
                inside, near = inside[left], near[left]
        columns = np.concatenate([inside, outside, end])
        distances = np.concatenate([near, far, last])
        masses = np.concatenate([self.weights[inside], copies, self.weights[end]])
        beta = 0.0
        if self.alone and 1e-100 < self.edge[i] < 1e100:
            beta = float(self.slope[i] / self.edge[i] ** 2)
        p, own = calibrate(distances, masses, self.weights[i] - 1, self.perplexities, beta)
        return _Row(i, inside.size, columns, distances, masses, p, own)

    def compare(self, row: _Row, partner_at: float) -> _Part:
        """One row of P and of P over all pairs; `partner_at` draws the partner."""
        i, k, mass, total = row.i, row.kept, self.weights, self.total
        at = np.append(np.arange(k), k + np.flatnonzero(row.p[k:] > 0))
        share = row.p[at]
        partner = int(_drawn(row.p, np.array([partner_at]))[0])
        joint = np.zeros(len(mass))
        stored = slice(self.P.indptr[i], self.P.indptr[i + 1])
        joint[self.P.indices[stored]] = self.P.data[stored]
        guess = self._guess(row, np.append(at, partner), joint)
        kept = self.kept.rows[i]
        known = np.maximum(joint[row.columns[:k]] / (mass[i] * mass[row.columns[:k]]), 1e-300)
        base = share @ np.log(np.maximum(guess[:-1] / (2 * total), 1e-300)) - kept @ np.log(known)
        if mass[i] > 1:
            pairs = mass[i] * (mass[i] - 1)
            base += row.own * np.log(max(mass[i] * row.own / total, 1e-300) / pairs)
            base -= self.kept.own[i] * np.log(max(joint[i], 1e-300) / pairs)
        share[:k] -= kept
        given = float(row.p[partner] / row.masses[partner])
        return _Part(
            int(row.columns[partner]),
            float(base),
            1 - row.own,
            given,
            float(guess[-1]),
            row.columns[at],
            share,
        )

    def _guess(self, row: _Row, at: Indices, joint: Floats64) -> Floats64:
        """a*_ij + a*_ji per copy, some columns; a*_ji with σ of the neighbours kept of j."""
        columns, mass = row.columns[at], self.weights
        with np.errstate(over="ignore"):
            away = (row.distances[at] / np.maximum(self.edge[columns], 1e-300)) ** 2
        level = self.level[columns] - self.slope[columns] * np.minimum(away, 1e300)
        guess: Floats64 = row.p[at] / row.masses[at] + np.exp(np.minimum(level, 0.0))
        if len(self.perplexities) == 1:
            return guess
        some = joint[columns]  # a mean over σ has no one slope: P is nearer
        nearer = 2 * self.total * some / (mass[row.i] * mass[columns])
        return np.where(some > 0, nearer, guess)


def _of_all_rows(P: Table, kept: Conditional, full: _FullRows) -> Truncation:
    """All rows and all pairs of a small table; the mean over rows is weighted by their masses."""
    mass = full.weights
    n, total = len(mass), float(mass.sum())
    given, own = np.zeros((n, n)), np.zeros(n)
    for row in full.of(np.arange(n)):
        given[row.i, row.columns], own[row.i] = mass[row.i] * row.p, mass[row.i] * row.own
    truncated = np.zeros((n, n))
    np.put_along_axis(truncated, kept.neighbors.astype(np.int64), kept.rows * mass[:, None], axis=1)
    pairs = mass[:, None] * mass
    np.fill_diagonal(pairs, mass * (mass - 1))
    complete = (given + given.T) / (2 * total)
    complete[np.diag_indices(n)] = own / total
    entropy = _p_log_p(complete, pairs) - _p_log_p(P.toarray().astype(np.float64), pairs)
    change = (given - truncated) * (n / total)
    columns = [np.flatnonzero(row) for row in change]
    values = [row[at] for row, at in zip(change, columns, strict=True)]
    return Truncation(np.arange(n), n * entropy, _csr(columns, values, n), 1.0)


def _p_log_p(P: Floats64, pairs: Floats64) -> Floats64:
    """Σ_j p_ij log p_ij of each row, of single copies."""
    some = P > 0
    logs = np.log(np.where(some, P, 1.0) / np.where(some, np.maximum(pairs, 1e-300), 1.0))
    return np.asarray((P * logs).sum(axis=1))


def _drawn(p: Floats64, at: Floats64) -> Indices:
    """The places that the shares `at` of all of `p` lie within; none where p is 0."""
    sums = np.cumsum(p)
    last = int(np.flatnonzero(p)[-1])
    return np.asarray(np.minimum(np.searchsorted(sums, at * sums[-1], side="right"), last))


def _csr(columns: list[Indices], values: list[Floats64], n: int) -> Table:
    ends = np.cumsum([0, *(part.size for part in columns)]).astype(np.int32)
    data = np.concatenate(values).astype(np.float32)
    indices = np.concatenate(columns).astype(np.int32)
    return sp.csr_array((data, indices, ends), shape=(len(columns), n))
