"""Columns of one kind, and strangers beside them.

One kind is columns with one stem and a number, or with numbers for names (pixels, spectra, years,
entries of an embedding); or at least nine tenths of the columns where they share type and class of
range (genes). Where one kind has 50 columns or more, a column of another kind (`year`, `n_umi`) is
no feature: it would weigh too little as one of many, or outweigh all of them.

A stranger differs from the kind in one of these:

1. type: whole numbers beside fractions, or the other way round;
2. size: its largest number is more than ten times the typical one of the kind, or less than a tenth
   of it, and farther from it than its sizes are from each other (6 median absolute deviations of
   their logarithms). Where nearly all of the kind have the same smallest number, as counts and
   pixels have 0, a column that has it too is of the kind: a common gene, a pixel at the border;
3. in every row it is more than twice the largest number of the kind, as a total is.

Constant columns are of any kind. All of it is seen from the first rows.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gnomon.data.columns import Column, numbers_of_column
from gnomon.data.names import stem_of

__all__ = ["KIND", "NEARLY_ALL", "KindMeasures", "differ", "find_strangers", "measure", "outsized"]

KIND = 50  # columns from which others beside them are strangers
NEARLY_ALL = 0.9
PROBE_ROWS = 1_000
TOTAL_ROWS = 200  # for comparisons row by row
SIZE = np.log2(10.0)
DEVIATIONS = 6.0
TWICE = 2.0


@dataclass(frozen=True, eq=False)
class KindMeasures:
    """What the first rows of a column of numbers say.

    Attributes
    ----------
    name : str
    stem : str or None
        Of the name, if it has a number and is from the file.
    whole : bool
        Whether all numbers are whole.
    low, high : float
        NaN where there is no number.
    rows : array
        The first rows.
    """

    name: str
    stem: str | None
    whole: bool
    low: float
    high: float
    rows: NDArray[np.float64]

    @property
    def constant(self) -> bool:
        """Whether there are no two different numbers."""
        return not self.low < self.high

    @property
    def size(self) -> float:
        """The largest absolute number."""
        return max(abs(self.low), abs(self.high))


def measure(column: Column, *, named: bool) -> KindMeasures:
    """Look at the first rows of a column of numbers; `named` if its name is from the file."""
    some: Any = column.values.slice(0, PROBE_ROWS)
    values = numbers_of_column(Column(column.name, column.kind, some, some))
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (np.nan, np.nan)
    whole = pa.types.is_integer(some.type) or bool((np.rint(known) == known).all())
    stem = stem_of(column.name) if named else None
    return KindMeasures(column.name, stem, whole, low, high, values[:TOTAL_ROWS])


def differ(a: KindMeasures, b: KindMeasures) -> bool:
    """Whether two columns are plainly of two kinds: by type, or by ranges that do not overlap."""
    if a.stem is not None and a.stem == b.stem:
        return False
    return a.whole != b.whole or a.low > b.high or b.low > a.high


def find_strangers(columns: Sequence[KindMeasures]) -> tuple[str, ...]:
    """Columns of another kind beside at least `KIND` columns of one."""
    stems = Counter(column.stem for column in columns)
    stems[None] = 0  # no stem makes no kind
    kind = [column for column in columns if stems[column.stem] >= KIND]
    others = [column for column in columns if stems[column.stem] < KIND]
    if len(kind) >= NEARLY_ALL * len(columns):
        return tuple(column.name for column in others) if kind else ()
    if 2 * len(kind) >= len(columns):  # a name alone is not enough here
        return _unlike(kind, others)
    strangers = _unlike(columns, columns)
    alike = len(columns) - len(strangers)
    return strangers if alike >= max(KIND, NEARLY_ALL * len(columns)) else ()


def outsized(sizes: NDArray[Any], usual: NDArray[Any] | None = None) -> NDArray[np.int_]:
    """Which of the `sizes`, all above 0, are far above (1) or below (-1) the `usual`; others 0.

    Shapes (m,) and (k,), gives (m,): more than ten times the median or less than a tenth of it, and
    more than 6 median absolute deviations of the logarithms away. By default all are usual.
    """
    logs = np.log2(sizes)
    known = logs if usual is None else np.log2(usual)
    middle = float(np.median(known))
    away = max(SIZE, DEVIATIONS * float(np.median(np.abs(known - middle))))
    signs: NDArray[np.int_] = np.sign(logs - middle).astype(np.int_)
    return np.where(np.abs(logs - middle) > away, signs, 0)


def _unlike(kind: Sequence[KindMeasures], others: Sequence[KindMeasures]) -> tuple[str, ...]:
    """Members of `others` that differ from most of `kind` in type or size, or are their total."""
    varying = [column for column in kind if not column.constant]
    whole = sum(column.whole for column in varying) * 2 > len(varying)
    alike = [column for column in varying if column.whole == whole]
    if not alike:
        return ()
    changing = [column for column in others if not column.constant]
    sizes = np.array([column.size for column in changing])
    away = outsized(sizes, np.array([column.size for column in alike]))
    lowest, many = Counter(column.low for column in alike).most_common(1)[0]
    shared = lowest if many >= NEARLY_ALL * len(alike) else None
    unlike = {
        column.name
        for column, is_away in zip(changing, away, strict=True)
        if (is_away and column.low != shared) or column.whole != whole
    }
    rest = [column for column in alike if column.name not in unlike]
    unlike |= _totals(rest, {column.name for column in others})
    return tuple(column.name for column in others if column.name in unlike)


def _totals(columns: Sequence[KindMeasures], among: set[str]) -> set[str]:
    """Columns that are more than twice all others in every row: `n_umi`, and then `n_genes`."""
    found: set[str] = set()
    if len(columns) < 2:
        return found
    rows = np.abs(np.column_stack([column.rows for column in columns]))
    rows = rows[~np.isnan(rows).any(axis=1)]
    while len(rows) and rows.shape[1] > 1:
        first = int(rows.sum(axis=0).argmax())
        rest = np.delete(rows, first, axis=1)
        if columns[first].name not in among or (rows[:, first] <= TWICE * rest.max(axis=1)).any():
            break
        found.add(columns[first].name)
        columns = [column for j, column in enumerate(columns) if j != first]
        rows = rest
    return found
