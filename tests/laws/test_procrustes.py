"""Orthogonal Procrustes: the best of all orthogonal matrices, and the bound that it reaches."""

from typing import Any, NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from laws.tables import SEEDS, Floats, frames

from gnomon import CrossMoments, Procrustes


class Pair(NamedTuple):
    """Two sets of points, and W = Rᵀ in the notes' way of writing points as columns."""

    model: Procrustes
    X: Floats  # centred, as the notes assume
    Y: Floats
    W: Floats
    size: float  # ‖X‖‖Y‖: traces are of this size


@st.composite
def pairs(draw: Any) -> Pair:
    """Any two sets, from a turned copy to nothing in common, anywhere in space."""
    d = draw(st.integers(2, 5))
    n = draw(st.integers(d + 2, 20))
    random = np.random.default_rng(draw(SEEDS))
    X = random.normal(size=(n, d))
    turned = X @ frames(d, d, 1, seed=int(random.integers(2**31)))[0]
    noise = draw(st.sampled_from([0.01, 1.0, 100.0]))
    Y = turned + noise * random.normal(size=(n, d))
    model = Procrustes().fit(X + random.normal(size=d) * 10, Y + random.normal(size=d) * 10)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    size = float(np.linalg.norm(X) * np.linalg.norm(Y))
    return Pair(model, X, Y, model.rotation_.T, size)


@given(pairs())
def test_the_matrix_is_orthogonal_and_its_loss_is_the_sum_over_the_points(pair: Pair):
    """[Selitskii 2025] (60): Σ‖Wx − y‖² = ‖WXᵀ − Yᵀ‖², WᵀW = I."""
    W, X, Y = pair.W, pair.X, pair.Y
    np.testing.assert_allclose(W.T @ W, np.eye(len(W)), rtol=0, atol=1e-12)
    loss = sum(float(np.sum((W @ x - y) ** 2)) for x, y in zip(X, Y, strict=True))
    np.testing.assert_allclose(np.linalg.norm(W @ X.T - Y.T) ** 2, loss, rtol=1e-10)
    np.testing.assert_allclose(pair.model.residual_sum_, loss, rtol=1e-8)


@given(pairs())
def test_the_loss_is_both_norms_less_twice_the_trace(pair: Pair):
    """From the rows, and from moments alone. [Selitskii 2025] (61), (62)."""
    W, X, Y = pair.W, pair.X, pair.Y
    trace = np.trace(W @ X.T @ Y)
    scale = np.sum(X**2) + np.sum(Y**2)
    far = np.zeros(len(W))  # sums about a point that is not the mean, and taken to the mean after
    counted = CrossMoments.of(X + 5, Y - 3, shifts=(far, far))
    for model in (pair.model, Procrustes().partial_fit(X, Y), Procrustes().merge(counted)):
        np.testing.assert_allclose(model.residual_sum_, scale - 2 * trace, atol=1e-10 * scale)
        np.testing.assert_allclose(1 - model.disparity_, (trace / pair.size) ** 2, atol=1e-10)


@given(pairs(), SEEDS)
def test_it_beats_a_thousand_orthogonal_matrices_and_reaches_the_bound(pair: Pair, seed: int):
    """[Selitskii 2025] (62)–(64), (66): Tr(WXᵀY) ≤ Tr(Σ) for every W, with equality for W*."""
    W, M = pair.W, pair.X.T @ pair.Y
    bound = np.linalg.svd(M, compute_uv=False).sum()
    slack = 1e-12 * pair.size
    others = frames(len(W), len(W), 1000, seed=seed)
    assert 0 < np.count_nonzero(np.linalg.det(others) > 0) < 1000  # rotations and reflections
    traces = np.einsum("wij,ji->w", others, M)
    assert (traces <= bound + slack).all()
    reached = np.trace(W @ M)
    np.testing.assert_allclose(reached, bound, rtol=0, atol=slack)
    np.testing.assert_allclose(pair.model.singular_values_.sum() * pair.size, bound, rtol=1e-9)
    losses = np.sum((pair.X @ others.transpose(0, 2, 1) - pair.Y) ** 2, axis=(1, 2))
    assert (losses >= pair.model.residual_sum_ * (1 - 1e-9)).all()


@given(pairs())
def test_it_takes_left_singular_vectors_to_right_ones(pair: Pair):
    """[Selitskii 2025] (63), (65), (66): W*U = V, W* = VUᵀ."""
    U, sigma, Vt = np.linalg.svd(pair.X.T @ pair.Y)
    tolerance = 1e-12 * sigma[0] / sigma[-1]  # R is as uncertain as XᵀY is nearly singular
    np.testing.assert_allclose(pair.W, Vt.T @ U.T, rtol=0, atol=tolerance)
    np.testing.assert_allclose(pair.W @ U, Vt.T, rtol=0, atol=tolerance)


@given(pairs(), SEEDS)
def test_the_best_translation_takes_the_mean_to_the_mean(pair: Pair, seed: int):
    """[Selitskii 2025], section 3: why the data may be assumed to be centred."""
    model, steps = pair.model, np.random.default_rng(seed).normal(size=(20, pair.X.shape[1]))
    moved = model.transform(pair.X + model.moments_.x.mean)
    np.testing.assert_allclose(moved.mean(axis=0), model.moments_.y.mean, atol=1e-9)
    left = moved - model.moments_.y.mean - pair.Y
    for step in steps:
        worse = np.sum((left + step) ** 2)
        np.testing.assert_allclose(worse, np.sum(left**2) + len(left) * step @ step, rtol=1e-9)
        assert worse > model.residual_sum_
