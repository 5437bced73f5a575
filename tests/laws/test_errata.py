"""Slips of the notes: each test has a counterexample to what is printed, and holds what is meant.

docs/errata.md says the same in words and names these tests.
"""

import numpy as np
import pytest
from laws.tables import ROUNDING, fit, frames
from scipy.spatial.distance import pdist

from gnomon import PCA, Procrustes, samples
from gnomon.neighbors.search import find_neighbors
from gnomon.tsne.affinities import gaussian_rows, joint
from gnomon.tsne.reference import field

random = np.random.default_rng(0)
TABLE = random.normal(size=(9, 4)) * [4, 3, 2, 1] + [7, 0, -5, 1]  # n = 9 rows, p = 4 columns
WIDE = random.normal(size=(5, 8)) + 2
HALF = fit(TABLE, 2)  # ℓ = 2
ALL = fit(TABLE)


def slope(f, x, step=1e-5):
    """Gradient of f at x by central differences, in the shape of x."""
    x = np.asarray(x, float)
    gradient = np.empty_like(x)
    for at in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[at] += step
        down[at] -= step
        gradient[at] = (f(up) - f(down)) / (2 * step)
    return gradient


def close(a, b, tolerance=1e-7):
    return np.shape(a) == np.shape(b) and bool(np.allclose(a, b, rtol=0, atol=tolerance))


# "PCA, t-SNE, and Orthogonal Procrustes Problem"


def test_the_loss_is_a_sum_over_all_n_points():
    """[Selitskii 2025] (12) sums to ℓ: then points after the ℓ-th would have no gradient."""
    X, W = HALF.X, HALF.W
    Z = random.normal(size=(9, 2))
    gradient = -2 * X @ W + 2 * Z

    def loss(Z, stop):
        return sum(np.sum((X[k] - W @ Z[k]) ** 2) for k in range(stop))

    assert not close(slope(lambda Z: loss(Z, 2), Z), gradient)
    assert close(slope(lambda Z: loss(Z, 9), Z), gradient)


def test_a_quadratic_form_has_the_gradient_2ax_only_for_a_symmetric_matrix():
    """[Selitskii 2025], footnote 2."""
    A, x = random.normal(size=(3, 3)), random.normal(size=3)
    gradient = slope(lambda x: x @ A @ x, x)
    assert not close(gradient, 2 * A @ x)
    assert close(gradient, (A + A.T) @ x)
    assert close(slope(lambda x: x @ (A + A.T) @ x, x), 2 * (A + A.T) @ x)


def test_the_product_over_n_is_a_covariance_only_of_centred_rows():
    """[Selitskii 2025] (18), and (27) is no mere recommendation.

    [Trace] and [Crumbs] do not centre at all.
    """
    covariance = ALL.model.moments_.covariance(ddof=0)
    assert not close(TABLE.T @ TABLE / 9, covariance)
    assert close(ALL.X.T @ ALL.X / 9, covariance)
    leading = np.linalg.eigh(TABLE.T @ TABLE / 9)[1][:, -1]
    assert np.var(TABLE @ leading) < 0.9 * ALL.model.explained_variance_[0]


def test_equation_23_does_not_give_24_without_a_choice_of_basis():
    """[Selitskii 2025] (23) → (24): every turn inside the subspace is as stationary, and as good.

    What (21) gives is ΣW = WM with M = WᵀΣW. Asking for uncorrelated scores, M diagonal, fixes the
    basis; so does taking the components one by one, (36) and (37).
    """
    sigma, variances = HALF.sigma, HALF.model.explained_variance_
    turned = HALF.W @ np.array([[0.6, -0.8], [0.8, 0.6]])
    M = turned.T @ sigma @ turned
    for w, multiplier in zip(turned.T, np.diagonal(M), strict=True):
        assert w @ sigma @ w == pytest.approx(multiplier)  # (23)
        assert close(
            np.outer(w, w) @ sigma @ w, multiplier * w
        )  # (23) times W_k: no more than that
        assert not close(sigma @ w, multiplier * w, 1e-3)  # (24)
    assert close(sigma @ turned, turned @ M)  # stationary
    assert np.trace(M) == pytest.approx(HALF.model.captured_variance_)  # and as good
    assert close(sigma @ HALF.W, HALF.W * variances)


