"""Number of shared rows needed for a verdict about two sets of points.

Let X (n, dx) and Y (n, dy) be centred with norm 1, and d = min(dx, dy). The disparity
1 − (Σσ)² of XᵀY is 0 exactly when XXᵀ = YYᵀ: all distances agree, up to one factor.

**Two rows: no verdict.** XXᵀ is positive semidefinite, has rank ≤ d and trace 1, and its rows sum
to 0. For n = 2 the only such matrix is ½ (1, −1)ᵀ(1, −1), whatever d is, so the disparity is 0 by
construction. For n = 3 there is a family of them already on a line, so it is not. Scaling makes no
difference: the disparity is independent of size, and the residuals of two rows without scaling
measure how their one distance differs. Without a translation nothing sums to 0: n = 1 is the case.

**Fewer than d + 2 rows: a weak verdict.** Each point that is left out of a fit tests it. d + 1
points in general position determine rotation, reflection and translation; d points also fit their
mirror image about their plane. So each row is predicted by the others if there are d + 2 of them
(d + 1 without a translation), and no row is if there are fewer. The mean correlation of unrelated
Gaussian sets of at most d + 1 rows is above 0.7, and higher for fewer rows; with n ≫ d rows it is
about 0.85 √(d / n).

`compare`, `align` and `permutation_test` refuse the first case, since the number would be
meaningless; `compare` and `align` warn of the second. `Procrustes` warns of both: two points of
the plane may be all there is, and the map is useful without a verdict.
"""

import warnings

from gnomon.errors import DataError, DataWarning

__all__ = ["refuse_empty_verdict", "rows_needed", "warn_of_weak_verdict"]

CHANCE = 0.7  # mean correlation of unrelated sets; tests/procrustes/test_verdict.py measures it


def rows_needed(d: int, *, centering: bool = True) -> int:
    """Number of rows from which each row is predicted by the others, in `d` dimensions."""
    return d + 1 + centering


def refuse_empty_verdict(n: int, d: int, *, centering: bool = True) -> None:
    """Raise an error if the disparity of `n` shared rows is 0 by construction."""
    if _is_empty(n, centering):
        raise DataError(f"{_empty(n, centering)} {_needed(d, centering)}")


def warn_of_weak_verdict(n: int, d: int, *, centering: bool = True, stacklevel: int = 3) -> None:
    """Warn if `n` shared rows in `d` dimensions say little, or nothing."""
    if n >= rows_needed(d, centering=centering):
        return
    said = _empty(n, centering)
    if not _is_empty(n, centering):
        said = (
            f"{n} shared rows in {d} dimensions are too few for a verdict: unrelated tables of "
            f"this size have a Procrustes correlation of {CHANCE} or more on average."
        )
    warnings.warn(f"{said} {_needed(d, centering)}", DataWarning, stacklevel=stacklevel + 1)


def _is_empty(n: int, centering: bool) -> bool:
    return n <= 1 + centering


def _empty(n: int, centering: bool) -> str:
    if n < 2:
        return (
            f"{n} shared row is too few for a verdict: any point has the same shape as any other."
        )
    return (
        f"{n} shared rows are too few for a verdict: any two points have the same shape as any "
        "other two, so the disparity is 0 by construction."
    )


def _needed(d: int, centering: bool) -> str:
    needed = rows_needed(d, centering=centering)
    return f"A verdict needs {needed} rows or more: dimensions + {1 + centering}."
