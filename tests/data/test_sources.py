import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import gnomon
from gnomon.data.formats import arrow as arrow_blocks
from gnomon.data.read import read
from gnomon.engine import LocalEngine
from gnomon.errors import (
    ChangedSourceError,
    DataError,
    DataTypeError,
    ParameterError,
    ParameterTypeError,
    PartitionError,
)


def numbers(rows=103, columns=4, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns)).astype(dtype)


def arrow(X):
    return pa.table({f"c{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])})


def write(folder, X, how):
    path = folder / how
    path.parent.mkdir(exist_ok=True)
    if how.startswith("fortran"):
        np.save(path, np.asfortranarray(X))
    elif how.endswith(".npy"):
        np.save(path, X)
    elif how.endswith(".parquet"):
        pq.write_table(arrow(X), path, row_group_size=20 if how.startswith("small") else 10**6)
    elif how.endswith(".feather"):
        pf.write_feather(arrow(X), path, chunksize=20 if how.startswith("small") else 10**6)
    else:
        pc.write_csv(arrow(X), path)
    return path


def rows_of(source, engine=None):
    return np.concatenate((engine or LocalEngine(1)).map(lambda block: block.X.copy(), source))


KINDS = [
    "a.npy",
    "fortran.npy",
    "a.parquet",
    "small.parquet",
    "a.feather",
    "small.feather",
    "a.csv",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 20, 33, 103, 500])
def test_every_kind_of_file_gives_its_rows_in_blocks_again_and_again(tmp_path, kind, rows):
    X = numbers()
    source = gnomon.source(write(tmp_path, X, kind), rows=rows)
    assert source.shape == X.shape
    assert max(partition.rows for partition in source.partitions) <= rows
    assert sum(partition.rows for partition in source.partitions) == 103
    assert source.dtype == (np.float64 if kind == "a.csv" else np.float32)
    for threads in (1, 4, 2):
        found = rows_of(source, LocalEngine(threads))
        # the digits of float32 as a text are those of no float64
        np.testing.assert_array_equal(found.astype(np.float32), X)
    assert source.names == (None if kind.endswith(".npy") else ("c0", "c1", "c2", "c3"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_is_read_by_a_small_copy_elsewhere(tmp_path, kind):
    X = numbers()
    source = gnomon.source(write(tmp_path, X, kind), rows=20)
    pickled = pickle.dumps(source)
    assert len(pickled) < 3000
    copy = pickle.loads(pickled)
    for index in (3, 0, 5):
        partition = source.partitions[index]
        there = slice(partition.start, partition.start + partition.rows)
        np.testing.assert_array_equal(copy.read(partition).astype(np.float32), X[there])


@pytest.mark.parametrize(
    ("dtype", "kept"), [("?", "u1"), (">f4", "f4"), ("i8", "i8"), ("f2", "f2")]
)
def test_npy_keeps_its_type(tmp_path, dtype, kept):
    X = (10 * numbers()).astype(dtype)
    np.save(tmp_path / "a.npy", X)
    source = gnomon.source(tmp_path / "a.npy", rows=50)
    assert source.dtype == kept
    np.testing.assert_array_equal(rows_of(source), X)


def test_columns_of_files_are_chosen_as_for_read(tmp_path):
    table = arrow(numbers()).append_column("name", pa.array([f"row{i}" for i in range(103)]))
    table = table.append_column("on", pa.array([i % 2 == 0 for i in range(103)]))
    pq.write_table(table, tmp_path / "a.parquet")
    pc.write_csv(table, tmp_path / "a.csv")
    for file in ("a.parquet", "a.csv"):
        path = tmp_path / file
        assert gnomon.source(path).names == ("c0", "c1", "c2", "c3")
        assert gnomon.source(path, drop="c1").names == ("c0", "c2", "c3")
        assert gnomon.source(path, columns=["c3", "c0"]).names == ("c3", "c0")
        found = rows_of(gnomon.source(path, columns=["c3", "c0"], rows=10))
        np.testing.assert_array_equal(found.astype(np.float32), numbers()[:, [3, 0]])
        kept = gnomon.source(path, keep="on", rows=10)
        assert kept.names[-1] == "on"
        np.testing.assert_array_equal(rows_of(kept)[:, -1], np.arange(103) % 2 == 0)
        with pytest.raises(ParameterError, match='no column "c9", named by the option `columns`'):
            gnomon.source(path, columns="c9")


def test_columns_of_npy_are_called_by_their_place(tmp_path):
    np.save(tmp_path / "a.npy", numbers())
    source = gnomon.source(tmp_path / "a.npy", drop="column 2", rows=40)
    np.testing.assert_array_equal(rows_of(source), numbers()[:, [0, 2, 3]])


def test_whole_numbers_nulls_decimals_dictionaries_and_vectors_of_parquet(tmp_path):
    n = 30
    table = pa.table(
        {
            "whole": pa.array([None if i == 25 else i * 7919 % 101 for i in range(n)], pa.int32()),
            "exact": pa.array([i / 4 for i in range(n)]).cast(pa.decimal128(9, 2)),
            "coded": pa.array([f"{i}.5" for i in range(n)]).dictionary_encode(),
            "vector": pa.array([[i, i + 0.5] for i in range(n)], pa.list_(pa.float32())),
            "late": pa.array([None] * 20 + [1.0] * 10, pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    source = gnomon.source(tmp_path / "a.parquet", keep=["coded", "late"], rows=10)
    names = ["whole", "exact", "coded", "vector[0]", "vector[1]", "late"]
    assert list(source.names) == names
    found = rows_of(source)
    assert np.isnan(found[25, 0])
    np.testing.assert_array_equal(found[:, 1], np.arange(n) / 4)
    np.testing.assert_array_equal(found[:, 2], np.arange(n) + 0.5)
    np.testing.assert_array_equal(found[:, 4], np.arange(n) + 0.5)
    assert np.isnan(found[:20, 5]).all()


def test_files_of_a_folder_follow_each_other_by_name(tmp_path):
    X = numbers()
    folder = tmp_path / "parts"
    for name, part in (("b.parquet", X[40:80]), ("a.parquet", X[:40]), ("c.feather", X[80:])):
        write(folder, part, name)
    (folder / "_SUCCESS").write_text("")
    source = gnomon.source(folder, rows=30)
    np.testing.assert_array_equal(rows_of(source), X)
    assert [str(partition) for partition in source.partitions][2:4] == [
        "b.parquet, rows 0 to 29",
        "b.parquet, rows 30 to 39",
    ]


def test_columns_of_a_folder_are_found_by_name_and_must_agree(tmp_path):
    X = numbers()
    folder = tmp_path / "parts"
    write(folder, X, "a.parquet")
    pq.write_table(arrow(X).select(["c3", "c1", "c0", "c2"]), folder / "b.parquet")
    np.testing.assert_array_equal(rows_of(gnomon.source(folder)), np.vstack([X, X]))
    for wrong, said in (
        (arrow(X).drop_columns("c2"), 'It lacks "c2"'),
        (arrow(X).append_column("more", pa.array(np.zeros(103))), 'It has "more"'),
    ):
        pq.write_table(wrong, folder / "b.parquet")
        with pytest.raises(
            DataError, match=rf"b\.parquet does not have the same columns as a\.parquet\..*{said}"
        ):
            gnomon.source(folder)
    (folder / "b.parquet").unlink()
    np.save(folder / "b.npy", X)
    said = r"b\.npy does not have the same columns as a\.parquet\. It has no column names"
    with pytest.raises(DataError, match=said):
        gnomon.source(folder)


def test_what_is_no_table_in_a_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"has no files that end in \.npy"):
        gnomon.source(tmp_path)
    (tmp_path / "readme.md").write_text("hello")
    with pytest.raises(DataError, match=r'holds "readme\.md", which is no table'):
        gnomon.source(tmp_path)
    (tmp_path / "readme.md").unlink()
    write(tmp_path, numbers(), "a.npy")
    (tmp_path / "year=2020").mkdir()  # its rows would be missing, and nobody would know
    with pytest.raises(DataError, match=r'holds "year=2020", which is no table'):
        gnomon.source(tmp_path)
    (tmp_path / "year=2020").rename(tmp_path / "_reduced")
    assert gnomon.source(tmp_path).rows == 103


def test_what_cannot_be_read_in_blocks_says_so(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match=r'pipe\.csv" can be read only once.*Save it as a file'):
        gnomon.source(tmp_path / "pipe.csv")  # and nothing waits for whoever writes into it
    with pytest.raises(ParameterError, match=r"There is no file .*gone\.npy"):
        gnomon.source(tmp_path / "gone.npy")
    np.save(tmp_path / "line.npy", np.arange(3.0))
    with pytest.raises(DataError, match=r"line\.npy must hold a table of rows and columns"):
        gnomon.source(tmp_path / "line.npy")
    whole = (tmp_path / "line.npy").read_bytes()
    np.save(tmp_path / "short.npy", numbers())
    whole = (tmp_path / "short.npy").read_bytes()
    (tmp_path / "short.npy").write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"short\.npy is cut short"):
        gnomon.source(tmp_path / "short.npy")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"broken\.parquet is a damaged file"):
        gnomon.source(tmp_path / "broken.parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_cut_short_between_passes_is_named(tmp_path, kind):
    path = write(tmp_path, numbers(3000, 8), kind)
    source = gnomon.source(path, rows=200)
    rows_of(source)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ChangedSourceError, match=rf"{kind}, rows 0 to 199 changed.*the file had"):
        rows_of(source)
    path.write_bytes(whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2))
    with pytest.raises(DataError, match=kind.replace(".", r"\.")):  # as long as it was
        rows_of(source)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_rewritten_between_passes_is_named(tmp_path, kind):
    X = numbers(300, 8)
    path = write(tmp_path, X, kind)
    source = gnomon.source(path, rows=50)
    rows_of(source)
    X[170, 3] = -X[170, 3]
    write(tmp_path, X, kind)
    rows = "160 to 199" if kind.startswith("small") else "150 to 199"
    rows = ".*" if kind == "a.csv" else rows  # one letter more: the size of the file tells
    with pytest.raises(ChangedSourceError, match=rf"{kind}, rows {rows} changed while it was in"):
        rows_of(source)


def test_a_file_that_is_gone_is_named_after_three_attempts(tmp_path):
    path = write(tmp_path, numbers(), "a.npy")
    source = gnomon.source(path, rows=50)
    path.unlink()
    with pytest.raises(PartitionError, match=r"a\.npy, rows 0 to 49 failed 3 times"):
        rows_of(source)


def blocks():
    for start in range(0, 103, 25):
        yield numbers()[start : start + 25]


def test_a_function_gives_blocks_of_its_own():
    source = gnomon.source(blocks, names=["a", "b", "c", "d"])
    assert [partition.rows for partition in source.partitions] == [25, 25, 25, 25, 3]
    for threads in (1, 2, 4):
        np.testing.assert_array_equal(rows_of(source, LocalEngine(threads)), numbers())
    copy = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(copy.read(source.partitions[2]), numbers()[50:75])


def test_a_function_that_gives_something_else_the_next_time_is_found():
    for change in ("more", "fewer", "other"):
        called = []

        def give(change=change, called=called):
            called.append(1)
            X = numbers()
            if len(called) > 1 and change == "other":
                X[60, 0] = 7.0
            stop = 130 if change == "more" and len(called) > 1 else 103
            stop = 60 if change == "fewer" and len(called) > 1 else stop
            for start in range(0, stop, 25):
                yield X[start : start + 25] if start < 100 else np.ones((3, 4), np.float32)

        source = gnomon.source(give)
        with pytest.raises(ChangedSourceError):
            rows_of(source)


def test_functions_that_give_no_blocks_are_refused():
    with pytest.raises(DataError, match="The function returned no blocks"):
        gnomon.source(lambda: iter(()))
    with pytest.raises(ParameterTypeError, match="must return an iterator over blocks"):
        gnomon.source(lambda: 7)
    with pytest.raises(DataError, match="Block 1 has 3 columns of float64, but the first has 2"):
        gnomon.source(lambda: iter([np.zeros((2, 2)), np.zeros((2, 3))]))


def test_arrays_and_dask_arrays_are_sources():
    import dask.array as da

    X = numbers()
    np.testing.assert_array_equal(rows_of(gnomon.source(X, rows=10)), X)
    lazy = da.from_array(X, chunks=(30, 3))
    source = gnomon.source(lazy, names=list("abcd"))
    assert [partition.rows for partition in source.partitions] == [30, 30, 30, 13]
    np.testing.assert_array_equal(rows_of(source, LocalEngine(2)), X)
    with pytest.raises(DataError, match="chunks of unknown size"):
        gnomon.source(lazy[lazy[:, 0] > 0])
    with pytest.raises(DataTypeError, match="must hold numbers"):
        gnomon.source(lazy.astype(complex))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "?"])
