"""Which reader reads which kind of file: as a whole, and in parts.

Kinds are those of `gnomon.data.file_content`, which recognises them by their first bytes. AnnData
files and 10x folders are recognised by their names, here and in `gnomon.data.read`.
"""

import os
from collections.abc import Callable, Collection
from pathlib import Path

from gnomon.data.column_options import ColumnOptions
from gnomon.data.file_content import FileContent, kind_inside, kind_of_file
from gnomon.data.formats.arrow import ArrowTable, read_feather, read_parquet
from gnomon.data.formats.csv import CsvTable, read_csv
from gnomon.data.formats.excel import read_excel
from gnomon.data.formats.h5ad import h5ad_table, is_h5ad
from gnomon.data.formats.json_lines import read_json_array, read_json_lines
from gnomon.data.formats.numpy import NpyTable, npz_parts, read_npy, read_npz
from gnomon.data.formats.parts import BlockFile, Chosen
from gnomon.data.formats.sparse import find_10x, mtx_table, read_mtx, table_10x
from gnomon.data.formats.spool import Spool
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, OptionError, quoted
from gnomon.files import shown_name

__all__ = ["open_parts", "read_whole", "refuse_cell_options"]

READERS: dict[str, Callable[[FileContent], RawTable]] = {
    "parquet": read_parquet,
    "feather": read_feather,
    "npy": read_npy,
    "zip": read_npz,
    "jsonl": read_json_lines,
    "json": read_json_array,
    "mtx": read_mtx,
}


def read_whole(content: FileContent, options: ColumnOptions, texts: Collection[str]) -> RawTable:
    """All columns of a file; those called `texts` as text, where the file is one."""
    if content.kind == "text" and options.sheet is None:
        shown = options.shown.values()
        literal = [name for name in (options.label, options.id, *shown, *texts) if name is not None]
        return read_csv(content, literal=literal, na=options.na, decimal=options.decimal)
    if content.kind == "excel":
        return read_excel(content, options.sheet)
    if options.sheet is not None:
        raise OptionError(f"{content.name} has no sheets: --sheet is for Excel workbooks.")
    return READERS[content.kind](content)


def open_parts(
    path: Path,
    options: ColumnOptions,
    rows: int | None,
    like: Chosen | None = None,
    *,
    more: bool = False,
    spool: str | os.PathLike[str] | None = None,
) -> BlockFile:
    """A file that is read in parts of `rows` rows; its columns are those of `like`, if given."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FileError(
            f"{quoted(path, longest=4096)} can be read only once, and blocks are read again and "
            "again.",
            "Save it as a file.",
        )
    name, copy = shown_name(path), None
    if (cells := find_10x(path)) is not None:
        return table_10x(cells, options, rows, Spool(name, spool))
    refuse_cell_options(path, options)
    path = path.absolute()  # workers may have another working folder
    if is_h5ad(path):
        return h5ad_table(path, options, rows, Spool(name, spool))
    kind = kind_of_file(path)
    if kind == "gz" and (kind := kind_inside(path)) != "text":
        copy = Spool(name, spool)
        path = copy.unpack(path)
    readers: dict[str, Callable[[], BlockFile]] = {
        "npy": lambda: NpyTable(path, options, rows),
        "zip": lambda: npz_parts(path, options, rows, Spool(name, spool)),
        "mtx": lambda: mtx_table(path, options, rows, Spool(name, spool)),
        "text": lambda: CsvTable(path, options, rows, like, more=more, spool=Spool(name, spool)),
        "parquet": lambda: ArrowTable(path, options, rows, "parquet", like, more=more),
        "feather": lambda: ArrowTable(path, options, rows, "feather", like, more=more),
    }
    if kind not in readers:
        what = {
            "jsonl": "is JSON lines",
            "json": "is a JSON array",
            "excel": "is an Excel workbook",
        }[kind]
        way = "Allow more memory, or save it as Parquet."
        raise FileError(f"{name} {what} and cannot be read in blocks.", way)
    file = readers[kind]()
    file.unpacked = copy
    return file


def refuse_cell_options(path: str | os.PathLike[str], options: ColumnOptions) -> None:
    """Refuse `layer`, `use_rep` and `normalize` for any file that is no AnnData file."""
    if (options.layer or options.use_rep or options.normalize) and not is_h5ad(Path(path)):
        raise OptionError(
            "layer, use_rep and normalize are for AnnData files (.h5ad).", "Leave them out."
        )
