"""Preparing a table: whether its columns should be standardised, and why."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scale", "choose_scale"]

FOLD = 10.0


@dataclass(frozen=True)
class Scale:
    """Whether to standardise, and the reason in a few words."""

    standardize: bool
    why: str


def choose_scale(X: NDArray[Any], asked: bool | None = None) -> Scale:
    """Standardise when the columns' spreads differ more than tenfold, unless they share a unit.

    Pixels and other counts on one scale share a unit although some hardly vary: dividing those by
    their spread would only raise noise.
    """
    if asked is not None:
        return Scale(asked, "as asked")
    spreads = X.std(axis=0)
    spreads = spreads[spreads > 1e-12 * np.abs(X).max(axis=0)]  # a constant may have a rounding
    fold = float(spreads.max() / spreads.min()) if spreads.size else 1.0
    if fold <= FOLD:
        return Scale(False, f"the columns' spreads are within {FOLD:g}-fold of each other")
    if _one_unit(X):
        return Scale(False, f"all columns are whole numbers from {X.min():g} to {X.max():g}")
    return Scale(True, f"the columns' spreads differ {fold:.3g}-fold")


def _one_unit(X: NDArray[Any]) -> bool:
    """Whole numbers whose common largest value is reached by at least half of the columns."""
    whole = bool((np.rint(X) == X).all())
    return whole and bool(np.mean(X.max(axis=0) >= X.max()) >= 0.5)