def test_masked_cells_of_a_dask_array_are_missing(dtype):
    import dask.array as da

    X, hidden = (numbers() > 0).astype(dtype), numbers() > 2
    lazy = da.ma.masked_array(*(da.from_array(each, chunks=(30, 3)) for each in (X, hidden)))
    found = rows_of(gnomon.source(lazy))
    np.testing.assert_array_equal(np.isnan(found), hidden)
    np.testing.assert_array_equal(found[~hidden], X[~hidden])
    assert found.dtype == ("f4" if dtype == "f4" else "f8")


def test_chunks_that_are_not_what_a_dask_array_says_are_refused():
    import dask.array as da

    lazy = da.from_array(numbers().astype(int), chunks=(30, 4))
    halves = lazy.map_blocks(lambda chunk: chunk / 2, dtype=int)
    with pytest.raises(
        DataTypeError, match=r"rows 0 to 29: the chunk has dtype float64.*declares int64"
    ):
        rows_of(gnomon.source(halves))
    with pytest.raises(DataError, match="has sparse chunks"):
        rows_of(gnomon.source(lazy.map_blocks(sp.csr_array)))


def test_options_that_do_not_fit_are_refused(tmp_path):
    path = write(tmp_path, numbers(), "a.npy")
    with pytest.raises(ParameterError, match="`rows` must be an integer ≥ 1"):
        gnomon.source(path, rows=0)
    with pytest.raises(ParameterError, match="`names` must be left out for files"):
        gnomon.source(path, names=["a"])
    with pytest.raises(ParameterError, match="are for files"):
        gnomon.source(numbers(), drop="a")
    with pytest.raises(ParameterError, match="`names` must be 4 different names"):
        gnomon.source(numbers(), names=["a", "b"])
    with pytest.raises(ParameterError, match="`rows` must be left out where"):
        gnomon.source(blocks, rows=10)
    with pytest.raises(ParameterTypeError, match="be dense"):
        gnomon.source(sp.csr_array(np.eye(3)))


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".csv", ".npy"])
@pytest.mark.parametrize("order", ["ab", "ba", "aab"])
def test_parts_of_a_folder_may_have_no_rows(tmp_path, ending, order):
    X = numbers()
    for i, which in enumerate(order):
        write(tmp_path / "t", X[:0] if which == "a" else X, f"{i}{ending}")
    source = gnomon.source(tmp_path / "t", rows=20)
    assert np.allclose(rows_of(source), X, atol=1e-6)
    assert [file.name for file in source.files] == [f"{order.index('b')}{ending}"]
    assert np.array_equal(
        rows_of(pickle.loads(pickle.dumps(source)).only(source.partitions)), rows_of(source)
    )


