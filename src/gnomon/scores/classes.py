"""Whether the neighbours of a point have its label: accuracy of a k-nearest-neighbour vote.

A point's label is predicted by a vote of its k nearest neighbours, the point itself excluded. In
a tie the label of the nearest voter wins. A neighbour without a label (None, NaN) does not vote;
a point without one, or whose neighbours have none, is not scored.
"""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.errors import refuse
from gnomon.inputs import check_integer, random_generator
from gnomon.scores.ranks import find_nearest, rank_block_rows
from gnomon.scores.sample import choose_rows
from gnomon.scores.table_pair import read_points
from gnomon.typing import Indices32

__all__ = ["class_accuracy", "read_codes", "vote"]


def class_accuracy(
    Y: Any,
    labels: Any,
    n_neighbors: int = 15,
    *,
    sample: int | str | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Share of the points of `Y`, shape (n, p), whose neighbours vote for their own label.

    Parameters
    ----------
    labels : sequence of n labels
        Labels of any type; None and NaN mean no label.
    n_neighbors : int
        Number of voters, below n.
    sample, random_state, n_jobs
        Parameters of `trustworthiness`.

    Returns
    -------
    float
        NaN if no point can be scored.
    """
    W = read_points(Y)
    n = len(W)
    k = check_integer("n_neighbors", n_neighbors, 1, n - 1, f"There are {n} rows.")
    codes = read_codes(labels, n)
    rows = choose_rows(n, sample, random_generator(random_state))
    right = np.empty(len(rows))

    def block(start: int, stop: int) -> None:
        here = rows[start:stop]
        right[start:stop] = vote(codes, here, find_nearest(W, here, k))

    map_blocks(block, row_blocks(len(rows), rank_block_rows(n)), n_jobs=n_jobs)
    judged = np.isfinite(right)
    return float(right[judged].mean()) if judged.any() else float("nan")


def read_codes(labels: Any, n: int) -> Indices32:
    """Integer code of each label, −1 for none."""
    if nw.dependencies.is_into_series(labels):
        values = nw.from_native(labels, series_only=True).to_list()
    elif isinstance(labels, np.ndarray) and labels.ndim != 1:
        refuse("labels", f"be one column of {n} labels", f"shape {labels.shape}")
    elif isinstance(labels, str) or not np.iterable(labels):
        refuse("labels", f"be one column of {n} labels", labels, kind=True)
    else:
        # The list of a masked array has None where it is masked.
        values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if len(values) != n:
        refuse("labels", f"have {n} rows, as many as the map", len(values))
    number: dict[Any, int] = {}
    try:
        codes = [-1 if _is_none(v) else number.setdefault(v, len(number)) for v in values]
    except TypeError as error:
        refuse("labels", f"be one column of {n} labels", f"a list whose items are not ({error})")
    if not number:
        refuse("labels", "hold at least one label", "none", "Leave them out.")
    return np.array(codes, np.int64)


def _is_none(value: Any) -> bool:
    # By name, because pandas need not be installed: its NA refuses to be compared.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or bool(value != value)


def vote(codes: Indices32, rows: NDArray[np.int64], near: Indices32) -> NDArray[np.float64]:
    """1 for each of `rows` whose neighbours `near`, (m, k), vote for its label, else 0 or NaN."""
    m, classes = len(rows), int(codes.max()) + 1
    cast, own = codes[near], codes[rows]
    ballots = cast + classes * np.arange(m)[:, None]
    votes = np.bincount(ballots[cast >= 0], minlength=m * classes)
    votes_for = np.where(cast >= 0, votes[ballots], 0)  # votes for each neighbour's label
    first = votes_for.argmax(axis=1)  # the first with most votes is the nearest voter
    winner = cast[np.arange(m), first]
    return np.where((own < 0) | (winner < 0), np.nan, winner == own)
