"""Conversion of cells of any type to numbers, one at a time, with errors that name the cell.

NumPy and scikit-learn convert objects in bulk: text and time spans silently become numbers,
and an object that cannot be converted is an error without its position. Here None and pandas' NA
are missing values, numbers are whatever `float` accepts, and all else is refused with row and
column.
"""

import sys
from collections.abc import Callable, Iterable
from datetime import date, time, timedelta
from reprlib import Repr
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, DataTypeError

__all__ = ["as_floats", "refuse_complex", "refuse_type"]

TEXT = (str, bytes)
DATES = (np.datetime64, np.timedelta64, date, time, timedelta)

_short = Repr()
_short.maxstring = _short.maxother = 40


def as_floats(values: Iterable[Any], place: Callable[[int], str]) -> NDArray[np.float64]:
    """Convert `values` to numbers; ``place(i)`` describes the position of the i-th."""
    na = getattr(sys.modules.get("pandas"), "NA", None)  # only if pandas is imported
    numbers = [
        np.nan if value is None or value is na else _as_float(value, i, place)
        for i, value in enumerate(values)
    ]
    return np.array(numbers, dtype=np.float64)


def _as_float(value: Any, i: int, place: Callable[[int], str]) -> float:
    if isinstance(value, (complex, np.complexfloating)):
        refuse_complex(_short.repr(value), place(i))
    if isinstance(value, DATES):
        refuse_type(f"date or time: {_short.repr(value)}", place(i))
    if isinstance(value, TEXT) or (isinstance(value, np.ndarray) and value.ndim):
        _refuse_kind(value, place(i))  # `float` accepts text, and arrays of one number
    try:
        return float(value)
    except OverflowError:
        digits = f"about {int(value).bit_length() * 0.30103:,.0f} digits"
        raise DataError(
            "{table} holds an integer of {digits}{place}, beyond the largest float, 1.8e308. Use "
            "other units, or its logarithm.",
            table="X",
            digits=digits,
            place=place(i),
        ) from None
    except (TypeError, ValueError):
        _refuse_kind(value, place(i))


def _refuse_kind(value: Any, place: str) -> NoReturn:
    refuse_type(f"{type(value).__name__} ({_short.repr(value)})", place)


def refuse_complex(what: Any, place: str = "") -> NoReturn:
    """Raise the error about complex numbers; scikit-learn's checks look for its last clause."""
    raise DataError(
        "{table} holds complex numbers ({what}){place}. Give the real and the imaginary parts as "
        "separate columns: Complex data not supported.",
        table="X",
        what=str(what),
        place=place,
    )


def refuse_type(what: Any, place: str = "") -> NoReturn:
    """Raise the error about values that are not numbers: text, dates, anything else."""
    text = str(what)
    if text.lower().startswith(("date", "time", "duration")):
        raise DataTypeError(
            "{table} holds dates ({what}){place}. Choose an encoding: seconds since the first "
            "date, or year, month and weekday as columns of numbers.",
            table="X",
            what=text,
            place=place,
        )
    # scikit-learn's checks look for "argument must be a string or a number" in this sentence.
    raise DataTypeError(
        "{table} holds {what}, not numbers{place}. Drop those columns or encode them: every entry "
        "of this argument must be a number; neither a string nor an object is read as a number.",
        table="X",
        what=text,
        place=place,
    )
