"""Join two tables on their ids, align one to the other, and report rows without a partner."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import check_weights
from gnomon.numeric.apply import plain_transform
from gnomon.procrustes.estimator import Procrustes
from gnomon.procrustes.matched_tables import read_table
from gnomon.procrustes.verdict import refuse_empty_verdict
from gnomon.records import Record

NARROWER = "the squared lengths of X, which the columns of Y do not hold"

__all__ = ["Alignment", "align", "ids_or_index", "join_ids", "read_ids", "share_outside"]


@dataclass(frozen=True, eq=False)
class Alignment(Record):
    """Table X aligned to table Y.

    Attributes
    ----------
    aligned : array (n, dy)
        Every row of X in the frame and the columns of Y, including rows without a partner.
    model : Procrustes
        The fitted map, for further rows. Where X is wider than Y, its `transform` gives further
        columns after those of Y.
    shared : tuple
        Ids (row numbers without ids) of the rows that both tables hold, in the order of X.
    rows_x, rows_y : array (m,)
        Positions of those rows in X and in Y.
    residuals : array (m,)
        Distance of each of those rows from its partner after alignment.
    only_x, only_y : tuple
        Ids without a partner, which were not used for the fit.
    disparity, rmsd, scale : float
        They count what lies outside of the columns of Y, as the fit does.
    reflected : bool or None
        None if X and Y have different numbers of columns.
    outside : float
        Share of the squared distances of the shared rows from their mean that lies outside of the
        columns of Y and is not in `aligned`: 0 unless X is wider. A rotation into fewer columns is
        a projection, the one of X onto the dy orthonormal directions that fit Y best.
    """

    aligned: NDArray[Any] = field(repr=False)
    model: Procrustes = field(repr=False)
    shared: tuple[Hashable, ...] = field(repr=False)
    rows_x: NDArray[np.intp] = field(repr=False)
    rows_y: NDArray[np.intp] = field(repr=False)
    residuals: NDArray[np.float64] = field(repr=False)
    only_x: tuple[Hashable, ...]
    only_y: tuple[Hashable, ...]
    disparity: float
    rmsd: float
    scale: float
    reflected: bool | None
    outside: float

    def title(self) -> str:
        """One-line summary."""
        return f"{len(self.shared):,} shared rows, aligned to a disparity of {self.disparity:.3g}"

    def lines(self) -> list[tuple[str, str]]:
        """Quality of the fit, and the ids without a partner."""
        far = int(np.argmax(self.residuals))
        narrower = (
            [] if self.outside == 0 else [("outside", f"{100 * self.outside:.1f} % of {NARROWER}")]
        )
        return [
            (
                "explained",
                f"{100 * (1 - self.disparity):.1f} % of the shape, by the best rotation and scale",
            ),
            (
                "rmsd",
                f"{self.rmsd:.4g}, the farthest {self.residuals[far]:.4g} at {self.shared[far]!r}",
            ),
            ("scale", f"{self.scale:.4g}"),
            (
                "reflected",
                {
                    True: "yes",
                    False: "no",
                    None: "undefined: X and Y differ in their numbers of columns",
                }[self.reflected],
            ),
            *narrower,
            ("only in X", _some(self.only_x)),
            ("only in Y", _some(self.only_y)),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Numbers and ids; the map as its rotation, scale and translation."""
        found = {
            "disparity": self.disparity,
            "rmsd": self.rmsd,
            "scale": self.scale,
            "reflected": self.reflected,
            "outside": self.outside,
            "rotation": self.model.rotation_.tolist(),
            "translation": self.model.translation_.tolist(),
            "n_shared": len(self.shared),
        }
        return found | {"only_x": list(self.only_x), "only_y": list(self.only_y)}


