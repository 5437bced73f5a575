import numpy as np
import pytest

from gnomon.pca.solvers.krylov import leading, ritz

N = 200


def symmetric(values, seed=0):
    """A symmetric matrix with these eigenvalues along a random frame; and the frame."""
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))[0]
    A = (frame * values) @ frame.T
    return (A + A.T) / 2, frame


def find(A, k, *, block=16, tol=1e-10, seed=0, **options):
    def apply(Q):
        return A @ Q

    random = np.random.default_rng(seed)
    return leading(apply, len(A), k, block=block, tol=tol, random=random, **options)


def largest(A, k):
    return np.linalg.eigvalsh(A)[::-1][:k]


def measured(A, found):
    V = found.vectors
    return np.linalg.norm(A @ V - V * found.values[: V.shape[1]], axis=0)


def loss_of_orthogonality(V):
    return np.abs(V.T @ V - np.eye(V.shape[1])).max()


SPECTRA = {
    "decaying": (np.geomspace(1, 1e-6, N), 10),
    "slowly decaying": (np.geomspace(1, 1e-2, N), 30),
    "clustered": (
        np.r_[10 + 1e-6 * np.arange(10), 5 + 1e-6 * np.arange(10), np.linspace(1, 0, N - 20)],
        20,
    ),
    "all positive": (np.linspace(5, 1, N), 8),
    "rank-deficient": (np.r_[np.linspace(5, 1, 20), np.zeros(N - 20)], 10),
    "cut inside a repeated value": (np.r_[9.0, np.full(12, 3.0), np.linspace(1, 0, N - 13)], 7),
    "all the same": (np.ones(N), 5),
    "a single direction": (np.r_[1.0, np.zeros(N - 1)], 1),
}


@pytest.mark.parametrize(("values", "k"), SPECTRA.values(), ids=SPECTRA)
@pytest.mark.parametrize("block", [4, 16])
def test_leading_pairs_are_those_of_eigh(values, k, block):
    A, _ = symmetric(values)
    found = find(A, k, block=block, most_blocks=120)  # enough for the whole space
    assert found.converged
    assert found.vectors.shape == (N, k)
    # An eigenvalue's error is at most its residual, here tol times the largest eigenvalue.
    np.testing.assert_allclose(found.values[:k], largest(A, k), atol=1e-9 * values.max())
    assert measured(A, found).max() <= 1.01e-10 * values.max()
    assert loss_of_orthogonality(found.vectors) < 1e-12


def test_separated_vectors_are_those_of_eigh():
    A, frame = symmetric(np.geomspace(1, 1e-6, N))
    found = find(A, 10)
    cos = np.abs((found.vectors * frame[:, :10]).sum(axis=0))
    assert (1 - cos < 1e-12).all()


def test_all_pairs_of_a_small_operator_are_found():
    A, _ = symmetric(np.linspace(3, 0.1, 30))
    found = find(A, 30)
    assert found.converged
    np.testing.assert_allclose(found.values, largest(A, 30), atol=1e-13)
    assert loss_of_orthogonality(found.vectors) < 1e-12


def test_every_copy_of_a_repeated_value_is_found_although_a_block_shows_one_each():
    # A closed subspace of 16 columns holds 16 copies of 10 and says that it has converged.
    A, _ = symmetric(np.r_[np.full(40, 10.0), np.ones(N - 40)])
    found = find(A, 30, block=16, tol=1e-5)
    assert found.converged
    np.testing.assert_allclose(found.values[:30], 10, atol=1e-12)
    assert measured(A, found).max() < 1e-10


def test_more_than_the_rank_gives_zeros_and_still_an_orthonormal_frame():
    A, frame = symmetric(np.r_[5.0, 4.0, 3.0, np.zeros(N - 3)])
    found = find(A, 30)
    assert found.converged
    assert found.vectors.shape == (N, 30)
    np.testing.assert_allclose(found.values[:3], [5, 4, 3], rtol=1e-13)
    np.testing.assert_allclose(found.values[3:30], 0, atol=1e-13)
    assert loss_of_orthogonality(found.vectors) < 1e-12
    assert np.abs(frame[:, :3].T @ found.vectors[:, 3:]).max() < 1e-12


def test_fewer_columns_than_wanted_are_never_called_converged():
    A, _ = symmetric(np.r_[5.0, 4.0, 3.0, np.zeros(N - 3)])
    found = find(A, 30, block=8, most_blocks=2)
    assert found.vectors.shape == (N, 16)
    assert found.residuals.max() < 1e-12
    assert not found.converged


CLOSED = {
    "one column at a time": (np.r_[1.0, np.zeros(99)], 5, 1),
    "of low rank": (np.r_[5.0, 4.0, 3.0, np.zeros(97)], 30, 8),
    "all the same": (np.ones(100), 20, 3),
}


