import numpy as np
import pytest

from gnomon.pca import null
from gnomon.pca.null import null_eigenvalues
from gnomon.pca.rules import Spectrum, parallel, parallel_bars

EVEN = np.geomspace(1.0, 0.5, 400)


def refuse(*arguments):
    raise AssertionError("all eigenvalues were asked for")


@pytest.fixture
def small_is_large(monkeypatch):
    """Tables of 100 rows and columns count as large, so that tests are quick."""
    monkeypatch.setattr(null, "EXACT_SIDE", 100)


@pytest.fixture
def five_draws(monkeypatch):
    monkeypatch.setattr("gnomon.pca.rules.DRAWING_SECONDS", 0.0)


def exact(spread, rows, seed, most, dtype=np.float32):
    """By LAPACK, of the very table that `_leading` draws."""
    A, triangular = null._factor(spread, rows, np.random.default_rng(seed), dtype)
    A = A.astype(np.float64)
    return np.linalg.eigvalsh(A @ A.T if triangular else A)[::-1][:most]


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize(("rows", "most"), [(450, 8), (5000, 20), (250, 8)])
def test_leading_eigenvalues_are_those_of_lapack(rows, most, monkeypatch):
    expected = [exact(EVEN, rows, seed, most) for seed in (1, 2)]
    monkeypatch.setattr(np.linalg, "eigvalsh", refuse)
    found = null_eigenvalues(3 * EVEN, rows, [1, 2], most=most, n_jobs=1)
    # Residuals of 8e-3 leave far smaller errors; draws differ from each other by several per cent.
    np.testing.assert_allclose(found, 9 * np.array(expected), rtol=2e-3)


@pytest.mark.usefixtures("small_is_large")
def test_giant_columns_do_not_hide_the_others():
    spread = np.concatenate([[1e5, 3e4], EVEN])
    found = null_eigenvalues(spread, 500, [7], most=8, n_jobs=1)[0]
    # float32 cannot see the third beside the first, so float64 numbers were drawn
    np.testing.assert_allclose(found, exact(spread, 500, 7, 8, np.float64), rtol=2e-3)


@pytest.mark.usefixtures("small_is_large")
def test_threads_change_no_bit():
    one, two, four = (
        null_eigenvalues(EVEN, 450, range(5), most=8, n_jobs=n_jobs) for n_jobs in (1, 2, 4)
    )
    assert np.array_equal(one, two)
    assert np.array_equal(one, four)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_units_do_not_matter(small_is_large, scale):
    plain = null_eigenvalues(EVEN, 450, [3], most=8, n_jobs=1)
    scaled = null_eigenvalues(EVEN * scale, 450, [3], most=8, n_jobs=1)
    np.testing.assert_allclose(scaled / scale / scale, plain, rtol=1e-6)


def large(values, n=1300, d=1200):
    """A spectrum that begins with `values`, the rest below any bar."""
    whole = np.full(d, 0.1)
    whole[: len(values)] = values
    return Spectrum(whole, float(d), n, d, whole=True, variances=np.ones(d))


@pytest.mark.usefixtures("five_draws")
def test_a_large_table_is_judged_by_the_leading_eigenvalues_alone(monkeypatch):
    monkeypatch.setattr(np.linalg, "eigvalsh", refuse)
    assert parallel(large([9.0, 8.0, 7.0])) == 3
    assert parallel(large([])) == 0


@pytest.mark.usefixtures("five_draws")
def test_more_are_computed_only_while_all_are_beaten(monkeypatch):
    asked = []
    draw = null_eigenvalues

    def listen(*arguments, most, **options):
        asked.append(most)
        return draw(*arguments, most=most, **options)

    monkeypatch.setattr("gnomon.pca.rules.null_eigenvalues", listen)
    assert parallel(large(np.linspace(90, 9, 7))) == 7
    assert asked == [8]
    asked.clear()
    assert parallel(large(np.linspace(90, 9, 20))) == 20
    assert asked == [8, 32]


@pytest.mark.usefixtures("five_draws")
def test_bars_of_large_tables_are_those_of_all_eigenvalues(monkeypatch):
    quick = parallel_bars(large([]), 8)[:8]
    monkeypatch.setattr(null, "EXACT_SIDE", 10**6)
    slow = parallel_bars(large([]), 8)[:8]
    # other draws of the same law: the largest varies by about 0.8 % from draw to draw
    np.testing.assert_allclose(quick, slow, rtol=0.02)
