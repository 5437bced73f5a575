"""Procrustes and comparisons of two tables that are not in memory."""

import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from gnomon import Procrustes, compare, permutation_test
from gnomon.engine import LocalEngine
from gnomon.engine.arrays import ArraySource
from gnomon.errors import DataError, ExistingFileError, MissingValueError, ParameterError
from gnomon.procrustes import similarity


def pair(n=700, dx=4, dy=4, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, dx)) * np.arange(1, dx + 1) + 50
    turn = np.linalg.qr(rng.standard_normal((max(dx, dy), max(dx, dy))))[0][:dx, :dy]
    return X, 2 * X @ turn + noise * rng.standard_normal((n, dy)) - 7


class Elsewhere(ArraySource):
    """A table that is read in blocks and never as a whole, as files are."""

    def array(self):
        return None


def sources(X, Y, mine=64, theirs=45):
    return Elsewhere(X, rows=mine), Elsewhere(Y, rows=theirs)


FITTED = (
    "rotation_",
    "scale_",
    "translation_",
    "disparity_",
    "rmsd_",
    "residual_sum_",
    "angle_",
    "singular_values_",
)


@pytest.mark.parametrize("widths", [(2, 2), (4, 3), (20, 20)])
@pytest.mark.parametrize("scaling", [False, True, "norm-ratio"])
def test_blocks_give_the_map_of_the_whole_tables(widths, scaling):
    X, Y = pair(dx=widths[0], dy=widths[1])
    whole = Procrustes(scaling=scaling).fit(X, Y)
    parts = Procrustes(scaling=scaling).fit(*sources(X, Y))
    for name in FITTED:
        ours, theirs = getattr(parts, name), getattr(whole, name)
        if theirs is not None:
            # Sums in another grouping: a few units of the last place of numbers about 50.
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=name)
    assert parts.n_samples_ == 700
    np.testing.assert_allclose(parts.transform(X[:5]), whole.transform(X[:5]), rtol=1e-9)
    for found in (parts.residuals_, parts.residuals(*sources(X, Y))):
        np.testing.assert_allclose(found, whole.residuals_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("robust", [False, "huber", "tukey"])
@pytest.mark.parametrize("d", [2, 12])
def test_weights_and_robust_fits_are_those_of_the_whole_tables(robust, d):
    X, Y = pair(dx=d, dy=d)
    Y[:60] += 40  # they moved on their own
    weights = np.arange(700) % 3
    whole = Procrustes(scaling=True, robust=robust).fit(X, Y, weights)
    parts = Procrustes(scaling=True, robust=robust).fit(*sources(X, Y), weights)
    for name in ("rotation_", "scale_", "translation_", "disparity_", "residuals_"):
        ours, theirs = getattr(parts, name), getattr(whole, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8, err_msg=name)
    if robust:
        np.testing.assert_allclose(parts.weights_, whole.weights_, atol=1e-7)
        assert parts.weights_[:60].max() < 0.1 < np.median(parts.weights_[60:])
    else:
        assert parts.weights_ is None


def test_rows_left_out_one_by_one_are_those_of_the_whole_tables():
    X, Y = pair(n=150)
    weights = 1.0 + np.arange(150) % 2
    whole, parts = (Procrustes().loo_residuals(*both, weights) for both in ((X, Y), sources(X, Y)))
    np.testing.assert_allclose(parts, whole, rtol=1e-8)


def test_residuals_that_would_fill_the_memory_are_summed_and_not_kept(monkeypatch):
    X, Y = pair(noise=1e-4)
    kept = Procrustes().fit(X, Y, np.arange(700) % 3)
    monkeypatch.setattr(similarity, "HARMLESS", 1000)
    monkeypatch.setattr(similarity, "available_bytes", lambda: 1000)
    model = Procrustes().fit(X, Y, np.arange(700) % 3)
    assert (model.disparity_, model.rmsd_) == (kept.disparity_, kept.rmsd_)  # the same bits
    with pytest.raises(AttributeError, match=r"take too much memory.*`residuals\(X, Y\)`"):
        _ = model.residuals_


def test_rows_are_moved_there_and_back_block_by_block(tmp_path):
    X, Y = pair(dx=4, dy=3)
    model = Procrustes(scaling=True).fit(X, Y)
    there = model.transform(X)
    left, right = sources(X, there)
    assert model.transform(left).tobytes() == there.tobytes()
    back = model.inverse_transform(there)
    assert model.inverse_transform(right).tobytes() == back.tobytes()
    seen = []
    file = tmp_path / "moved.npy"
    assert model.transform(left, to=file, on=lambda event: seen.append(event.done)) == file
    assert np.load(file).tobytes() == there.tobytes()
    assert seen[-1] == 700
    model.set_output(transform="pandas")
    with pytest.raises(ExistingFileError, match="exists"):
        model.transform(X, to=file)
    assert model.transform(X, to=file, force=True) == file
    file = model.inverse_transform(right, to=tmp_path / "back.parquet", engine=LocalEngine(1))
    assert pq.read_table(file).column_names == ["x0", "x1", "x2", "x3"]
    there[70, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"^X holds 1 missing .* row 70, column 1"):
        model.inverse_transform(sources(X, there)[1])
    X[70, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"^X holds 1 missing .* row 70, column 1"):
        model.transform(sources(X, Y)[0])
    with pytest.raises(MissingValueError, match=r"^X holds 1 missing .* row 70, column 1"):
        model.residuals(*sources(X, Y))


def test_bits_do_not_depend_on_the_threads():
    X, Y = pair()
    models = [Procrustes().fit(*sources(X, Y), engine=LocalEngine(n)) for n in (1, 2, 4)]
    assert len({model.rotation_.tobytes() + model.translation_.tobytes() for model in models}) == 1


def test_a_nearly_perfect_fit_is_measured_row_by_row():
    # From the moments alone the disparity would be lost in rounding, about 1e-16.
    X, Y = pair(noise=1e-11)
    whole, parts = Procrustes(scaling=True).fit(X, Y), Procrustes(scaling=True).fit(*sources(X, Y))
    assert 0 < parts.disparity_ < 1e-22
    assert parts.rmsd_ == pytest.approx(whole.rmsd_, rel=0.02)
    assert compare(*sources(X, Y)).rmsd == pytest.approx(compare(X, Y).rmsd, rel=1e-6)


def test_float32_blocks_find_directions_that_float32_products_hide():
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((500, 12)) * np.logspace(0, -5, 12)).astype(np.float32)
    parts = Procrustes().fit(*sources(X, X[:, ::-1]))
    assert parts.rank_ == 12