def align(
    X: Any,
    Y: Any,
    ids_x: Any = None,
    ids_y: Any = None,
    *,
    sample_weight: Any = None,
    reflection: str = "allow",
    scaling: bool | str = False,
    centering: bool = True,
    robust: bool | str = False,
    prior: Any = None,
    n_jobs: int | None = None,
) -> Alignment:
    """Align X to Y by the rows that both hold, and move all rows of X.

    Two shared rows are refused, since any two points fit perfectly; fewer than the
    dimensions + 2 raise a warning (see `gnomon.procrustes.verdict`). `Procrustes` fits them.

    Parameters
    ----------
    X, Y : array or dataframe, shapes (n, dx), (k, dy)
    ids_x, ids_y : sequences of n and k hashable ids, optional
        Rows with equal ids are partners; ids must be unique in each table. By default the indexes
        of dataframes, if both have an explicit one; otherwise row i belongs to row i.
    sample_weight : array (n,), optional
        Weights of the rows of X.
    reflection, scaling, centering, robust, prior, n_jobs
        Parameters of `Procrustes`.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import align
    >>> Y = np.array([[1.0, 1.0], [2.0, 1.0], [1.0, 3.0], [4.0, 4.0], [3.0, 2.0]])
    >>> X = Y[[3, 0, 1, 4]] + 10
    >>> found = align(X, Y, ids_x=list("dabe"), ids_y=list("abcde"))
    >>> found.aligned.round(6).tolist(), found.only_y
    ([[4.0, 4.0], [1.0, 1.0], [2.0, 1.0], [3.0, 2.0]], ('c',))
    """
    ids_x, ids_y = ids_or_index(X, Y, ids_x, ids_y)
    left, right = read_table(X, "X"), read_table(Y, "Y")
    weights = check_weights("sample_weight", sample_weight, left.shape[0], of="row")
    shared, rows_x, rows_y, only_x, only_y = join_ids(left, right, ids_x, ids_y)
    model = Procrustes(
        reflection=reflection,
        scaling=scaling,
        centering=centering,
        robust=robust,
        prior=prior,
        n_jobs=n_jobs,
    )
    own = None if weights is None else weights[rows_x]
    counted = len(rows_x) if own is None else int(np.count_nonzero(own))
    if counted:
        refuse_empty_verdict(counted, min(left.shape[1], right.shape[1]), centering=centering)
    whole = len(rows_x) == len(left) == len(right) and bool((rows_x == rows_y).all())
    a, b = (left, right) if whole else (left[rows_x], right[rows_y])
    model.fit(a, b, own)
    known = hasattr(model, "residuals_")
    residuals = model.residuals_ if known else model.residuals(a, b)
    moved, dy = plain_transform(model, left), right.shape[1]
    return Alignment(
        aligned=moved[:, :dy],
        model=model,
        shared=shared,
        rows_x=rows_x,
        rows_y=rows_y,
        residuals=residuals,
        only_x=only_x,
        only_y=only_y,
        disparity=model.disparity_,
        rmsd=model.rmsd_,
        scale=model.scale_,
        reflected=model.reflected_,
        outside=share_outside(model, moved[rows_x], dy),
    )


def share_outside(model: Procrustes, moved: NDArray[Any], dy: int) -> float:
    """Share of squared distances from the centre that rows have outside of `dy` columns of Y."""
    if moved.shape[1] == dy:
        return 0.0
    centre = model.similarity_.centre
    away = np.square(moved - (0.0 if centre is None else centre)).sum(axis=0)
    return float(away[dy:].sum() / away.sum()) if away.any() else 0.0


def read_ids(name: str, ids: Any, n: int) -> list[Hashable]:
    """Check `ids`: `n` hashable, present, distinct values."""
    found = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if len(found) != n:
        refuse(name, f"be {n} ids, one for each row", len(found))
    seen: dict[Hashable, int] = {}
    for row, key in enumerate(found):
        try:
            if key is None or key != key:
                refuse(name, "have an id for every row", key, f"It is in row {row}.")
            first = seen.setdefault(key, row)
        except TypeError:
            refuse(name, "be hashable: text or numbers", type(key).__name__, kind=True)
        if first != row:
            way = f"It is in rows {first} and {row}; merge or drop those rows."
            refuse(name, "be distinct", key, way)
    return found


def ids_or_index(X: Any, Y: Any, ids_x: Any, ids_y: Any) -> tuple[Any, Any]:
    """Ids as given, or the indexes of two dataframes that both have an explicit one."""
    if (ids_x is None) != (ids_y is None):
        missing = "ids_x" if ids_x is None else "ids_y"
        refuse(missing, "be given with the ids of the other table", None)
    if ids_x is not None:
        return ids_x, ids_y
    both = [getattr(Z, "index", None) for Z in (X, Y)]
    # A list's `index` is a method, and pandas numbers rows by default: neither is an id.
    own = [i is not None and not callable(i) and type(i).__name__ != "RangeIndex" for i in both]
    return (both[0], both[1]) if all(own) else (None, None)


def join_ids(
    X: Any, Y: Any, ids_x: Any, ids_y: Any
) -> tuple[
    tuple[Hashable, ...],
    NDArray[np.intp],
    NDArray[np.intp],
    tuple[Hashable, ...],
    tuple[Hashable, ...],
]:
    """Shared ids in X's order, their rows in X and Y, and the ids that only one table has."""
    if ids_x is None:
        if len(X) != len(Y):
            raise DataError(
                f"X and Y must have the same number of rows; got {len(X)} and {len(Y)}. Give "
                "`ids_x` and `ids_y` to join them."
            )
        rows = np.arange(len(X))
        return tuple(range(len(X))), rows, rows, (), ()
    left, right = read_ids("ids_x", ids_x, len(X)), read_ids("ids_y", ids_y, len(Y))
    place = {key: row for row, key in enumerate(right)}
    pairs = [(row, place[key]) for row, key in enumerate(left) if key in place]
    if not pairs:
        raise DataError(
            f"`ids_x` and `ids_y` share no id: {_some(left)}; {_some(right)}. Are both of the same "
            "kind, text or numbers?"
        )
    rows_x, rows_y = np.array(pairs, np.intp).T
    known = set(left)
    return (
        tuple(left[row] for row in rows_x),
        rows_x,
        rows_y,
        tuple(key for key in left if key not in place),
        tuple(key for key in right if key not in known),
    )


def _some(ids: Sequence[Hashable], most: int = 5) -> str:
    if not ids:
        return "none"
    shown = ", ".join(repr(key) for key in ids[:most])
    return f"{len(ids):,}: {shown}{', …' if len(ids) > most else ''}"