def test_all_components_are_a_rotation_or_a_reflection():
    """[Selitskii 2025], under (32): the determinant of W may be −1."""
    models = [PCA().fit(TABLE[:, order]) for order in ([0, 1, 2, 3], [1, 0, 2, 3])]
    signs = {round(float(np.linalg.det(model.components_))) for model in models}
    assert signs == {-1, 1}
    for model in models:
        assert close(pdist(TABLE[:, :4] @ model.components_.T), pdist(TABLE[:, :4]))


def test_the_second_direction_must_be_kept_orthogonal_where_nothing_is_left():
    """[Selitskii 2025] (37) has no such constraint; it is implied only while λ₂₂ > 0."""
    line = np.outer([-3.0, -1.0, 1.0, 3.0], [0.6, 0.8])
    model = PCA(2, ddof=0, solver="deflation").fit(line)
    first, second = model.components_
    left = PCA(1).fit(line).residuals(line)
    covariance = left.T @ left / 4
    assert first @ covariance @ first == pytest.approx(0, abs=1e-15)  # W₁ attains the maximum too
    assert second @ covariance @ second == pytest.approx(0, abs=1e-15)
    assert first @ second == pytest.approx(0, abs=1e-12)


def test_the_first_residual_takes_one_score_away():
    """[Selitskii 2025], above (37): W₁z₁, for W₁z is no product."""
    z, w = HALF.model.transform(TABLE)[0], HALF.W[:, :1]
    with pytest.raises(ValueError, match="mismatch"):
        w @ z
    assert close(HALF.X[0] - w @ z[:1], PCA(1).fit(TABLE).residuals(TABLE)[0])


def test_singular_values_are_roots_of_eigenvalues():
    """[Selitskii 2025] (39)."""
    singular = ALL.model.singular_values_
    eigenvalues = np.linalg.eigvalsh(ALL.X.T @ ALL.X)[::-1]
    assert not close(singular, eigenvalues, 1e-3)
    assert close(singular, np.sqrt(eigenvalues))


def test_singular_vectors_are_eigenvectors_that_belong_together():
    """[Selitskii 2025], under (39): eigenvectors chosen one by one do not give the table back."""
    U, S, Vt = np.linalg.svd(ALL.X, full_matrices=False)
    chosen = U * [1, -1, 1, 1]  # unit eigenvectors of XXᵀ as well
    assert close(ALL.X @ ALL.X.T @ chosen, chosen * S**2)
    assert not close(chosen * S @ Vt, ALL.X, 1e-3)
    assert close(ALL.X @ ALL.W / ALL.model.singular_values_ * S @ ALL.W.T, ALL.X)  # u = Xv/σ


def test_the_middle_of_the_product_is_s_transposed_s():
    """[Selitskii 2025] (41): S is 9 × 4 and has no square."""
    S = np.vstack([np.diag(ALL.model.singular_values_), np.zeros((5, 4))])
    with pytest.raises(ValueError, match="mismatch"):
        S @ S
    assert close(ALL.W @ (S.T @ S / 9) @ ALL.W.T, ALL.sigma)


def test_the_whole_covariance_needs_all_p_eigenvalues():
    """[Selitskii 2025] (42): with Λ of size ℓ × ℓ only what is captured comes back."""
    half = HALF.W * HALF.model.explained_variance_ @ HALF.W.T
    assert np.linalg.norm(half - HALF.sigma) > 0.1
    assert np.trace(half) == pytest.approx(HALF.model.captured_variance_)
    assert close(ALL.W * ALL.model.explained_variance_ @ ALL.W.T, ALL.sigma)


def test_a_gaussian_row_has_one_width_and_leaves_its_own_point_out():
    """[Selitskii 2025] (49): σ_k for σ_j, with which no row sums to 1; and k = j is counted."""
    near = find_neighbors(TABLE, 8)
    conditional = gaussian_rows(near, 4)
    rows, sq = conditional.rows, near.distances**2
    width = (sq[:, -1] - sq[:, 0]) / np.log(rows[:, 0] / rows[:, -1]) / 2  # σ²
    for j in range(9):
        above = np.exp(-sq[j] / (2 * width[j]))
        below = np.exp(-sq[j] / (2 * width[near.indices[j]]))
        assert abs((1 + above.sum()) / (1 + below.sum()) - 1) > 1e-3  # over all i, i = j too
        assert 1 / (1 + above.sum()) > 0.1  # p_{j|j}, which (44) has as 0
        assert close(above / above.sum(), rows[j], 1e-9)
    assert not joint(conditional).diagonal().any()


