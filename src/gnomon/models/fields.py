"""The schema of a model's state, declared once for packing and unpacking.

A table of fields (name → kind) packs attributes into plain values, and unpacks a file's values with
every type, shape and range checked. Files are untrusted: compiled loops do not check the arrays
that they get, so no array reaches them unchecked. Sizes have names: every "n" in one table is the
same number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

__all__ = [
    "Anything",
    "Array",
    "Csr",
    "DictOf",
    "Either",
    "Field",
    "Fields",
    "Flag",
    "Member",
    "Names",
    "Nothing",
    "Real",
    "RecordOf",
    "Sizes",
    "Text",
    "TupleOf",
    "UnfitError",
    "Whole",
]

Sizes = dict[str, int]
LARGEST_WHOLE = 2**62  # largest whole number accepted from a file: within int64, beyond any count
LARGEST_EXPONENT = 5000  # largest exponent of a power of two; float64 needs 2,100


class UnfitError(Exception):
    """The content of a file does not describe a model.

    The message continues "the file is not loaded, because"; `way_out` is a sentence.
    """

    def __init__(self, what: str, way_out: str = "Copy the file or save the model again.") -> None:
        super().__init__(what)
        self.way_out = way_out


class Field:
    """One kind of value."""

    def pack(self, value: Any) -> Any:
        """Convert to plain values and arrays."""
        return value

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Restore and check the value; raises UnfitError."""
        raise NotImplementedError


@dataclass(frozen=True)
class Anything(Field):
    """Plain values that are checked on use, such as parameters."""

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Return the value unchecked."""
        return value


@dataclass(frozen=True)
class Nothing(Field):
    """None."""

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Accept only None."""
        if value is not None:
            raise UnfitError("should be null")


@dataclass(frozen=True)
class Flag(Field):
    """True or False."""

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Accept True or False."""
        if not isinstance(value, (bool, np.bool_)):
            raise UnfitError("should be true or false")
        return value


@dataclass(frozen=True)
class Whole(Field):
    """Integer from `low` to `high`, or equal to a named size."""

    low: int = 0
    high: int = LARGEST_WHOLE
    size: str | None = None

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Check the range."""
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise UnfitError("should be an integer")
        if not self.low <= value <= self.high:
            raise UnfitError(f"should be from {self.low} to {self.high}, not {value}")
        if self.size is not None:
            _bind(self.size, int(value), sizes)
        return value


@dataclass(frozen=True)
class Real(Field):
    """Number from `low` to `high`; NaN is allowed if there is no bound."""

    low: float = -np.inf
    high: float = np.inf

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Check the range."""
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise UnfitError("should be a number")
        if isinstance(value, int) and abs(value) > LARGEST_WHOLE:
            raise UnfitError("should be a number that compiled loops can hold")
        bounded = self.low > -np.inf or self.high < np.inf
        if bounded and not self.low <= value <= self.high:
            raise UnfitError(f"should be from {self.low:g} to {self.high:g}")
        return value


@dataclass(frozen=True)
class Text(Field):
    """Text, optionally one of a few."""

    among: tuple[str, ...] = ()

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Check that the value is a string."""
        if not isinstance(value, str) or (self.among and value not in self.among):
            raise UnfitError("should be text" if not self.among else f"should be in {self.among}")
        return value


@dataclass(frozen=True)
class Member(Field):
    """A member of an enumeration, by its name."""

    kind: type[Enum]

    def pack(self, value: Any) -> Any:
        """Name of the member."""
        return value.name

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Member with that name."""
        if not isinstance(value, str) or value not in self.kind.__members__:
            raise UnfitError(f"should be one of {list(self.kind.__members__)}")
        return self.kind[value]


@dataclass(frozen=True)
class Names(Field):
    """Column names: an array of text objects, as in scikit-learn."""

    size: str

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Check that there are as many names as columns."""
        if not isinstance(value, np.ndarray) or value.dtype != object or value.ndim != 1:
            raise UnfitError("should be a list of names")
        _bind(self.size, len(value), sizes)
        return value


