"""One frame for many sets of the same points: generalised Procrustes.

With A = s·XR + t for each set and Z the mean of all A, row by row, Σ ‖A − Z‖² is minimised
([Gower 1975], [Ten Berge 1977]):

1. Each set in turn is aligned to the mean of the others, the optimum of its R and t.
2. If the sets are scaled, Σ s²‖X‖² is kept fixed (or all would shrink to a point). The best
   scales under that constraint are one eigenvector of an m × m matrix.
3. Repeat until the sum no longer falls. It never rises; a sweep that would, by rounding, is undone.

If every set holds every point, 1 and 2 need only the products XⱼᵀXₖ (`gram_sweeps.py`), and the
cost of a sweep does not grow with the number of rows. If some points are missing from some sets,
the rows themselves are used (`row_sweeps.py`).

The result is in the frame of the first set: its rotation is the identity, and its centre is kept.
"""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.errors import DataError, NotConvergedWarning, refuse
from gnomon.inputs import check_choice, check_integer, check_real
from gnomon.procrustes.align import read_ids
from gnomon.procrustes.consensus.gram_sweeps import GramSweeps
from gnomon.procrustes.consensus.row_sweeps import RowSweeps
from gnomon.procrustes.consensus.state import SetPlacement, Sets, read_sets
from gnomon.procrustes.matched_tables import read_table
from gnomon.records import Record
from gnomon.typing import Floats64

__all__ = ["Consensus", "consensus"]


@dataclass(frozen=True, eq=False)
class Consensus(Record):
    """Many sets in one frame.

    Attributes
    ----------
    mean : array (n, D)
        Mean position of every point, over the sets that hold it.
    spread : array (n,)
        Root mean squared distance of a point's positions from their mean.
    counts : array (n,)
        Number of sets that hold each point.
    ids : tuple
        Ids of the points: those of the first set, then those that the others add.
    aligned : tuple of arrays
        Each set in the common frame, with its rows in their original order.
    rotations, scales, translations : tuple of arrays, array (m,), tuple of arrays
        aligned = scale · X @ rotation + translation.
    objective : tuple of float
        Σ ‖A − Z‖² relative to Σ ‖X‖² (about the centres): at the start, and after every sweep.
    converged : bool
    """

    mean: Floats64 = field(repr=False)
    spread: Floats64 = field(repr=False)
    counts: NDArray[np.intp] = field(repr=False)
    ids: tuple[Hashable, ...] = field(repr=False)
    aligned: tuple[Floats64, ...] = field(repr=False)
    rotations: tuple[Floats64, ...] = field(repr=False)
    scales: Floats64
    translations: tuple[Floats64, ...] = field(repr=False)
    objective: tuple[float, ...]
    converged: bool

    def title(self) -> str:
        """One-line summary."""
        left = self.objective[-1]
        return f"{len(self.aligned)} sets of {len(self.ids):,} points, {left:.3g} of them left over"

    def lines(self) -> list[tuple[str, str]]:
        """Spread of the points, and the course of the iteration."""
        far = int(np.argmax(self.spread))
        most = f"{self.spread[far]:.4g} at {self.ids[far]!r}"
        scales = f"{self.scales.min():.4g} to {self.scales.max():.4g}"
        return [
            ("spread", f"median {np.median(self.spread):.4g}, most {most}"),
            ("scales", scales),
            ("sweeps", f"{len(self.objective) - 1}, {'' if self.converged else 'not '}converged"),
        ]