def test_a_point_is_not_its_own_neighbour_in_the_map():
    """[Selitskii 2025] (50), (52): with q_ii = 1/Z the pairs would sum to 1 + n/Z."""
    Y = random.normal(size=(9, 2))
    kernel = 1 / (1 + ((Y[:, None] - Y) ** 2).sum(axis=2))
    total = field(Y)[0].sum()
    assert np.sum(kernel / total) == pytest.approx(1 + 9 / total)
    assert np.sum((kernel - np.eye(9)) / total) == pytest.approx(1)


def test_another_matrix_may_be_as_good_where_the_product_is_singular():
    """[Selitskii 2025] (65): sufficient always, necessary only if XᵀY has full rank."""
    X = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 2, 0], [0, -2, 0], [0, 0, 0]])  # a flat cloud
    Y = X @ frames(3, 3, 1)[0]
    U, S, Vt = np.linalg.svd(X.T @ Y)
    best = Vt.T @ U.T
    other = Vt.T @ np.diag([1, 1, -1]) @ U.T
    assert not close(other @ U, Vt.T)
    assert np.trace(other @ X.T @ Y) == pytest.approx(S.sum())
    assert np.trace(best @ X.T @ Y) == pytest.approx(S.sum())
    model = Procrustes().fit(X, Y)
    assert model.rank_ == 2
    assert model.residual_sum_ == pytest.approx(0, abs=1e-12)


# "PCA", the derivation by traces


def test_the_multipliers_stand_beside_d_transposed_d():
    """[Trace], the Lagrangian: DDᵀ is n × n of rank ℓ and never the identity."""
    D = HALF.W
    with pytest.raises(ValueError, match="broadcast"):
        D @ D.T - np.eye(2)
    assert np.linalg.norm(D @ D.T - np.eye(4)) == pytest.approx(np.sqrt(2))
    assert close(D.T @ D - np.eye(2), np.zeros((2, 2)))


def test_the_inner_product_is_the_identity_and_the_outer_a_projection():
    """[Trace] ②: the brace = I belongs under DᵀD alone; DDᵀDDᵀ is DDᵀ."""
    D = HALF.W
    assert not close(D @ D.T @ D @ D.T, np.eye(4), 0.1)
    assert close(D @ D.T @ D @ D.T, D @ D.T)


def test_the_stationary_condition_needs_its_transposes():
    """[Trace], KKT: DᵀXᵀX = ΛDᵀ."""
    D, square = HALF.W, HALF.X.T @ HALF.X
    multipliers = D.T @ square @ D
    with pytest.raises(ValueError, match="mismatch"):
        D @ square
    assert close(D.T @ square, multipliers @ D.T)
    assert close(square @ D, D @ multipliers)


def test_every_eigenvalue_of_lambda_is_one_of_the_product_as_often_as_it_is_there():
    """[Trace], conversely: Ker D = {0}. And Sp(Λ) ⊂ Sp(XᵀX) alone would allow λ₁ twice."""
    turned = HALF.W @ np.array([[0.6, -0.8], [0.8, 0.6]])
    values, vectors = np.linalg.eigh(turned.T @ HALF.sigma @ turned)
    assert np.linalg.matrix_rank(turned) == 2  # no vector but 0 is sent to 0
    assert close(HALF.sigma @ turned @ vectors, turned @ vectors * values)
    greedy = 2 * ALL.model.explained_variance_[0]  # Tr(λ₁I), whose spectrum is in Sp(Σ) too
    assert greedy > HALF.model.captured_variance_ * 1.01
    held = max(np.trace(Q.T @ ALL.sigma @ Q) for Q in frames(4, 2, 500))
    assert held <= HALF.model.captured_variance_


