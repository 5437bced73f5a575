"""Parquet and Feather: hard case 24."""

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest
from hostile_files import Reader

from gnomon import source
from gnomon.data.read import read
from gnomon.errors import DataError, TooLargeError

X = np.random.default_rng(0).standard_normal((30, 4))


@pytest.fixture(params=["parquet", "feather"])
def save(request, tmp_path):
    def save(columns, **options):
        path = tmp_path / f"t.{request.param}"
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        write = pq.write_table if request.param == "parquet" else pf.write_feather
        write(table, path, **options)
        return path

    return save


def refused(path, **options):
    with pytest.raises(DataError) as info:
        read(path, **options)
    return str(info.value)


def test_every_kind_of_column_has_its_role(save):
    kinds = ["a", "b", "c"] * 10
    path = save(
        {
            "x": X[:, 0],
            "half": pa.array(X[:, 1].astype(np.float16)),
            "n": pa.array([None, *range(29)], pa.int32()),
            "price": pa.array([decimal.Decimal(f"{i}.25") for i in range(30)], pa.decimal128(9, 2)),
            "kind": pa.array(kinds).dictionary_encode(),
            "day": pa.array(range(30), pa.date32()),
            "span": pa.array(range(30), pa.duration("s")),
            "blob": pa.array([b"x"] * 30),
            "nested": pa.array([{"a": 1}] * 30),
            "words": pa.array([["a"]] * 30),
            "void": pa.nulls(30),
            "gone": pa.array([None] * 30, pa.float64()),
            "nan": np.full(30, np.nan),
            "code": pa.array(["1", "2", "3"] * 10).dictionary_encode(),
            "size": pa.array([1.5, 2.5, 3.5] * 10).dictionary_encode(),
        }
    )
    table = read(path)
    assert table.columns == ("x", "half", "n", "price", "size")
    assert table.label_name == "kind"
    assert list(table.labels) == kinds
    assert {left.column: left.why for left in table.roles.ignored} == {
        "day": "dates, different in every row",
        "span": "dates",
        "blob": "binary",
        "nested": "struct",
        "words": "list",
        "void": "no values",
        "gone": "no values",
        "nan": "no values",
    }
    assert {left.column: left.why for left in table.roles.kept_for_colour} == {"code": "categories"}
    assert table.X.dtype == np.float64
    np.testing.assert_array_equal(table.X[:, 3], np.arange(30) + 0.25)
    assert np.isnan(table.X[0, 2])
    assert table.X[5, 2] == 4
    assert refused(path, keep="nested") == (
        f'{path.name}: column "nested" holds struct, not numbers. Leave it out of the option '
        "`keep`."
    )


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["f4", "f4"], "f4"),
        (["i4", "i4"], "u1"),
        (["u1", "f4"], "f4"),
        (["i8", "f4"], "f8"),
        (["f2", "f2"], "f2"),
        (["u1", "i2"], "u1"),
    ],
)
def test_numbers_keep_the_smallest_type_that_holds_them(save, kinds, expected):
    whole = (X * 10).astype(int) % 100
    table = read(save({f"c{i}": whole[:, i].astype(kind) for i, kind in enumerate(kinds)}))
    assert table.X.dtype == np.dtype(expected)
    np.testing.assert_array_equal(table.X, whole[:, : len(kinds)])
    assert not table.X.flags.writeable


@pytest.mark.parametrize(
    ("extreme", "expected"),
    [(255, "u1"), (256, "i2"), (-1, "i2"), (-32769, "i4"), (2**31, "i8"), (-(2**40), "i8")],
)
def test_whole_numbers_take_no_more_room_than_they_need(save, extreme, expected):
    whole = np.arange(60).reshape(30, 2)
    whole[7, 1] = extreme
    table = read(save({"a": whole[:, 0], "b": whole[:, 1]}))
    assert table.X.dtype == np.dtype(expected)
    np.testing.assert_array_equal(table.X, whole)


def test_large_integers_are_exact(save):
    large = np.array([2**60 + 1, 2**60 + 3, 2**60], np.int64)
    table = read(save({"a": large, "b": large}))
    assert table.X[:, 0].tolist() == large.tolist()


