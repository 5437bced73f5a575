"""What KL over the neighbours kept leaves out: the change to KL over all pairs.

P holds the k nearest neighbours of each row. With a_ij for p_{j|i}, and a star for P over all
pairs, every sum over P is a mean over its rows,

    Σ_ij p_ij f_ij = Σ_i (w_i / Σw) Σ_j a_ij f_ij        for symmetric f,

and Z is the same for both. So KL* − KL is the mean over rows of

    D_i = Σ_j (a*_ij log p*_ij − a_ij log p_ij) + (α+1)/2 Σ_j (a*_ij − a_ij) log(1 + d_ij/α)

and is estimated from sampled rows, with a standard error:

1. a* of m sampled rows by the same search for σ, from the neighbours kept and 2,048 random columns
   that stand for all others. Columns so far away that exp(−d²/2σ²) is nothing at the σ of the
   neighbours kept are left out: σ* is smaller than that.
2. log p*_ij needs a*_ji too. With the σ of row j's neighbours kept in place of σ*_j, only a small
   remainder is missing; its mean over j ~ a*_i is estimated from one such j, the row's partner,
   whose a*_j is found as in 1.
3. Of a*_i beyond the neighbours kept, 256 columns drawn in proportion stand for all.
4. Rows whose last neighbour kept is still likely lose most. Its probability is known for all rows,
   so the mean of D_i is corrected by regression on it, which nearly halves the standard error.

1 to 3 do not depend on the map, and are done once; then any map's KL costs m (k + 256) logarithms.
Tables of up to `EXACT_UP_TO` rows are summed over all rows and pairs. With weights p_ij is the mass
between all copies, and logarithms are of single copies' shares (`attraction.log_masses`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.neighbors.search import Neighbors
from gnomon.tsne.affinities import Conditional, calibrate
from gnomon.typing import Floats64, Indices, Table

T = TypeVar("T")
Distances = Callable[[Indices, Indices, Floats64], Floats64]

EXACT_UP_TO = 400  # rows of a table that is summed as a whole
ROWS = 40  # that are sampled
COLUMNS = 2048  # that stand for all, beside a row's neighbours kept
TAIL = 256  # columns that stand for all beyond the neighbours kept
NOTHING = 40.0  # exp(−40) is nothing
BLOCK_NUMBERS = 2**18  # distances at a time

__all__ = ["Truncation", "learn_truncation"]


@dataclass(frozen=True, eq=False)
class Truncation:
    """How P over all pairs differs from the P of a map, on some rows.

    Attributes
    ----------
    rows : array (m,)
        Sampled rows; none where P is complete.
    entropy : array (m,)
        Σ_j (a*_ij log p*_ij − a_ij log p_ij) of each.
    change : CSR array (m, n)
        a*_ij − a_ij.
    last : array (m,)
        Probability of each row's last neighbour kept, less the mean over all rows.
    share : float
        m / n for rows drawn without replacement, which lowers the standard error; 1 for all rows.
    """

    rows: Indices = field(repr=False)
    entropy: Floats64 = field(repr=False)
    change: Table = field(repr=False)
    last: Floats64 = field(repr=False)
    share: float

    @classmethod
    def none(cls, n: int) -> "Truncation":
        """P of `n` rows is complete."""
        nothing = sp.csr_array((0, n), dtype=np.float32)
        return cls(np.empty(0, np.int64), np.empty(0), nothing, np.empty(0), 1.0)

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
        x, spread = self.last - self.last.mean(), float(np.square(self.last).sum())
        slope = float(x @ each / (x @ x)) if x @ x > 1e-12 * spread else 0.0
        each = each - slope * self.last
        error = float(np.sqrt(np.square(each - each.mean()).sum() / (m - 2) / m))
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
        From the numbers of m rows and c columns, and the size from which on digits matter, shape
        (m,), to distances (m, c).
    """
    n, k = near.indices.shape
    if k >= n - 1 and near.recall == 1.0:
        return Truncation.none(n)
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(n, min(n, COLUMNS), replace=False))
    full = _FullRows(P, kept, near, distances, columns, perplexities, weights, n_jobs)
    if n <= EXACT_UP_TO:
        return _of_all_rows(P, kept, full)
    mass = full.weights
    if weights is None:
        rows = np.sort(rng.choice(n, min(n - 1, ROWS), replace=False))
    else:
        rows = np.sort(rng.choice(n, ROWS, p=mass / mass.sum()))
    draws = rng.random((rows.size, 2))
    parts = full.each(rows, lambda at, row: full.compare(row, *draws[at]))
    partners = np.array([part.partner for part in parts])
    back = full.each(partners, lambda _, row: float(row.p[-1] / row.masses[-1]), also=rows)
    entropy = np.array([part.entropy(a) for part, a in zip(parts, back, strict=True)])
    change = _csr([part.columns for part in parts], [part.changes for part in parts], n)
    last = kept.rows[:, -1] - kept.rows[:, -1] @ mass / mass.sum()
    share = rows.size / n if weights is None else 0.0
    return Truncation(rows, entropy, change, last[rows], share)


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
        self, P: Table, kept: Conditional, near: Neighbors, distances: Distances, columns: Indices,
        perplexities: Sequence[float], weights: Floats64 | None, n_jobs: int | None,
    ) -> None:  # fmt: skip
        self.P, self.near, self.kept, self.distances = P, near, kept, distances
        self.columns, self.perplexities, self.n_jobs = columns, perplexities, n_jobs
        self.alone = weights is None and len(perplexities) == 1  # σ can be read from what is kept
        self.weights = np.ones(len(near.indices)) if weights is None else weights
        self.total, self.sampled = float(self.weights.sum()), float(self.weights[columns].sum())
        self.place = np.full(len(near.indices), -1)  # of each row among the columns, if it is one
        self.place[columns] = np.arange(columns.size)
        # log a_ji per copy of i, extrapolated as −β_j d² from the neighbours kept of every row j
        first, last = (kept.rows[:, c] / self.weights[near.indices[:, c]] for c in (0, -1))
        with np.errstate(all="ignore"):
            sq = near.distances[:, -1] ** 2
            beta = np.log(first / last) / (sq - near.distances[:, 0] ** 2)
            self.beta = np.where((beta > 0) & np.isfinite(beta), beta, 0.0)  # 0: cannot be read
            self.level = np.log(np.maximum(last, 1e-300)) + self.beta * sq

    def each(
        self, rows: Indices, use: Callable[[int, _Row], T], also: Indices | None = None
    ) -> list[T]:
        """`use` of the place and the probabilities of each of `rows`.

        With `also`, shape (m,), the last column of each row is that one.
        """

        def block(start: int, stop: int) -> list[T]:
            some = rows[start:stop]
            fine = self.near.distances[some, -1]
            far, last = self.distances(some, self.columns, fine), None
            if also is not None:
                last = np.diag(self.distances(some, also[start:stop], fine))
            found = []
            for at in range(start, stop):
                extra = None if also is None or last is None else (also[at], last[at - start])
                found.append(use(at, self._row(int(rows[at]), far[at - start], extra)))
            return found

        blocks = row_blocks(rows.size, max(1, BLOCK_NUMBERS // len(self.columns)))
        return [one for part in map_blocks(block, blocks, n_jobs=self.n_jobs) for one in part]

    def _row(self, i: int, far: Floats64, extra: tuple[int, float] | None) -> _Row:
        inside, near = self.near.indices[i].astype(np.int64), self.near.distances[i]
        beta = float(self.beta[i]) if self.alone else 0.0
        reach = np.sqrt(near.min() ** 2 + NOTHING / beta) if beta > 0 else np.inf
        others = far <= reach
        end, last = inside[:0], near[:0]
        if extra is not None:
            end, last, left = np.array([extra[0]]), np.array([extra[1]]), inside != extra[0]
            if not left.all():  # it is one of the neighbours kept
                last = near[~left]
                inside, near = inside[left], near[left]
        apart = np.concatenate([inside, end, [i]])
        at = self.place[apart]
        at = at[at >= 0]
        others[at] = False
        outside = self.columns[others]
        columns = np.concatenate([inside, outside, end])
        distances = np.concatenate([near, far[others], last])
        masses = self.weights[columns]
        sampled = self.sampled - self.weights[self.columns[at]].sum()
        if outside.size:
            masses[inside.size : inside.size + outside.size] *= (
                self.total - self.weights[apart].sum()
            ) / sampled
        p, own = calibrate(distances, masses, self.weights[i] - 1, self.perplexities, beta)
        return _Row(i, inside.size, columns, distances, masses, p, own)

    def compare(self, row: _Row, partner_at: float, tail_at: float) -> _Part:
        """One row of P and of P over all pairs; the arguments draw the partner and the tail."""
        i, k, mass, total = row.i, row.kept, self.weights, self.total
        at = k + np.flatnonzero(row.p[k:] > 0)
        if at.size > TAIL:  # the drawn ones stand for all
            each = row.p[at].sum() / TAIL
            at = at[_drawn(row.p[at], (np.arange(TAIL) + tail_at) / TAIL)]
            share = np.append(row.p[:k], np.full(TAIL, each))
        else:
            share = np.append(row.p[:k], row.p[at])
        at = np.append(np.arange(k), at)
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
            int(row.columns[partner]), float(base), 1 - row.own, given, float(guess[-1]),
            row.columns[at], share,
        )  # fmt: skip

    def _guess(self, row: _Row, at: Indices, joint: Floats64) -> Floats64:
        """a*_ij + a*_ji per copy, some columns; a*_ji with σ of the neighbours kept of j."""
        columns, mass = row.columns[at], self.weights
        level = self.level[columns] - self.beta[columns] * row.distances[at] ** 2
        guess = row.p[at] / row.masses[at] + np.exp(np.minimum(level, 0.0))
        if len(self.perplexities) == 1:
            return guess
        some = joint[columns]  # a mean over σ has no one slope: P is nearer
        return np.where(some > 0, 2 * self.total * some / (mass[row.i] * mass[columns]), guess)


def _of_all_rows(P: Table, kept: Conditional, full: _FullRows) -> Truncation:
    """All rows and all pairs of a small table; the mean over rows is weighted by their masses."""
    mass = full.weights
    n, total = len(mass), float(mass.sum())
    given, own = np.zeros((n, n)), np.zeros(n)
    for row in full.each(np.arange(n), lambda _, row: row):
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
    return Truncation(np.arange(n), n * entropy, _csr(columns, values, n), np.zeros(n), 1.0)


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