def test_the_solution_is_the_transpose_of_the_first_rows_of_q():
    """[Trace], the last line: Q has eigenvectors in its rows, D in its columns."""
    Q = ALL.model.components_
    assert close(Q @ ALL.sigma @ Q.T, np.diag(ALL.model.explained_variance_))
    assert Q[:2].shape != HALF.W.shape
    assert close(Q[:2].T, HALF.W)
    assert np.trace(Q[:, :2].T @ ALL.sigma @ Q[:, :2]) < HALF.model.captured_variance_ * 0.99


# "Principal Component Analysis (PCA)", the two maps


def test_rows_are_restored_by_b_times_a():
    """[Crumbs] (10), (12): AᵀBᵀ = (BA)ᵀ. AB is I exactly, and the rows are not restored."""
    A, B = HALF.model.components_, HALF.W
    assert close(A @ B, np.eye(2))
    assert np.linalg.norm(HALF.model.residuals(TABLE)) > 1
    with pytest.raises(ValueError, match="mismatch"):
        HALF.X @ (A @ B).T
    assert close(HALF.X @ (B @ A).T, HALF.X - HALF.model.residuals(TABLE))


def test_a_wide_matrix_has_a_right_inverse_only():
    """[Crumbs] (11) and the margin: AᵀA is singular, A⁺ = Aᵀ(AAᵀ)⁻¹, and A⁺A is not I."""
    A = random.normal(size=(2, 4))
    assert np.linalg.matrix_rank(A.T @ A) == 2
    right = A.T @ np.linalg.inv(A @ A.T)
    assert close(right, np.linalg.pinv(A))
    assert close(A @ right, np.eye(2))
    assert np.linalg.norm(right @ A - np.eye(4)) == pytest.approx(np.sqrt(2))
    tall = A.T  # the printed formula is that of a tall one
    assert close(np.linalg.inv(tall.T @ tall) @ tall.T, np.linalg.pinv(tall))


def test_on_the_floor_it_is_ab_that_is_the_identity():
    """[Crumbs], NB of the first example: BA has rank 2, yet leaves every crumb where it is."""
    crumbs = samples.crumbs_on_the_floor(20, 0).X
    A, B = np.array([[1.0, 0, 5], [0, 1, 7]]), np.array([[1.0, 0], [0, 1], [0, 0]])
    assert not close(B @ A, np.eye(3), 0.5)
    assert close(A @ B, np.eye(2))
    assert close(crumbs @ (B @ A).T, crumbs)


def test_on_the_table_the_last_column_of_a_is_no_longer_free():
    """[Crumbs], second example: "A is the same as before" holds for zeros only."""
    crumbs = samples.crumbs_on_the_table(20, 0).X
    for last, same in ([[5.0], [7.0]], False), ([[0.0], [0.0]], True):
        assert close(crumbs @ np.hstack([np.eye(2), last]).T, crumbs[:, :2]) is same


def test_the_pseudoinverse_of_a_is_not_the_best_map_back():
    """[Crumbs], approximate solution: of all B, (19) has the least risk; A⁺ knows no data."""
    F = samples.crumbs_on_the_table(20, 0).X
    A = np.eye(2, 3)
    P = F @ A.T
    best = F.T @ P @ np.linalg.inv(P.T @ P)  # (19)
    risk = {
        name: np.sum((P @ B.T - F) ** 2) for name, B in (("A⁺", np.linalg.pinv(A)), ("19", best))
    }
    assert risk["A⁺"] == pytest.approx(20)  # every crumb falls from the table to the floor
    assert risk["19"] < 5
    gradient = slope(lambda B: np.sum((P @ B.T - F) ** 2), best)
    assert close(gradient, np.zeros((3, 2)), 1e-6)


def test_independent_vectors_need_not_be_orthogonal():
    """[Crumbs], above (14)."""
    B = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    assert np.linalg.matrix_rank(B) == 2
    assert (B.T @ B)[0, 1] == 1
    Q = np.linalg.qr(B)[0]  # the span has an orthonormal basis all the same: a choice
    assert close(Q.T @ Q, np.eye(2))
    assert close(Q @ Q.T @ B, B)


