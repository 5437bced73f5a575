"""How many components: a number, a fraction of the variance, or a rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import UnavailableError, refuse
from gnomon.inputs import check_integer

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and what the rules need to know about the table they come from.

    Attributes
    ----------
    values : array (m,), largest first
    total : float
        Sum of all eigenvalues, also of those that are not known.
    n, d : int
        Rows and columns of the table.
    whole : bool
        Whether `values` are all min(n, d) eigenvalues.
    standardized : bool
        Whether every column was divided by its standard deviation.
    """

    values: Vector
    total: float
    n: int
    d: int
    whole: bool
    standardized: bool = False


RULES: dict[str, Callable[[Spectrum], int]] = {}


@dataclass(frozen=True)
class Request:
    """What the user asked for as `n_components`."""

    asked: None | int | float | str

    @classmethod
    def parse(cls, asked: Any, n: int, d: int) -> "Request":
        """Check `n_components` against the shape of the table."""
        most = min(n, d)
        way = f"The table has {n} rows and {d} columns."
        if asked is None:
            return cls(None)
        if isinstance(asked, str):
            if asked not in RULES:
                refuse("n_components", "be an integer, a fraction or one of " + _rule_names(), asked)
            return cls(asked)
        if isinstance(asked, (float, np.floating)):
            if not 0 < asked < 1:
                must = f"be an integer from 1 to {most}, or a fraction between 0 and 1"
                refuse("n_components", must, asked, way)
            return cls(float(asked))
        return cls(check_integer("n_components", asked, 1, most, way))

    def first_guess(self, most: int) -> int:
        """How many components to compute before the eigenvalues are known."""
        if self.asked is None:
            return most
        return min(most, self.asked if isinstance(self.asked, int) else 16)

    def enough(self, values: Vector, *, total: float, n: int, d: int) -> bool:
        """Whether the leading `values` already settle the request, without all the others."""
        if self.asked is None:
            return values.size >= min(n, d)
        if isinstance(self.asked, int):
            return values.size >= self.asked
        if isinstance(self.asked, float):
            return bool(values.sum() >= self.asked * total)
        return False

    def count(
        self, values: Vector, *, total: float, n: int, d: int, whole: bool, standardized: bool
    ) -> int:
        """The number of components, given the eigenvalues known."""
        most = min(n, d, values.size)
        if self.asked is None:
            return most
        if isinstance(self.asked, int):
            return min(self.asked, most)
        if isinstance(self.asked, float):
            return _fraction(values, total, self.asked)
        if not whole:
            raise UnavailableError(
                f"`n_components={self.asked!r}` needs the whole spectrum, which the solver at hand "
                "does not compute. Use solver 'covariance', 'gram' or 'svd', or give a number."
            )
        spectrum = Spectrum(values, total, n, d, whole, standardized)
        return max(1, min(most, RULES[self.asked](spectrum)))


def _fraction(values: Vector, total: float, fraction: float) -> int:
    """The fewest components that hold `fraction` of the variance, the notes' (33)."""
    if total <= 0:
        return 1
    captured = np.cumsum(values)
    # A share that is met to rounding is met.
    needed = fraction * total * (1 - 4 * np.finfo(np.float64).eps)
    return int(min(values.size, np.searchsorted(captured, needed) + 1))


def _rule_names() -> str:
    return ", ".join(map(repr, RULES))