class Array(Field):
    """An array of one of the dtypes `kinds` ("f8", "f4 f8", "biuf"-like letters for any size).

    Parameters
    ----------
    kinds : str
        Dtypes, or letters of NumPy's kinds, separated by spaces.
    *shape : str or int
        A named size or a number for each axis.
    finite : bool
        Whether infinities are refused: `transform` would pass them on. False for numbers in the
        data's own units that may exceed the largest float.
    nan : bool
        Whether NaN and both infinities are allowed, for values that are labels.
    low, high : number, optional
        Bounds of every entry.
    """

    def __init__(
        self,
        kinds: str,
        *shape: str | int,
        finite: bool = True,
        nan: bool = False,
        low: float | None = None,
        high: float | None = None,
    ) -> None:
        self.kinds, self.shape, self.finite, self.nan = kinds.split(), shape, finite, nan
        self.low, self.high = low, high

    def unpack(self, value: Any, sizes: Sizes) -> NDArray[Any]:
        """Check the type and shape of the array."""
        if not isinstance(value, np.ndarray):
            raise UnfitError("should be an array")
        dtype = value.dtype
        if dtype.kind not in self.kinds and dtype.str[1:] not in self.kinds:
            raise UnfitError(f"should have dtype {' or '.join(self.kinds)}, not {dtype}")
        if value.ndim != len(self.shape):
            raise UnfitError(f"should have {len(self.shape)} axes, not {value.ndim}")
        for want, have in zip(self.shape, value.shape, strict=True):
            if isinstance(want, str):
                _bind(want, have, sizes)
            elif want != have:
                raise UnfitError(f"should have shape {self.shape}, not {value.shape}")
        if dtype.kind == "f" and not self.nan and not self._sound(value).all():
            raise UnfitError(f"should hold {'finite ' if self.finite else ''}numbers")
        if value.size and self.low is not None and not value.min() >= self.low:
            raise UnfitError(f"should hold nothing below {self.low:g}")
        if value.size and self.high is not None and not value.max() <= self.high:
            raise UnfitError(f"should hold nothing above {self.high:g}")
        return value

    def _sound(self, value: NDArray[Any]) -> Any:
        return np.isfinite(value) if self.finite else value > -np.inf


def _bind(name: str, have: int, sizes: Sizes) -> None:
    if sizes.setdefault(name, have) != have:
        raise UnfitError(f"should be of size {sizes[name]}, not {have}")


@dataclass(frozen=True)
class Csr(Field):
    """Sparse array with every index in range: square and non-negative, or a general one.

    Attributes
    ----------
    size : str
        Named number of rows.
    columns : str, optional
        Named number of columns of a matrix that is not square. Its entries may be negative.
    """

    size: str
    columns: str | None = None

    def pack(self, value: Any) -> Any:
        """Data, indices and indptr of the matrix."""
        return {"data": value.data, "indices": value.indices, "indptr": value.indptr}

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Restore the matrix if it is consistent: loops over it check nothing."""
        parts = Fields(
            {
                "data": Array("f4 f8", "stored", low=0.0 if self.columns is None else None),
                "indices": Array("i4 i8", "stored", low=0),
                "indptr": Array("i4 i8", "ends", low=0),
            }
        ).unpack(value, {})
        data, indices, indptr = parts["data"], parts["indices"], parts["indptr"]
        m = n = indptr.size - 1
        _bind(self.size, m, sizes)
        if self.columns is not None:
            n = sizes[self.columns]
        whole = indptr[0] == 0 and indptr[-1] == data.size and (np.diff(indptr) >= 0).all()
        if not whole or indices.dtype != indptr.dtype or indices.max(initial=0) >= n:
            raise UnfitError("should be a sparse table with every index inside it")
        return sp.csr_array((data, indices, indptr), shape=(m, n))


@dataclass(frozen=True)
class Either(Field):
    """None or another kind, or the first of several that fits."""

    kinds: tuple[Field, ...]

    @classmethod
    def none_or(cls, kind: Field) -> "Either":
        """Field that is None or of `kind`."""
        return cls((Nothing(), kind))

    def pack(self, value: Any) -> Any:
        """Pack by the last kind; None stays None."""
        return None if value is None else self.kinds[-1].pack(value)

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Unpack by the first kind that fits."""
        for kind in self.kinds[:-1]:
            trial = dict(sizes)
            try:
                found = kind.unpack(value, trial)
            except UnfitError:
                continue
            sizes.update(trial)
            return found
        return self.kinds[-1].unpack(value, sizes)