def test_a_diagonal_product_need_not_be_the_identity():
    """[Crumbs], the closing remark: a scale of each column is still free."""
    P, B = HALF.model.transform(TABLE), HALF.W
    scale = np.array([2.0, 5.0])
    other, inverse = B * scale, P / scale
    assert close(inverse @ other.T, P @ B.T)  # the same risk
    assert close(other.T @ other, np.diag(scale**2))
    assert close(B.T @ B, np.eye(2))


def test_any_eigenvectors_are_stationary_and_only_the_largest_are_least():
    """[Crumbs] (21)–(26) hold for every choice of eigenvectors; the note does not say which."""
    F = ALL.X
    square = F.T @ F
    risks = {}
    for chosen in ([0, 1], [2, 3]):
        B = ALL.W[:, chosen]
        P = F @ B
        products = P.T @ P
        assert close(products, np.diag(np.diagonal(products)))  # (21)
        assert close(square @ B, B @ products)  # (23)
        assert close(F @ F.T @ P, P @ products)  # (25)
        risks[tuple(chosen)] = np.sum((P @ B.T - F) ** 2)
    assert risks[0, 1] == pytest.approx(np.sum(HALF.model.residuals(TABLE) ** 2))
    assert risks[0, 1] < risks[2, 3]


# "Principal Component Analysis Algorithm Derivation"


def test_a_reconstruction_has_no_zeros_in_the_columns_of_the_data():
    """[Derivation] §2, §3: x̃ is zero beyond M in the basis b, not in the data's own columns."""
    restored = HALF.model.inverse_transform(HALF.model.transform(TABLE)) - HALF.model.mean_
    assert np.abs(restored[:, 2:]).max() > 0.1
    assert close(restored @ ALL.W[:, 2:], np.zeros((9, 2)))


def test_a_distance_is_the_root_of_the_sum_of_squares():
    """[Derivation] §2."""
    left = HALF.model.residuals(TABLE)
    distances = np.linalg.norm(left, axis=1)
    assert not close(distances, np.sum(left**2, axis=1), 1e-2)
    assert close(distances, np.sqrt(np.sum(left**2, axis=1)))


def test_it_is_the_residual_that_is_orthogonal_and_to_the_basis():
    """[Derivation] §2, §3: x − x̃ ⊥ b_j and ⊥ x̃; x̃ is not orthogonal to x."""
    left = HALF.model.residuals(TABLE)
    restored = HALF.X - left
    assert close(left @ HALF.W, np.zeros((9, 2)))
    assert close(np.sum(left * restored, axis=1), np.zeros(9))
    assert close(np.sum(HALF.X * restored, axis=1), np.sum(restored**2, axis=1))
    assert np.sum(restored**2, axis=1).min() > 0.1


def test_it_is_the_rows_that_are_centred():
    """[Derivation] §4 (1): centred x give centred x̃; centred x̃ do not give centred x."""
    rows = np.column_stack([[-1.0, 0, 1], [5.0, 5, 5]])
    restored = rows * [1, 0]  # onto b₁ = e₁
    assert close(restored.mean(axis=0), np.zeros(2))
    assert not close(rows.T @ rows / 3, np.cov(rows.T, ddof=0), 1)
    assert close(HALF.X.mean(axis=0), np.zeros(4))
    assert close((HALF.X - HALF.model.residuals(TABLE)).mean(axis=0), np.zeros(4))


def test_unit_length_alone_does_not_make_the_lost_directions_different():
    """[Derivation] §4 (2), §6: without b_iᵀb_j = 0 all of them would be the last eigenvector."""
    last = ALL.W[:, 3]
    all_the_same = 2 * last @ ALL.sigma @ last
    assert all_the_same < 0.9 * HALF.model.lost_variance_
    for Q in frames(4, 2, 200):
        assert np.trace(Q.T @ ALL.sigma @ Q) >= HALF.model.lost_variance_


def test_the_loss_is_convex_in_each_of_its_arguments_but_not_in_both():
    """[Derivation] §4: J(β, b) = (1 − βb)² is 0 at (1, 1) and (−1, −1) and 1 half-way."""

    def loss(beta, b):
        return (1 - beta * b) ** 2

    assert loss(0, 0) > (loss(1, 1) + loss(-1, -1)) / 2
    for t in np.linspace(-2, 2, 9):
        for a, b in ((t, 0.3), (t, -1.7)):
            assert loss((a + b) / 2, 1.3) <= (loss(a, 1.3) + loss(b, 1.3)) / 2
            assert loss(1.3, (a + b) / 2) <= (loss(1.3, a) + loss(1.3, b)) / 2