def test_gaps_in_integers_are_nan(save):
    table = read(
        save({"a": pa.array([1, None, 300], pa.int16()), "b": pa.array([1, 2, 3], pa.int8())})
    )
    np.testing.assert_array_equal(table.X, [[1, 1], [np.nan, 2], [300, 3]])


@pytest.mark.parametrize("fixed", [True, False])
def test_lists_of_numbers_are_vectors(save, fixed):
    kind = pa.list_(pa.float32(), 4) if fixed else pa.list_(pa.float32())
    rows = X.astype(np.float32)
    lists = [list(map(float, row)) for row in rows]
    path = save({"id": [f"r{i}" for i in range(30)], "emb": pa.array(lists, kind)})
    table = read(path)
    assert table.columns == ("emb[0]", "emb[1]", "emb[2]", "emb[3]")
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, rows)
    assert table.n_columns == 2
    again = read(path, columns=table.columns)
    assert again.columns == table.columns
    turned = read(path, columns=["emb[3]", "emb[0]"])
    np.testing.assert_array_equal(turned.X, rows[:, [3, 0]])
    assert refused(path, columns=["emb[0]", "emb[7]"]).startswith(
        f'{path.name} lacks 1 of the 2 columns of the model: "emb[7]".'
    )


def test_a_missing_vector_is_a_row_of_nan_and_a_missing_entry_a_nan(save):
    lists = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float64()))
    table = read(save({"e": lists, "n": [1, 2, 3]}))
    np.testing.assert_array_equal(table.X, [[1, 2, 1], [np.nan, np.nan, 2], [3, np.nan, 3]])


def test_vectors_in_many_pieces_are_joined(save):
    lists = pa.chunked_array([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]])
    np.testing.assert_array_equal(read(save(pa.table({"e": lists}))).X, [[1, 2], [3, 4], [5, 6]])


def test_vectors_of_different_lengths_are_refused_with_their_row(save):
    path = save({"e": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0]]), "x": [1.0, 2.0, 3.0]})
    assert refused(path) == (
        f'{path.name}: column "e" holds vectors of different lengths: 2 and, at row 2 (rows count '
        'from 0), 1. Use drop="e".'
    )
    assert read(path, drop="e").columns == ("x",)
    empty = save({"e": pa.array([[], []], pa.list_(pa.float64()))})
    assert refused(empty) == f'{empty.name}: column "e" holds vectors of length 0. Use drop="e".'


def test_text_among_numbers_has_its_row(save):
    path = save({"p": ["1", "2", "n/a", "4.5"], "x": [1.0, 2.0, 3.0, 4.0]})
    assert refused(path) == (
        f'{path.name}: column "p" holds text in 1 row (first: row 2 (rows count from 0), "n/a"). '
        'Use na="n/a", or drop="p".'
    )
    np.testing.assert_array_equal(read(path, na="n/a").X[:, 0], [1, 2, np.nan, 4.5])


def test_a_code_for_missing_works_on_typed_columns(save):
    path = save({"a": [1, -999, 3], "b": [0.5, 1.5, -999.0]})
    np.testing.assert_array_equal(read(path, na="-999").X, [[1, 0.5], [np.nan, 1.5], [3, np.nan]])


def test_truth_is_zero_and_one_where_it_is_the_rule(save):
    table = read(save({"a": [True, False, None], "b": [False, True, True]}))
    np.testing.assert_array_equal(table.X, [[1, 0], [0, 1], [np.nan, 1]])


def test_an_index_of_pandas_names_the_rows(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"x": [1.5, 2.5]}, index=["r1", "r2"])
    frame.to_parquet(tmp_path / "t.parquet")
    table = read(tmp_path / "t.parquet")
    assert list(table.ids) == ["r1", "r2"]
    assert table.columns == ("x",)


def test_nothing_in_it_is_refused(save):
    assert "has columns but no rows." in refused(save({"a": pa.array([], pa.float64())}))


def test_a_damaged_file_is_refused_by_name(save):
    path = save({f"c{i}": X[:, i] for i in range(4)})
    content = path.read_bytes()
    kind = "Parquet" if path.suffix == ".parquet" else "Feather"
    for cut in (10, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:cut])
        assert refused(path).startswith(f"{path.name} is a damaged {kind} file (")


