"""Tables that are read in blocks: files, folders, arrays, and functions that give blocks."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from gnomon.budget import available_bytes
from gnomon.data.column_options import ColumnOptions, as_column_options
from gnomon.data.folder import different_columns, files_of, join_parts, other_columns
from gnomon.data.formats.parts import AT_ONCE, AbsentError, BlockFile, Piece
from gnomon.data.formats.readers import open_parts
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError, OptionError, listed
from gnomon.engine.arrays import ArraySource, as_source, names_of
from gnomon.engine.iterator import IteratorSource
from gnomon.engine.source import Partition, Source
from gnomon.errors import ChangedSourceError, refuse
from gnomon.inputs import as_table, check_integer, is_sparse

__all__ = ["FileSource", "source"]

Folder: TypeAlias = str | os.PathLike[str] | None

OPEN = 2  # parts of files that are decoded and in use, as a rule


def source(
    table: Any,
    *,
    columns: Any = None,
    features: Any = None,
    keep: Any = None,
    drop: Any = None,
    label: str | None = None,
    id: str | None = None,
    na: Any = None,
    decimal: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    normalize: str | None = None,
    names: Sequence[str] | None = None,
    rows: int | None = None,
    spool: str | os.PathLike[str] | None = None,
) -> Source:
    """A table that is read in blocks of rows, again and again.

    `PCA.fit` and `PCA.transform` take it wherever they take an array. Which columns of a file are
    features is seen from its first rows, by the rules of `gnomon.data.read`. Row counts and
    checksums are compared in every pass: a file that changes meanwhile is an error.

    Parameters
    ----------
    table : path, array, Dask array or callable
        A file (``.npy``, ``.npz``, Parquet, Feather, CSV; also gz), a folder of such files, taken
        in the order of their names; a sparse matrix in a file (SciPy's ``.npz``, Matrix Market, a
        10x folder) or an AnnData file (``.h5ad``), which stay sparse; an array or a dataframe in
        memory; a Dask array; or a function that returns a fresh iterator over arrays (m, d), or
        over dataframes of the same columns.
    columns : str or list of str, optional
        Use these columns and no others, in this order.
    features : str or list of str, optional
        The features, by name or by patterns such as ``"pc*"``, in the order of the file.
    keep, drop : str or list of str, optional
        Columns to use although they would be no features, and columns to ignore.
    label, id : str, optional
        Columns that colour or name the rows; they are no features. Blocks hold features alone.
    na : str or list of str, optional
        Text that means a missing value, besides an empty cell, NA, NaN and null; or a
        number that does, such as "-999".
    decimal : {".", ","}, optional
        What divides decimals in text; by default it is guessed.
    layer, use_rep, normalize : str, optional
        What of an AnnData file is used, as in `gnomon.data.read.read`.
    names : sequence of str, optional
        Names of the columns of an array, a Dask array or a function's blocks; by default those that
        dataframes have.
    rows : int, optional
        Rows of a block; by default by the number of columns: a million numbers, or up to 4,096 rows
        of at most four million. The last bits of a result
        depend on it, and on nothing else about blocks: not on threads or workers. Row groups of
        Parquet that are no multiple of it end with a shorter block.
        Dask arrays and functions have blocks of their own.
    spool : path, optional
        Folder for the temporary copies that text and compressed files are read from, which are
        removed with the source; by default that of the system. Workers on other machines need one
        on a disk that they share.

    Returns
    -------
    Source

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> import gnomon
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "noise.npy"
    >>> np.save(file, np.random.default_rng(0).standard_normal((1000, 5)))
    >>> table = gnomon.source(file, rows=100)
    >>> print(table)
    1,000 rows × 5 columns of float64 in 10 blocks
    >>> gnomon.PCA(2).fit_transform(table).shape
    (1000, 2)
    """
    if rows is not None:
        rows = check_integer("rows", rows, 1)
    if columns is not None and features is not None:
        refuse("features", "be left out where `columns` names them", features)
    options = as_column_options(
        label=label,
        id=id,
        keep=keep,
        drop=drop,
        na=na,
        columns=columns,
        features=features,
        decimal=decimal,
        layer=layer,
        use_rep=use_rep,
        normalize=normalize,
    )
    if isinstance(table, (str, os.PathLike)):
        if names is not None:
            refuse("names", "be left out for files, which have their own", names)
        return FileSource(files_of(Path(table)), options, rows, spool)
    if options != ColumnOptions():
        raise OptionError(
            "The options columns, features, keep, drop, label, id, na and decimal are for files.",
            "Take the columns of an array beforehand.",
        )
    return _of_memory(table, names, rows)


def _of_memory(table: Any, names: Sequence[str] | None, rows: int | None) -> Source:
    known = as_source(table)
    if known is not None or (callable(table) and not hasattr(table, "__array__")):
        if rows is not None:
            refuse("rows", "be left out where the table has blocks of its own", rows)
        known = IteratorSource(table, names) if known is None else known
        return known if names is None else _named(known, names)
    array = as_table(table)
    if is_sparse(array):
        refuse("table", "be dense to be read in blocks", "a sparse matrix", kind=True)
    found = ArraySource(array, rows, names_of(table))
    return found if names is None else _named(found, names)


def _named(known: Source, names: Sequence[str]) -> Source:
    if len(names) != known.columns or len(set(names)) != known.columns:
        refuse("names", f"be {known.columns} different names, one for each column", list(names))
    known = known.only(known.partitions)
    known.names = tuple(names)
    return known


class FileSource(Source):
    """One file, or several that continue each other, in blocks of rows.

    Parameters
    ----------
    paths : sequence of paths
    options : ColumnOptions
        What the user said about columns.
    rows : int, optional
        Rows of a block.
    spool : path, optional
        Where temporary copies are kept of files that cannot be read in any order.

    Attributes
    ----------
    roles : ColumnRoles
        What every column of the first file is used for, and why.
    notes : tuple of str
        What had to be assumed about the first file.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        options: ColumnOptions,
        rows: int | None = None,
        spool: Folder = None,
    ) -> None:
        opened = _opened(paths, options, rows, spool)
        first = opened[0][1]
        self.files = [file for _, file in opened]
        self.paths = [(path.absolute(), path.stat()) for path, _ in opened]
        partitions: list[Partition] = []
        start = 0
        for number, file in enumerate(self.files):
            for piece in file.pieces:
                place = (number, piece.place)
                partitions.append(
                    Partition(len(partitions), start, piece.rows, file.name, piece.first, place)
                )
                start += piece.rows
        dtype = np.result_type(*(file.dtype for file in self.files))
        super().__init__(first.columns, dtype, partitions, first.names)
        self.options, self.part_rows = options, rows
        self.roles, self.notes = first.roles, first.notes
        entries = [file.stored for file in self.files if file.stored is not None]
        self._stored = sum(entries) if entries else None
        self.prefetching: set[int] = set()  # files that prefetch parts
        self.at_once = min(AT_ONCE, available_bytes() // (2 * OPEN))

    @property
    def stored(self) -> int | None:
        """Entries of all files, if they hold sparse matrices."""
        return self._stored

    @property
    def block_bytes(self) -> int:
        """Bytes of the largest block."""
        known = [file.most_bytes for file in self.files if file.most_bytes is not None]
        return max(known) if known else super().block_bytes

    def read(self, partition: Partition) -> Any:
        """Some rows of one of the files."""
        number, place = partition.place
        self._refuse_changed(number, partition)
        piece = Piece(partition.first, partition.rows, place)
        block = self.files[number].read(piece, 0 if self.scattered else self.at_once)
        return block if is_sparse(block) else np.asarray(block, self.dtype)

    def cells(self, names: Sequence[str], most_bytes: int) -> RawTable | None:
        """All cells of some columns of all files; None where they take more than `most_bytes`."""
        parts, taken = [], 0
        for file in self.files:
            for part in file.cells(names):
                taken += sum(cells.nbytes for cells in part.columns.values())
                if taken > most_bytes:
                    return None
                parts.append(part)
        return join_parts(self.files[0].name, parts)

    def limit(self, memory: int | None) -> Self:
        """Half of `memory` is for what must be decoded at once; `OPEN` such parts are in use."""
        if memory is None:
            return self
        some = self.only(self.partitions)
        some.at_once = min(self.at_once, memory // (2 * OPEN))
        return some

    def prefetch(self, partitions: Sequence[Partition]) -> None:
        """Prefetch partitions, by the files that they stand in."""
        if not partitions:
            for number in tuple(self.prefetching):
                self.prefetching.discard(number)
                self.files[number].prefetch(())
        pieces: dict[int, list[Piece]] = {}
        for partition in partitions:
            number, place = partition.place
            pieces.setdefault(number, []).append(Piece(partition.first, partition.rows, place))
        for number, coming in pieces.items():
            self.prefetching.add(number)
            self.files[number].prefetch(coming, self.at_once)

    def release(self, but: Partition | None = None) -> None:
        """Release what every file keeps open."""
        here, place = (None, None) if but is None else but.place
        for number, file in enumerate(self.files):
            file.release(place if number == here else None)

    def _refuse_changed(self, number: int, partition: Partition) -> None:
        """Refuse a file that changed, before its bytes are misread.

        A temporary copy stays as it is when the file is rewritten; the modification time shows it.
        """
        path, before = self.paths[number]
        now = path.stat()
        if now.st_size != before.st_size:
            raise ChangedSourceError(
                f"{partition} changed while it was in use: the file had {before.st_size:,} bytes "
                f"and has {now.st_size:,}. Leave it alone and start again."
            )
        copies = self.files[number].copies
        if copies and now.st_mtime_ns != before.st_mtime_ns:
            raise ChangedSourceError(
                f"{partition} changed while it was in use: the file was written again. Leave it "
                "alone and start again."
            )
        for copy in copies:
            if not copy.folder.exists():
                raise copy.missing()


def _opened(
    paths: Sequence[Path], options: ColumnOptions, rows: int | None, spool: Folder
) -> list[tuple[Path, BlockFile]]:
    """The files that have rows: of a folder that was written in parts, some may be empty."""
    found: list[tuple[Path, BlockFile]] = []
    for path in paths:
        if len(paths) > 1 and path.stat().st_size == 0:
            continue
        try:
            file = (
                _open_next(path, found[0][1], options, rows, spool)
                if found
                else open_parts(path, options, rows, more=len(paths) > 1, spool=spool)
            )
        except NoRowsError:
            if len(paths) == 1:
                raise
            continue
        found.append((path, file))
    if not found:
        raise FileError(f"None of {len(paths)} files has rows: {listed([p.name for p in paths])}.")
    return found


def _open_next(
    path: Path, first: BlockFile, options: ColumnOptions, rows: int | None, spool: Folder
) -> BlockFile:
    """A file that continues the first one: it must have its columns."""
    if first.names is not None or first.roles.features != first.all_names:
        used = first.roles.features  # not guessed again: an index does not begin again at 0
        options = replace(options, columns=used, features=None, keep=(), drop=())
    try:
        other = open_parts(path, options, rows, getattr(first, "chosen", None), spool=spool)
    except AbsentError as error:
        raise _other_columns(
            path.name, first, error.fields["absent"], error.fields["there"]
        ) from None
    except OptionError as error:
        raise different_columns(path.name, first.name, str(error.replace(ways=()))) from None
    if (first.names is None) != (other.names is None):
        no = "no " if other.names is None else ""
        raise different_columns(path.name, first.name, f"It has {no}column names.")
    absent = [name for name in first.all_names if name not in other.all_names]
    if absent or len(other.all_names) > len(first.all_names):
        raise _other_columns(path.name, first, absent, other.all_names)
    return other


def _other_columns(
    name: str, first: BlockFile, absent: Sequence[str], there: Sequence[str]
) -> FileError:
    return other_columns(name, first.name, {*first.all_names, *(first.names or ())}, absent, there)