def test_a_folder_without_any_rows_is_refused(tmp_path):
    for name in ("1.parquet", "2.parquet"):
        write(tmp_path / "t", numbers()[:0], name)
    with pytest.raises(DataError, match=r'None of 2 files has rows: "1\.parquet", "2\.parquet"'):
        gnomon.source(tmp_path / "t")
    with pytest.raises(DataError, match=r"1\.parquet has columns but no rows"):
        gnomon.source(tmp_path / "t" / "1.parquet")


def test_parts_of_no_bytes_are_passed_over(tmp_path):
    (tmp_path / "t").mkdir()
    for name, text in (("0.csv", ""), ("1.csv", "a,b\n1.5,2\n3,4\n"), ("2.csv", "")):
        (tmp_path / "t" / name).write_text(text)
    np.testing.assert_array_equal(rows_of(gnomon.source(tmp_path / "t")), [[1.5, 2], [3, 4]])
    with pytest.raises(DataError, match=r"0\.csv is empty"):
        gnomon.source(tmp_path / "t" / "0.csv")


def test_columns_that_were_named_loosely_are_found(tmp_path):
    (tmp_path / "t.csv").write_text("Name,Sex,a,note\nx,f,1,p\ny,m,2,q\nz,f,4,r\n")
    found = gnomon.source(tmp_path / "t.csv", drop="sex", id="name").roles
    assert (found.features, found.id) == (("a",), "Name")
    assert [(left.column, left.why) for left in found.ignored] == [
        ("Sex", "as asked"),
        ("note", "text"),
    ]


