"""What names and colours the rows of a table in blocks."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gnomon.data import row_names
from gnomon.data.open import open_table
from gnomon.data.row_names import TextColumn
from gnomon.data.write import write_table

rng = np.random.default_rng(0)
TEXTS = ["a", None, "b", "a", "", "ä", "a", "b", None, "a"]


@pytest.mark.parametrize("codes", [False, True])
def test_a_text_column_is_used_as_the_array_that_it_stands_for(codes, tmp_path):
    cells = pa.array(TEXTS, pa.large_string())
    column = TextColumn(cells.dictionary_encode() if codes else cells)
    array = np.array(TEXTS, object)
    assert (len(column), column.shape, column.dtype) == (10, array.shape, array.dtype)
    assert np.asarray(column).tolist() == column.tolist() == TEXTS
    for rows in (np.array([7, 0, 1]), array == "a", slice(2, 5), np.array([], int)):
        assert column[rows].tolist() == array[rows].tolist()
    assert column[5] == "ä"
    write_table(tmp_path / "t.parquet", ["x", "y"], [column, array])
    written = pq.read_table(tmp_path / "t.parquet")
    assert written["x"].equals(written["y"])


def files(folder, ids, **more):
    """A folder of two files with ids, a label, a text and a quantity beside 60 features."""
    folder.mkdir()
    n = len(ids)
    columns = {
        "name": ids,
        "kind": ["xyz"[i % 3] for i in range(n)],
        "year": rng.integers(1990, 2020, n).astype(float) + 0.5,
        **more,
    }
    columns |= {f"v{j}": rng.standard_normal(n) for j in range(60)}
    table = pa.table(columns)
    pq.write_table(table.slice(0, n // 2), folder / "0.parquet")
    pq.write_table(table.slice(n // 2), folder / "1.parquet")
    return folder


def test_blocks_have_the_names_that_the_table_in_memory_has(tmp_path):
    folder = files(tmp_path / "t", [f"r{i}" for i in range(90)], says=["hello"] * 90)
    held, blocks = (
        open_table(folder, text="says", in_blocks=in_blocks) for in_blocks in (False, True)
    )
    assert blocks.in_blocks
    assert blocks.roles == held.roles
    assert (blocks.id_name, blocks.label_name) == (held.id_name, held.label_name)
    assert blocks.ids.tolist() == held.ids.tolist()
    assert blocks.labels.tolist() == held.labels.tolist()
    assert blocks.text[1].tolist() == held.text[1].tolist()
    ((name, years),) = blocks.others
    assert (name, years.tolist()) == ("year", held.others[0][1].tolist())
    assert blocks.labels.nbytes < 90 * 8  # codes, not texts


@pytest.mark.parametrize(("share", "left"), [(1, ""), (60_000, '"says", "year"'), (10**9, "all")])
def test_what_takes_more_than_its_share_is_left_out_and_said(tmp_path, monkeypatch, share, left):
    texts = [f"{i:0200}" for i in range(90)]
    folder = files(tmp_path / "t", [f"r{i}" for i in range(90)], says=texts)
    monkeypatch.setattr(row_names, "SHARE", share)
    table = open_table(folder, text="says", in_blocks=True, memory=300_000_000)
    notes = " ".join(table.notes)
    if left == "all":
        assert table.ids is table.labels is None
        assert "left out of the results: of all rows more than the 0 bytes" in notes
    else:
        assert table.ids[89] == "r89"
        assert (f"{left} left out of the results" in notes) == (left != "")
    assert (table.text is None) == (left != "")


def test_a_guessed_id_that_names_rows_more_than_once_names_none(tmp_path):
    folder = files(tmp_path / "t", [f"r{i % 45}" for i in range(90)])
    table = open_table(folder, in_blocks=True)
    assert table.ids is None
    assert table.roles.id is None
    assert ("name", "names rows more than once") in [
        (left.column, left.why) for left in table.roles.ignored
    ]
    asked = open_table(folder, in_blocks=True, id="name")
    assert asked.ids.tolist() == [f"r{i % 45}" for i in range(90)]