def test_a_basis_vector_moves_every_row():
    """[Derivation] §4: ∂J/∂b_j is a sum over the rows; ∂J/∂β_ij is not."""
    X, W, Z = HALF.X, HALF.W, HALF.model.transform(TABLE) + 0.5
    gradient = slope(lambda b: np.mean(np.sum((X - Z @ np.array([b, W[:, 1]])) ** 2, 1)), W[:, 0])
    each = -2 / 9 * (X - Z @ W.T) * Z[:, :1]  # (∂J/∂x̃_i)(∂x̃_i/∂b_1), a row of it for each i
    assert not any(close(row, gradient, 1e-3) for row in each)
    assert close(each.sum(axis=0), gradient)


def test_the_multiplier_is_minus_the_eigenvalue_where_the_constraint_is_added():
    """[Derivation] §6: ∂/∂b (bᵀSb + λ(bᵀb − 1)) = 2bᵀS + 2λbᵀ, so Sb = −λb; or subtract it."""
    b, value = ALL.W[:, 3], ALL.model.explained_variance_[3]

    def lagrangian(b, multiplier):
        return b @ ALL.sigma @ b + multiplier * (b @ b - 1)

    assert not close(slope(lambda b: lagrangian(b, value), b), np.zeros(4), 0.1)
    assert close(slope(lambda b: lagrangian(b, -value), b), np.zeros(4))


def test_the_derivative_of_the_quadratic_form_runs_over_the_entries_of_one_vector():
    """[Derivation] §6: b_{j′,j} s_{j′,k}, where b_{j′,k} s_{j′,k} is printed."""
    S, B = ALL.sigma, random.normal(size=(4, 4))
    j, k = 1, 2
    wanted = slope(lambda b: b @ S @ b, B[:, j])[k]
    first = S[k] @ B[:, j]
    assert abs(first + B[:, k] @ S[:, k] - wanted) > 1e-3
    assert first + B[:, j] @ S[:, k] == pytest.approx(wanted)
    assert 2 * first == pytest.approx(wanted)


def test_eigenvalues_may_be_tied():
    """[Derivation] §6 orders them with >; on a square two are equal and the basis is a choice."""
    square = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    model = PCA(1, ddof=0).fit(square)
    assert model.spectrum_[0] == pytest.approx(model.spectrum_[1], rel=1e-15)
    for angle in np.linspace(0, np.pi, 7):
        assert np.var(square @ [np.cos(angle), np.sin(angle)]) == pytest.approx(1)


def test_the_covariance_is_made_of_outer_products():
    """[Derivation] §7: x_iᵀx_i is a number, the mean of which is Tr(S)."""
    inner = np.mean([x @ x for x in ALL.X])
    assert inner == pytest.approx(ALL.model.total_variance_)
    assert close(np.mean([np.outer(x, x) for x in ALL.X], axis=0), ALL.sigma)


def test_multiplying_by_the_table_cannot_be_undone():
    """[Derivation] §7: ⇒ and not ⇔. A vector that X or Xᵀ sends to 0 solves the new equation."""
    X = WIDE - WIDE.mean(axis=0)
    S, other = X.T @ X / 5, X @ X.T / 5
    kernel = np.linalg.svd(X)[2][-1]  # Xb = 0, since there are more columns than rows
    assert close(other @ (X @ kernel), 3 * (X @ kernel))  # with any λ, here 3
    assert not close(S @ kernel, 3 * kernel, 0.1)
    ones = np.ones(5)  # Xᵀ1 = 0, since the rows are centred
    assert close(S @ (X.T @ ones), 3 * (X.T @ ones))
    assert not close(other @ ones, 3 * ones, 0.1)
    values, vectors = np.linalg.eigh(other)
    for value, u in zip(values[1:], vectors[:, 1:].T, strict=True):  # λ > 0: both ways hold
        lifted = X.T @ u / np.linalg.norm(X.T @ u)
        assert close(S @ lifted, value * lifted)


