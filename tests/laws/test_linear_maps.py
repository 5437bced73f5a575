"""The two maps of [Crumbs]: A takes features to components, B takes them back."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from laws.tables import ROUNDING, SEEDS, Fitted, models, tables

from gnomon import PCA, samples


@given(models())
def test_the_two_maps_do_the_same_to_a_row_and_to_all_rows(fitted: Fitted):
    """[Crumbs] (2), (3), (5)–(10), (13), with B A where (10) has A B."""
    F, A, B = fitted.X, fitted.model.components_, fitted.W
    P = fitted.model.transform(fitted.table)
    for f, p in zip(F, P, strict=True):
        sums = [sum(A[s, j] * f[j] for j in range(len(f))) for s in range(len(A))]
        fitted.close(p, sums)
    restored = fitted.model.inverse_transform(P) - fitted.model.mean_
    fitted.close(P, F @ A.T)
    fitted.close(restored, P @ B.T)
    fitted.close(restored, F @ (B @ A).T)


@given(models())
def test_the_map_back_is_the_pseudoinverse_of_the_map(fitted: Fitted):
    """Aᵀ(AAᵀ)⁻¹ for a wide A, and AB = BᵀB = I. [Crumbs] (11), (12), (14)."""
    A = fitted.model.components_
    B = fitted.model.inverse_transform(np.eye(len(A))).T - fitted.model.mean_[:, None]
    fitted.close(B, np.linalg.pinv(A))
    fitted.close(B, A.T @ np.linalg.inv(A @ A.T))
    fitted.close(A @ B, np.eye(len(A)))
    fitted.close(B.T @ B, np.eye(len(A)))


@given(models(within_rank=True))
def test_scores_and_basis_are_each_the_best_for_the_other(fitted: Fitted):
    """P = FB(BᵀB)⁻¹ and B = FᵀP(PᵀP)⁻¹. [Crumbs] (17)–(19), (22)."""
    F, B, P = fitted.X, fitted.W, fitted.model.transform(fitted.table)
    fitted.close(P, F @ B @ np.linalg.inv(B.T @ B))
    best = F.T @ P @ np.linalg.inv(P.T @ P)
    np.testing.assert_allclose(B, best, rtol=0, atol=1e-7)  # the inverse squares the condition


@given(models(within_rank=True, spare=1), SEEDS)
def test_the_risk_depends_on_the_product_alone_and_pca_takes_the_diagonal_pair(
    fitted: Fitted, seed: int
):
    """PBᵀ = (PR)(R⁻¹Bᵀ) for every R; PᵀP = Λ and BᵀB = I single one pair out.

    [Crumbs] (4), (15), (16), (20), (21).
    """
    F, B, P = fitted.X, fitted.W, fitted.model.transform(fitted.table)
    k = P.shape[1]
    R = np.random.default_rng(seed).normal(size=(k, k)) + 3 * np.eye(k)
    other = (P @ R) @ (np.linalg.inv(R) @ B.T)
    np.testing.assert_allclose(other, P @ B.T, atol=1e-7 * np.linalg.norm(F))
    risk = np.sum(fitted.model.residuals(fitted.table) ** 2)
    fitted.close(np.sum((P @ B.T - F) ** 2), risk, power=2)
    fitted.close(P.T @ P, np.diag(fitted.model.singular_values_**2), power=2)
    np.testing.assert_allclose(B.T @ B, np.eye(k), rtol=0, atol=ROUNDING)


@given(models())
def test_basis_and_scores_are_eigenvectors_of_the_two_products(fitted: Fitted):
    """BΛ = FᵀFB and PΛ = FFᵀP. [Crumbs] (23)–(26)."""
    F, B, P = fitted.X, fitted.W, fitted.model.transform(fitted.table)
    squares = fitted.model.singular_values_**2
    fitted.close(F.T @ F @ B, B * squares, power=2)
    fitted.close(F @ F.T @ P, P * squares, power=3)


@given(tables(least_rank=3))
def test_dependent_features_need_no_more_components_than_their_rank(made):
    """[Crumbs] (1): with k features of which m are independent, m numbers a row are enough."""
    table, rank = made
    unit = np.linalg.norm(table - table.mean(axis=0))
    enough, fewer = (PCA(k, ddof=0).fit(table) for k in (rank, rank - 1))
    assert PCA(ddof=0).fit(table).rank_ == rank
    assert np.linalg.norm(enough.residuals(table)) < ROUNDING * unit
    assert np.linalg.norm(fewer.residuals(table)) > 1e-3 * unit


@given(n=st.integers(5, 60), seed=SEEDS, free=st.tuples(st.floats(-9, 9), st.floats(-9, 9)))
def test_crumbs_on_the_floor_need_two_numbers(n, seed, free):
    """[Crumbs], crumbs on the floor: whatever stands for the question marks of A."""
    crumbs = samples.crumbs_on_the_floor(n, seed).X
    A = np.array([[1, 0, free[0]], [0, 1, free[1]]])
    B = np.array([[1.0, 0], [0, 1], [0, 0]])
    assert np.array_equal(crumbs @ A.T, crumbs[:, :2])
    assert np.array_equal(crumbs @ A.T @ B.T, crumbs)
    model = PCA(2, ddof=0).fit(crumbs)
    np.testing.assert_allclose(model.components_[:, 2], 0, atol=1e-12)
    np.testing.assert_allclose(model.residuals(crumbs), 0, atol=1e-12)


@given(n=st.integers(5, 60), seed=SEEDS)
def test_crumbs_on_the_table_need_two_numbers_and_the_mean(n, seed):
    """[Crumbs], crumbs on the table: no linear B of x and y gives 1; with the bias one does."""
    crumbs = samples.crumbs_on_the_table(n, seed).X
    p = crumbs[:, :2]
    B = np.linalg.lstsq(p, crumbs, rcond=None)[0].T  # no B does better than least squares
    np.testing.assert_allclose(B[:2], np.eye(2), atol=1e-9)  # the identities x = x and y = y
    assert np.abs(p @ B.T - crumbs)[:, 2].max() > 1e-3
    # nor does any other pair of linear maps through the plane: the third singular value is lost
    assert np.linalg.svd(crumbs, compute_uv=False)[2] > 1e-3
    model = PCA(2, ddof=0).fit(crumbs)
    np.testing.assert_allclose(model.mean_[2], 1, rtol=1e-15)
    np.testing.assert_allclose(model.residuals(crumbs), 0, atol=1e-12)
