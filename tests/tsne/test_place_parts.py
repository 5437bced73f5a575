"""New rows that are read in blocks, on a map that stays as it is."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from gnomon import TSNE, source
from gnomon.engine import LocalEngine
from gnomon.errors import DataTypeError, MissingValueError
from gnomon.tsne import place_parts as blocks


def rows_of_three(n, seed, columns=5):
    rng = np.random.default_rng(seed)
    return 6 * rng.integers(3, size=(n, 1)) + rng.standard_normal((n, columns))


@pytest.fixture(scope="module")
def three():
    """A map of 300 rows of three kinds."""
    return TSNE(random_state=0, max_iter=250).fit(rows_of_three(300, 0))


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_in_blocks_get_the_places_of_all_at_once(three, threads, monkeypatch):
    monkeypatch.setattr(blocks, "PIECE_ROWS", 7)
    new = rows_of_three(100, 1)
    new[17] += 500
    whole = three.place(new)
    found = three.place(source(new, rows=30), engine=LocalEngine(threads))
    for name in ("positions", "distance_ratio", "residual", "reason", "neighbors"):
        there, here = getattr(whole, name), getattr(found, name)
        assert here.dtype == there.dtype
        assert np.array_equal(here, there), name
    assert found.distance_limit == whole.distance_limit
    assert found.residual_limit == whole.residual_limit
    assert found.unusual[17]
    assert np.array_equal(three.transform(source(new, rows=30)), whole.positions)
    assert np.array_equal(three.transform(new, engine=LocalEngine(1)), whole.positions)


def test_a_source_of_no_rows_has_no_places(three):
    found = three.place(source(np.empty((0, 5))))
    assert found.positions.shape == (0, 2)
    assert found.neighbors.shape == (0, 15)


def test_what_is_wrong_in_blocks_is_named_by_its_row(three):
    new = rows_of_three(100, 1)
    new[63, 2] = np.nan
    with pytest.raises(MissingValueError, match="row 63, column 2"):
        three.place(source(new, rows=30))
    with pytest.raises(ValueError, match="4 features"):
        three.place(source(new[:, :4], rows=30))


def test_names_of_columns_are_compared_once_and_blocks_have_none(tmp_path):
    X = rows_of_three(120, 0, columns=3)
    named = TSNE(random_state=0, max_iter=250).fit(pa.table(list(X.T), ["a", "b", "c"]))
    new = rows_of_three(40, 1, columns=3)
    pq.write_table(pa.table(list(new.T), ["a", "b", "c"]), tmp_path / "new.parquet")
    found = named.transform(source(tmp_path / "new.parquet", rows=9))
    assert np.array_equal(found, named.transform(pa.table(list(new.T), ["a", "b", "c"])))
    pq.write_table(pa.table(list(new.T), ["a", "b", "z"]), tmp_path / "other.parquet")
    with pytest.raises(ValueError, match="feature names"):
        named.transform(source(tmp_path / "other.parquet"))


def test_a_map_itself_is_not_made_of_blocks():
    with pytest.raises(DataTypeError, match=r"Use gnomon\.run"):
        TSNE().fit(source(rows_of_three(50, 0)))


def test_sparse_rows_are_placed_by_an_engine(three):
    new = rows_of_three(20, 1)
    found = three.place(sp.csr_array(new), engine=LocalEngine(2))
    assert np.array_equal(found.positions, three.place(sp.csr_array(new)).positions)
