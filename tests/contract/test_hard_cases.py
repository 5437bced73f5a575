"""Hard cases by estimator: 3–9, 16, 18 and 20.

Those that concern every estimator alike (1, 2, 10–14, 17, 19: refused, or read alike) are in
`test_bad_input.py`. Every case names in `who` the kinds of estimators that it applies to; a new
estimator is a line in `KINDS` and a word in the cases that make sense for it.
"""

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from contract.test_bad_input import GOOD, UNIQUE, fitted

from gnomon import PCA, TSNE, Procrustes

RNG = np.random.default_rng(2)
WHOLE = RNG.integers(-500, 500, GOOD.shape)
SHORT = np.round(GOOD * 64) / 64  # few enough digits to survive as subnormals
SPARSE = np.where(RNG.uniform(size=GOOD.shape) < 0.5, GOOD, 0.0)


KINDS: dict[str, Callable[[Any], bool]] = {
    "pca": lambda estimator: isinstance(estimator, PCA),
    "tsne": lambda estimator: isinstance(estimator, TSNE),
    "procrustes": lambda estimator: isinstance(estimator, Procrustes),
    # in other units the target is as far away as before, unless the scale is fitted too
    "scaling": lambda estimator: isinstance(estimator, Procrustes) and estimator.scaling,
}


def nothing(estimator: Any) -> str:
    """No warning."""
    return ""


@dataclass(frozen=True)
class Case:
    """One table, and what every estimator of `who` must make of it.

    Attributes
    ----------
    number
        In the design's table of hard cases.
    who
        Words of `KINDS`.
    like
        A plain table with the same answer, up to a common factor; None where there is none.
    tol
        Of what is compared, which is of size 1. 0: the same bits.
    warning
        What the one warning says, by estimator; "" for none.
    error
        What the error says, where there is no right answer.
    """

    number: int
    name: str
    who: str
    X: Any
    like: Any = None
    tol: float = 1e-9
    warning: Callable[[Any], str] = nothing
    error: str = ""


def moved(X: Any, mean: float) -> Any:
    """`X` as it is stored, about zero and without a further rounding."""
    return (X.astype(np.longdouble) - mean).astype(np.float64)


def with_column(value: float) -> Any:
    return np.column_stack([GOOD, np.full(len(GOOD), value)])


def scaled(X: Any, *, row: float = 1.0, column: float = 1.0) -> Any:
    X = X.copy()
    X[17] *= row
    X[:, 2] *= column
    return X


def untidy(dense: Any) -> dict[str, Any]:
    """The same sparse table with explicit zeros, with entries in two halves, and unsorted."""
    rows, columns = np.nonzero(dense)
    values = dense[rows, columns]
    zero = np.argwhere(dense == 0)[0]
    at = (np.r_[rows, zero[0]], np.r_[columns, zero[1]])
    twice = (np.r_[rows, rows], np.r_[columns, columns])
    backwards = sp.csr_array(dense)
    for i in range(dense.shape[0]):
        part = slice(backwards.indptr[i], backwards.indptr[i + 1])
        backwards.indices[part] = backwards.indices[part][::-1].copy()
        backwards.data[part] = backwards.data[part][::-1].copy()
    backwards.has_sorted_indices = False
    return {
        "explicit zeros": sp.coo_array((np.r_[values, 0.0], at), dense.shape),
        "duplicates": sp.coo_array((np.r_[values, values] / 2, twice), dense.shape),
        "unsorted": backwards,
    }


def of_standardised(text: str) -> Callable[[Any], str]:
    return lambda estimator: text if getattr(estimator, "standardize", False) else ""


def of_raw(text: str) -> Callable[[Any], str]:
    return lambda estimator: "" if getattr(estimator, "standardize", False) else text


def out_of_range(where: str) -> Callable[[Any], str]:
    """Variances in units of the table: those of PCA, and of the PCA that a t-SNE begins with."""
    said = of_raw(f"Variances are {where} the range of float64")
    return lambda estimator: "" if isinstance(estimator, Procrustes) else said(estimator)


FAR32 = (5 * GOOD + 1e3).astype(np.float32)
FAR64 = GOOD + 1e8
ONE_CONSTANT = of_standardised(r"1 constant column \(first: 5\)")
ALL_SAME = "All rows are the same"

