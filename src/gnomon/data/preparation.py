"""How a table is made ready: missing values first, then whether its columns are standardised.

`prepare` learns a `Preparation` from a table; with it new rows get the same, and the way back.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory
from gnomon.data.dropped import Dropped
from gnomon.data.missing import (
    CHOICES,
    FilledGaps,
    fill,
    learn_filling,
    refuse_gaps,
    refuse_infinities,
    rows_without_gaps,
)
from gnomon.data.names import are_components
from gnomon.data.prepared_source import PreparedSource, drop_gaps
from gnomon.data.refusals import FileError, lacks_columns, quoted
from gnomon.data.scale import Scale, choose_scale
from gnomon.data.spread import Spread, measure_spread
from gnomon.data.table import Table, count
from gnomon.engine import Engine, as_engine
from gnomon.engine.arrays import hold
from gnomon.errors import DataError
from gnomon.inputs import check_choice
from gnomon.inputs.csr import is_sparse
from gnomon.records import Record
from gnomon.typing import Vector

__all__ = ["Preparation", "Prepared", "drop_empty_rows", "prepare"]

SCALES = {"auto": None, "none": False, "standard": True}
EM_TIMES = 5  # the table in float64, and copies of it, while gaps are filled in
FILLING = ("centre", "unit", "mean", "components", "penalty")


@dataclass(frozen=True, eq=False)
class Preparation(Record):
    """How a table was made ready, learned from its own rows.

    Attributes
    ----------
    columns : tuple of str, length d
    missing : {"error", "drop", "mean", "em"}
        What is done about missing values.
    scale : {"none", "standard"}
    why : str
        The reason for the scale.
    n_rows, n_missing, n_dropped : int
        Rows of the table, values that were missing in it, rows that were dropped.
    filled : str
        A sentence about `em`, or nothing.
    mean, std : array (d,)
        Of the values that were known; `std` is 1 where a column is constant. "standard" is
        (x − mean) / std; `mean` is also what "mean" fills in. Of a sparse table that is scaled,
        `mean` is 0.
    filling : FilledGaps or None
        What "em" fills in.
    """

    columns: tuple[str, ...]
    missing: str
    scale: str
    why: str
    n_rows: int
    n_missing: int
    n_dropped: int
    filled: str
    mean: Vector
    std: Vector
    filling: FilledGaps | None = None

    @classmethod
    def unlearned(cls, columns: tuple[str, ...]) -> "Preparation":
        """Leave rows as they are: nothing was learned from them."""
        d = len(columns)
        return cls(columns, "error", "none", "", 0, 0, 0, "", np.zeros(d), np.ones(d))

    def title(self) -> str:
        """What it is for."""
        return f"preparation of {count(len(self.columns), 'column')}"

    def lines(self) -> list[tuple[str, str]]:
        """What was done, and why."""
        lines = [("missing", self._missing_words()), ("scale", f"{self.scale}: {self.why}")]
        return [(name, text) for name, text in lines if text]

    def _missing_words(self) -> str:
        if self.n_dropped and self.missing == "em":
            empty = f"{count(self.n_dropped, 'row')} without any value dropped"
            return f"{self.filled}; {empty}" if self.filled else empty
        if self.n_dropped:
            share = 100 * self.n_dropped / self.n_rows
            return f"{count(self.n_dropped, 'row')} dropped ({share:.2g} %)"
        if self.n_missing and self.missing == "mean":
            return f"{count(self.n_missing, 'value')} filled in with the means of their columns"
        return self.filled

    def apply(self, new: Table, engine: Engine | None = None) -> "Prepared":
        """Make the rows of `new` ready as those of the first table were.

        Its columns are found by name; nothing is learned from it. Rows that are read in blocks are
        made ready when they are read, which is when gaps and infinite values are found.
        """
        new = self._in_order(new)
        if not new.in_blocks:
            spread = measure_spread(new.X)
            refuse_infinities(new, spread)
            return self.ready(new, spread.gaps)
        if self.missing != "drop":
            return Prepared(PreparedSource(new.X, self), new, None, self)
        left, kept, _ = drop_gaps(new, self, as_engine(engine))
        if not kept.size:
            gaps = measure_spread(new.X, engine).gaps
            refuse_gaps(new, gaps, ("missing", "mean"), "Every row has one.", engine=engine)
        dropped = Dropped.between(new, kept)
        return Prepared(left.X, left, None if dropped is None else kept, self, dropped)

    def ready(self, table: Table, gaps: NDArray[np.int64]) -> "Prepared":
        """The rows of a table whose columns are in order and of which the gaps are counted."""
        if table.in_blocks:
            unchanged = self.scale != "standard" and not (self.fills and gaps.any())
            return Prepared(
                table.X if unchanged else PreparedSource(table.X, self), table, None, self
            )
        left, kept = self._without_gaps(table, gaps)
        return Prepared(self.scaled(left.X), left, kept, self, Dropped.between(table, kept))

    def scaled(self, X: Any) -> Any:
        """Rows without gaps, scaled in float64; `X` itself if there is nothing to do."""
        if self.scale != "standard":
            return X
        if is_sparse(X):  # its mean is 0: zeros stay zeros
            Z = X.astype(self.scaled_type(X.dtype))
            Z.data /= self.std[Z.indices]
            return Z
        Z = np.empty(X.shape, self.scaled_type(X.dtype))
        step = max(1, 2**20 // max(1, X.shape[1]))
        for start in range(0, X.shape[0], step):
            rows = X[start : start + step]
            Z[start : start + step] = (rows - self.mean) / self.std
        return Z

    def scaled_type(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The type of scaled numbers.

        Whole numbers have no place for what is scaled, and float16 would round it a second time.
        """
        wide = dtype.kind == "f" and dtype.itemsize >= 4
        return dtype if self.scale != "standard" or wide else np.dtype(np.float64)

    @property
    def fills(self) -> bool:
        """Whether there is something to fill gaps in with."""
        return self.missing == "mean" or (self.missing == "em" and self.filling is not None)

    def fill_in(self, X: NDArray[Any]) -> NDArray[Any]:
        """`X` with its gaps filled in, if it `fills` any."""
        if self.missing == "em" and self.filling is not None:
            return fill(X, self.filling)
        if X.dtype.kind != "f":  # which has no gaps
            return X
        return np.where(np.isnan(X), self.mean.astype(X.dtype), X)

    def undo(self, Z: Any) -> NDArray[np.float64]:
        """Prepared numbers, shape (n, d), in the units of the file; filled values stay filled."""
        X = np.array(Z, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.columns):
            raise DataError(
                f"Z must have {count(len(self.columns), 'column')}, as the table had; its shape "
                f"is {X.shape}."
            )
        if self.scale == "standard":
            X *= self.std
            X += self.mean
        return X

    def _in_order(self, new: Table) -> Table:
        if new.columns == self.columns or new.in_blocks:  # which are opened in this order
            return new
        place = {name: j for j, name in enumerate(new.columns)}
        absent = [name for name in self.columns if name not in place]
        if absent and (new.named or len(new.columns) != len(self.columns)):
            raise lacks_columns(new.name, absent, len(self.columns))
        at = np.arange(len(self.columns))
        if not absent:
            at = np.array([place[name] for name in self.columns])
        return new.with_numbers(new.X[:, at], self.columns)

    def _without_gaps(
        self, table: Table, gaps: NDArray[np.int64]
    ) -> tuple[Table, NDArray[np.int64] | None]:
        if not gaps.any():
            return table, None
        if self.missing == "drop":
            kept = np.flatnonzero(rows_without_gaps(table.X)).astype(np.int64)
            if kept.size == 0:
                refuse_gaps(table, gaps, ("missing", "mean"), "Every row has one.")
            return table.take(kept), kept
        if self.fills:
            return table.with_numbers(self.fill_in(table.X), table.columns), None
        if self.missing == "em":
            refuse_gaps(table, gaps, "The model has seen no gaps: drop those rows.")
        refuse_gaps(table, gaps, ("missing", "drop"), ("missing", "mean"), ("missing", "em"))
        raise AssertionError("gaps were counted and not found")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, ready for JSON."""
        skipped = {"mean", "std", "filling"}
        plain = {k: v for k, v in self.__dict__.items() if k not in skipped}
        return {**plain, "columns": list(self.columns)}

    def arrays(self) -> dict[str, NDArray[np.float64]]:
        """The arrays by name; with `to_dict` all that `restore` needs."""
        arrays = {"mean": self.mean, "std": self.std}
        if self.filling is not None:
            arrays |= {f"em_{name}": getattr(self.filling, name) for name in FILLING}
        return arrays

    @classmethod
    def restore(cls, plain: dict[str, Any], arrays: dict[str, Any]) -> "Preparation":
        """The preparation that `to_dict` and `arrays` were taken from; anything else is refused."""
        try:
            columns = tuple(plain["columns"])
            d = len(columns)
            filling = None
            if "em_unit" in arrays:
                filling = FilledGaps(**{name: np.asarray(arrays[f"em_{name}"]) for name in FILLING})
            made = cls(
                **{**plain, "columns": columns},
                mean=np.asarray(arrays["mean"]),
                std=np.asarray(arrays["std"]),
                filling=filling,
            )
            shapes = made.mean.shape == made.std.shape == (d,)
            if filling is not None:
                q = filling.penalty.size
                shapes &= filling.components.shape == (q, d) and filling.penalty.ndim == 1
                shapes &= all(a.shape == (d,) for a in (filling.centre, filling.unit, filling.mean))
            sound = (
                shapes
                and all(isinstance(name, str) for name in columns)
                and made.missing in CHOICES
                and made.scale in ("none", "standard")
                and all(np.isfinite(array).all() for array in made.arrays().values())
                and bool((made.std > 0).all())
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"The preparation stored in the model is damaged ({error}).") from None
        if not sound:
            raise DataError("The preparation stored in the model is damaged.")
        return made


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows that are ready.

    Attributes
    ----------
    X : array (m, d) or Source
        Without missing values, scaled; of a table in blocks a `Source`, whose blocks are made ready
        when they are read.
    table : Table
        The same rows as they were read, gaps filled in (in memory), with their labels and ids.
    kept : array of int (m,), or None
        Rows of the file that are left, if some were dropped.
    preparation : Preparation
    dropped : Dropped or None
        Rows of the file that were dropped.
    """

    X: Any
    table: Table
    kept: NDArray[np.int64] | None
    preparation: Preparation
    dropped: Dropped | None = None

    def lines(self) -> list[tuple[str, str]]:
        """What was done and why, with the names of the first rows that were dropped."""
        return [
            (name, f"{said}: {self.dropped}" if name == "missing" and self.dropped else said)
            for name, said in self.preparation.lines()
        ]

    def take(self, rows: NDArray[np.int64]) -> "Prepared":
        """Some of the rows; of a table in blocks what names them, without their numbers."""
        kept = rows if self.kept is None else self.kept[rows]
        if self.table.in_blocks:
            nothing = np.empty((rows.size, 0))
            return replace(self, X=nothing, table=self.table.with_rows(nothing, rows), kept=kept)
        return replace(self, X=self.X[rows], table=self.table.take(rows), kept=kept)


