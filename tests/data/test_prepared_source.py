"""Sources made ready: what is found in blocks is what is found in memory."""

import numpy as np
import pytest

from gnomon import run, source
from gnomon.data.open import table_of_source
from gnomon.data.preparation import prepare
from gnomon.data.table import Table
from gnomon.engine import LocalEngine
from gnomon.engine.cluster import local_cluster
from gnomon.errors import DataError, MissingValueError, TooLargeError

rng = np.random.default_rng(0)
TREND = np.linspace(-1, 1, 3000)[:, None] + rng.standard_normal((3000, 4))  # blocks stand apart


def in_memory(X):
    names = tuple(f"column {j + 1}" for j in range(X.shape[1]))
    return Table("data", X, names, n_columns=X.shape[1])


def in_blocks(X, scale="standard", rows=700):
    return prepare(table_of_source(source(X, rows=rows)), scale=scale)


def ready_rows(prepared):
    return np.concatenate([prepared.X.read(p) for p in prepared.X.partitions])


def in_parts(folder, X, ends):
    """A folder of files whose parts end at these rows."""
    folder.mkdir()
    for i, part in enumerate(np.split(X, ends)):
        np.save(folder / f"{i}.npy", part)
    return source(folder)


@pytest.mark.parametrize("constant", [0.1, -2.7, 98.6, 55338.715633144784, 1e-200, 1e300, 0.0])
def test_a_constant_column_has_no_spread_although_block_means_are_rounded(tmp_path, constant):
    X = TREND[:, :3].copy()
    X[:, 1] = constant
    parts = in_parts(tmp_path / "parts", X, [999, 1702])
    found = prepare(table_of_source(parts, "data")).preparation
    assert found.to_dict() == prepare(in_memory(X)).preparation.to_dict()
    assert found.scale == "none"
    assert found.std[1] == 1
    standardised = prepare(table_of_source(parts), scale="standard")
    assert not ready_rows(standardised)[:, 1].any()


def test_blocks_warn_of_a_constant_column_as_memory_does():
    X = TREND * [1, 100, 1, 1]
    X[:, 2] = 0.1
    for scale in ("auto", "standard"):
        wanted = run(in_memory(X), scale=scale, dimensions=None).warnings
        assert run(source(X, rows=999), scale=scale, dimensions=None).warnings == wanted


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-160, 1.0, 1e160, 1e200, 1e300])
def test_numbers_of_any_size_are_scaled_as_in_memory(unit):
    X = TREND * [1, 1, 100, 1] * unit
    made, wanted = in_blocks(X), prepare(in_memory(X), scale="standard")
    assert made.preparation.to_dict() == wanted.preparation.to_dict()
    # Sums of 3,000 numbers in another order.
    np.testing.assert_allclose(made.preparation.std, wanted.preparation.std, rtol=1e-13)
    np.testing.assert_allclose(ready_rows(made), wanted.X, rtol=1e-12, atol=1e-12)


def test_every_column_and_every_block_may_have_a_size_of_its_own():
    X = TREND * [1e-200, 1, 1e200, 1]
    X[1400:2100, 3] *= 1e-200  # one block of tiny numbers
    X[:700, 0] = 0  # and one of none
    found = in_blocks(X).preparation
    wanted = prepare(in_memory(X), scale="standard").preparation
    np.testing.assert_allclose(found.std, wanted.std, rtol=1e-13)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-12)


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e12, -1e12])
def test_far_from_zero_the_spread_is_not_lost_between_blocks(offset):
    X = TREND * [1, 100, 1, 1] + offset
    exact = (X - offset).std(axis=0, ddof=1)  # the difference is exact
    # A mean is rounded to eps · offset; its square is all that is lost, 1e-13 of the variance.
    np.testing.assert_allclose(in_blocks(X).preparation.std, exact, rtol=1e-12)
    np.testing.assert_allclose(in_blocks(X, rows=47).preparation.std, exact, rtol=1e-12)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.uint8, bool])
def test_scaled_numbers_have_the_type_they_have_in_memory(kind):
    X = (TREND > 0 if kind is bool else np.abs(TREND) * 9).astype(kind)
    made, wanted = in_blocks(X), prepare(in_memory(X), scale="standard").X
    rows = ready_rows(made)
    assert made.X.dtype == rows.dtype == wanted.dtype
    np.testing.assert_allclose(rows, wanted, rtol=1e-6 if kind is np.float32 else 1e-12, atol=1e-12)


@pytest.mark.usefixtures("quick_workers")
def test_threads_and_workers_do_not_change_the_bits(tmp_path):
    X = TREND * [1, 100, 1e-200, 1] + [1e6, 1e9, 0, 0]
    np.save(tmp_path / "x.npy", X)
    with local_cluster(2) as cluster:
        engines = LocalEngine(n_jobs=1), LocalEngine(n_jobs=4), cluster
        one, *others = (
            prepare(
                table_of_source(source(tmp_path / "x.npy", rows=47)),
                scale="standard",
                engine=engine,
            ).preparation
            for engine in engines
        )
    for other in others:
        assert one.std.tobytes() == other.std.tobytes()
        assert one.mean.tobytes() == other.mean.tobytes()


@pytest.mark.parametrize(("bad", "error"), [(np.nan, MissingValueError), (np.inf, DataError)])
@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e300])
def test_what_is_not_a_number_is_refused_with_its_place(bad, error, unit):
    X = TREND * unit
    X[2345, 2] = bad
    with pytest.raises(error, match="row 2345"):
        in_blocks(X)


def test_a_block_of_gaps_alone_is_refused_too():
    X = TREND.copy()
    X[:700] = np.nan
    with pytest.raises(MissingValueError, match="row 0"):
        in_blocks(X)


@pytest.mark.parametrize("missing", ["drop", "mean", "em"])
def test_gaps_in_blocks_are_treated_as_in_memory(missing):
    X = TREND * [1, 30, 1, 1]
    X[rng.integers(3000, size=40), 2] = np.nan
    X[700:1400, 0] = np.nan  # a block without a single whole row
    made = prepare(table_of_source(source(X, rows=700)), missing=missing)
    wanted = prepare(in_memory(X), missing=missing)
    assert made.preparation.to_dict() == wanted.preparation.to_dict()
    assert made.X.shape == wanted.X.shape
    # Sums of 3,000 numbers in another order.
    np.testing.assert_allclose(ready_rows(made), wanted.X, rtol=1e-9, atol=1e-9)
    if missing == "drop":
        assert np.array_equal(made.kept, wanted.kept)
        assert [part.index for part in made.X.partitions] == [0, 2, 3, 4]
        new = made.preparation.apply(table_of_source(source(X, rows=999)))
        np.testing.assert_allclose(ready_rows(new), wanted.X, rtol=1e-12, atol=1e-12)


def test_rows_that_all_have_gaps_are_refused_instead_of_dropped():
    X = TREND.copy()
    X[:, 1][::2] = np.nan
    X[:, 2][1::2] = np.nan
    with pytest.raises(MissingValueError, match="Every row has one"):
        prepare(table_of_source(source(X, rows=700)), missing="drop")
    learned = prepare(in_memory(TREND), missing="drop").preparation
    with pytest.raises(MissingValueError, match="Every row has one"):
        learned.apply(table_of_source(source(X, rows=700)))


def test_em_is_refused_with_numbers_where_the_table_cannot_be_held():
    X = TREND.copy()
    X[5, 1] = np.nan
    with pytest.raises(TooLargeError, match=r"gaps of 3,000 × 4 numbers by em needs about 480 kB"):
        prepare(table_of_source(source(X, rows=700)), missing="em", memory=400_000)