def test_blocks_without_rows_are_no_blocks():
    X = numbers(dtype=np.float64)
    source = gnomon.source(lambda: iter([X[:0], X[:50], X[:0], X[50:], X[:0]]))
    assert [partition.rows for partition in source.partitions] == [50, 53]
    np.testing.assert_array_equal(rows_of(source), X)
    found = gnomon.PCA(2).fit(source)
    expected = gnomon.PCA(2).fit(gnomon.source(lambda: iter([X[:50], X[50:]])))
    np.testing.assert_array_equal(found.components_, expected.components_)
    nothing = gnomon.source(lambda: iter([X[:0]]))
    assert nothing.shape == (0, 4)
    with pytest.raises(DataError, match="has 0 rows"):
        gnomon.PCA(2).fit(nothing)


def vectors(n=60, width=4):
    V = numbers(n, width, np.float64)
    return V, {"a": np.arange(n) / 7, "v": pa.array(V.tolist(), pa.list_(pa.float64()))}


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_single_entries_of_vectors_are_taken(tmp_path, ending):
    V, columns = vectors()
    path = tmp_path / f"a.{ending}"
    write_table = pq.write_table if ending == "parquet" else pf.write_feather
    write_table(pa.table(columns), path)
    for asked in (["v[1]", "a"], ["a", "v[3]", "v[0]"], ["v[2]"]):
        source = gnomon.source(path, columns=asked, rows=20)
        assert source.names == tuple(asked)
        whole = read(path, columns=asked)
        assert whole.columns == source.names
        np.testing.assert_array_equal(rows_of(source), whole.X)
    whole = gnomon.source(path, columns=["v", "a"], rows=20)
    assert whole.names == ("v[0]", "v[1]", "v[2]", "v[3]", "a")
    np.testing.assert_array_equal(rows_of(whole)[:, :4], V)
    for absent in ("v[4]", "a[0]", "w[0]"):
        with pytest.raises(ParameterError) as error:
            gnomon.source(path, columns=["a", absent])
        assert f'a.{ending} has no column "{absent}", named by the option `columns`' in str(
            error.value
        )


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_missing_vectors_are_missing_values(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(arrow_blocks, "LOOK", 10)
    V, columns = vectors()
    lists = V.tolist()
    lists[20:40] = [None] * 20  # a whole block
    lists[45] = None
    columns["v"] = pa.array(lists, pa.list_(pa.float64()))
    path = tmp_path / f"a.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(columns), path, row_group_size=20)
    else:
        pf.write_feather(pa.table(columns), path)
    found = rows_of(gnomon.source(path, rows=20))
    np.testing.assert_array_equal(found, read(path).X)
    assert np.isnan(found[20:40, 1:]).all()
    assert np.isnan(found).sum() == 21 * 4
    with pytest.raises(DataError, match="missing value"):
        gnomon.PCA(2).fit(gnomon.source(path, rows=20))


@pytest.mark.parametrize(("first", "last"), [(20, 40), (40, 41), (25, 26), (59, 60)])
def test_vectors_of_another_length_are_told_with_their_row(tmp_path, monkeypatch, first, last):
    monkeypatch.setattr(arrow_blocks, "LOOK", 10)
    V, columns = vectors()
    for other in ([1.0, 2.0], [1.0] * 5, []):
        lists = V.tolist()
        lists[first:last] = [other] * (last - first)
        columns["v"] = pa.array(lists, pa.list_(pa.float64()))
        pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=20)
        said = (
            rf'a\.parquet: column "v" holds vectors of different lengths: 4 and, at row {first} '
            rf'\(rows count from 0\), {len(other)}\. Use drop="v"'
        )
        with pytest.raises(DataError, match=said):
            rows_of(gnomon.source(tmp_path / "a.parquet", rows=20))
        with pytest.raises(DataError, match=said):
            read(tmp_path / "a.parquet")


