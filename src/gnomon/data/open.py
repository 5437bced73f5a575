"""The one door to a table: held in memory where it fits, otherwise read in blocks.

Both have ids, labels and what else goes with their rows. A table is read in blocks if it does not
fit into the memory allowed, or if it is to be worked on by a cluster.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnomon.budget import Budget, Memory
from gnomon.data import samples
from gnomon.data.column_options import as_column_options
from gnomon.data.file_content import Stream
from gnomon.data.folder import files_of
from gnomon.data.formats.arrow import parquet_bytes
from gnomon.data.formats.h5ad import h5ad_bytes, is_h5ad
from gnomon.data.formats.numpy import npz_bytes
from gnomon.data.formats.parts import AbsentError
from gnomon.data.formats.sparse import find_10x, matrix_bytes
from gnomon.data.formats.spool import Spool
from gnomon.data.in_memory import is_in_memory
from gnomon.data.names import unique_names
from gnomon.data.read import read, read_given, read_source
from gnomon.data.refusals import OptionError, lacks_columns
from gnomon.data.row_names import read_row_names
from gnomon.data.samples import Sample
from gnomon.data.sources import FileSource
from gnomon.data.table import Places, Table
from gnomon.engine import Source
from gnomon.engine.arrays import as_source
from gnomon.errors import Parameter, ParameterError, refuse
from gnomon.files import shown_name

__all__ = ["fits", "open_table", "table_of_source"]

# A table of this share of the memory there is would not fit with what is done to it.
HELD_SHARE = 0.5
SPARSE_SHARE = 0.2  # krylov makes copies of a sparse table
SMALL_BYTES = 100e6  # smaller tables are always held


def open_table(
    source: Any,
    *,
    memory: Memory = None,
    in_blocks: bool = False,
    row_names: bool = True,
    spool: str | os.PathLike[str] | None = None,
    **reading: Any,
) -> Table:
    """A table from wherever it lies, with what names and colours its rows.

    Parameters
    ----------
    source : path, "-", name of a bundled sample, Sample, dataframe, array, Source or Dask array
        A file or folder that fits into memory is held (`gnomon.data.read`); a larger one, a source
        and a Dask array are read in blocks. A `Table` is taken as it is.
    memory : int or str, optional
        Bytes, or a size such as "2GB", that may be used; by default what the machine has free.
    in_blocks : bool
        Read it in blocks although it fits: for a cluster.
    row_names : bool
        Whether ids, labels and what else goes with the rows of blocks is read: it takes a pass over
        these columns.
    spool : path, optional
        Where temporary copies of text, compressed files and standard input are kept while they are
        read in blocks; by default among the temporary files of the system.
    reading : optional
        What `gnomon.data.read.read` takes.
    """
    if (known := as_source(source)) is not None:
        for name, value in reading.items():
            if value:
                raise ParameterError(f"`{name}` is for files. Give it to gnomon.source.")
        return table_of_source(known, memory=memory, row_names=row_names)
    if not isinstance(source, (str, os.PathLike, Sample, Table)):
        if type(source).__name__ == "AnnData":
            refuse("source", "be a table", "AnnData", "Use gnomon.anndata.map(adata).", kind=True)
        if not is_in_memory(source) or in_blocks:
            must = "be a path, a sample, a dataframe, an array, a Table or a source"
            way = "Of arrays, gnomon.source makes a source, which is read in blocks."
            refuse("source", must, type(source).__name__, way, kind=True)
        return read_given(source, **reading)
    if isinstance(source, (Sample, Table)) or _is_sample(source):
        if in_blocks:
            given: Any = source.name if isinstance(source, (Sample, Table)) else source
            raise ParameterError(
                "{parameter} works through blocks, and only files and folders are read in blocks; "
                "got {table}. Leave it out, or give an array by gnomon.source.",
                parameter=Parameter("engine"),
                table=repr(str(given)),
            )
        return read_source(source, memory=memory, **reading)
    if os.fspath(source) == "-" or _is_pipe(Path(source)):
        return _open_stream(source, memory, in_blocks, reading, row_names=row_names, spool=spool)
    path = Path(source)
    if in_blocks or not fits(path, memory, reading):
        return _open_blocks(path, memory, reading, row_names=row_names, spool=spool)
    return read(source, memory=memory, **reading)


def _is_pipe(path: Path) -> bool:
    return path.exists() and not (path.is_file() or path.is_dir())


def _open_stream(
    source: str | os.PathLike[str],
    memory: Memory,
    in_blocks: bool,
    reading: dict[str, Any],
    *,
    row_names: bool,
    spool: str | os.PathLike[str] | None,
) -> Table:
    """What can be read only once: from memory where it is small, otherwise from a copy on disk."""
    stream = Stream(source, SMALL_BYTES)
    if stream.whole and not in_blocks:
        return read(stream, memory=memory, **reading)
    copy = Spool(stream.name, spool)
    path = copy.store(stream.chunks(), stream.name)
    if not in_blocks and fits(path, memory):
        return replace(read(path, memory=memory, **reading), folder=None)
    table = _open_blocks(path, memory, reading, row_names=row_names, spool=spool)
    table.X.files[0].origin = copy  # it is removed with its reader
    return replace(table, folder=None)


def fits(path: Path, memory: Memory, reading: Mapping[str, Any] | None = None) -> bool:
    """Whether the table of a file or folder fits into memory, as far as its size can tell.

    Of an AnnData file it is the matrix that `reading` names.
    """
    if not (path.is_file() or path.is_dir()):
        return True  # a pipe, or nothing at all
    if is_h5ad(path):
        size, sparse = h5ad_bytes(path, as_column_options(**(reading or {})))
    elif (cells := find_10x(path)) is not None:
        size, sparse = matrix_bytes(cells["matrix"]), True
    elif path.suffix.lower() == ".npz":
        size, sparse = npz_bytes(path)
    else:
        size = sum(max(file.stat().st_size, parquet_bytes(file)) for file in files_of(path))
        sparse = False
    share = SPARSE_SHARE if sparse else HELD_SHARE
    return size < SMALL_BYTES or size <= share * Budget.from_memory(memory).bytes


def table_of_source(
    source: Source, name: str = "", memory: Memory = None, *, row_names: bool = True
) -> Table:
    """A source as a table, with the names of its rows where it is made of files."""
    features = tuple(source.names or unique_names(None, source.columns)[0])
    if not isinstance(source, FileSource):
        return Table(name or "data", source, features, n_columns=source.columns)
    first = source.files[0]
    several = len(source.files) > 1
    begins = {part.place[0]: part.start for part in reversed(source.partitions)}
    parts = tuple((begins[i], file.name, Places()) for i, file in enumerate(source.files))
    known = {"roles": source.roles, "notes": source.notes}
    return Table(
        name or (source.paths[0][0].parent.name if several else first.name),
        source,
        source.roles.features,
        **(read_row_names(source, memory) if row_names else known),
        folder=source.paths[0][0].parent,
        n_columns=len(first.all_names),
        named=source.names is not None,
        places=Places(parts=parts) if several else Places(),
        size="" if several else first.size,
    )


def _is_sample(source: Any) -> bool:
    return isinstance(source, str) and source in samples.names() and not Path(source).exists()


def _open_blocks(
    path: Path,
    memory: Memory,
    reading: dict[str, Any],
    *,
    row_names: bool,
    spool: str | os.PathLike[str] | None,
) -> Table:
    options = dict(reading)
    columns = options.pop("columns", None)
    name = shown_name(path) or str(path)
    # Workers have other working folders, so the path is absolute.
    files = files_of(path.resolve())
    if columns is None:
        found = FileSource(files, as_column_options(**options), spool=spool)
        return table_of_source(found, name, memory, row_names=row_names)
    found = _with_columns(files, name, columns, options, spool)
    table = table_of_source(found, name, memory, row_names=row_names)
    return table.with_numbers(table.X, tuple(columns))


def _with_columns(
    files: Sequence[Path],
    name: str,
    columns: Sequence[str],
    options: dict[str, Any],
    spool: str | os.PathLike[str] | None,
) -> FileSource:
    """The files with the columns of a model: by name, or in their order where they have none."""
    try:
        return FileSource(files, as_column_options(**options, columns=list(columns)), spool=spool)
    except AbsentError as error:
        raise lacks_columns(name, list(error.fields["absent"]), len(columns)) from None
    except OptionError:
        nameless = FileSource(files, as_column_options(**options), spool=spool)
        if nameless.names is not None:
            raise
        if nameless.columns != len(columns):
            raise lacks_columns(name, list(columns), len(columns)) from None
        return nameless
