"""Angles between subspaces, and features of one domain in the principal frame of another.

Two bases with orthonormal rows P (k, d) and Q (m, d) span subspaces; the singular values of PQᵀ are
the cosines of the principal angles between them [Björck & Golub 1973]. Small angles are computed
from sines instead, since the cosine of a small angle loses its digits.

Subspace alignment [Fernando et al. 2013] maps a source domain into the target's principal frame:
features x become x Pᵀ · PQᵀ, coordinates in the source's frame times the matrix that best aligns
the frames. Directions that the frames do not share are shrunk by the cosines; with ``keep_lengths``
the nearest orthogonal matrix is used instead, and nothing is shrunk (eqs. (60)–(66) of the notes,
with the frames as the points).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.compute.blas import one_blas_thread
from gnomon.errors import DataError, refuse
from gnomon.inputs import check_choice, refuse_bad_values
from gnomon.numeric.apply import plain_transform
from gnomon.procrustes.matched_tables import read_table
from gnomon.procrustes.solve import solve
from gnomon.records import Record
from gnomon.typing import Floats64

EPS = float(np.finfo(np.float64).eps)

__all__ = ["SubspaceAlignment", "align_subspaces", "principal_angles"]


@dataclass(frozen=True, eq=False)
class SubspaceAlignment(Record):
    """A source domain's features in the principal frame of a target domain.

    Attributes
    ----------
    matrix : array (k, m)
        From coordinates in the source's frame to coordinates in the target's.
    angles : array (min(k, m),)
        Principal angles between the two subspaces, radians, smallest first.
    keep_lengths : bool
    """

    matrix: Floats64 = field(repr=False)
    angles: Floats64
    keep_lengths: bool
    source: Any = field(repr=False)

    def title(self) -> str:
        """One-line summary."""
        k, m = self.matrix.shape
        return f"{k} source directions in a frame of {m} target directions"

    def lines(self) -> list[tuple[str, str]]:
        """Principal angles, in degrees."""
        shown = ", ".join(f"{angle:.3g}°" for angle in np.degrees(self.angles[:6]))
        return [
            ("angles", shown + (", …" if self.angles.size > 6 else "")),
            ("lengths", "kept" if self.keep_lengths else "shrunk by the cosines of the angles"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Matrix and angles as a dictionary."""
        return {
            "matrix": self.matrix.tolist(),
            "angles": self.angles.tolist(),
            "keep_lengths": self.keep_lengths,
        }

    def transform(self, X: Any) -> NDArray[Any]:
        """Map rows of the source domain, shape (n, d), into the target's frame, shape (n, m).

        Compare them with the target model's own ``transform``.
        """
        if hasattr(self.source, "transform"):
            scores = plain_transform(self.source, X)
        else:
            X = read_table(X, "X")
            if X.shape[1] != self.source.shape[1]:
                refuse("X", f"have {self.source.shape[1]} columns", X.shape[1])
            refuse_bad_values(X)
            scores = X @ self.source.T
        moved: NDArray[Any] = scores @ self.matrix.astype(scores.dtype)
        return moved


@one_blas_thread()
def principal_angles(a: Any, b: Any) -> Floats64:
    """Principal angles between two subspaces, radians from 0 to π/2, smallest first.

    Parameters
    ----------
    a, b : fitted models with ``components_``, or arrays (k, d) and (m, d)
        Rows of an array span its subspace; they need not be orthonormal.

    Returns
    -------
    angles : array (min(k, m),), of the ranks of the arrays

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import principal_angles
    >>> np.degrees(principal_angles([[1, 0, 0]], [[1, 1, 0]])).round(6).tolist()
    [45.0]
    """
    P, Q = _basis(a, "a"), _basis(b, "b")
    _refuse_other_columns(P, Q)
    return _angles(P, Q)


@one_blas_thread()
def align_subspaces(source: Any, target: Any, *, keep_lengths: bool = False) -> SubspaceAlignment:
    """Map features of a source domain into the principal frame of a target domain.

    Parameters
    ----------
    source, target : fitted PCAs, or arrays (k, d) and (m, d) with orthonormal rows
        Fitted on the same columns, in different domains: sensors, laboratories, languages.
    keep_lengths : bool, default=False
        Whether to preserve distances within the source's subspace, by an orthogonal matrix,
        instead of shrinking directions that the frames do not share.

    Examples
    --------
    >>> from gnomon import PCA, align_subspaces, samples
    >>> X = samples.load("iris").X
    >>> source, target = PCA(2).fit(X[:75]), PCA(2).fit(X[75:])
    >>> align_subspaces(source, target).transform(X[:75]).shape
    (75, 2)
    """
    check_choice("keep_lengths", keep_lengths, (False, True))
    P, Q = _components(source, "source"), _components(target, "target")
    _refuse_other_columns(P, Q)
    shared = P @ Q.T
    matrix = shared
    if keep_lengths:
        k, m = shared.shape
        if k > m:
            refuse(
                "target",
                f"have at least as many directions as the source ({k}) when `keep_lengths`",
                m,
                "Keep fewer components of the source.",
            )
        matrix = solve(shared, same_width=k == m).matrix
    kept = source if hasattr(source, "transform") else P
    return SubspaceAlignment(matrix, _angles(P, Q), keep_lengths, kept)


def _components(model: Any, name: str) -> Floats64:
    """Rows of a model, which must be orthonormal."""
    rows = _rows(model, name)
    if np.abs(rows @ rows.T - np.eye(len(rows))).max() > 1e-4:
        refuse(name, "have orthonormal rows", "other rows", "Give a fitted PCA.")
    return rows


def _basis(model: Any, name: str) -> Floats64:
    """Orthonormal basis of the rows' span."""
    rows = _rows(model, name)
    largest = np.abs(rows).max()
    if largest == 0:
        raise DataError(f"`{name}` spans nothing: all its rows are zero. Give other rows.")
    _, sigma, Vt = np.linalg.svd(rows / largest, full_matrices=False)
    return np.asarray(Vt[sigma > max(rows.shape) * EPS * sigma[0]])


def _rows(model: Any, name: str) -> Floats64:
    rows = read_table(getattr(model, "components_", model), name)
    refuse_bad_values(rows, table=name)
    return np.asarray(rows, np.float64)


def _angles(P: Floats64, Q: Floats64) -> Floats64:
    """Principal angles from cosines above 45°, from sines below."""
    if len(P) < len(Q):
        P, Q = Q, P
    cosines = np.linalg.svd(Q @ P.T, compute_uv=False)
    sines = np.linalg.svd(Q - (Q @ P.T) @ P, compute_uv=False)[::-1]  # smallest angle first
    sines = np.concatenate([np.zeros(len(Q) - sines.size), sines])
    by_cosine = np.arccos(np.minimum(cosines, 1.0))
    by_sine = np.arcsin(np.minimum(sines, 1.0))
    return np.asarray(np.where(cosines**2 >= 0.5, by_sine, by_cosine))


def _refuse_other_columns(P: Floats64, Q: Floats64) -> None:
    if P.shape[1] != Q.shape[1]:
        raise DataError(
            f"Both subspaces must be of the same columns; got {P.shape[1]} and {Q.shape[1]}."
        )
