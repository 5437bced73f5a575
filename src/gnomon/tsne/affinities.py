"""P: how likely two rows are neighbours, symmetric and summing to 1.

Each row j first gives conditional probabilities p_{i|j} to its k nearest neighbours, then

    p_ij = (p_{i|j} + p_{j|i}) / 2n                       ([Selitskii 2025], eq. (45))

- `uniform`: p_{i|j} = 1/k, eq. (44). Its perplexity is k, eq. (48).
- `gaussian`: p_{i|j} ∝ exp(−|x_i − x_j|² / 2σ_j²), eq. (49), with σ_j found for every row so that
  its perplexity 2^H, eq. (47), is the requested one. (The printed denominator has σ_k and counts
  k = j; σ_j and k ≠ j are meant.)
- several perplexities: the mean of the Gaussian rows of each.

A row of weight w stands for w copies. Row j then has w_j − 1 copies of itself at distance 0, a
neighbour i counts as w_i neighbours, up to k in all, and p_ij is the mass between all copies of i
and all of j:

    p_ij = (w_j p_{i|j} + w_i p_{j|i}) / 2Σw,     p_ii = w_i p_{i|i} / Σw

Rows are searched in a compiled loop over fixed blocks; P is a CSR array of float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.compute.kernels import kernel
from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.errors import refuse
from gnomon.neighbors.search import Neighbors
from gnomon.typing import Floats32, Floats64, Table

STEPS = 200  # of the search for σ: more than the digits of a double need
ROWS = 1024  # rows at a time
GROUP_BITS, MOST_GROUPS = 8, 512  # rows of a group, which a core's cache holds the entries of
MOST_BLOCKS = 64  # of rows whose entries are dealt

__all__ = ["Conditional", "calibrate", "gaussian_rows", "joint", "uniform_rows"]


@dataclass(frozen=True, eq=False)
class Conditional:
    """p_{i|j} of every row j.

    Attributes
    ----------
    neighbors : array (n, k), int32
    rows : array (n, k)
        To each neighbour, all of its copies together.
    own : array (n,)
        To the row's own copies; 0 without weights.
    """

    neighbors: NDArray[np.int32]
    rows: Floats64
    own: Floats64


def uniform_rows(
    neighbors: Neighbors, weights: Floats64 | None = None, copies: float | None = None
) -> Conditional:
    """p_{i|j} = 1/k for each of the k nearest, or of the nearest `copies` with weights."""
    n, k = neighbors.indices.shape
    if weights is None:
        return Conditional(neighbors.indices, np.full((n, k), 1.0 / k), np.zeros(n))
    counted = k if copies is None else copies
    own, masses = _masses(neighbors, weights, counted)
    return Conditional(neighbors.indices, masses / counted, own / counted)


def gaussian_rows(
    neighbors: Neighbors,
    perplexity: float | Sequence[float],
    *,
    weights: Floats64 | None = None,
    copies: float | None = None,
    n_jobs: int | None = None,
) -> Conditional:
    """Conditional probabilities whose rows reach the perplexity.

    A row with more copies of itself than the perplexity cannot come down to it: its copies share
    the probability equally. With several perplexities, the mean over them.

    Parameters
    ----------
    neighbors : Neighbors
        Three times the perplexity are enough: farther ones would get less than 1 in 100.
    perplexity : float or sequence of floats
        From 1 to k.
    weights : array (n,), optional
        How many copies each row stands for.
    copies : float, optional
        With weights, how many copies count as neighbours: k, unless there are too few rows for the
        k nearest copies to be among k rows.
    """
    scales = [perplexity] if isinstance(perplexity, (int, float)) else list(perplexity)
    n, k = neighbors.indices.shape
    total, total_own = np.zeros((n, k)), np.zeros(n)
    counted = k if weights is None or copies is None else copies
    own, masses = (
        (np.zeros(n), np.ones((1, k))) if weights is None else _masses(neighbors, weights, counted)
    )
    distances = _above_subnormals(neighbors.distances)
    for scale in scales:
        if not 1 <= scale <= counted:
            refuse("perplexity", f"be from 1 to the number of neighbours, {counted:g}", scale)

        def block(start: int, stop: int, entropy: float = float(np.log(scale))) -> None:
            _search(distances, masses, own, entropy, 0.0, total, total_own, start, stop)

        map_blocks(block, row_blocks(n, ROWS), n_jobs=n_jobs)
    if len(scales) > 1:
        total, total_own = total / len(scales), total_own / len(scales)
    return Conditional(neighbors.indices, total, total_own)


def calibrate(
    distances: Floats64, masses: Floats64, own: float, perplexities: Sequence[float], beta: float
) -> tuple[Floats64, float]:
    """Conditional probabilities of one row to others in any order, and to its own copies.

    `masses` counts copies of the others, `own` those of the row; `beta` is where the search for
    1/2σ² begins, 0 if nothing is known of it.
    """
    total, total_own = np.zeros((1, distances.size)), np.zeros(1)
    ends = _ends_in_place(distances)
    row, copies = _above_subnormals(distances[None, ends]), masses[None, ends]
    begin = beta if row[0, -1] == distances[ends[-1]] else 0.0
    for scale in perplexities:
        entropy = float(np.log(scale))
        _search(row, copies, np.array([own]), entropy, begin, total, total_own, 0, 1)
    p = np.empty(distances.size)
    p[ends] = total[0] / len(perplexities)
    return p, float(total_own[0] / len(perplexities))


def _ends_in_place(distances: Floats64) -> NDArray[np.intp]:
    """An order with the least distance first and the largest last."""
    order = np.arange(distances.size)
    last = int(np.argmax(distances))
    order[[last, -1]] = order[[-1, last]]
    first = int(np.argmin(distances[order[:-1]])) if distances.size > 1 else 0
    order[[first, 0]] = order[[0, first]]
    return order


def _above_subnormals(distances: Floats64) -> Floats64:
    """Rows so small that dividing by them overflows, multiplied by a power of two."""
    tiny = distances[:, -1] < 1e-290
    if not tiny.any():
        return distances
    distances = distances.copy()
    distances[tiny] = np.ldexp(distances[tiny], 600)
    return distances


def _masses(neighbors: Neighbors, weights: Floats64, k: float) -> tuple[Floats64, Floats64]:
    """How many copies of itself, and of each neighbour, are among the k nearest of a row."""
    own = np.minimum(weights - 1, k)
    theirs = weights[neighbors.indices]
    before = own[:, None] + np.cumsum(theirs, axis=1) - theirs
    return own, np.clip(k - before, 0.0, theirs)


@kernel
def _exp(x: float) -> float:
    """e^x for x ≤ 0 to the last bit or two, in steps that vectorise; 0 below e^−700.

    e^x = 2^n e^r with n = round(x / log 2): twelve terms of the series suffice for |r| ≤ ½ log 2.
    """
    within = max(x, -700.0)
    n = np.floor(within * 1.4426950408889634 + 0.5)
    r = (within - n * 6.93145751953125e-1) - n * 1.42860682030941723e-6  # log 2 in two parts
    series = 1 / 3628800 + r * (1 / 39916800 + r * (1 / 479001600))
    series = 1 / 40320 + r * (1 / 362880 + r * series)
    series = 1 / 720 + r * (1 / 5040 + r * series)
    series = 1 / 24 + r * (1 / 120 + r * series)
    series = 1 + r * (1 + r * (0.5 + r * (1 / 6 + r * series)))
    power = np.int64((np.int64(n) + 1023) << 52).view(np.float64)
    return series * power if x > -700.0 else 0.0


@kernel
def _search(
    distances: Floats64,
    masses: Floats64,
    copies: Floats64,
    entropy: float,
    begin: float,
    rows: Floats64,
    own: Floats64,
    start: int,
    stop: int,
) -> None:
    """Add rows with H = log z + β E[d²] = `entropy` (in nats), z = Σ m exp(−β d²), β = 1/2σ².

    Newton's method on log β, within a bracket that bisection falls back on. Distances are measured
    from the nearest neighbour and in units of the row's mean, so that exponents neither overflow
    nor depend on the data's units. β begins at `begin`, in the data's units, or at 1 in those of
    the row if that is 0. Of the distances the first must be the least and the last the largest.
    """
    k = distances.shape[1]
    sq, p = np.empty(k), np.empty(k)
    for i in range(start, stop):
        of = i if masses.shape[0] > 1 else 0
        farthest = distances[i, k - 1] if distances[i, k - 1] > 0 else 1.0
        nearest = 0.0 if copies[i] > 0 else distances[i, 0] / farthest
        mean = 0.0
        for j in range(k):
            relative = distances[i, j] / farthest
            sq[j] = (relative - nearest) * (relative + nearest)
        # Compiled, the nearest may be off 0 by its rounding, which a large β would blow up.
        least = sq[0] if nearest > 0 else 0.0
        for j in range(k):
            sq[j] = max(sq[j] - least, 0.0)
            mean += sq[j] / k
        if mean > 0:
            for j in range(k):
                sq[j] /= mean
        low, high, beta = 0.0, np.inf, 1.0
        if begin > 0 and mean > 0:
            beta = min(max(begin * farthest * mean * farthest, 1e-6), 1e6)
        z = 1.0
        for _ in range(STEPS):
            z, first, second = copies[i], 0.0, 0.0
            for j in range(k):
                share = masses[of, j] * _exp(-beta * sq[j])
                p[j] = share
                z += share
                first += share * sq[j]
                second += share * sq[j] * sq[j]
            first, second = first / z, second / z
            gap = np.log(z) + beta * first - entropy
            if abs(gap) < 1e-10:
                break
            if gap > 0:
                low = beta
            else:
                high = beta
            slope = beta * beta * (second - first * first)  # −dH/d log β
            new = beta * np.exp(min(max(gap / slope, -2.0), 2.0)) if slope > 0 else np.inf
            if not low < new < high:
                new = 2 * beta if high == np.inf else (low + high) / 2
            if new in (low, high, beta) or new > 1e300:
                break
            beta = new
        for j in range(k):
            rows[i, j] += p[j] / z
        own[i] += copies[i] / z


def joint(
    conditional: Conditional, *, weights: Floats64 | None = None, n_jobs: int | None = None
) -> Table:
    """P of conditional rows, as a CSR array of float32 that sums to 1, columns in order."""
    n = len(conditional.rows)
    masses = np.ones(n) if weights is None else weights
    weighted = conditional.rows if weights is None else conditional.rows * masses[:, None]
    given = weighted.astype(np.float32)
    named_in_order = _in_order(conditional.neighbors, given, n_jobs)
    naming = _transposed(conditional.neighbors, given, n_jobs)
    own = 2 * masses * conditional.own if weights is not None else np.empty(0)
    lengths = np.empty(n, np.int64)

    def measure(start: int, stop: int) -> None:
        _count_union(*named_in_order[:2], *naming[:2], own.size > 0, lengths, start, stop)

    map_blocks(measure, row_blocks(n, ROWS), n_jobs=n_jobs)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    small = indptr[-1] < 2**31  # SciPy wants one type for both
    indptr = indptr.astype(np.int32 if small else np.int64)
    columns = np.empty(indptr[-1], indptr.dtype)
    data = np.empty(indptr[-1], np.float32)
    scale = 0.5 / masses.sum()

    def merge(start: int, stop: int) -> None:
        _merge(*named_in_order, *naming, own, scale, indptr, columns, data, start, stop)

    map_blocks(merge, row_blocks(n, ROWS), n_jobs=n_jobs)
    data *= np.float32(1 / data.sum(dtype=np.float64))
    return sp.csr_array((data, columns, indptr), shape=(n, n))


Lists = tuple[NDArray[np.int64], NDArray[np.int32], Floats32]  # starts, numbers, values


def _in_order(numbers: NDArray[np.int32], values: Floats32, n_jobs: int | None) -> Lists:
    """The lists, rows of arrays (n, k), with their numbers ascending.

    Number and value, which is not negative, are sorted as the halves of one integer.
    """
    n, k = numbers.shape
    new_numbers, new_values = np.empty((n, k), np.int32), np.empty((n, k), np.float32)

    def block(start: int, stop: int) -> None:
        both = numbers[start:stop].astype(np.int64) << 32
        both |= values[start:stop].view(np.int32)
        both.sort(axis=1)
        new_numbers[start:stop] = both >> 32
        new_values[start:stop] = both.astype(np.int32).view(np.float32)

    map_blocks(block, row_blocks(n, ROWS), n_jobs=n_jobs)
    return np.arange(0, n * k + 1, k), new_numbers.ravel(), new_values.ravel()


def _transposed(numbers: NDArray[np.int32], values: Floats32, n_jobs: int | None) -> Lists:
    """For every row, the rows whose list holds it, in order, with their values.

    Entries are dealt twice, so that each time they go to few places: to groups of rows, and within
    each group to its rows. Both times a block of entries has places of its own, in order.
    """
    n, k = numbers.shape
    shift = max(GROUP_BITS, (n // MOST_GROUPS).bit_length())
    groups, blocks = row_blocks(n, 2**shift), row_blocks(n, max(ROWS, -(-n // MOST_BLOCKS)))
    step, counts = blocks[0][1], np.zeros((len(blocks), len(groups)), np.int64)
    of_group = np.empty(n * k, np.int32), np.empty(n * k, np.int32), np.empty(n * k, np.float32)
    starts = np.zeros(n + 1, np.int64)
    of_row = np.empty(n * k, np.int32), np.empty(n * k, np.float32)

    def count(start: int, stop: int) -> None:
        _count_keys(numbers[start:stop].reshape(-1), shift, 0, counts[start // step])

    def deal_to_groups(start: int, stop: int) -> None:
        _deal_to_groups(numbers, values, shift, places[start // step], *of_group, start, stop)

    def deal_to_rows(start: int, stop: int) -> None:
        group = start >> shift
        first, last = ends[group], ends[group + 1]
        lengths = np.zeros(stop - start, np.int64)
        _count_keys(of_group[0][first:last], 0, start, lengths)
        starts[start + 1 : stop + 1] = first + np.cumsum(lengths)
        place = starts[start + 1 : stop + 1] - lengths
        _deal_to_rows(*of_group, start, place, *of_row, first, last)

    map_blocks(count, blocks, n_jobs=n_jobs)
    ends = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = ends[:-1] + np.cumsum(counts, axis=0) - counts
    map_blocks(deal_to_groups, blocks, n_jobs=n_jobs)
    map_blocks(deal_to_rows, groups, n_jobs=n_jobs)
    return starts, *of_row


@kernel
def _count_keys(keys: Any, shift: int, first: int, counts: Any) -> None:
    """How many keys there are of each 2^shift, from `first` on."""
    for at in range(keys.shape[0]):
        counts[(keys[at] >> shift) - first] += 1


@kernel
def _deal_to_groups(
    numbers: Any,
    values: Floats32,
    shift: int,
    place: Any,
    to_keys: Any,
    to_rows: Any,
    to_values: Floats32,
    start: int,
    stop: int,
) -> None:
    """`place`, where the next entry of each group goes, is moved along."""
    for i in range(start, stop):
        for j in range(numbers.shape[1]):
            key = numbers[i, j]
            to = place[key >> shift]
            to_keys[to], to_rows[to], to_values[to] = key, i, values[i, j]
            place[key >> shift] = to + 1


@kernel
def _deal_to_rows(
    keys: Any,
    rows: Any,
    values: Floats32,
    first: int,
    place: Any,
    to_rows: Any,
    to_values: Floats32,
    start: int,
    stop: int,
) -> None:
    """Deal the entries of a group to its rows, the first of which is `first`."""
    for at in range(start, stop):
        to = place[keys[at] - first]
        to_rows[to], to_values[to] = rows[at], values[at]
        place[keys[at] - first] = to + 1


@kernel
def _count_union(
    starts: Any,
    named: Any,
    naming_starts: Any,
    naming: Any,
    diagonal: bool,
    lengths: Any,
    start: int,
    stop: int,
) -> None:
    """How many rows row i named or was named by, itself included if `diagonal`."""
    for i in range(start, stop):
        a, a_end, b, b_end = starts[i], starts[i + 1], naming_starts[i], naming_starts[i + 1]
        count = 1 if diagonal else 0
        while a < a_end and b < b_end:
            first, second = named[a], naming[b]
            a += first <= second
            b += second <= first
            count += 1
        lengths[i] = count + (a_end - a) + (b_end - b)


@kernel
def _merge(
    starts: Any,
    named: Any,
    given: Floats32,
    naming_starts: Any,
    naming: Any,
    received: Floats32,
    own: Floats64,
    scale: float,
    indptr: Any,
    columns: Any,
    data: Any,
    start: int,
    stop: int,
) -> None:
    """Row i of P: whom it named and who named it, merged by column, with itself in between."""
    none = 2**31 - 1
    for i in range(start, stop):
        a, a_end, b, b_end = starts[i], starts[i + 1], naming_starts[i], naming_starts[i + 1]
        at, itself = indptr[i], own.size > 0
        while a < a_end or b < b_end or itself:
            first = named[a] if a < a_end else none
            second = naming[b] if b < b_end else none
            column, value = min(first, second), 0.0
            if itself and i < column:
                column, value, itself = i, own[i], False
            else:
                if first == column:
                    value += np.float64(given[a])
                    a += 1
                if second == column:
                    value += np.float64(received[b])
                    b += 1
            columns[at], data[at] = column, scale * value
            at += 1
