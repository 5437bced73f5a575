"""Other ways to the same components: one after the other, by the smaller product, by the SVD."""

import numpy as np
from hypothesis import given
from laws.tables import ROUNDING, Fitted, models

from gnomon import PCA


def same_up_to_sign(a, b):
    """Whether unit rows are the same axes; two that differ by an angle ε have 1 − ε²/2."""
    np.testing.assert_allclose(np.abs(np.sum(a * b, axis=1)), 1, rtol=0, atol=ROUNDING)


@given(models(solvers=("deflation",), within_rank=True))
def test_deflated_and_direct_components_agree(fitted: Fitted):
    """[Selitskii 2025] (36), (37); [Lecture] 10.2.2."""
    direct = PCA(fitted.model.n_components_, ddof=0, solver="svd").fit(fitted.table)
    fitted.close(fitted.model.explained_variance_, direct.explained_variance_, power=2)
    fitted.close(fitted.model.residuals(fitted.table), direct.residuals(fitted.table))
    same_up_to_sign(fitted.model.components_, direct.components_)


@given(models(spare=2))
def test_what_the_former_components_leave_has_the_next_one_first(fitted: Fitted):
    """Ŝb_m = Sb_m = λ_m b_m. [Selitskii 2025] (37); [Lecture] 10.2.2, its equation (1)."""
    k = fitted.model.n_components_
    whole = PCA(k + 1, ddof=0, solver="svd").fit(fitted.table)
    b, variance = whole.components_[k], whole.explained_variance_[k]
    left = fitted.model.residuals(fitted.table)
    fitted.close(left.T @ left @ b / len(left), variance * b, power=2)
    fitted.close(fitted.sigma @ b, variance * b, power=2)
    first = PCA(1, ddof=0, solver="svd").fit(left)
    same_up_to_sign(first.components_, b[None])
    fitted.close(first.explained_variance_, variance, power=2)
    fitted.close(fitted.model.components_ @ first.components_[0], 0)


@given(models(solvers=("gram", "covariance")))
def test_a_table_and_its_gram_matrix_have_the_same_non_zero_eigenvalues(fitted: Fitted):
    """[Derivation] §7; [Lecture] 10.5; [Crumbs] (25), (26)."""
    X = fitted.X
    values = np.linalg.eigvalsh(X @ X.T / len(X))[::-1][: min(X.shape)]
    fitted.close(fitted.model.spectrum_, values, power=2)


@given(models(solvers=("gram",), within_rank=True, wide=True))
def test_lifted_eigenvectors_of_the_gram_matrix_are_the_components(fitted: Fitted):
    """b = Xᵀb′ / ‖Xᵀb′‖, and ‖Xᵀb′‖² = Nλ for a unit b′. [Derivation] §7; [Lecture] 10.5."""
    X, k = fitted.X, fitted.model.n_components_
    U = np.linalg.eigh(X @ X.T / len(X))[1][:, ::-1][:, :k]
    lifted = X.T @ U
    lengths = np.linalg.norm(lifted, axis=0)
    fitted.close(lengths**2, len(X) * fitted.model.explained_variance_, power=2)
    same_up_to_sign((lifted / lengths).T, fitted.model.components_)


@given(models(solvers=("svd", "covariance"), within_rank=True))
def test_variances_are_squared_singular_values_over_n(fitted: Fitted):
    """And components are right singular vectors. [Selitskii 2025] (38)–(43)."""
    X, model, k = fitted.X, fitted.model, fitted.model.n_components_
    U, S, Vt = np.linalg.svd(X, full_matrices=False)
    fitted.close(U * S @ Vt, X)
    fitted.close(model.explained_variance_, S[:k] ** 2 / len(X), power=2)
    fitted.close(model.singular_values_**2, S[:k] ** 2, power=2)
    same_up_to_sign(model.components_, Vt[:k])
