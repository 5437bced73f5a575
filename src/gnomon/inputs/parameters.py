"""Checks of parameters: whole and real numbers, choices, weights, the random generator."""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import (
    refuse,
)

__all__ = ["check_choice", "check_integer", "check_real", "check_weights", "random_generator"]


def check_integer(name: str, value: Any, low: int, high: int | None = None, way: str = "") -> int:
    """Check that `value` is an int from `low` to `high`; True, 2.0 and "2" are not."""
    must = f"be an integer from {low} to {high}" if high is not None else f"be an integer ≥ {low}"
    if isinstance(value, (bool, np.bool_)):
        refuse(name, must, value, way, kind=True)
    try:
        number = operator.index(value)
    except TypeError:  # arrays have `__index__`, and raise
        refuse(name, must, value, way, kind=True)
    if number < low or (high is not None and number > high):
        refuse(name, must, value, way)
    return number


def check_real(
    name: str, value: Any, low: float, high: float = np.inf, *, open_low: bool = False
) -> float:
    """Check that `value` is a float from `low` to `high`; NaN, True and "0.5" are refused."""
    must = f"be a number {'above' if open_low else 'from'} {low:g}"
    must += f" {'and below' if open_low else 'to'} {high:g}" if np.isfinite(high) else ""
    number_like = isinstance(value, (int, float, np.integer, np.floating))
    if isinstance(value, (bool, np.bool_)) or not number_like:
        refuse(name, must, value, kind=True)
    if not (low <= value <= high) or (open_low and value in (low, high)):
        refuse(name, must, value)
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """Check that `value` is one of `choices`; NumPy strings and booleans are converted."""
    plain = value.item() if isinstance(value, (np.str_, np.bool_)) else value
    found = [choice for choice in choices if type(plain) is type(choice) and plain == choice]
    if not found:
        refuse(name, "be one of " + ", ".join(map(repr, choices)), value)
    return found[0]


def check_weights(
    name: str, weights: Any, size: int, *, of: str, positive: bool = False
) -> NDArray[np.float64] | None:
    """Check `weights`: `size` finite numbers, not negative (above 0 if `positive`), or None."""
    if weights is None:
        return None
    sign = "positive" if positive else "non-negative"
    must = f"be {size} finite, {sign} numbers, one for each {of}"
    array = np.asarray(weights)
    if array.dtype.kind not in "biuf":
        refuse(name, must, f"dtype {array.dtype}", kind=True)
    if array.ndim == 0:
        array = np.full(size, array)
    if array.shape != (size,):
        refuse(name, must, f"shape {array.shape}")
    array = array.astype(np.float64)
    bad = ~np.isfinite(array) | (array <= 0 if positive else array < 0)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        refuse(name, must, float(array[at]), f"It is at position {at}.")
    return array


def random_generator(random_state: Any) -> np.random.Generator:
    """Create a generator; None means seed 0 (decision 0013), and a RandomState is drawn from."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    must = "be None, a non-negative integer or a NumPy generator"
    if isinstance(random_state, bool):
        refuse("random_state", must, random_state, kind=True)
    try:
        return np.random.default_rng(0 if random_state is None else random_state)
    except (TypeError, ValueError):
        refuse("random_state", must, random_state, kind=True)
