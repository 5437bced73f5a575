"""Excel and OpenDocument sheets (.xlsx, .xlsm, .xlsb, .xls, .ods), read by calamine (an extra).

1. What a workbook declares to unpack to is compared with the memory there is, and every part is
   unpacked once and counted, before calamine sees it: it would unpack a bomb without a limit.
2. Formulas give the values that were saved with them. Of merged cells the first has the value.
3. The header row is the first row whose cells are all filled with text, or all but the first, since
   pandas and R leave the cell above row names empty. Rows above it are skipped. Without a header
   row, columns are numbered.
4. A column of numbers, of dates or of true and false keeps its type; a mixed one is text.
"""

import datetime
import io
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from gnomon.data.file_content import FileContent
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, NoRowsError, OptionError, listed, quoted
from gnomon.data.table import Places, count

__all__ = ["read_excel"]

MEMORY_TIMES = 12  # of the unpacked sheets, as Python's objects
CHUNK_BYTES = 2**20
HEADER_ROWS = 20  # in which a header row is looked for
EXTRA = "Install it with: pip install 'gnomon[excel]'. Or save the sheet as CSV."


def read_excel(content: FileContent, sheet: str | None = None) -> RawTable:
    """The table of a sheet, the first one unless `sheet` names another."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise FileError(f"{content.name}: reading Excel files needs calamine.", EXTRA) from None
    content.check(MEMORY_TIMES * _unpacked_bytes(content))
    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(content.data.tobytes())) as book:
            name = _sheet_name(content.name, book.sheet_names, sheet)
            found = book.get_sheet_by_name(name)
            rows = found.to_python(skip_empty_area=False)
            merged = len(found.merged_cell_ranges or ())
            others = [each for each in book.sheet_names if each != name]
    except (CalamineError, ValueError, OSError) as error:
        if isinstance(error, FileError | OptionError):
            raise
        raise FileError(
            f"{content.name} is a damaged workbook ({error}).", "Open it and save it again."
        ) from None
    notes = []
    if others and sheet is None:
        notes.append(f"sheet {quoted(name)} was read; --sheet reads {listed(others)}")
    if merged:
        notes.append(f"{count(merged, 'range')} of merged cells: the first cell has the value")
    return _as_table(content.name, rows, notes)


def _unpacked_bytes(content: FileContent) -> int:
    """Bytes of the workbook's parts; those of a zip archive are unpacked once, to be counted."""
    if content.data[:2].tobytes() != b"PK":
        return content.data.size
    budget = content.budget
    try:
        with zipfile.ZipFile(io.BytesIO(content.data.tobytes())) as archive:
            declared = sum(part.file_size for part in archive.infolist())
            budget.check(f"{content.name}: its table", declared)
            for part in archive.infolist():
                with archive.open(part) as stream:  # no more than was declared, or BadZipFile
                    while stream.read(CHUNK_BYTES):
                        pass
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise FileError(
            f"{content.name} is a damaged or encrypted workbook ({error}).",
            "Open it and save it again, without a password.",
        ) from None
    return declared


def _sheet_name(file: str, there: Sequence[str], sheet: str | None) -> str:
    if not there:
        raise FileError(f"{file} has no sheets.")
    if sheet is None:
        return there[0]
    if sheet not in there:
        raise OptionError(f"{file} has no sheet {quoted(sheet)}.", f"It has {listed(list(there))}.")
    return sheet


def _as_table(file: str, rows: list[list[Any]], notes: list[str]) -> RawTable:
    width = max((_filled(row) for row in rows), default=0)
    body = [(number, row[:width]) for number, row in enumerate(rows, 1) if _filled(row)]
    header: list[str] | None = None
    for at, (_, row) in enumerate(body[:HEADER_ROWS]):
        names = row[1:] if row[0] == "" and width > 1 else row
        if len(row) == width and all(isinstance(cell, str) and cell.strip() for cell in names):
            header = [str(cell) for cell in row]
            if at:
                notes.append(f"{count(at, 'row')} above the header row skipped")
            body = body[at + 1 :]
            break
    if not body:
        raise NoRowsError(f"{file} has columns but no rows." if header else f"{file} is empty.")
    names, said = unique_names(header, width)
    cells = list(zip(*(row + [""] * (width - len(row)) for _, row in body), strict=True))
    columns = {name: _column(each) for name, each in zip(names, cells, strict=True)}
    places = Places(lines=np.array([number for number, _ in body], np.int64))
    return RawTable(
        file, columns, places=places, notes=(*notes, *said), named=header is not None, typed=True
    )


def _filled(row: Sequence[Any]) -> int:
    """Cells of a row up to its last filled one."""
    return max((at + 1 for at, cell in enumerate(row) if cell != ""), default=0)


def _column(cells: Sequence[Any]) -> Any:
    """Cells of one column as an Arrow array of the type that all of them have, otherwise text."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        whole = all(value is None or float(value).is_integer() for value in values)
        kind = pa.int64() if whole and kinds and _fit_int64(values) else pa.float64()
        values = [
            value if value is None or kind == pa.float64() else int(value) for value in values
        ]
        return pa.chunked_array([pa.array(values, kind)])
    if kinds == {bool}:
        return pa.chunked_array([pa.array(values, pa.bool_())])
    if kinds <= {datetime.date, datetime.datetime}:
        moments = [_as_datetime(value) for value in values]
        return pa.chunked_array([pa.array(moments, pa.timestamp("us"))])
    texts = [None if value is None else _text(value) for value in values]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def _fit_int64(values: Sequence[Any]) -> bool:
    return all(value is None or abs(value) < 2**53 for value in values)


def _as_datetime(value: Any) -> datetime.datetime | None:
    if value is None or isinstance(value, datetime.datetime):
        return value
    return datetime.datetime(value.year, value.month, value.day)


def _text(value: Any) -> str:
    """A cell as text; a whole number without its decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