def test_vectors_in_the_parts_of_a_folder(tmp_path):
    V, columns = vectors()
    folder = tmp_path / "t"
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "1.parquet")
    none = {"a": columns["a"], "v": pa.nulls(60, pa.list_(pa.float64()))}
    pq.write_table(pa.table(none), folder / "2.parquet")
    found = rows_of(gnomon.source(folder, rows=20))
    np.testing.assert_array_equal(found[:60, 1:], V)
    assert np.isnan(found[60:, 1:]).all()
    for other in (3, 5):
        pq.write_table(pa.table(vectors(width=other)[1]), folder / "2.parquet")
        said = rf'2\.parquet: column "v" .* different lengths: 4 and, at row 0 .*, {other}\.'
        with pytest.raises(DataError, match=said):
            gnomon.source(folder, rows=20)
    pq.write_table(pa.table({"a": columns["a"], "v": columns["a"]}), folder / "2.parquet")
    said = r'2\.parquet: column "v" holds numbers .*row 0 .*where vectors of length 4 are expected'
    with pytest.raises(DataError, match=said):
        gnomon.source(folder, rows=20)


def test_vectors_where_none_were_seen_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_blocks, "LOOK", 10)
    V, columns = vectors()
    columns["v"] = pa.array([None] * 30 + V[30:].tolist(), pa.list_(pa.float64()))
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    source = gnomon.source(tmp_path / "a.parquet", keep="v", rows=20)
    with pytest.raises(DataError, match=r'a\.parquet: column "v" holds vectors \(first: row 30 '):
        rows_of(source)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", "g", ">g"])