@pytest.mark.parametrize(("values", "k", "block"), CLOSED.values(), ids=CLOSED)
def test_a_subspace_that_closes_without_rounding_is_left_by_random_columns(values, k, block):
    # Along the axes products are exact: what is left of a block is nothing, or nearly so, and
    # must not be taken for a direction.
    def apply(Q):
        return values[:, None] * Q

    found = leading(apply, 100, k, block=block, tol=1e-10, random=np.random.default_rng(0))
    assert found.converged
    assert found.vectors.shape == (100, k)
    assert loss_of_orthogonality(found.vectors) < 1e-12
    np.testing.assert_allclose(found.values[:k], values[:k], atol=1e-13)


def test_no_more_products_are_made_than_blocks_are_allowed():
    # Columns are dropped here, so that the basis is not full when the blocks are used up.
    values = np.r_[5.0, 4.0, 3.0, np.zeros(197)]
    random = np.random.default_rng(0)
    found = leading(
        lambda Q: values[:, None] * Q, 200, 30, block=2, tol=1e-10, random=random, most_blocks=10
    )
    assert found.products == 10
    assert not found.converged


def test_an_operator_of_zeros_is_answered_with_zeros():
    found = find(np.zeros((50, 50)), 5)
    assert found.converged
    assert (found.values == 0).all()
    assert loss_of_orthogonality(found.vectors) < 1e-12


@pytest.mark.parametrize("k", [20, 100])
def test_the_basis_stays_orthonormal_when_eigenvalues_fall_to_1e_12(k):
    # Late blocks are almost parallel to the former ones: without the second projection the basis
    # loses its orthogonality and the values add up to more than the trace.
    values = np.geomspace(1, 1e-12, N)
    A, _ = symmetric(values)
    found = find(A, k, tol=1e-15)
    assert loss_of_orthogonality(found.vectors) < 1e-12
    assert found.values[:k].sum() <= values.sum() * (1 + 1e-13)
    np.testing.assert_allclose(found.values[:k], values[:k], atol=1e-14)


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
def test_the_residuals_told_are_those_measured(tol):
    A, _ = symmetric(np.geomspace(1, 1e-2, N))
    found = find(A, 10, block=8, tol=tol)
    assert found.residuals.shape == (11,)  # and that of the next one
    # They differ by the rounding of the products.
    np.testing.assert_allclose(found.residuals[:10], measured(A, found), rtol=1e-3, atol=1e-14)
    assert found.converged == (measured(A, found).max() <= tol * found.values[0])


def test_a_looser_tolerance_needs_fewer_products():
    A, _ = symmetric(np.geomspace(1, 1e-2, N))
    products = [find(A, 10, block=8, tol=tol).products for tol in (1e-1, 1e-4, 1e-10)]
    assert products == sorted(products)
    assert products[0] < products[-1]


def test_products_are_counted():
    A, _ = symmetric(np.geomspace(1, 1e-3, N))
    calls = []

    def apply(Q):
        calls.append(Q.shape[1])
        return A @ Q

    found = leading(apply, N, 10, block=12, tol=1e-8, random=np.random.default_rng(0))
    assert found.products == len(calls)
    assert max(calls) <= 12


@pytest.mark.parametrize("most_blocks", [20, 40])
def test_a_flat_spectrum_is_given_up_half_way_and_says_so(most_blocks):
    # A diagonal operator: the random first block is as good along the axes as along any frame.
    values = np.linspace(1, 0.9, 1000)

    def apply(Q):
        return values[:, None] * Q

    random = np.random.default_rng(0)
    found = leading(apply, 1000, 10, block=16, tol=1e-9, random=random, most_blocks=most_blocks)
    assert not found.converged
    assert most_blocks / 2 <= found.products <= most_blocks / 2 + 3
    image = apply(found.vectors) - found.vectors * found.values[:10]
    np.testing.assert_allclose(found.residuals[:10], np.linalg.norm(image, axis=0), rtol=1e-6)
    assert found.values[:10].max() <= 1 + 1e-12


def test_a_spectrum_within_reach_is_not_given_up_half_way():
    values = np.r_[np.linspace(2, 1.5, 10), np.linspace(1, 0, 990)]

    def apply(Q):
        return values[:, None] * Q

    random = np.random.default_rng(0)
    found = leading(apply, 1000, 10, block=16, tol=1e-9, random=random, most_blocks=24)
    assert found.converged
    assert found.products > 12


