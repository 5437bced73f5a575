"""Where other implementations are silently wrong."""

import numpy as np
import pytest
from procrustes.sets import orthogonal, pair, turn

from gnomon import Procrustes
from gnomon.errors import DataWarning

FACTORS = [1e200, 1e-200, 2.0**664, 2.0**-664]


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("factor", FACTORS)
def test_extreme_numbers_give_the_same_map(d, factor):
    # SciPy returns the identity at 1e-200, and a disparity of 0 at 1e200
    X, Y = pair(d=d, scale=2.0, shift=3.0)
    for scaling in (False, True, "norm-ratio"):
        expected = Procrustes(scaling=scaling).fit(X, Y)
        found = Procrustes(scaling=scaling).fit(X * factor, Y * factor)
        assert np.allclose(found.rotation_, expected.rotation_, atol=1e-13)
        assert found.disparity_ == pytest.approx(expected.disparity_, rel=1e-12)
        assert found.scale_ == pytest.approx(expected.scale_, rel=1e-13)
        assert found.rmsd_ / factor == pytest.approx(expected.rmsd_, rel=1e-12)
        assert np.allclose(found.translation_ / factor, expected.translation_, atol=1e-12)
        assert np.allclose(found.residuals_ / factor, expected.residuals_)
        assert np.allclose(found.transform(X * factor) / factor, expected.transform(X))
        assert found.rank_ == expected.rank_


def test_powers_of_two_change_no_bit():
    for d in (2, 12):
        X, Y = pair(d=d)
        a = Procrustes().fit(X, Y)
        for factor in (2.0**664, 2.0**-664):
            b = Procrustes().fit(X * factor, Y * factor)
            assert np.array_equal(a.rotation_, b.rotation_)
            assert np.array_equal(a.transform(X) * factor, b.transform(X * factor))


@pytest.mark.parametrize("factor", FACTORS)
def test_sets_of_very_different_sizes_are_laid_on_each_other(factor):
    X, Y = pair(d=2)
    expected = Procrustes(scaling=True).fit(X, Y)
    found = Procrustes(scaling=True).fit(X * factor, Y)
    assert np.allclose(found.rotation_, expected.rotation_, atol=1e-13)
    assert found.scale_ * factor == pytest.approx(expected.scale_)
    assert np.allclose(found.transform(X * factor), expected.transform(X))
    plain = Procrustes().fit(X * factor, Y)
    assert np.allclose(plain.rotation_, expected.rotation_, atol=1e-13)
    larger, unit = (X, factor) if factor > 1 else (Y, 1.0)  # which is all that is left
    norm = np.linalg.norm(larger - larger.mean(axis=0))
    assert plain.rmsd_ == pytest.approx(norm / np.sqrt(60) * unit)


@pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("d", [2, 12])
def test_a_small_disparity_keeps_its_digits(noise, d):
    # 1 − (Σσ)² / (‖X‖²‖Y‖²) has none left below 1e-16
    random = np.random.default_rng(0)
    X = random.normal(size=(200, d))
    Y = 2 * (X + noise * random.normal(size=X.shape)) @ orthogonal(d)
    for scaling in (False, True, "norm-ratio"):
        found = Procrustes(scaling=scaling).fit(X, Y)
        # noise of that size in n·d numbers, less what the map takes up
        assert found.disparity_ == pytest.approx(noise**2, rel=0.2)
    x, y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    left = found.disparity_ * (y**2).sum()
    best = Procrustes(scaling=True).fit(X, Y)
    away = best.scale_ * x @ best.rotation_ - y
    assert left == pytest.approx((away**2).sum(), rel=1e-2 if noise < 1e-10 else 1e-5)


def test_far_from_the_origin_the_map_is_as_exact():
    X, Y = pair(d=2)
    expected = Procrustes(scaling=True).fit(X, Y)
    found = Procrustes(scaling=True).fit(X + 1e8, Y - 1e8)
    # numbers at 1e8 are themselves rounded to 1.5e-8
    assert np.allclose(found.rotation_, expected.rotation_, atol=1e-8)
    assert np.allclose(found.transform(X + 1e8), expected.transform(X) - 1e8, atol=1e-7)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32, np.int64, np.float16, np.float32])
@pytest.mark.parametrize("d", [2, 12])
def test_small_number_types_do_not_wrap_around(dtype, d):
    random = np.random.default_rng(0)
    top = 2 if dtype is bool else 256
    X, Y = (random.integers(0, top, (100, d)).astype(dtype) for _ in range(2))
    expected = Procrustes(scaling=True).fit(X.astype(float), Y.astype(float))
    found = Procrustes(scaling=True).fit(X, Y)
    # wide tables of float32 are multiplied in float32
    error = 1e-4 if np.dtype(dtype).kind == "f" and d > 8 else 1e-12
    assert np.allclose(found.rotation_, expected.rotation_, atol=error)
    assert found.disparity_ == pytest.approx(expected.disparity_, rel=error)


def test_long_integers_lose_no_digit():
    random = np.random.default_rng(0)
    X, Y = (2**60 + random.integers(0, 100, (50, 2)) for _ in range(2))
    expected = Procrustes(scaling=True).fit((X - 2**60).astype(float), (Y - 2**60).astype(float))
    assert np.allclose(Procrustes(scaling=True).fit(X, Y).rotation_, expected.rotation_)


def test_the_rank_is_relative():
    X = np.random.default_rng(0).normal(size=(40, 3)) @ np.diag([1.0, 1e-4, 0.0])
    for factor in (1e-100, 1.0, 1e100):
        assert Procrustes().fit(X * factor, X * factor).rank_ == 2


def test_swapped_and_transposed_arguments_are_told_apart():
    X = np.random.default_rng(0).normal(size=(30, 2))
    Y = X @ turn(0.5)
    assert Procrustes().fit(X, Y).angle_ == pytest.approx(0.5)
    assert Procrustes().fit(Y, X).angle_ == pytest.approx(-0.5)


def test_three_hundred_dimensions_are_recovered_to_rounding_and_to_the_noise():
    random = np.random.default_rng(0)
    X = random.normal(size=(1000, 300))
    for reflected in (False, True):
        R = orthogonal(300, 5, reflected=reflected)
        exact = Procrustes().fit(X, X @ R)
        assert np.abs(exact.rotation_ - R).max() < 1e-13
        assert exact.reflected_ is reflected
        noisy = Procrustes().fit(X, X @ R + 0.1 * random.normal(size=X.shape))
        # first order: R is off by the skew part of UᵀEV / (σᵢ + σⱼ), with σ about n and E = XᵀN
        # of variance n · 0.01, so ‖δR‖² ≈ d² · n · 0.01 · 2 / (2n)² = d² · 0.01 / (2n)
        expected = 0.1 * 300 / np.sqrt(2 * 1000)
        assert np.linalg.norm(noisy.rotation_ - R) == pytest.approx(expected, rel=0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("factor", "where"), [(1e200, "above"), (1e-200, "below")])
def test_squared_residuals_beyond_the_range_of_float64_are_warned_of(factor, where):
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 30, 3))
    said = f"sum of squared residuals is {where} the range of float64"
    with pytest.warns(DataWarning, match=said) as caught:
        Procrustes().fit(X * factor, Y * factor)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    Procrustes().fit(X * factor**0.5, Y * factor**0.5)