@pytest.mark.parametrize("named", [False, True])
def test_bytes_in_another_order_and_long_floats_are_read_as_usual(dtype, named):
    import dask.array as da

    X = np.round(100 * numbers(dtype=np.float64))
    names = list("abcd") if named else None
    odd = X.astype(dtype)
    plain = np.dtype(dtype).newbyteorder("=") if dtype[-1] != "g" else np.dtype(np.float64)
    expected = gnomon.PCA(2).fit(gnomon.source(X.astype(plain), names=names))
    for table in (odd, lambda: iter([odd]), da.from_array(odd, chunks=(200, 4))):
        source = gnomon.source(table, names=names)
        assert source.dtype == plain
        assert source.read(source.partitions[0]).dtype == plain
        found = gnomon.PCA(2).fit(source)
        np.testing.assert_array_equal(found.components_, expected.components_)
        np.testing.assert_array_equal(found.explained_variance_, expected.explained_variance_)


def frames(X):
    import pandas as pd
    import polars as pl

    return [
        pd.DataFrame(X, columns=list("abcd")),
        pl.DataFrame(X, schema=list("abcd")),
        pa.table({name: X[:, j] for j, name in enumerate("abcd")}),
    ]


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_names_of_dataframes_are_kept(kind):
    X = numbers(dtype=np.float64)
    frame = frames(X)[kind]
    source = gnomon.source(frame, rows=40)
    assert source.names == tuple("abcd")
    np.testing.assert_array_equal(rows_of(source), X)
    assert list(gnomon.PCA(2).fit(source).feature_names_in_) == list("abcd")
    assert gnomon.source(frame, names=list("wxyz")).names == tuple("wxyz")
    source = gnomon.source(lambda: iter([frame, frame]))
    assert source.names == tuple("abcd")
    np.testing.assert_array_equal(rows_of(source), np.vstack([X, X]))


@pytest.mark.parametrize("kind", [0, 1, 2])
def test_blocks_whose_columns_are_called_otherwise_are_refused(kind):
    frame = frames(numbers(dtype=np.float64))[kind]
    other = frame[list("badc")] if kind < 2 else frame.select(list("badc"))
    said = 'Block 1 has the columns "b", "a", "d", "c", but the first has the columns "a", "b"'
    with pytest.raises(DataError, match=said):
        gnomon.source(lambda: iter([frame, other]))
    with pytest.raises(DataError, match="Block 1 has no column names, but the first has"):
        gnomon.source(lambda: iter([frame, numbers(dtype=np.float64)]))
    with pytest.raises(DataError, match=said):  # whatever they are called here
        gnomon.source(lambda: iter([frame, other]), names=list("wxyz"))


def test_names_that_are_no_texts_are_no_names():
    import pandas as pd

    assert gnomon.source(pd.DataFrame(numbers())).names is None
    mixed = pd.DataFrame(numbers(), columns=["a", 1, "b", 2])
    for table in (mixed, lambda: iter([mixed])):
        with pytest.raises(DataTypeError, match="mixes column names that are text"):
            gnomon.source(table)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("other", ["A", "a ", "q"])