@one_blas_thread()
def consensus(
    sets: Sequence[Any],
    *,
    ids: Sequence[Any] | None = None,
    reflection: str = "allow",
    scaling: bool = False,
    centering: bool = True,
    max_iter: int = 200,
    tol: float = 1e-12,
    n_jobs: int | None = None,
) -> Consensus:
    """Align many sets of points in one frame.

    Parameters
    ----------
    sets : sequence of m ≥ 2 tables (nₖ, dₖ)
        Without `ids` all have the same rows in the same order. Narrower sets are padded with
        columns of zeros.
    ids : sequence of m sequences, optional
        Ids of the rows of each set; rows with equal ids are the same point, and a set need not hold
        all of them.
    reflection : {"allow", "forbid"}
    scaling : bool
        Whether each set may be scaled, with Σ s²‖X‖² fixed.
    centering : bool
    max_iter : int
    tol : float
        Stop when a sweep lowers the objective by less than this share of Σ ‖X‖².

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import consensus
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> found = consensus([X, -X, X[:, ::-1] + 5])
    >>> found.objective[-1] < 1e-12, bool(np.allclose(found.mean, X))
    (True, True)
    """
    check_choice("reflection", reflection, ("allow", "forbid"))
    check_choice("scaling", scaling, (False, True))
    check_choice("centering", centering, (False, True))
    check_integer("max_iter", max_iter, 1)
    check_real("tol", tol, 0.0)
    prepared, names = _read(sets, ids, reflection, scaling=scaling, centering=centering)
    kind = GramSweeps if prepared.complete else RowSweeps
    sweeps: Any = kind(prepared, reflection=reflection, n_jobs=n_jobs)
    history = [sweeps.objective()]
    converged = False
    for _ in range(max_iter):
        before = sweeps.placement.copy()
        sweeps.turn()
        if scaling:
            sweeps.scale()
        now = sweeps.objective()
        if now > history[-1]:  # by rounding: converged
            sweeps.restore(before)
            converged = True
            break
        history.append(now)
        if history[-2] - now <= tol * prepared.total:
            converged = True
            break
    if not converged:
        warnings.warn(
            f"The consensus still improves after `max_iter={max_iter}` sweeps; raise it.",
            NotConvergedWarning,
            stacklevel=2,
        )
    share = tuple(value / prepared.total if prepared.total > 0 else 0.0 for value in history)
    return _finish(prepared, sweeps.placement.in_first_frame(prepared), names, share, converged)


def _read(
    sets: Sequence[Any],
    ids: Sequence[Any] | None,
    reflection: str,
    *,
    scaling: bool,
    centering: bool,
) -> tuple[Sets, tuple[Hashable, ...]]:
    """Check the tables; return them with the point of each row, and the ids of the points."""
    tables = [read_table(X, f"set {k}") for k, X in enumerate(sets)]
    if len(tables) < 2:
        refuse("sets", "be at least 2 tables", len(tables))
    widths = {table.shape[1] for table in tables}
    if reflection == "forbid" and len(widths) > 1:
        must = f"be 'allow' where sets have different widths {sorted(widths)}"
        refuse("reflection", must, reflection, "A reflection can use columns that some lack.")
    if ids is None:
        lengths = [len(table) for table in tables]
        if len(set(lengths)) > 1:
            raise DataError(
                f"All sets must have the same number of rows; got {lengths}. Give `ids` if some "
                "rows are missing."
            )
        places = [np.arange(lengths[0])] * len(tables)
        names: tuple[Hashable, ...] = tuple(range(lengths[0]))
    else:
        if len(ids) != len(tables):
            refuse("ids", f"be {len(tables)} lists, one for each set", len(ids))
        lists = [
            read_ids(f"ids[{k}]", own, len(table))
            for k, (own, table) in enumerate(zip(ids, tables, strict=True))
        ]
        place: dict[Hashable, int] = {}
        for own in lists:
            for key in own:
                place.setdefault(key, len(place))
        places = [np.array([place[key] for key in own], np.intp) for own in lists]
        names = tuple(place)
    return read_sets(tables, places, len(names), scaling=scaling, centering=centering), names


def _finish(
    sets: Sets,
    placement: SetPlacement,
    names: tuple[Hashable, ...],
    objective: tuple[float, ...],
    converged: bool,
) -> Consensus:
    """Positions, means and spreads, in the units of the user."""
    placed = placement.place(sets)
    mean = sets.mean(placed)
    sq = np.zeros(sets.n)
    for A, rows in zip(placed, sets.places, strict=True):
        sq[rows] += ((A - mean[rows]) ** 2).sum(axis=1)
    unit, first = sets.exponents[0], sets.centres[0]
    centre = np.zeros(sets.width)
    centre[: first.size] = first
    translations = tuple(
        np.ldexp(t - s * (np.ldexp(c, -e) @ R), unit) + centre
        for t, s, R, c, e in zip(
            placement.shifts,
            placement.scales,
            placement.rotations,
            sets.centres,
            sets.exponents,
            strict=True,
        )
    )
    return Consensus(
        mean=np.ldexp(mean, unit) + centre,
        spread=np.ldexp(np.sqrt(sq / sets.counts), unit),
        counts=sets.counts,
        ids=names,
        aligned=tuple(np.ldexp(A, unit) + centre for A in placed),
        rotations=tuple(placement.rotations),
        scales=np.ldexp(placement.scales, [unit - e for e in sets.exponents]),
        translations=translations,
        objective=objective,
        converged=converged,
    )
