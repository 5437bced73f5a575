import datetime
import struct
import zipfile

import numpy as np
import openpyxl
import pytest
from commands import gnomon

from gnomon.data.read import read
from gnomon.data.refusals import FileError, OptionError
from gnomon.errors import TooLargeError

HEADER = ["species", "length", "width", "seen", "kept"]
DAY = datetime.date(2024, 5, 17)
ROWS = [
    ["lily", 1.5, 3, DAY, True],
    ["rose", 2.5, 4, DAY, False],
    ["lily", 1.75, 8, DAY, True],
    ["rose", 9.25, 5, DAY, False],
]


def workbook(path, *sheets):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets:
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet_is_read_as_the_table_that_was_written(tmp_path):
    table = read(workbook(tmp_path / "t.xlsx", ("flowers", [HEADER, *ROWS])))
    assert table.columns == ("length", "width")
    np.testing.assert_array_equal(table.X, [[row[1], row[2]] for row in ROWS])
    assert list(table.labels) == ["lily", "rose", "lily", "rose"]
    assert "seen" in str(table)  # dates are no features, and that is said


def test_another_sheet_is_read_by_its_name(tmp_path):
    other = [["a", "b"], [1, 2.5], [3, 4.5], [5, 9.5]]
    file = workbook(tmp_path / "t.xlsx", ("first", [HEADER, *ROWS]), ("second", other))
    np.testing.assert_array_equal(read(file, sheet="second").X, other[1:])
    assert any("--sheet reads" in note for note in read(file).notes)
    with pytest.raises(OptionError, match='has no sheet "third"'):
        read(file, sheet="third")


def test_a_sheet_is_for_workbooks(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    with pytest.raises(OptionError, match="has no sheets"):
        read(tmp_path / "t.csv", sheet="first")


def test_titles_above_the_header_row_are_skipped_and_gaps_are_missing(tmp_path):
    rows = [["Flowers of May"], [], ["a", "b", "c"], [1.5, None, 2], [2.5, 5, 4], [3.5, 1, None]]
    table = read(workbook(tmp_path / "t.xlsx", ("s", rows)))
    assert table.columns == ("a", "b", "c")
    assert np.isnan(table.X).sum(axis=0).tolist() == [0, 1, 1]
    assert any("above the header row" in note for note in table.notes)
    assert table.places.of(0) == "line 4"


def test_row_names_as_pandas_writes_them_have_no_name_above(tmp_path):
    rows = [["", "a", "b"], ["lily", 1.5, 2], ["rose", 2.5, 5], ["tulip", 3.5, 1]]
    table = read(workbook(tmp_path / "t.xlsx", ("s", rows)))
    assert table.columns == ("a", "b")
    assert table.ids.tolist() == ["lily", "rose", "tulip"]
    numbered = [["", "a", "b"], [0, 1.5, 2], [1, 2.5, 5], [2, 3.5, 1]]
    assert read(workbook(tmp_path / "u.xlsx", ("s", numbered))).columns[-2:] == ("a", "b")


def test_formulas_give_the_values_that_were_saved_and_merged_cells_are_said(tmp_path):
    file = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["a", "b"], [1, 2], [3, 4], [5, "=A4*2"]):
        sheet.append(row)
    sheet.merge_cells("A2:A3")
    book.save(file)  # openpyxl saves no value beside a formula
    table = read(file)
    assert np.isnan(table.X[2, 1])
    assert np.isnan(table.X[1, 0])
    assert any("merged cells" in note for note in table.notes)


def test_a_sheet_without_a_header_row_has_numbered_columns(tmp_path):
    table = read(workbook(tmp_path / "t.xlsx", ("s", [[1.5, 2], [3.5, 4], [5.5, 1]])))
    assert not table.named
    np.testing.assert_array_equal(table.X, [[1.5, 2], [3.5, 4], [5.5, 1]])


def test_a_column_of_numbers_with_a_word_in_it_is_refused_with_its_line(tmp_path):
    rows = [["a", "b"], *([float(i) + 0.5, i] for i in range(30))]
    rows[7][0] = "lost"
    file = workbook(tmp_path / "t.xlsx", ("s", rows))
    with pytest.raises(FileError, match=r'column "a" holds text in 1 row \(first: line 8, "lost"'):
        read(file)
    table = read(file, na="lost", keep="a")
    assert np.flatnonzero(np.isnan(table.X[:, list(table.columns).index("a")])).tolist() == [6]


def test_workbooks_that_unpack_beyond_the_memory_are_refused_before_they_do(tmp_path):
    file = workbook(tmp_path / "t.xlsx", ("s", [HEADER, *ROWS]))
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, old.read(part))
        new.writestr("xl/media/zeros.bin", bytes(60_000_000))
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(TooLargeError):
        read(bomb, memory="50MB")


def test_a_workbook_that_lies_about_its_size_is_damaged(tmp_path):
    file = workbook(tmp_path / "t.xlsx", ("s", [HEADER, *ROWS]))
    data = bytearray(file.read_bytes())
    at = data.index(b"PK\x01\x02")  # of the directory: its first entry declares fewer bytes
    size = struct.unpack_from("<I", data, at + 24)[0]
    struct.pack_into("<I", data, at + 24, size // 2)
    file.write_bytes(bytes(data))
    with pytest.raises(FileError, match="damaged"):
        read(file)


@pytest.mark.parametrize("keep", [10, 500, 2000])
def test_workbooks_that_are_cut_short_are_damaged(tmp_path, keep):
    file = workbook(tmp_path / "t.xlsx", ("s", [HEADER, *ROWS]))
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(FileError, match="damaged"):
        read(file)


def test_without_calamine_the_extra_is_named(tmp_path, monkeypatch):
    file = workbook(tmp_path / "t.xlsx", ("s", [HEADER, *ROWS]))
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(FileError, match=r"gnomon\[excel\]"):
        read(file)


def test_the_command_reads_a_sheet_and_records_it(tmp_path):
    rng = np.random.default_rng(0)
    rows = [["a", "b", "c"], *rng.normal(size=(40, 3)).tolist()]
    workbook(tmp_path / "t.xlsx", ("notes", [["hello"]]), ("data", rows))
    done = gnomon("reduce", "t.xlsx", "--sheet", "data", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"sheet": "data"' in (tmp_path / "t_reduced" / "run.json").read_text()
