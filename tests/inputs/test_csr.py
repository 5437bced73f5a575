"""Sparse matrices whose indices lie: refused before a compiled loop follows them out of memory."""

import children
import numpy as np
import pytest
import scipy.sparse as sp

from gnomon.errors import DataError
from gnomon.inputs import as_table

FORMATS = ("csr", "csc", "bsr", "coo")


def matrix(form):
    """A matrix of 40 × 6 with about half of its entries."""
    dense = np.random.default_rng(0).uniform(size=(40, 6))
    return sp.csr_array(np.where(dense < 0.5, dense, 0)).asformat(form)


def point(X, where):
    """Let one entry of X stand in column (of csc: in row) `where`."""
    (X.coords[1] if X.format == "coo" else X.indices)[3] = where


def unsort(X, value):
    X.indptr[3] = value


BREAKS = {
    "far to the right": lambda X: point(X, 10**6),
    "one to the right": lambda X: point(X, X.shape[0] if X.format == "csc" else X.shape[1]),
    "to the left": lambda X: point(X, -1),
    "far to the left": lambda X: point(X, -(10**6)),
    "rows that end after the data": lambda X: unsort(X, 10**6),
    "rows that end before they begin": lambda X: unsort(X, X.indptr[5]),
    "negative ends": lambda X: unsort(X, -5),
    "a late beginning": lambda X: X.indptr.__setitem__(0, 1),
    "too many rows": lambda X: setattr(X, "indptr", np.append(X.indptr, X.indptr[-1])),
    "an end too few": lambda X: setattr(X, "indptr", X.indptr[:-1]),
    "fewer indices than ends": lambda X: setattr(X, "indices", X.indices[:-1]),
    "fewer numbers than indices": lambda X: setattr(X, "data", X.data[:-1]),
    "indices with fractions": lambda X: setattr(X, "indices", X.indices + 0.5),
}
OF_COO = (
    "far to the right",
    "one to the right",
    "to the left",
    "far to the left",
    "fewer numbers than indices",
)
CASES = [(form, how) for form in FORMATS for how in BREAKS if form != "coo" or how in OF_COO]


def broken(form, how):
    X = matrix(form)
    BREAKS[how](X)
    return X


@pytest.mark.parametrize(("form", "how"), CASES)
def test_a_broken_sparse_matrix_is_refused_and_left_alone(form, how):
    X = broken(form, how)
    names = ("data", "coords") if form == "coo" else ("data", "indices", "indptr")
    before = [np.array(getattr(X, name)) for name in names]
    with pytest.raises(
        DataError, match=rf"X is a broken sparse matrix \({form}, 40 × 6\): .* Build it again"
    ):
        as_table(X)
    for name, array in zip(names, before, strict=True):
        assert np.array_equal(getattr(X, name), array)


ESTIMATORS = """
import sys, warnings
import numpy as np
from inputs.test_csr import CASES, broken, matrix
from gnomon import PCA, TSNE, source
from gnomon.errors import DataError

warnings.simplefilter("ignore")
good = np.random.default_rng(1).normal(size=(40, 6))
pca = PCA(2).fit(good)
works = [
    PCA(2).fit, PCA(2, solver="krylov").fit, PCA(2).partial_fit, pca.transform,
    TSNE(perplexity=5, max_iter=5).fit, source,
    TSNE(perplexity=5, metric="precomputed", init="random", max_iter=5).fit,
    TSNE(affinity="precomputed", init="random", max_iter=5).fit,
]
for form, how in CASES:
    for number, work in enumerate(works):
        print(form, how, number, flush=True)
        try:
            work(broken(form, how))
        except DataError as error:
            assert "broken sparse matrix" in str(error), error
        else:
            raise AssertionError("was not refused")
print("ALL")
"""


def test_no_estimator_follows_a_wrong_index_out_of_memory(request):
    """In a child, which a wrong index would kill (case 32)."""
    folder = request.config.rootpath / "tests"
    done = children.run(["-c"], code=ESTIMATORS, folder=folder, timeout=120)
    assert done.stdout.splitlines()[-1:] == ["ALL"], (
        done.returncode,
        done.stdout[-80:],
        done.stderr,
    )


def test_whatever_scipy_converts_is_looked_at_afterwards():
    lists = sp.lil_array(np.eye(4))
    lists.rows[1] = [9]
    with pytest.raises(DataError, match="index 9, but columns run from 0 to 3"):
        as_table(lists)
    keys = sp.dok_array(np.eye(4))
    keys._dict[(0, 9)] = 1.0
    with pytest.raises(DataError, match="broken sparse matrix"):
        as_table(keys)
    diagonals = sp.dia_array((np.ones((1, 4)), [10**9]), shape=(4, 4))
    assert as_table(diagonals).nnz == 0


@pytest.mark.parametrize("shape", [(6,), (2, 3, 4)])
def test_a_sparse_array_of_another_number_of_axes_is_refused(shape):
    with pytest.raises(DataError, match="Expected 2D array"):
        as_table(sp.coo_array(np.ones(shape)))


def test_a_stale_flag_of_order_is_not_believed():
    X = sp.csr_array(np.arange(12.0).reshape(3, 4))
    assert X.has_canonical_format  # is remembered by SciPy
    X.indices[:3], X.data[:3] = X.indices[:3][::-1].copy(), X.data[:3][::-1].copy()
    table = as_table(X)
    assert table.indices[:3].tolist() == [1, 2, 3]
    assert np.array_equal(table.toarray(), np.arange(12.0).reshape(3, 4))