CASES = [
    Case(3, "a column of zeros", "pca tsne", with_column(0.0), GOOD, warning=ONE_CONSTANT),
    Case(
        3, "a constant column", "pca tsne", with_column(1e6 / 3), GOOD, 1e-7, warning=ONE_CONSTANT
    ),
    Case(4, "all zero", "pca", np.zeros((40, 5)), warning=lambda _: ALL_SAME),
    Case(4, "all constant", "pca", np.full((40, 5), 3.7), warning=lambda _: ALL_SAME),
    Case(5, "all rows are identical", "tsne", np.full((40, 5), 3.7), error="identical"),
    Case(6, "six points, ten copies of each", "tsne", np.repeat(GOOD[:6], 10, axis=0)),
    # The numbers themselves are rounded to 6e-5 (float32 at 1,000, spread 5) and 1.5e-8.
    Case(7, "float32 far from zero", "pca tsne procrustes", FAR32, moved(FAR32, 1e3), 1e-5),
    Case(7, "float64 far from zero", "pca tsne procrustes", FAR64, moved(FAR64, 1e8), 1e-7),
    Case(
        8,
        "times 2^664",
        "pca tsne scaling",
        np.ldexp(GOOD, 664),
        GOOD,
        0,
        warning=out_of_range("above"),
    ),
    Case(
        8,
        "times 2^-664",
        "pca tsne scaling",
        np.ldexp(GOOD, -664),
        GOOD,
        0,
        warning=out_of_range("below"),
    ),
    Case(
        8,
        "times 1e200",
        "pca tsne scaling",
        GOOD * 1e200,
        GOOD,
        1e-9,
        warning=out_of_range("above"),
    ),
    Case(
        8,
        "times 1e-200",
        "pca tsne scaling",
        GOOD * 1e-200,
        GOOD,
        1e-9,
        warning=out_of_range("below"),
    ),
    # The mean of subnormals has fewer digits than they have.
    Case(
        8,
        "subnormals",
        "pca tsne scaling",
        np.ldexp(SHORT, -1040),
        SHORT,
        1e-5,
        warning=out_of_range("below"),
    ),
    Case(9, "int64 near 2^60", "pca tsne procrustes", WHOLE + 2**60, WHOLE.astype(float)),
    Case(9, "int16", "pca tsne procrustes", WHOLE.astype(np.int16), WHOLE.astype(float)),
    Case(9, "uint8", "pca tsne procrustes", (WHOLE % 256).astype(np.uint8), (WHOLE % 256) * 1.0),
    Case(9, "bool", "pca tsne procrustes", WHOLE > 0, (WHOLE > 0) * 1.0),
    Case(16, "as many components as columns", "pca tsne", GOOD[:, :2]),
    Case(16, "one column, two dimensions", "tsne", GOOD[:, :1]),
    *(Case(18, name, "pca tsne", X, SPARSE, 1e-7) for name, X in untidy(SPARSE).items()),
    Case(
        20,
        "one row is far from all others",
        "pca tsne",
        scaled(GOOD, row=1e12),
        warning=lambda _: r"Row 17 .* alone decides .*[Dd]rop or check it",
    ),
    Case(
        20,
        "one column is large",
        "pca tsne",
        scaled(GOOD, column=1e9),
        warning=of_raw(r"Column 2 .* alone decides .*standardize=True"),
    ),
]

PAIRS = [
    (case, estimator)
    for case in CASES
    for estimator in UNIQUE
    if any(KINDS[kind](estimator) for kind in case.who.split())
]
IDS = [f"{case.number} {case.name}-{estimator!r}" for case, estimator in PAIRS]


def answer(model: Any, X: Any) -> Any:
    """What the model makes of its own rows, divided by its size.

    Of t-SNE the affinities: a map's place for a point depends on every rounding before it.
    """
    if isinstance(model, TSNE):
        assert np.isfinite(model.embedding_).all()
    Z = model.affinities_.toarray() if isinstance(model, TSNE) else np.asarray(model.transform(X))
    largest = np.abs(Z).max()
    return Z / largest if largest > 0 else Z


@pytest.mark.parametrize(("case", "estimator"), PAIRS, ids=IDS)
def test_a_hard_case_gives_the_right_answer_and_says_what_must_be_said(case, estimator):
    if case.error:
        with pytest.raises(ValueError, match=case.error):
            fitted(estimator, case.X)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(estimator, case.X)
    says = case.warning(estimator)
    said = [str(warning.message) for warning in caught]
    assert len(said) == (1 if says else 0), said
    assert not says or re.search(says, said[0])
    found = answer(model, case.X)
    assert np.isfinite(found).all()
    if case.like is None:
        return
    expected = answer(fitted(estimator, case.like), case.like)
    common = min(found.shape[1], expected.shape[1])
    np.testing.assert_allclose(found[:, :common], expected[:, :common], rtol=0, atol=case.tol)


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("pca", {3, 4, 7, 8, 9, 16, 18, 20}),
        ("tsne", {3, 5, 6, 7, 8, 9, 16, 18, 20}),
        ("procrustes", {7, 9}),
        ("scaling", {8}),
    ],
)
def test_the_table_holds_every_case_that_concerns_an_estimator(kind, numbers):
    assert {case.number for case in CASES if kind in case.who.split()} == numbers