def prepare(
    table: Table,
    *,
    missing: str = "error",
    scale: str = "auto",
    engine: Any = None,
    memory: Memory = None,
) -> Prepared:
    """Make a table ready, and remember how.

    Parameters
    ----------
    table : Table
        From `gnomon.data.read` or `gnomon.data.open`; it is not changed.
    missing : {"error", "drop", "mean", "em"}
        What to do about missing values: refuse them, drop their rows, fill in the column's mean,
        or what the row's other values foretell (`gnomon.pca.impute`). "em" drops rows that have no
        value at all: nothing foretells these.
    scale : {"auto", "none", "standard"}
        Whether columns are divided by their standard deviations; "auto" decides by `choose_scale`.
    engine : Dask client or engine, optional
        What works through a table in blocks; by default threads of this machine.
    memory : int or str, optional
        Bytes, or a size such as "2GB", that "em" may use to hold a table in blocks.

    Returns
    -------
    Prepared
        With `X` of shape (m, d), the rows it was made of, and the `Preparation`. A table in blocks
        is read once, with "drop" twice; not at all if there is nothing to be found out, and its
        gaps are then refused when they are met.
    """
    check_choice("missing", missing, CHOICES)
    check_choice("scale", scale, tuple(SCALES))
    given, asked, engine = table, SCALES[scale], as_engine(engine)
    n, d = table.X.shape
    idle = table.in_blocks and asked is False and missing == "error"
    if missing == "em":
        table = drop_empty_rows(table)
    spread = Spread.unmeasured(d) if idle else measure_spread(table.X, engine)
    refuse_infinities(table, spread, engine)
    gaps = spread.gaps
    if missing == "error":
        ways = ("missing", "drop"), ("missing", "mean"), ("missing", "em")
        refuse_gaps(table, gaps, *ways, engine=engine)
    empty = np.flatnonzero(gaps == table.n_rows)
    if empty.size:
        name = table.columns[empty[0]]
        raise FileError(f"{table.name}: column {quoted(name)} has no values.", ("drop", name))
    plain = Preparation(
        columns=table.columns,
        missing=missing,
        scale="none",
        why="",
        n_rows=n,
        n_missing=int(gaps.sum()),
        n_dropped=0,
        filled="",
        mean=spread.mean,
        std=spread.std,
    )
    if missing == "drop" and gaps.any():
        table, spread = _drop(table, plain, spread, engine)
        gaps = spread.gaps
    if asked is None and are_components(table.columns):
        chosen = Scale(False, "principal components, whose spreads say how much each holds")
    elif table.is_sparse:
        chosen = _choose_sparse(table, asked, missing, bool(gaps.any()))
    else:
        chosen = choose_scale(np.empty((0, d)), asked, names=table.columns, spread=spread)
    filling, filled = None, ""
    if missing == "em" and gaps.any():
        filling, filled = _learn(table, spread, chosen, engine, memory)
    preparation = replace(
        plain,
        scale="standard" if chosen.standardize else "none",
        why=chosen.why,
        n_dropped=n - table.n_rows,
        filled=filled,
        mean=np.zeros(d) if table.is_sparse and chosen.standardize else spread.mean,
        std=np.where(spread.std > 0, spread.std, 1.0),
        filling=filling,
    )
    ready = preparation.ready(table, gaps)
    kept = table.places.rows if preparation.n_dropped else None
    return replace(ready, kept=kept, dropped=Dropped.between(given, kept))