def test_rows_are_joined_by_sorted_ids():
    X, Y = pair(n=300)
    ids = np.arange(300) * 3
    left = ArraySource(np.column_stack([ids, X])[::2], rows=20, names=["id", *"abcd"])
    right = ArraySource(np.column_stack([Y, ids])[::3], rows=17, names=[*"pqrs", "id"])
    model = Procrustes().fit(left, right, id="id")
    expected = Procrustes().fit(X[::6], Y[::6])
    np.testing.assert_allclose(model.rotation_, expected.rotation_, atol=1e-9)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_samples_ == 50
    assert compare(left, right, id="id").n == 50


def test_every_number_of_a_comparison_is_that_of_the_whole_tables():
    X, Y = pair(dx=5, dy=3, noise=3.0)
    whole, parts = compare(X, Y, n_neighbors=7), compare(*sources(X, Y), n_neighbors=7)
    for name, value in whole.to_dict().items():
        if name != "metric":
            assert getattr(parts, name) == pytest.approx(value, rel=1e-9), name
    assert parts.overlap_rows == 700
    assert "drawn" not in str(parts)


def test_neighbours_are_those_of_a_sample_where_there_are_many_rows(monkeypatch):
    monkeypatch.setattr(sys.modules["gnomon.procrustes.compare"], "SAMPLE_ROWS", 200)
    X, Y = pair(noise=3.0)
    found = compare(*sources(X, Y))
    assert found.overlap_rows == 200
    assert "among 200 rows drawn at random" in str(found)
    rows = np.sort(np.random.default_rng(0).choice(700, 200, replace=False))
    assert found.neighbor_overlap == compare(X[rows], Y[rows]).neighbor_overlap
    assert found.rv == pytest.approx(compare(X, Y).rv, rel=1e-9)