@dataclass(frozen=True)
class TupleOf(Field):
    """Tuple with one kind for each entry; with one kind and `...`, of any length."""

    kinds: tuple[Any, ...]

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Unpack and check every entry."""
        if not isinstance(value, tuple):
            raise UnfitError("should be a tuple")
        kinds = self.kinds
        if kinds[-1] is ...:
            kinds = kinds[:1] * len(value)
        if len(value) != len(kinds):
            raise UnfitError(f"should have {len(kinds)} entries, not {len(value)}")
        return tuple(kind.unpack(item, sizes) for kind, item in zip(kinds, value, strict=True))


@dataclass(frozen=True)
class DictOf(Field):
    """Dictionary of values of one kind, with any names."""

    kind: Field

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Unpack and check every value."""
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise UnfitError("should be a table of values by name")
        return {name: self.kind.unpack(item, sizes) for name, item in value.items()}


class RecordOf(Field):
    """A frozen dataclass, field by field.

    Parameters
    ----------
    kind : type
    table : mapping
        Field of the class → kind of value.
    without : tuple of str
        Fields that are not stored and come back as None.
    check : callable, optional
        Raises UnfitError for a record whose fields do not fit each other.
    """

    def __init__(
        self,
        kind: type,
        table: Mapping[str, Field],
        *,
        without: tuple[str, ...] = (),
        check: Callable[[Any], None] | None = None,
    ) -> None:
        self.kind, self.table, self.without, self.check = kind, Fields(table), without, check
        known = {field.name for field in fields(kind)}
        if known != {*table, *without}:  # a new field of the class is missing here
            raise TypeError(f"{kind.__name__} has other fields: {known ^ {*table, *without}}")

    def pack(self, value: Any) -> Any:
        """Fields of the record."""
        return self.table.pack({name: getattr(value, name) for name in self.table.table})

    def unpack(self, value: Any, sizes: Sizes) -> Any:
        """Unpack and check all fields."""
        content = self.table.unpack(value, sizes)
        record = self.kind(**content, **dict.fromkeys(self.without))
        if self.check is not None:
            self.check(record)
        return record


class Fields:
    """A table of names and their kinds."""

    def __init__(self, table: Mapping[str, Field]) -> None:
        self.table = dict(table)

    def pack(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Pack the attributes that are in the table."""
        return {
            name: kind.pack(attributes[name])
            for name, kind in self.table.items()
            if name in attributes
        }

    def unpack(
        self, state: Any, sizes: Sizes, *, optional: frozenset[str] = frozenset()
    ) -> dict[str, Any]:
        """Unpack and check all attributes; none may be missing but `optional`, none unknown."""
        if not isinstance(state, dict):
            raise UnfitError("a part of it is not a table of values")
        unknown, missing = state.keys() - self.table.keys(), self.table.keys() - state.keys()
        if unknown:
            raise UnfitError(f"it holds {sorted(map(str, unknown))[0][:60]!r}, which is unknown")
        if missing - optional:
            raise UnfitError(f"it lacks {min(missing - optional)!r}")
        found = {}
        for name, kind in self.table.items():
            if name in state:
                try:
                    found[name] = kind.unpack(state[name], sizes)
                except UnfitError as error:
                    raise UnfitError(_placed(name, str(error))) from None
        return found


def _placed(name: str, what: str) -> str:
    """Prefix an error with the path of its field: its affinities_.indices should …."""
    if what.startswith("should "):
        return f"its {name} {what}"
    if what.startswith("its ") and " should " in what:
        return f"its {name}.{what[4:]}"
    return what
