import numpy as np
import pytest
from procrustes.sets import pair

from gnomon import CrossMoments
from gnomon.errors import DataError, MissingValueError
from gnomon.procrustes import narrow
from gnomon.procrustes.narrow import BLOCK, WIDEST
from gnomon.procrustes.row_pairs import view_arrays
from gnomon.procrustes.similarity import Rules, Squares, fit_similarity


def moments_as_arrays(m):
    return [m.x.mean, m.y.mean, m.x.scatter, m.y.scatter, m.cross]


@pytest.mark.parametrize(
    "shape", [(50, 2, 2), (50, 3, 8), (50, 9, 4), (40_000, 3, 2), (3_000, 20, 30)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_a_pair_are_those_of_extended_precision(shape, weighted):
    n, dx, dy = shape
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(n, dx)) + 5, random.normal(size=(n, dy)) - 3
    w = random.integers(0, 4, n).astype(float) if weighted else None
    found = CrossMoments.of(X, Y, w)
    ones = np.ones(n, np.longdouble) if w is None else w.astype(np.longdouble)
    means = [ones @ Z / ones.sum() for Z in (X, Y)]
    A, B = (Z - mean for Z, mean in zip((X, Y), means, strict=True))
    squares = [ones @ (Z * Z) for Z in (A, B)]
    # sums of n squares about 1: a few n · 1e-16
    for a, b in zip(moments_as_arrays(found), [*means, *squares, (A.T * ones) @ B], strict=True):
        assert np.allclose(a, b.astype(float), rtol=1e-12, atol=n * 1e-14)
    assert (found.x.n, found.x.weight) == (np.count_nonzero(ones), float(ones.sum()))


@pytest.mark.parametrize("d", [2, WIDEST, WIDEST + 1, 40])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_bits_depend_on_the_numbers_only(d, dtype):
    X, Y = (np.round(100 * Z).astype(dtype) for Z in pair(n=2 * BLOCK + 77, d=d))
    expected = moments_as_arrays(view_arrays(X, Y, n_jobs=1).moments())
    strided = np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2]
    frozen = X.copy()
    frozen.flags.writeable = False
    swapped = X.astype(X.dtype.newbyteorder())
    for variant in (np.asfortranarray(X), strided, frozen, swapped):
        for n_jobs in (1, 2, 4):
            found = moments_as_arrays(view_arrays(variant, Y, n_jobs=n_jobs).moments())
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("d", [2, 12])
def test_residuals_have_the_same_bits_for_any_number_of_threads(d):
    X, Y = pair(n=2 * BLOCK + 5, d=d)
    squares = []
    for n_jobs in (1, 2, 4):
        both = view_arrays(X, Y, n_jobs=n_jobs)
        found = fit_similarity(both.moments(), Rules(scaling=True))
        squares.append(both.each_row(Squares(found, ((found.scale, 1.0), (1.0, 1.0))), lines=2))
    assert np.array_equal(squares[0], squares[1])
    assert np.array_equal(squares[0], squares[2])


@pytest.mark.parametrize("d", [2, 12])
@pytest.mark.parametrize("centering", [False, True])
def test_residuals_are_those_of_the_map(d, centering):
    X, Y = pair(d=d, shift=1000.0)
    both = view_arrays(X, Y)
    found = fit_similarity(both.moments(), Rules(scaling=True, centering=centering))
    sq = both.each_row(Squares(found, ((found.scale, found.factor),)))[0]
    x, y = (Z - Z.mean(axis=0) if centering else Z for Z in (X, Y))
    expected = ((found.scale * x @ found.rotation.matrix - y) ** 2).sum(axis=1)
    # differences of numbers about 1,000 when not centred: 1e-13 each
    assert np.allclose(sq, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("dx", "dy"), [(2, 2), (3, 2), (2, 5), (WIDEST, WIDEST)])
def test_short_blocks_agree_with_the_compiled_loops(monkeypatch, dx, dy):
    random = np.random.default_rng(1)
    m, D = 1_000, max(dx, dy)
    columns, w = random.normal(size=(dx + dy, m)), random.random(m)
    R, offset = random.normal(size=(dx, D)), random.normal(size=dx + dy)

    def both():
        sums, sq = np.empty(2 * (dx + dy) + dx * dy), np.empty(m)
        narrow.pair_sums(columns, dx, w, sums)
        narrow.sq_residuals(columns, R, 0.7, 1.3, offset, sq)
        return sums, sq

    short = both()
    monkeypatch.setattr(narrow, "SMALL_UP_TO", 0)
    loops = both()
    assert np.allclose(short[0], loops[0], rtol=0, atol=m * 1e-15)  # m roundings of a sum about m
    assert np.allclose(short[1], loops[1], rtol=1e-12, atol=1e-13)  # squares of differences about 1
    monkeypatch.setattr(narrow, "SMALL_UP_TO", m)
    for name in ("_pair_sums", "_sq_residuals"):
        monkeypatch.setattr(narrow, name, None)  # a short block does not call them
    both()


@pytest.mark.parametrize("n", [narrow.SMALL_UP_TO, narrow.SMALL_UP_TO + 1])
def test_short_tables_have_the_same_bits_in_any_layout(n):
    X, Y = pair(n=n, d=2)
    expected = moments_as_arrays(view_arrays(X, Y, n_jobs=1).moments())
    shifted = np.empty(2 * n + 1)[1:].reshape(n, 2)  # another alignment
    shifted[...] = X
    for variant in (np.asfortranarray(X), np.repeat(X, 2, 1)[:, ::2], shifted):
        for n_jobs in (1, 4):
            found = moments_as_arrays(view_arrays(variant, Y, n_jobs=n_jobs).moments())
            assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


def test_numbers_that_the_sample_missed_get_units_of_their_own():
    # the sample of rows that the units are chosen from skips the one large row
    X, Y = pair(n=5000, d=2)
    X, Y = X * 1e-3, Y * 1e-3
    X[3] = 1e160
    found = view_arrays(X, Y).moments()
    assert found.x.exponent > 0
    assert np.isfinite(found.cross).all()
    assert np.ldexp(np.sqrt(found.x.scatter[0]), found.x.exponent) == pytest.approx(1e160, rel=1e-3)


def test_rows_must_be_paired():
    X, Y = pair()
    with pytest.raises(DataError, match=r"same number of rows; got 60 and 59.*align"):
        view_arrays(X, Y[:59])


def test_a_missing_value_is_found_in_the_table_that_holds_it():
    X, Y = pair()
    Y[7, 1] = np.nan
    with pytest.raises(MissingValueError, match=r"^Y holds 1 missing value.*row 7, column 1"):
        view_arrays(X, Y).moments()
    Y[7, 1] = np.inf
    with pytest.raises(DataError, match=r"^Y holds 1 infinite value.*row 7, column 1"):
        view_arrays(X, Y).moments()