def test_what_does_not_fit_is_refused():
    X, Y = pair(n=40)
    left, right = sources(X, Y)
    with pytest.raises(ParameterError, match="`sample_weight` must be 40 finite"):
        Procrustes().fit(left, right, np.ones(41))
    with pytest.raises(ParameterError, match="`Y` must have 4 columns"):
        Procrustes().fit(left, right).residuals(left, ArraySource(Y[:, :3]))
    with pytest.raises(DataError, match="1 shared row is too few"):
        compare(*sources(X[:1], Y[:1]))
    with pytest.raises(DataError, match="X has norm 0"):
        compare(*sources(X * 0, Y))


@pytest.mark.parametrize("side", [0, 1])
def test_a_gap_is_named_with_its_file_and_row(side):
    tables = pair(n=100)
    tables[side][70, 1] = tables[side][99, 0] = np.nan
    name = "XY"[side]
    says = rf"^{name} holds 2 missing values .*in the array at row 70, column 1 \(rows count"
    for work in asked(*sources(*tables)):
        with pytest.raises(MissingValueError, match=says):
            work()
    tables[side][50, 2] = np.inf
    with pytest.raises(DataError, match=rf"^{name} holds 1 infinite .* at row 50, column 2 "):
        Procrustes().fit(*sources(*tables))


@pytest.mark.parametrize("side", [0, 1])
def test_a_gap_among_joined_rows_is_named_by_its_own_row(side):
    X, Y = pair(n=300)
    (X, Y)[side][[0, 240], 1] = np.nan  # row 0 has no partner in the other table
    own, other = np.arange(0, 300, 2), np.arange(3, 300, 3)
    ids_x, ids_y = (own, other) if side == 0 else (other, own)
    left = ArraySource(np.column_stack([ids_x, X[ids_x]]), 20, ["id", "a", "X", "c", "d"])
    right = ArraySource(np.column_stack([Y[ids_y], ids_y]), 17, ["p", "X", "r", "s", "id"])
    says = rf"^{'XY'[side]} holds 1 missing value .*in the array at row 120, column 'X' "
    for work in asked(left, right, id="id"):
        with pytest.raises(MissingValueError, match=says):
            work()


def test_sources_without_rows_are_refused():
    X, _ = pair(n=40)
    none = ArraySource(X[:0], names=["id", *"abc"])
    for left, right, id in ((none, none, None), (none, none, "id")):
        for work in asked(left, right, id=id):
            with pytest.raises(DataError, match=r"^X has 0 rows; at least 1 is needed"):
                work()
    with pytest.raises(DataError, match=r"^Y has 0 rows; at least 1 is needed"):
        Procrustes().fit(ArraySource(X, names=["id", *"abc"]), none, id="id")


def test_the_permutation_test_of_sources_is_that_of_a_sample(monkeypatch):
    X, Y = pair(n=300)
    whole, parts = permutation_test(X, Y, 19), permutation_test(*sources(X, Y), 19)
    assert (parts.rows, parts.p_value) == (300, 0.05)
    np.testing.assert_allclose(parts.null, whole.null, atol=1e-9)  # all rows, in their order
    monkeypatch.setattr(sys.modules["gnomon.procrustes.permute"], "SAMPLE_ROWS", 50)
    some = permutation_test(*sources(X, Y), 19)
    assert some.rows == 50
    assert some.correlation != whole.correlation
    assert some.correlation == pytest.approx(whole.correlation, abs=0.05)


def asked(X, Y, **how):
    """All that take two tables, as functions that are yet to be called."""
    return [
        lambda: Procrustes().fit(X, Y, **how).disparity_,
        lambda: compare(X, Y, **how).disparity,
        lambda: permutation_test(X, Y, 9, **how).p_value,
    ]


@pytest.mark.parametrize("frame", [np.asarray, pd.DataFrame])
def test_tables_in_memory_take_an_engine_and_have_no_ids_without_names(frame):
    X, Y = map(frame, pair(n=30))
    for ours, theirs in zip(asked(X, Y, engine=LocalEngine(1)), asked(X, Y), strict=True):
        assert ours() == theirs()
    for work in asked(X, Y, id="cell"):
        with pytest.raises(DataError, match=r"^X has no numeric column 'cell' to join by"):
            work()