def test_a_part_of_a_folder_that_calls_a_column_otherwise_is_named(tmp_path, ending, other):
    a, b = numbers(columns=2, dtype=np.float64).T
    for name, table in (("1", {"a": a, "b": b}), ("2", {other: a, "b": b})):
        put = pq.write_table if ending == "parquet" else pc.write_csv
        put(pa.table(table), tmp_path / f"{name}.{ending}")
    with pytest.raises(DataError) as error:
        gnomon.source(tmp_path)
    said = (
        f'2.{ending} does not have the same columns as 1.{ending}. It lacks "a" and has "{other}".'
    )
    assert str(error.value).startswith(said)
    assert "model" not in str(error.value)
    assert "option" not in str(error.value)


@pytest.mark.parametrize("text", ["true", "foo", "2020-01-01", "1,5"])
@pytest.mark.parametrize("rows", [slice(20, 40), slice(27, 28)])
def test_late_texts_of_parquet_are_told_with_their_row(tmp_path, monkeypatch, text, rows):
    monkeypatch.setattr(arrow_blocks, "LOOK", 10)
    cells = np.array([str(i / 7) for i in range(60)], dtype=object)
    cells[rows] = text
    table = {"a": numbers(60, 1)[:, 0], "b": pa.array(cells.tolist())}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=20)
    said = rf'a\.parquet: column "b" holds text .*first: row {rows.start} \(rows .*\), "{text}"\)'
    with pytest.raises(DataError, match=said):
        rows_of(gnomon.source(tmp_path / "a.parquet", keep="b", rows=20))
    path = tmp_path / "parts" / "1.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"a": table["a"], "b": numbers(60, 1)[:, 0]}), path)
    pq.write_table(pa.table({"a": table["a"], "b": [text] * 60}), path.with_stem("2"))
    with pytest.raises(DataError, match=r'2\.parquet: column "b" holds text .*first: row 0 '):
        rows_of(gnomon.source(path.parent))


def test_late_numbers_among_truths_of_parquet_are_told_with_their_row(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow_blocks, "LOOK", 10)
    cells = ["True" if i % 2 else "false" for i in range(60)]
    cells[20:40] = ["1"] * 20
    table = {"a": numbers(60, 1)[:, 0], "b": cells}
    pq.write_table(pa.table(table), tmp_path / "a.parquet", row_group_size=20)
    said = r'a\.parquet: column "b" holds not only true and false \(first: row 20 .*, "1"\)'
    with pytest.raises(DataError, match=said):
        rows_of(gnomon.source(tmp_path / "a.parquet", keep="b", rows=20))


def test_what_a_part_of_a_folder_holds_is_told_by_the_first(tmp_path):
    for first, second, said in (
        ("1.5", "N/A", r'2\.csv: column "b" holds text \(first: line 2, "N/A"\)\. Use na="N/A"'),
        ("1.5", "true", r'2\.csv: column "b" holds text \(first: line 2, "true"\)'),
        ("true", "1.5", r'2\.csv: column "b" holds not only true and false \(first: line 2, "1.5"'),
    ):
        for name, cell in (("1", first), ("2", second)):
            rows = [f"{i}.25,{i}.5,{cell}\n" for i in range(9)]
            (tmp_path / f"{name}.csv").write_text("a,c,b\n" + "".join(rows))
        with pytest.raises(DataError, match=said):
            rows_of(gnomon.source(tmp_path, keep="b"))


def test_a_file_with_columns_first_is_read_and_never_mapped(tmp_path, monkeypatch):
    """A file that is truncated while it is mapped ends the process (case 39)."""
    path = tmp_path / "t.npy"
    table = np.asfortranarray(np.random.default_rng(0).standard_normal((1000, 7)))
    np.save(path, table)

    def mapped(*_, **__):
        raise AssertionError("the file was mapped")

    monkeypatch.setattr(np, "memmap", mapped)
    blocks = gnomon.source(path, rows=300)
    assert np.array_equal(np.concatenate([blocks.read(part) for part in blocks.partitions]), table)
    size = path.stat().st_size
    with path.open("rb+") as file:
        file.truncate(size - 5000)
    with pytest.raises(ChangedSourceError, match=r"t\.npy"):
        blocks.read(blocks.partitions[0])
    monkeypatch.setattr(type(blocks), "_refuse_changed", lambda *_: None)
    assert len(blocks.read(blocks.partitions[-1])) == 0  # seen by the engine as rows that are gone
