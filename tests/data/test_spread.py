import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gnomon.data.spread import measure_spread

rng = np.random.default_rng(0)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 4)),
        elements=st.integers(-50, 50).map(float) | st.just(np.nan),
    )
)
def test_it_is_what_numpy_finds_without_the_gaps(X):
    spread = measure_spread(X)
    for j in range(X.shape[1]):
        known = X[:, j][~np.isnan(X[:, j])]
        assert spread.gaps[j] == X.shape[0] - known.size
        if known.size > 1:
            np.testing.assert_allclose(spread.mean[j], known.mean(), atol=1e-12)
            np.testing.assert_allclose(spread.std[j], known.std(ddof=1), atol=1e-11)
            assert spread.low[j] == known.min()
            assert spread.high[j] == known.max()
    assert spread.whole


@pytest.mark.parametrize("unit", [1e200, 1e-200, 1.0])
def test_any_magnitude_is_measured(unit):
    X = rng.standard_normal((300, 3))
    spread = measure_spread(X * unit)
    np.testing.assert_allclose(spread.std / unit, X.std(axis=0, ddof=1), rtol=1e-12)
    np.testing.assert_allclose(spread.mean / unit, X.mean(axis=0), atol=1e-12)


def test_far_from_zero_the_spread_is_not_lost():
    X = 1e8 + rng.standard_normal((5000, 2))
    exact = (X - 1e8).std(axis=0, ddof=1)
    np.testing.assert_allclose(measure_spread(X).std, exact, rtol=1e-7)
    low = (X - 1e8 + 1e3).astype(np.float32)
    np.testing.assert_allclose(
        measure_spread(low).std, low.std(axis=0, ddof=1, dtype="f8"), rtol=1e-9
    )


def test_small_integers_do_not_wrap_around():
    X = rng.integers(0, 256, (1000, 3)).astype(np.uint8)
    spread = measure_spread(X)
    np.testing.assert_allclose(spread.std, X.astype(float).std(axis=0, ddof=1), rtol=1e-12)


def test_a_constant_has_no_spread_whatever_its_rounding():
    X = np.full((1000, 2), 0.1)
    X[:, 1] = 1e300
    assert measure_spread(X).std.tolist() == [0, 0]


def test_threads_and_blocks_do_not_change_the_bits(monkeypatch):
    monkeypatch.setattr("gnomon.data.spread.BLOCK_NUMBERS", 300)
    X = rng.standard_normal((1000, 3))
    one, two, four = (measure_spread(X, n_jobs=n) for n in (1, 2, 4))
    assert one.std.tobytes() == two.std.tobytes() == four.std.tobytes()
    assert one.mean.tobytes() == two.mean.tobytes() == four.mean.tobytes()
    np.testing.assert_allclose(one.std, X.std(axis=0, ddof=1), rtol=1e-12)


def test_infinities_and_empty_columns_show():
    spread = measure_spread(np.array([[np.inf, np.nan], [1.0, np.nan]]))
    assert spread.high[0] == np.inf
    assert spread.gaps.tolist() == [0, 2]
    assert np.isnan(spread.low[1])
    assert (spread.mean[1], spread.std[1]) == (0, 0)


@pytest.mark.parametrize("offset", [1e9, 1e12])
def test_far_from_zero_the_spread_is_not_lost_between_blocks(monkeypatch, offset):
    monkeypatch.setattr("gnomon.data.spread.BLOCK_NUMBERS", 300)
    X = np.linspace(-1, 1, 5000)[:, None] + rng.standard_normal((5000, 2)) + offset
    exact = (X - offset).std(axis=0, ddof=1)  # the difference is exact
    np.testing.assert_allclose(measure_spread(X).std, exact, rtol=1e-12)


def test_blocks_without_values_do_not_move_the_mean(monkeypatch):
    monkeypatch.setattr("gnomon.data.spread.BLOCK_NUMBERS", 300)
    values = 1e9 + rng.standard_normal((150, 1))
    gaps = np.full((400, 1), np.nan)
    found = measure_spread(np.concatenate([gaps, values, gaps]))
    assert found.gaps.tolist() == [800]
    np.testing.assert_allclose(found.std, (values - 1e9).std(ddof=1), rtol=1e-12)
    np.testing.assert_allclose(found.mean, values.mean(), rtol=1e-15)


def test_a_constant_is_its_own_mean():
    assert measure_spread(np.full((1000, 1), 0.1)).mean.tolist() == [0.1]
