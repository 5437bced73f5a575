"""A folder of files is the table that one file with all rows would be."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from gnomon import source
from gnomon.data.read import read
from gnomon.data.refusals import FileError

HEADER = "name,kind,length,width\n"
ROWS = [
    f"n{i},{'ab'[i % 2]},{i / 7:.3f},{'' if i == 8 else i * 1.5}\n" for i in range(12)
]  # one gap, on line 4 of the third part


def write(folder, *texts, endings=".csv"):
    folder.mkdir(exist_ok=True)
    for number, text in enumerate(texts):
        (folder / f"part{number}{endings}").write_text(text, "utf-8")
    return folder


def parts(rows=ROWS, header=HEADER):
    return [header + "".join(rows[start : start + 3]) for start in range(0, len(rows), 3)]


def same(a, b):
    assert a.X.tobytes() == b.X.tobytes()
    for name in ("columns", "label_name", "id_name", "n_columns", "named"):
        assert getattr(a, name) == getattr(b, name)
    assert np.array_equal(a.ids, b.ids)
    assert np.array_equal(a.labels, b.labels)
    assert a.roles == b.roles
    return True


def test_parts_of_a_csv_are_the_whole(tmp_path):
    (tmp_path / "whole.csv").write_text(HEADER + "".join(ROWS), "utf-8")
    table = read(write(tmp_path / "parts", *parts()))
    assert same(table, read(tmp_path / "whole.csv"))
    assert table.name == "parts"


def test_a_row_is_called_by_its_line_in_its_file(tmp_path):
    table = read(write(tmp_path / "parts", *parts()))
    row = int(np.flatnonzero(np.isnan(table.X).any(axis=1))[0])
    assert table.places.of(row) == "line 4 of part2.csv"
    assert table.take(np.array([row])).places.of(0) == "line 4 of part2.csv"


@pytest.mark.parametrize("kind", ["parquet", "feather", "npy"])
def test_files_with_types_are_joined(tmp_path, kind):
    X = np.random.default_rng(0).standard_normal((30, 3)).astype(np.float32)
    (tmp_path / "parts").mkdir()
    for number, start in enumerate(range(0, 30, 10)):
        some, file = X[start : start + 10], tmp_path / "parts" / f"{number}.{kind}"
        if kind == "npy":
            np.save(file, some)
            continue
        names = pa.array([f"n{i}" for i in range(start, start + 10)])
        table = pa.table({"name": names, **{f"v{j}": some[:, j] for j in range(3)}})
        (pq.write_table if kind == "parquet" else pyarrow.feather.write_feather)(table, file)
    table = read(tmp_path / "parts")
    assert table.X.dtype == np.float32
    assert np.array_equal(table.X, X)
    assert kind == "npy" or table.ids.tolist() == [f"n{i}" for i in range(30)]


def test_whole_numbers_in_one_file_and_fractions_in_another_are_numbers(tmp_path):
    table = read(write(tmp_path / "parts", "a,b\n1,2\n3,4\n", "a,b\n1.5,2\n2.5,5\n"))
    assert table.X.tolist() == [[1, 2], [3, 4], [1.5, 2], [2.5, 5]]


def test_a_column_of_text_in_one_file_is_text_in_all(tmp_path):
    header = "code,v,w\n"
    one = "".join(f"{i % 2 + 1},{i + 1},{i / 7:.3f}\n" for i in range(3))
    two = "".join(f"{'xy'[i % 2]},{i},{i / 3:.3f}\n" for i in range(20))
    (tmp_path / "whole.csv").write_text(header + one + two)
    table = read(write(tmp_path / "parts", header + one, header + two))
    assert same(table, read(tmp_path / "whole.csv"))
    assert table.labels.tolist()[:5] == ["1", "2", "1", "x", "y"]


def test_a_word_among_numbers_is_told_with_its_file_and_line(tmp_path):
    two = "a,b\n1,2\n3,oops\n5,6\n"
    with pytest.raises(FileError, match=r'"b" holds text in 1 row \(first: line 3 of part1.csv'):
        read(write(tmp_path / "parts", "a,b\n1,2\n3,4\n4,5\n5,7\n", two))


def test_an_index_that_begins_again_in_every_file_is_no_feature(tmp_path):
    rows = [f"{i % 3},{i / 7:.3f},{i * 1.5}\n" for i in range(12)]  # as pandas writes parts
    table = read(write(tmp_path / "parts", *parts(rows, ",length,width\n")))
    assert table.columns == ("length", "width")
    assert [left.why for left in table.roles.ignored] == ["counts the rows of each file"]
    kept = read(tmp_path / "parts", keep="column 1")
    assert kept.columns == ("column 1", "length", "width")


def test_an_index_that_goes_on_names_the_rows(tmp_path):
    rows = [f"{i},{i / 7:.3f},{i * 1.5}\n" for i in range(12)]
    table = read(write(tmp_path / "parts", *parts(rows, ",length,width\n")))
    assert table.columns == ("length", "width")
    assert table.ids.tolist() == [str(i) for i in range(12)]


def test_parts_without_rows_or_bytes_are_passed_over(tmp_path):
    table = read(write(tmp_path / "parts", HEADER, *parts(), ""))
    assert len(table.X) == 12
    with pytest.raises(FileError, match="None of 2 files has rows"):
        read(write(tmp_path / "empty", HEADER, HEADER))


@pytest.mark.parametrize(
    ("second", "says"),
    [
        ("name,kind,length\na,b,1\n", 'It lacks "width"'),
        ("name,kind,length,Width\na,b,1,2\n", 'It lacks "width" and has "Width"'),
        ("name,kind,length,width,more\na,b,1,2,3\n", 'It has "more"'),
        ("1,2,3,4\n5,6,7,8\n", "It has no column names"),
    ],
)
def test_a_file_with_other_columns_is_named(tmp_path, second, says):
    with pytest.raises(FileError, match=r"part1.csv does not have the same columns as part0.csv"):
        read(write(tmp_path / "parts", parts()[0], second))
    with pytest.raises(FileError, match=says):
        read(tmp_path / "parts")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".npy"])
def test_tables_without_rows_are_passed_over_whatever_their_format(tmp_path, ending):
    for number, rows in enumerate((0, 3, 2)):
        X = np.full((rows, 2), number, np.float64)
        path, table = tmp_path / f"{number}{ending}", pa.table({"a": X[:, 0], "b": X[:, 1]})
        if ending == ".npy":
            np.save(path, X)
        elif ending == ".parquet":
            pq.write_table(table, path)
        else:
            pa.feather.write_feather(table, path)
    assert read(tmp_path).X[:, 0].tolist() == [1, 1, 1, 2, 2]
    blocks = source(tmp_path)
    assert sum(partition.rows for partition in blocks.partitions) == 5


def test_columns_may_stand_in_another_order(tmp_path):
    table = read(write(tmp_path / "parts", "a,b\n1,2\n3,5\n", "b,a\n7,6\n9,8\n"))
    assert table.X.tolist() == [[1, 2], [3, 5], [6, 7], [8, 9]]


def test_a_column_that_holds_other_things_is_named(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    numbers = pa.array([1.0, 2.0])
    pq.write_table(pa.table({"a": numbers, "b": numbers}), folder / "0.parquet")
    pq.write_table(pa.table({"a": numbers, "b": ["x", "y"]}), folder / "1.parquet")
    with pytest.raises(FileError, match='Its column "b" holds string, the first one\'s double'):
        read(folder)


def test_other_files_in_a_folder_are_named(tmp_path):
    folder = write(tmp_path / "parts", *parts())
    (folder / "notes.md").write_text("notes")
    with pytest.raises(FileError, match=r'holds "notes\.md", which is no table'):
        read(folder)
    with pytest.raises(FileError, match="has no files that end in"):
        read(write(tmp_path / "none"))


def test_the_folder_inside_of_a_downloaded_data_set_is_named(tmp_path):
    outer = tmp_path / "set"
    outer.mkdir()
    write(outer / "data", *parts())
    (outer / "README.md").write_text("about it")
    with pytest.raises(FileError, match=r"Name the folder inside: .*set/data"):
        read(outer)