# "Dimensionality Reduction with Principal Component Analysis"


def test_a_compressed_dataset_on_the_first_axis_needs_the_first_coordinate():
    """[Lecture], Motivation: figure (b) keeps x₁, the text under it asks for x₂."""
    rows = random.normal(size=(30, 2)) * [5, 0.5]
    model = PCA(1, ddof=0).fit(rows)
    assert abs(model.components_[0, 0]) > 0.99
    compressed = rows * [1, 0]  # figure (b)
    assert close(np.column_stack([compressed[:, 0], np.zeros(30)]), compressed)
    assert not close(np.column_stack([np.zeros(30), compressed[:, 1]]), compressed, 1)


def test_the_score_of_house_c_is_two_roots_of_two():
    """[Lecture], Idea of PCA: 2.82 is cut off, not rounded; the others are rounded."""
    scores = PCA().fit_transform(samples.load("house-prices").X)[:, 0]
    assert scores[2] == pytest.approx(2 * np.sqrt(2))
    assert round(float(scores[2]), 2) == 2.83
    assert [round(float(score), 2) for score in scores[[0, 1, 3]]] == [7.07, -4.24, -5.66]


def test_the_house_prices_are_centred_and_not_normalised():
    """[Lecture], Idea of PCA: divided by their deviations too, they would not give 7.07."""
    table = samples.load("house-prices").X
    assert PCA(standardize=True).fit_transform(table)[0, 0] < 3
    assert PCA().fit_transform(table)[0, 0] == pytest.approx(5 * np.sqrt(2))


def test_the_matrix_of_the_basis_is_not_the_projection():
    """[Lecture] 10.1 calls B the projection matrix; it is BBᵀ, as in 10.2.2 and 10.3.3."""
    B = HALF.W
    with pytest.raises(ValueError, match="mismatch"):
        B @ B
    assert close(B @ B.T @ B @ B.T, B @ B.T)
    assert close(HALF.X @ B @ B.T, HALF.X - HALF.model.residuals(TABLE))


def test_the_loss_is_the_trace_of_the_projected_covariance():
    """[Lecture] 10.3.3: a number, "the covariance matrix … projected" is a matrix."""
    outside = ALL.W[:, 2:] @ ALL.W[:, 2:].T
    projected = outside @ ALL.sigma @ outside
    assert np.linalg.norm(projected) < 0.99 * HALF.model.lost_variance_
    assert np.trace(projected) == pytest.approx(HALF.model.lost_variance_)
    assert np.trace(outside @ ALL.sigma) == pytest.approx(HALF.model.lost_variance_)


def test_centred_rows_have_at_most_n_minus_one_eigenvalues_above_zero():
    """[Lecture] 10.5: the N × N matrix of centred rows sends (1, …, 1) to 0."""
    X = WIDE - WIDE.mean(axis=0)
    gram = X.T @ X, X @ X.T
    assert [int(np.linalg.matrix_rank(product)) for product in gram] == [4, 4]
    assert close(gram[1] @ np.ones(5), np.zeros(5))
    assert np.linalg.eigvalsh(WIDE @ WIDE.T)[0] > 0.1  # without centring it is as the note says
    model = PCA(ddof=0, solver="gram").fit(WIDE)
    assert model.rank_ == 4
    assert model.spectrum_.size == 5
    assert model.spectrum_[4] < ROUNDING * model.spectrum_[0]


def test_a_lifted_vector_must_be_made_a_unit_vector():
    """[Lecture] 10.5: Xc_m has the length Nλ_m for c_m = Xᵀb_m, and √(Nλ_m) for a unit c_m."""
    model = PCA(4, ddof=0, solver="gram").fit(WIDE)
    X = (WIDE - WIDE.mean(axis=0)).T  # points as columns, as the note has them
    for b, value in zip(model.components_, model.explained_variance_, strict=True):
        c = X.T @ b
        lifted = X @ c
        assert np.linalg.norm(lifted) == pytest.approx(5 * value)
        assert np.linalg.norm(X @ c / np.linalg.norm(c)) == pytest.approx(np.sqrt(5 * value))
        assert not close(lifted, b, 0.1)
        assert close(lifted / np.linalg.norm(lifted), b)
