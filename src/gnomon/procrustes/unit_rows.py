"""Tables whose rows are divided by their lengths, so that distances stand for angles."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gnomon.engine import Partition, Source
from gnomon.engine.paired_tables import called
from gnomon.engine.source import Seal
from gnomon.errors import DataError
from gnomon.neighbors.rows import unit_rows
from gnomon.typing import Floats64

WIDE_TABLE = 50  # columns from which a table may be one of embeddings
TIMES = 2.0  # upper quartile of the lengths over the lower one
ONE_LENGTH = 1.001  # ratio of the longest row to the shortest, rounding of float16 included

__all__ = ["UnitRows", "lengths_matter"]


def lengths_matter(X: Any, Y: Any) -> str | None:
    """Say so if lengths of rows decide a Euclidean comparison of embeddings; None if they do not.

    They do if all rows of one table are of one length and those of the other are not, or if the
    quartiles of wide tables are far apart.
    """
    lengths = [np.linalg.norm(np.asarray(Z, np.float64), axis=1) for Z in (X, Y)]
    low, high = zip(*((each.min(), each.max()) for each in lengths), strict=True)
    same = [least > 0 and most <= ONE_LENGTH * least for least, most in zip(low, high, strict=True)]
    if all(same):
        return None
    ranges = [f"{least:.3g} to {most:.3g}" for least, most in zip(low, high, strict=True)]
    if any(same):
        return f"rows of one table all have length {low[same.index(True)]:.3g}, those of the " + (
            f"other {ranges[same.index(False)]}"
        )
    quartiles = [np.quantile(each, [0.25, 0.75]) for each in lengths]
    wide = min(np.shape(X)[1], np.shape(Y)[1]) >= WIDE_TABLE
    if wide and any(upper > TIMES * lower for lower, upper in quartiles):
        return f"rows have lengths of {ranges[0]} in one table and {ranges[1]} in the other"
    return None


class UnitRows(Source):
    """Rows of another table, in memory or in blocks, divided by their lengths.

    Rows with NaN or infinities stay as they are, so that errors name the cell.

    Parameters
    ----------
    source : Source
    name : str
        Name of the table, for errors.
    aside : str, optional
        The column of ids, which is no coordinate.
    """

    def __init__(self, source: Source, name: str, aside: str | None = None) -> None:
        super().__init__(source.columns, np.dtype(np.float64), source.partitions, source.names)
        self.source, self.seals = source, source.seals
        self.__dict__["called"] = called(source, name)
        names = source.names or ()
        self.aside = names.index(aside) if aside in names else None
        self.whole: Floats64 | None = None

    def array(self) -> Floats64 | None:
        """The rows of a table in memory, divided once."""
        X = self.source.array()
        if X is not None and self.whole is None:
            self.whole = self._divided(X, None)
        return self.whole

    def read(self, partition: Partition) -> NDArray[Any]:
        """Rows of a partition, divided by their lengths."""
        return self.read_checked(partition)[0]

    def read_checked(self, partition: Partition) -> tuple[NDArray[Any], Seal]:
        """Rows divided by their lengths, with the checksum of the source's own numbers."""
        X, seal = self.source.read_checked(partition)
        return self._divided(X, partition), seal

    def only(self, partitions: Sequence[Partition]) -> Self:
        """Restrict the wrapped source, too."""
        some = super().only(partitions)
        some.source, some.whole = self.source.only(partitions), None
        return some

    def prefetch(self, partitions: Sequence[Partition]) -> None:
        """Have the wrapped source prefetch its partitions."""
        self.source.prefetch(partitions)

    def release(self, but: Partition | None = None) -> None:
        """Have the wrapped source close what it keeps open."""
        self.source.release(but)

    def _divided(self, X: NDArray[Any], partition: Partition | None) -> Floats64:
        out: Floats64 = np.array(X, np.float64, order="C")
        kept = None if self.aside is None else out[:, self.aside].copy()
        if kept is not None:
            out[:, self.aside] = 0
        finite = np.isfinite(out).all(axis=1)
        zero = np.flatnonzero(~out.any(axis=1))
        if zero.size:
            row = int(zero[0])
            where = f"row {row}"
            if partition is not None:
                where = f"{partition.file}, row {partition.first + row},"
            raise DataError(
                f"{called(self, 'X')}: {where} is all 0 and has no direction; cosine needs one. "
                "Drop that row, or compare by Euclidean distance."
            )
        out[finite] = unit_rows(out[finite])
        if kept is not None:
            out[:, self.aside] = kept
        return out
