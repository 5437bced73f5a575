"""PCA as a search for variance: eigenvalues, what they add up to, and what was lost."""

import numpy as np
from hypothesis import given
from laws.tables import SEEDS, WHOLE, Fitted, frames, models

from gnomon import Moments


@given(models(solvers=("covariance",)))
def test_the_covariance_is_the_mean_of_the_outer_products(fitted: Fitted):
    """[Selitskii 2025] (18); [Derivation] §6; [Lecture] 10.1."""
    by_hand = np.mean([np.outer(x, x) for x in fitted.X], axis=0)
    fitted.close(fitted.model.moments_.covariance(ddof=0), by_hand, power=2)
    for shift in (None, fitted.table[0]):  # sums about the first row are taken to the mean
        fitted.close(Moments.of(fitted.table, shift=shift).covariance(ddof=0), by_hand, power=2)


@given(models())
def test_every_component_is_an_eigenvector_of_the_covariance(fitted: Fitted):
    """[Selitskii 2025] (24), (25); [Trace] XᵀXD = DΛ; [Derivation] §6; [Lecture] 10.2.1."""
    W, variances = fitted.W, fitted.model.explained_variance_
    fitted.close(fitted.sigma @ W, W * variances, power=2)
    fitted.close(W.T @ fitted.sigma @ W, np.diag(variances), power=2)


@given(models(within_rank=True), SEEDS)
def test_the_lagrangian_does_not_change_to_first_order_at_the_components(fitted: Fitted, seed: int):
    """Tr(ΣWWᵀ) − Tr(Λ(WᵀW − I)), moved by any H, and not only by those that keep WᵀW = I.

    [Selitskii 2025] (11), (19)–(23); [Trace] ℒ(D + H, Λ); [Lecture] 10.2.1.
    """
    sigma, W = fitted.sigma, fitted.W
    multipliers = np.diag(fitted.model.explained_variance_)
    H = np.random.default_rng(seed).normal(size=W.shape)

    def lagrangian(t: float) -> float:
        V = W + t * H
        return float(np.sum(V * (sigma @ V)) - np.trace(multipliers @ (V.T @ V - np.eye(len(V.T)))))

    step = 1e-3  # the function is quadratic: a central difference has no error but rounding
    fitted.close((lagrangian(step) - lagrangian(-step)) / (2 * step), 0, power=2)


@given(models())
def test_scores_are_uncorrelated_with_mean_zero_and_the_eigenvalues_for_variances(fitted: Fitted):
    """[Selitskii 2025] (29)–(31); [Crumbs] (21); [Lecture] 10.2.1: E[z] = 0, V[z₁] = λ₁."""
    Z = fitted.model.transform(fitted.table)
    fitted.close(Z.mean(axis=0), 0)
    fitted.close(Z.T @ Z / len(Z), np.diag(fitted.model.explained_variance_), power=2)


@given(models(solvers=WHOLE))
def test_no_eigenvalue_is_negative_and_the_largest_come_first(fitted: Fitted):
    """[Selitskii 2025] (24) with its footnotes, (26); [Derivation] §6."""
    spectrum = fitted.model.spectrum_
    assert (spectrum >= 0).all()
    assert (np.diff(spectrum) <= 0).all()
    largest = np.linalg.eigvalsh(fitted.sigma)[::-1][: spectrum.size]
    fitted.close(spectrum, largest, power=2)


@given(models())
def test_the_captured_variance_is_the_trace_of_lambda(fitted: Fitted):
    """[Selitskii 2025] (26), (31); [Trace] Tr(Λ); [Lecture] V_M."""
    captured = fitted.model.captured_variance_
    fitted.close(captured, np.trace(fitted.W.T @ fitted.sigma @ fitted.W), power=2)
    fitted.close(captured, fitted.model.explained_variance_.sum(), power=2)
    fitted.close(captured, fitted.model.transform(fitted.table).var(axis=0).sum(), power=2)


@given(models(solvers=WHOLE))
def test_the_total_variance_is_the_trace_of_the_covariance(fitted: Fitted):
    """[Selitskii 2025] (32); [Lecture] V_D."""
    fitted.close(fitted.model.total_variance_, np.trace(fitted.sigma), power=2)
    fitted.close(fitted.model.total_variance_, fitted.model.spectrum_.sum(), power=2)


@given(models(solvers=WHOLE))
def test_the_mean_squared_error_is_the_sum_of_the_lost_eigenvalues(fitted: Fitted):
    """J_M = Σ_{j>M} λ_j = V_D − V_M. [Derivation] §6; [Lecture] 10.3.3."""
    table, model = fitted.table, fitted.model
    error = np.sum((table - model.inverse_transform(model.transform(table))) ** 2) / len(table)
    fitted.close(model.lost_variance_, error, power=2)
    fitted.close(model.lost_variance_, model.spectrum_[model.n_components_ :].sum(), power=2)
    fitted.close(model.lost_variance_, model.total_variance_ - model.captured_variance_, power=2)


@given(models())
def test_the_shares_are_captured_over_total_and_lost_over_total(fitted: Fitted):
    """[Selitskii 2025] (33); [Lecture] V_M/V_D and 1 − V_M/V_D."""
    model = fitted.model
    share = model.explained_variance_ratio_.sum()
    values = np.linalg.eigvalsh(fitted.sigma)[::-1]
    np.testing.assert_allclose(share, values[: model.n_components_].sum() / values.sum(), atol=1e-9)
    np.testing.assert_allclose(1 - share, model.lost_variance_ / model.total_variance_, atol=1e-9)


@given(models(), SEEDS)
def test_no_direction_has_more_variance_than_the_first_component(fitted: Fitted, seed: int):
    """[Selitskii 2025] (36); [Lecture] 10.2.1."""
    first = fitted.model.explained_variance_[0]
    for (b,) in frames(fitted.W.shape[0], 1, count=200, seed=seed).transpose(0, 2, 1):
        assert np.var(fitted.table @ b) <= first * (1 + 1e-9)
    fitted.close(np.var(fitted.table @ fitted.W[:, 0]), first, power=2)
