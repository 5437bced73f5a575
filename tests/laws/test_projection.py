"""PCA as a projection: what it restores, what it leaves over, and that nothing does it better."""

import numpy as np
from hypothesis import given
from laws.tables import ROUNDING, SEEDS, Fitted, frames, models
from scipy.spatial.distance import pdist

from gnomon import PCA


@given(models())
def test_components_are_orthonormal(fitted: Fitted):
    """[Selitskii 2025] (5), (8), (9); [Trace] DᵀD = I; [Crumbs] (14); [Derivation] §4 (2)."""
    k = fitted.W.shape[1]
    np.testing.assert_allclose(fitted.W.T @ fitted.W, np.eye(k), rtol=0, atol=ROUNDING)


@given(models())
def test_scores_are_centred_rows_times_components(fitted: Fitted):
    """[Selitskii 2025] (13), (27)–(29); [Derivation] §5; [Lecture] 10.1, 10.3.2."""
    fitted.close(fitted.model.mean_, fitted.table.mean(axis=0))
    fitted.close(fitted.model.transform(fitted.table), fitted.X @ fitted.W)


@given(models(), SEEDS)
def test_the_reconstruction_is_linear_in_the_scores(fitted: Fitted, seed: int):
    """[Selitskii 2025] (1)–(3); [Lecture] 10.3.1."""
    model, random = fitted.model, np.random.default_rng(seed)
    Z, other = random.normal(size=(2, 6, model.n_components_))
    a = random.normal()
    restored, also, both = (
        model.inverse_transform(z) - model.mean_ for z in (Z, other, Z + a * other)
    )
    fitted.close(restored, Z @ fitted.W.T)
    fitted.close(both, restored + a * also)


@given(models(), SEEDS)
def test_no_other_scores_restore_the_rows_better(fitted: Fitted, seed: int):
    """Moving the scores by H adds exactly ‖H‖², so z = Wᵀx is the one minimum.

    [Selitskii 2025] (12), (13); [Derivation] §2, §5: the second derivative of J by β is 2/N;
    [Lecture] 10.3.2; [Crumbs] (17).
    """
    table, model = fitted.table, fitted.model
    Z = model.transform(table)
    H = np.random.default_rng(seed).normal(size=Z.shape) * np.abs(Z).max()
    best = np.sum((table - model.inverse_transform(Z)) ** 2)
    moved = np.sum((table - model.inverse_transform(Z + H)) ** 2)
    np.testing.assert_allclose(moved - best, np.sum(H**2), rtol=1e-8)


@given(models())
def test_the_loss_of_the_rows_the_norm_and_the_trace_are_one_number(fitted: Fitted):
    """[Selitskii 2025] (4), (6), (7), (14), (15); [Trace] (∗), ①, ②; [Crumbs] (4), (15), (16)."""
    X, W, model = fitted.X, fitted.W, fitted.model
    Z = model.transform(fitted.table)
    loss = sum(float(row @ row) for row in model.residuals(fitted.table))
    fitted.close(np.linalg.norm(X.T - W @ Z.T) ** 2, loss, power=2)
    fitted.close(np.trace(X @ X.T - X @ W @ W.T @ X.T), loss, power=2)
    fitted.close(len(X) * model.lost_variance_, loss, power=2)


@given(models(), SEEDS)
def test_no_other_orthonormal_basis_loses_less(fitted: Fitted, seed: int):
    """[Selitskii 2025] (10), (14), (16), (17); [Trace] argmax; [Lecture] 10.2, 10.3.3."""
    X, W = fitted.X, fitted.W
    least = np.sum(fitted.model.residuals(fitted.table) ** 2)
    slack = ROUNDING * np.sum(X**2)
    for Q in frames(*W.shape, count=50, seed=seed):
        assert np.sum((X - X @ Q @ Q.T) ** 2) >= least - slack
        held = np.trace(fitted.sigma @ Q @ Q.T)
        assert held <= fitted.model.captured_variance_ + slack / len(X)


@given(models(), SEEDS)
def test_residuals_are_orthogonal_to_every_component(fitted: Fitted, seed: int):
    """Those of new rows too. [Selitskii 2025] (34), (35); [Derivation] §2; [Lecture] 10.3.3."""
    random = np.random.default_rng(seed)
    new = fitted.table.mean(axis=0) + random.normal(size=(5, fitted.table.shape[1]))
    for rows in (fitted.table, new):
        fitted.close(fitted.model.residuals(rows) @ fitted.W, 0)


@given(models(within_rank=True))
def test_residuals_are_what_the_other_components_hold(fitted: Fitted):
    """x − x̃ = Σ_{j>M} b_j b_jᵀ x. [Derivation] §6; [Lecture] 10.3.3."""
    k = fitted.model.n_components_
    B = PCA(ddof=0, solver="svd").fit(fitted.table).components_[k:].T
    fitted.close(fitted.model.residuals(fitted.table), fitted.X @ B @ B.T)


@given(models())
def test_restoring_is_an_orthogonal_projection(fitted: Fitted):
    """π = WWᵀ is symmetric, π² = π, and its trace is ℓ. [Trace] π; [Lecture] 10.3.2, 10.3.3."""
    model = fitted.model
    axes = np.eye(fitted.table.shape[1]) * np.linalg.norm(fitted.X) + model.mean_
    image = model.inverse_transform(model.transform(axes))
    again = model.inverse_transform(model.transform(image))
    fitted.close(again, image)
    projection = (image - model.mean_) / np.linalg.norm(fitted.X)
    np.testing.assert_allclose(projection, projection.T, rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.trace(projection), model.n_components_, rtol=1e-8)


@given(models(wide=False))
def test_all_components_keep_every_distance_and_lose_nothing(fitted: Fitted):
    """[Selitskii 2025] (32) and the remark under it."""
    model = PCA(ddof=0, solver=fitted.model.solver_).fit(fitted.table)
    scores = model.transform(fitted.table)
    fitted.close(pdist(scores), pdist(fitted.table))
    fitted.close(model.inverse_transform(scores), fitted.table)
    assert model.lost_variance_ <= ROUNDING * model.total_variance_


@given(models(within_rank=True), SEEDS)
def test_moving_all_rows_moves_nothing_but_the_mean(fitted: Fitted, seed: int):
    """[Selitskii 2025] (27); [Lecture] 10.2.1: V[Bᵀ(x − μ)] = V[Bᵀx]."""
    table, model = fitted.table, fitted.model
    shift = np.random.default_rng(seed).normal(size=table.shape[1]) * 100
    moved = PCA(model.n_components_, ddof=0, solver=model.solver_).fit(table + shift)
    unit = np.linalg.norm(fitted.X) + np.abs(shift).max()
    np.testing.assert_allclose(moved.mean_, model.mean_ + shift, rtol=0, atol=ROUNDING * unit)
    fitted.close(moved.explained_variance_, model.explained_variance_, power=2)
    here, there = model.residuals(table), moved.residuals(table + shift)
    np.testing.assert_allclose(here, there, rtol=0, atol=ROUNDING * unit)
