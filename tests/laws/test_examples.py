"""Worked examples of the notes, and the steps of PCA in practice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws.tables import SEEDS, tables

from gnomon import PCA, samples
from gnomon.errors import DataWarning


def test_the_house_prices_are_turned_into_one_column():
    """[Lecture], Idea of PCA: 7.07, −4.24, 2.83, −5.66 and 0, and nothing in the second column."""
    table = samples.load("house-prices").X
    model = PCA(ddof=0).fit(table)
    assert (table - model.mean_).tolist() == [[v, v] for v in (5.0, -3.0, 2.0, -4.0, 0.0)]
    first, second = model.transform(table).T
    assert np.round(first, 2).tolist() == [7.07, -4.24, 2.83, -5.66, 0.0]
    np.testing.assert_allclose(second, 0, atol=1e-14)
    np.testing.assert_allclose(model.explained_variance_, [2 * 10.8, 0], atol=1e-13)


@given(n=st.integers(8, 30), seed=SEEDS)
def test_a_vector_with_one_free_coordinate_has_a_code_of_one_number(n, seed):
    """[Lecture] 10.1: vectors (0, z) are stored as z, their coordinate with respect to e₂."""
    z = np.random.default_rng(seed).permutation(n) + 0.5  # no row far from all others
    x = np.column_stack([np.zeros(n), z])
    with pytest.warns(DataWarning, match="Column 1 varies"):  # as it should: it alone decides
        model = PCA(1, ddof=0).fit(x)
    np.testing.assert_allclose(model.components_, [[0, 1]], atol=1e-12)
    np.testing.assert_allclose(model.transform(x)[:, 0], z - z.mean(), atol=1e-12)


def test_few_eigenvalues_of_one_digit_differ_much_from_zero():
    """[Lecture], Motivation and the example of the digit 8, here on Gnomon's own digits."""
    digits = samples.load("digits")
    eights = PCA(ddof=0).fit(digits.X[digits.labels == "8"])
    captured = np.cumsum(eights.spectrum_) / eights.total_variance_
    assert captured[9] > 0.7  # 10 of 64 components
    assert captured[19] > 0.9
    assert np.median(eights.spectrum_) < 0.02 * eights.spectrum_[0]


def test_images_are_kept_in_fewer_numbers_and_noise_is_taken_away():
    """[Derivation] §1: 12 of 64 numbers an image, and half of the noise is gone."""
    clean = samples.load("digits").X
    noise = np.random.default_rng(0).normal(size=clean.shape) * 4
    model = PCA(12).fit(clean)
    restored = model.inverse_transform(model.transform(clean))
    assert np.sum((restored - clean) ** 2) < 0.25 * np.sum((clean - clean.mean(axis=0)) ** 2)
    noisy = PCA(12).fit(clean + noise)
    cleaned = noisy.inverse_transform(noisy.transform(clean + noise))
    assert np.sum((cleaned - clean) ** 2) < 0.5 * np.sum(noise**2)


@given(tables())
def test_of_fifty_candidates_the_nearest_is_next_to_the_orthogonal_projection(made):
    """[Lecture] 10.3.1 and 10.3.2, the figures: ‖x − zb‖ over z is least at z = bᵀx."""
    table, _ = made
    model = PCA(1, ddof=0).fit(table)
    best = model.transform(table[:1])[0, 0]
    reach = np.linalg.norm(table - model.mean_)
    candidates = np.linspace(best - reach, best + 1.3 * reach, 50)
    distances = np.linalg.norm(table[0] - model.inverse_transform(candidates[:, None]), axis=1)
    nearest = candidates[np.argmin(distances)]
    assert abs(nearest - best) <= (candidates[1] - candidates[0]) / 2 * (1 + 1e-9)
    assert np.linalg.norm(model.residuals(table[:1])) <= distances.min() + 1e-12 * reach


@given(tables(), SEEDS, st.integers(1, 2))
def test_new_rows_are_standardised_projected_and_brought_back(made, seed, k):
    """[Lecture] 10.6, all its steps, with the mean and deviation of the training rows."""
    table, _ = made
    mean, deviation = table.mean(axis=0), table.std(axis=0)  # step 1, and step 2's σ
    standard = (table - mean) / deviation
    values, vectors = np.linalg.eigh(standard.T @ standard / len(table))  # step 3
    B = vectors[:, ::-1][:, :k]
    model = PCA(k, ddof=0, standardize=True).fit(table)
    np.testing.assert_allclose(model.total_variance_, table.shape[1], rtol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, values[::-1][:k], atol=1e-8)
    new = mean + np.random.default_rng(seed).normal(size=(4, len(mean))) * deviation
    z = (new - mean) / deviation @ B  # step 4
    back = z @ B.T * deviation + mean  # and undone
    gap = values[::-1][k - 1] - (values[::-1][k] if k < len(values) else 0)
    # directions are as uncertain as rounding over the gap of their eigenvalues
    slack = 1e-10 / gap * np.linalg.norm(deviation)
    np.testing.assert_allclose(model.inverse_transform(model.transform(new)), back, atol=slack)