def test_the_answer_is_orthogonal_to_what_it_is_kept_against():
    values = np.geomspace(1, 1e-3, N)
    A, frame = symmetric(values)
    found = find(A, 6, against=frame[:, :5])
    assert found.converged
    np.testing.assert_allclose(found.values[:6], values[5:11], rtol=1e-9)
    assert np.abs(frame[:, :5].T @ found.vectors).max() < 1e-12
    assert loss_of_orthogonality(found.vectors) < 1e-12


def test_what_little_room_is_left_is_filled():
    values = np.linspace(20, 1, 20)
    A, frame = symmetric(values)
    found = find(A, 2, block=4, against=frame[:, :18])
    np.testing.assert_allclose(found.values, [2, 1], rtol=1e-12)
    assert np.abs(frame[:, :18].T @ found.vectors).max() < 1e-12


def test_a_step_hears_of_every_product_and_can_stop():
    A, _ = symmetric(np.linspace(1, 0.5, N))
    heard = []

    def step(*, residual, products):
        heard.append((products, residual))
        return products == 3

    found = find(A, 20, block=8, tol=1e-12, step=step)
    assert [products for products, _ in heard] == [1, 2, 3]
    assert np.isinf([residual for _, residual in heard][:2]).all()  # fewer columns than wanted
    assert np.isfinite(heard[2][1])
    assert found.products == 3
    assert not found.converged
    np.testing.assert_allclose(found.residuals[:20], measured(A, found), rtol=1e-6)


def test_stopped_before_there_are_enough_columns_it_gives_those_there_are():
    A, _ = symmetric(np.linspace(1, 0.5, N))
    found = find(A, 20, block=8, step=lambda **_: True)
    assert found.products == 1
    assert not found.converged
    assert found.vectors.shape == (N, 8)
    assert loss_of_orthogonality(found.vectors) < 1e-12


def test_one_two_and_four_threads_give_the_same_bits():
    # Long enough for several blocks of rows.
    values = np.geomspace(1, 1e-4, 9000)

    def answer(n_jobs):
        return leading(
            lambda Q: values[:, None] * Q,
            9000,
            6,
            block=8,
            tol=1e-6,
            n_jobs=n_jobs,
            random=np.random.default_rng(0),
            most_blocks=12,
        )

    one = answer(1)
    for n_jobs in (2, 4):
        many = answer(n_jobs)
        assert np.array_equal(one.vectors, many.vectors)
        assert np.array_equal(one.values, many.values)
        assert np.array_equal(one.residuals, many.residuals)


def test_the_same_seed_gives_the_same_bits_and_another_seed_the_same_answer():
    A, _ = symmetric(np.geomspace(1, 1e-4, N))
    one, again, other = (find(A, 10, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.vectors, again.vectors)
    assert not np.array_equal(one.vectors, other.vectors)
    np.testing.assert_allclose(one.values[:10], other.values[:10], rtol=1e-12)


def test_ritz_pairs_are_the_best_within_the_span_and_their_residuals_are_measured():
    A, frame = symmetric(np.geomspace(1, 1e-3, N))
    rng = np.random.default_rng(1)
    turned = frame[:, :5] @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    V, values, residuals = ritz(lambda Q: A @ Q, turned)
    np.testing.assert_allclose(values, np.geomspace(1, 1e-3, N)[:5], rtol=1e-12)
    assert residuals.max() < 1e-14
    rough = np.linalg.qr(frame[:, :5] + 0.01 * rng.standard_normal((N, 5)))[0]
    V, values, residuals = ritz(lambda Q: A @ Q, rough)
    assert loss_of_orthogonality(V) < 1e-13
    np.testing.assert_allclose(residuals, np.linalg.norm(A @ V - V * values, axis=0), rtol=1e-10)
    np.testing.assert_allclose(V.T @ A @ V, np.diag(values), atol=1e-14)


def test_noise_is_not_taken_for_directions_when_a_subspace_closes():
    # What is left of the last block is rounding, and several of its columns point the same way.
    rng = np.random.default_rng(0)
    half = rng.standard_normal((64, 31)) * np.geomspace(9, 1, 31)
    A = half @ half.T
    found = find(A, 3, block=13, tol=1e-5, seed=1)
    assert found.converged
    whole = find(A, 40, block=13, tol=1e-5, seed=1)
    assert loss_of_orthogonality(whole.vectors) < 1e-12
    np.testing.assert_allclose(whole.values[:31], largest(A, 31), rtol=1e-10)


def test_a_short_basis_reaches_its_tolerance_and_says_what_it_reached():
    A, _ = symmetric(np.geomspace(1, 1e-3, N))
    found = find(A, 10, block=8, tol=2e-6, work=np.float32)
    assert found.converged
    np.testing.assert_allclose(found.values[:10], largest(A, 10), atol=1e-6)
    assert measured(A, found).max() <= 3e-6  # and a rounding of float32
    assert loss_of_orthogonality(found.vectors) < 1e-5
