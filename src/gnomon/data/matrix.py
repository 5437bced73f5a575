"""The columns in use as one array of numbers, row by row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from gnomon.compute.threads import map_blocks, row_blocks
from gnomon.data.columns import Column, refuse_column
from gnomon.data.dialect import is_number
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, OptionError, quoted
from gnomon.data.roles import Roles
from gnomon.inputs.csr import is_sparse

__all__ = ["gather_numbers", "number_codes", "vector_width"]

# pyarrow's numbers lie column by column, ours row by row. They are turned in tiles that stay in
# the cache: 70,000 × 784 took 0.3 s of CPU time, and 3 s with one column after the other. Much of
# the rest is the first touch of fresh memory, so whole numbers are kept as small as they are.
BLOCK_ROWS = 4096
TILE_ROWS = 128


def gather_numbers(
    raw: RawTable,
    roles: Roles,
    na: Sequence[str],
    widths: Mapping[str, int] | None = None,
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The table of numbers, and the names of its columns; vectors give one column an entry.

    `widths` are the lengths of vectors where they are known; otherwise the first of a column says
    how long all are.
    """
    if raw.matrix is not None and roles.numbers == raw.matrix_names and not number_codes(na):
        return raw.matrix, raw.matrix_names  # as it lies in the file: nothing is copied
    if is_sparse(raw.matrix):
        return _sparse_numbers(raw, roles, na)
    places = {name: j for j, name in enumerate(raw.matrix_names)}
    parts = [_part(name, raw, roles, places, widths or {}) for name in roles.numbers]
    names: list[str] = []
    for name, part in zip(roles.numbers, parts, strict=True):
        one = part.ndim == 1 if isinstance(part, np.ndarray) else True
        names += [name] if one else [f"{name}[{i}]" for i in range(part.shape[1])]
    kind = np.result_type(*{_type_of(part) for part in parts})
    codes = number_codes(na)
    if codes and kind.kind != "f":
        kind = np.dtype(np.float64)
    X = np.empty((raw.n_rows, len(names)), _narrowest(parts, kind))

    def fill(start: int, stop: int) -> None:
        block = X[start:stop]
        _fill(block, parts, start)
        for code in codes:
            block[block == code] = np.nan

    map_blocks(fill, row_blocks(raw.n_rows, BLOCK_ROWS))
    X.setflags(write=False)
    return X, tuple(names)


def _sparse_numbers(raw: RawTable, roles: Roles, na: Sequence[str]) -> tuple[Any, tuple[str, ...]]:
    """Some columns of a sparse matrix; columns beside it would make it dense."""
    beside = [name for name in roles.numbers if name not in raw.matrix_names]
    if beside:
        raise OptionError(
            f"{raw.name} holds a sparse matrix, and column {quoted(beside[0])} beside it is dense.",
            ("drop", beside[0]),
        )
    if number_codes(na):
        raise OptionError(
            f"{raw.name} holds a sparse matrix, whose missing values are NaN.", "Leave na out."
        )
    place = {name: j for j, name in enumerate(raw.matrix_names)}
    assert raw.matrix is not None
    return raw.matrix[:, [place[name] for name in roles.numbers]], roles.numbers


def _narrowest(parts: list[Any], kind: np.dtype[Any]) -> np.dtype[Any]:
    """The smallest type for whole numbers that holds them all: pixels take a byte each."""
    if kind.kind not in "iu":
        return kind
    low, high = 0, 0
    for part in parts:
        # By pyarrow, which has the extremes of an array too: neither copies anything.
        seen = pc.min_max(pa.array(part.ravel()) if isinstance(part, np.ndarray) else part)
        low, high = min(low, seen["min"].as_py()), max(high, seen["max"].as_py())
    fits = (np.dtype(name) for name in ("u1", "i2", "i4") if _holds(np.dtype(name), low, high))
    return next(fits, kind)


def _holds(kind: np.dtype[Any], low: int, high: int) -> bool:
    return bool(np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def number_codes(na: Sequence[str]) -> list[float]:
    """Numbers that stand for a missing value, such as -999."""
    return [float(text) for text in na if is_number(text)]


def _fill(X: NDArray[Any], parts: list[Any], start: int) -> None:
    """Fill a block of rows, which begins at row `start` of the table."""
    rows = X.shape[0]
    turned = np.empty(X.shape[::-1], X.dtype)
    at = 0
    for part in parts:
        if isinstance(part, np.ndarray):
            piece = part[start : start + rows]
            width = 1 if part.ndim == 1 else part.shape[1]
            turned[at : at + width] = piece.T
        else:
            width = 1
            turned[at] = part.slice(start, rows).to_numpy()
        at += width
    for row in range(0, rows, TILE_ROWS):
        X[row : row + TILE_ROWS] = turned[:, row : row + TILE_ROWS].T


def _part(
    name: str,
    raw: RawTable,
    roles: Roles,
    places: dict[str, int],
    widths: Mapping[str, int],
) -> Any:
    """A column of numbers as a ChunkedArray or an array; vectors as an array of two dimensions."""
    if name in places:
        assert raw.matrix is not None
        return raw.matrix[:, places[name]]
    column = roles.seen[name]
    if column.kind in ("numbers", "codes"):
        return column.values
    if column.kind == "truth":
        known = column.values.null_count == 0
        return column.values.cast(pa.uint8()).cast(pa.uint8() if known else pa.float32())
    if column.kind == "vectors":
        return _vectors(column, raw, widths[name] if name in widths else vector_width(column))
    return refuse_column(column, raw.name, raw.places, roles.asked.get(name))


def vector_width(column: Column) -> int:
    """How long the first vector of a column is; one of them is there."""
    return int(pc.list_value_length(column.cells).drop_null()[0].as_py())


def _vectors(column: Column, raw: RawTable, usual: int) -> NDArray[Any]:
    """Lists of length `usual` as rows; a missing list is a row of NaN."""
    cells = column.cells
    lengths = pc.list_value_length(cells)
    other = pc.fill_null(pc.not_equal(lengths, usual), False)
    if pc.any(other).as_py():
        row = pc.index(other, pa.scalar(True)).as_py()
        raise FileError(
            f"{raw.name}: column {quoted(column.name)} holds vectors of different lengths: "
            f"{usual} and, at {raw.places.of(row)}, {lengths[row].as_py()}.",
            ("drop", column.name),
        )
    if usual == 0:
        raise FileError(
            f"{raw.name}: column {quoted(column.name)} holds vectors of length 0.",
            ("drop", column.name),
        )
    known = np.asarray(lengths.is_valid())
    inner = pc.list_flatten(cells)
    if pa.types.is_decimal(inner.type):
        inner = inner.cast(pa.float64())
    flat = inner.to_numpy().reshape(-1, usual)
    if known.all():
        return np.asarray(flat)
    X = np.full((len(cells), usual), np.nan, np.result_type(flat.dtype, np.float32))
    X[known] = flat
    return X


def _type_of(part: Any) -> np.dtype[Any]:
    if isinstance(part, np.ndarray):
        return np.dtype(part.dtype)
    kind: np.dtype[Any] = np.dtype(part.type.to_pandas_dtype())
    if part.null_count and kind.kind != "f":
        return np.dtype(np.result_type(kind, np.float32))
    return kind