def test_dataframes_are_joined_by_a_column():
    X, Y = pair(n=300)
    ids = 3 * np.arange(300)
    left = pd.DataFrame(X, columns=list("abcd")).assign(id=ids)[::2]
    right = pd.DataFrame(Y, columns=list("pqrs")).assign(id=ids)[::3]
    model = Procrustes().fit(left, right, id="id")
    expected = Procrustes().fit(X[::6], Y[::6])
    np.testing.assert_allclose(model.rotation_, expected.rotation_, atol=1e-12)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(model.residuals_, expected.residuals_, rtol=1e-9)
    np.testing.assert_allclose(model.residuals(left, right, id="id"), model.residuals_, rtol=1e-12)
    with pytest.raises(ParameterError, match="`sample_weight` must be None if rows are joined"):
        Procrustes().fit(left, right, np.ones(150), id="id")


def test_a_table_in_memory_has_partners_in_one_that_is_not():
    X, Y = pair(n=120)
    expected = Procrustes().fit(X, Y)
    for both in ((X, sources(X, Y)[1]), (sources(X, Y)[0], Y)):
        model = Procrustes().fit(*both)
        np.testing.assert_allclose(model.rotation_, expected.rotation_, atol=1e-12)
        np.testing.assert_allclose(model.residuals(*both), expected.residuals_, rtol=1e-9)
    assert compare(X, sources(X, Y)[1]).rv == pytest.approx(compare(X, Y).rv, rel=1e-9)


class Counting(LocalEngine):
    passes = 0

    def map(self, *args, **how):
        self.passes += 1
        return super().map(*args, **how)


def test_dask_arrays_are_sources_by_themselves():
    da = pytest.importorskip("dask.array")
    X, Y = pair(n=120)
    lazy = da.from_array(X, chunks=(50, 4)), da.from_array(Y, chunks=(40, 2))
    engine = Counting(2)
    for at, (ours, theirs) in enumerate(
        zip(asked(*lazy, engine=engine), asked(X, Y), strict=True), 1
    ):
        assert ours() == pytest.approx(theirs(), rel=1e-9)
        assert engine.passes >= at
    assert Procrustes().fit(*lazy).n_features_in_ == 4
    mixed, whole = Procrustes().fit(lazy[0], Y), Procrustes().fit(X, Y)
    assert mixed.disparity_ == pytest.approx(whole.disparity_)


def test_cosine_of_blocks_is_that_of_the_whole_tables():
    X, Y = pair(n=300, dx=5, dy=7, noise=20)
    whole, parts = compare(X, Y, metric="cosine"), compare(*sources(X, Y), metric="cosine")
    for name, value in whole.to_dict().items():
        if name != "metric":
            assert getattr(parts, name) == pytest.approx(value, rel=1e-9), name
    assert parts.metric == "cosine"
    assert parts.disparity != compare(*sources(X, Y)).disparity
    tests = (permutation_test(A, B, 9, metric="cosine") for A, B in ((X, Y), sources(X, Y)))
    first, second = tests
    assert first.null == pytest.approx(second.null, rel=1e-9)


def test_cosine_of_blocks_leaves_the_ids_alone_and_names_the_row_without_a_direction():
    X, Y = pair(n=300, dx=5, dy=7, noise=20)
    ids = np.arange(300.0)[:, None]

    def named(Z, rows):
        return Elsewhere(Z, rows=rows, names=("id", *(f"v{j}" for j in range(Z.shape[1] - 1))))

    left, right = named(np.hstack([ids, X]), 64), named(np.hstack([ids, Y])[5:], 45)
    found = compare(left, right, id="id", metric="cosine")
    expected = compare(X[5:], Y[5:], metric="cosine")
    assert found.disparity == pytest.approx(expected.disparity, rel=1e-9)
    assert found.neighbor_overlap == expected.neighbor_overlap
    X[200] = 0
    with pytest.raises(DataError, match="the array, row 200, is all 0 and has no direction"):
        compare(*sources(X, Y), metric="cosine")
    with pytest.raises(ParameterError, match="be in memory"):
        compare(*sources(X, Y), range(300), range(300))