def test_a_file_that_unpacks_to_more_than_the_memory_is_refused_first(tmp_path):
    path = tmp_path / "zeros.parquet"
    pq.write_table(pa.table({"a": np.zeros(1_000_000)}), path)
    assert path.stat().st_size < 20_000
    with pytest.raises(TooLargeError, match=r"zeros\.parquet: its table needs about 16\.0 MB"):
        read(path, memory=1_000_000)


@pytest.mark.parametrize("kind", ["large_string", "string_view", "string"])
def test_every_kind_of_text_is_text(tmp_path, kind):
    words = pa.array(["u", "v", "u", "v"]).cast(getattr(pa, kind)())
    pf.write_feather(
        pa.table({"w": words, "x": [1.0, 2.5, 3.0, 4.0]}),
        tmp_path / "t.feather",
        compression="uncompressed",
    )
    assert list(read(tmp_path / "t.feather").labels) == ["u", "v", "u", "v"]


def with_wrong_number(content, right, wrong, at):
    """The file with one of a column's whole numbers changed: the `at`-th of `right`."""
    octets = right.tobytes()
    assert content.count(octets) == 1
    changed = right.copy()
    changed[at] = wrong
    return content.replace(octets, changed.tobytes())


WORDS = [f"{'word ' * (i % 5)}{i}" for i in range(30)]
ENDS = np.cumsum([0, *map(len, WORDS)])
THREES = np.arange(0, 91, 3, dtype=np.int32)
WRONG_OFFSETS = {
    "text": (pa.array(WORDS), ENDS.astype(np.int32), 2**30),
    "text backwards": (pa.array(WORDS), ENDS.astype(np.int32), -(2**30)),
    "text, the last": (pa.array(WORDS), ENDS.astype(np.int32), 10**6, 30),
    "long text": (pa.array(WORDS, pa.large_string()), ENDS.astype(np.int64), 2**40),
    "bytes": (pa.array([word.encode() for word in WORDS]), ENDS.astype(np.int32), 2**30),
    "vectors": (pa.array([[1.5, 2.5, 3.5]] * 30), THREES, 2**30),
    "categories": (
        pa.DictionaryArray.from_arrays(pa.array(np.arange(30) % 7, pa.int32()), list("abcdefg")),
        (np.arange(30) % 7).astype(np.int32),
        2**30,
    ),
}


@pytest.fixture(scope="module")
def reader():
    with Reader() as child:
        yield child


@pytest.mark.parametrize("kind", WRONG_OFFSETS)
def test_a_wrong_offset_is_refused_and_ends_no_process(tmp_path, reader, kind):
    """Case 31. In a child, which would be gone if a reader followed the offset."""
    column, right, wrong, *at = WRONG_OFFSETS[kind]
    path = tmp_path / "t.feather"
    pf.write_feather(pa.table({"x": X[:, 0], "y": X[:, 1], "c": column}), path, "uncompressed")
    path.write_bytes(with_wrong_number(path.read_bytes(), right, wrong, *at or [11]))
    for work in ("input", "blocks"):
        answer, text = reader.ask(work, path)
        assert answer == "refused", (work, answer, text)
        assert text.startswith('t.feather is a damaged file (column "c": ')


def test_text_that_is_not_utf8_is_refused_with_its_column(save):
    broken = pa.StringArray.from_buffers(
        3, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffc")
    )
    path = save({"x": [1.0, 2.0, 3.0], "name": broken})
    assert 'damaged file (column "name": ' in refused(path)


def test_a_feather_file_of_the_first_version_is_refused(tmp_path):
    """Its reader in pyarrow believes the file, and a damaged one ends the process."""
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(200) + b"FEA1")
    for work in (read, source):
        with pytest.raises(DataError, match=r"t\.feather is Feather version 1, .* version 2"):
            work(tmp_path / "t.feather")


def test_runs_of_equal_values_are_read(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 30], pa.int32()), pa.array([1.5, 2.5]))
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file:
        table = pa.table({"x": X[:, 0], "runs": runs})
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert read(tmp_path / "t.arrow").X[:, 1].tolist() == [1.5] * 2 + [2.5] * 28
    assert source(tmp_path / "t.arrow").columns == 2