def drop_empty_rows(table: Table) -> Table:
    """The table without the rows that have no value at all; one in blocks as it is."""
    if table.in_blocks or table.is_sparse or table.X.dtype.kind != "f":
        return table
    empty = np.isnan(table.X).all(axis=1)
    return table.take(np.flatnonzero(~empty)) if empty.any() and not empty.all() else table


def _choose_sparse(table: Table, asked: bool | None, missing: str, gaps: bool) -> Scale:
    """The scale of a sparse table, which stays sparse: its zeros are neither filled nor moved."""
    if gaps and missing != "drop":
        raise FileError(
            f"{table.name} is a sparse matrix: filling in its missing values by {missing} would "
            "make it dense.",
            ("missing", "drop"),
        )
    if asked is None:
        return Scale(False, "a sparse matrix: its columns are taken to be of one kind")
    return Scale(asked, "as asked")


def _drop(table: Table, plain: Preparation, spread: Spread, engine: Engine) -> tuple[Table, Spread]:
    """The table without the rows that have gaps, and its spread."""
    if not table.in_blocks:
        table = plain.ready(table, spread.gaps).table
        return table, measure_spread(table.X)
    left, _, found = drop_gaps(table, plain, engine)
    if found is None:
        refuse_gaps(table, spread.gaps, ("missing", "mean"), "Every row has one.", engine=engine)
        raise AssertionError("gaps were counted and not found")
    return left, found


def _learn(
    table: Table, spread: Spread, chosen: Scale, engine: Engine, memory: Memory
) -> tuple[FilledGaps, str]:
    """What "em" fills in, learned from all rows at once: they are held while it learns."""
    n, d = table.X.shape
    if table.in_blocks:
        what = f"{table.name}: filling in the gaps of {n:,} × {d:,} numbers by em"
        Budget.from_memory(memory).check(what, EM_TIMES * 8 * n * d)
        table = replace(table, X=hold(table.X, engine).X)
    return learn_filling(table, spread, standardize=chosen.standardize)
