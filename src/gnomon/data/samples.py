"""Small tables for a first try, for the guide and for the tests; nothing is fetched.

Digits, iris, wine and breast-cancer come with scikit-learn. The house prices and the crumbs are the
worked examples of the lecture notes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import refuse

__all__ = [
    "Sample",
    "breast_cancer",
    "crumbs_on_the_floor",
    "crumbs_on_the_table",
    "digits",
    "house_prices",
    "iris",
    "load",
    "names",
    "wine",
]


@dataclass(frozen=True, eq=False)
class Sample:
    """A table with its names and where it is from.

    Attributes
    ----------
    name : str
        What `load` knows it by.
    X : array of float64, shape (n, d)
        The numbers, read-only: every caller of `load` may share them.
    columns : tuple of str, length d
        What each column measures.
    labels : array of str, shape (n,), or None
        A known grouping of the rows, good for colour and never part of `X`.
    ids : array of str, shape (n,), or None
        What each row is called.
    label_name : str or None
        What the labels are, for instance "species".
    source : str
        One sentence on where the numbers are from.
    """

    name: str
    X: NDArray[np.float64]
    columns: tuple[str, ...]
    labels: NDArray[np.str_] | None
    ids: NDArray[np.str_] | None
    label_name: str | None
    source: str

    def __str__(self) -> str:
        rows, columns = self.X.shape
        labelled = f", labelled by {self.label_name}" if self.label_name else ""
        return f"{self.name}: {rows:,} rows × {columns} columns{labelled}. {self.source}"


def digits() -> Sample:
    """Handwritten digits: 1,797 images of 8 × 8 pixels, 0 (white) to 16 (black)."""
    return _from_scikit_learn(
        "digits",
        label_name="digit",
        source="Test set of the UCI handwritten digits (Alpaydin and Kaynak), with scikit-learn.",
    )


def iris() -> Sample:
    """Iris flowers: 150 flowers of three species, four lengths and widths in centimetres."""
    return _from_scikit_learn(
        "iris",
        label_name="species",
        source="Anderson's iris flowers, published by R. A. Fisher in 1936, with scikit-learn.",
    )


def wine() -> Sample:
    """Wines: 178 bottles from three cultivars of one region, 13 chemical measurements."""
    return _from_scikit_learn(
        "wine",
        label_name="cultivar",
        source="UCI wine recognition data (Forina and others), with scikit-learn.",
    )


def breast_cancer() -> Sample:
    """Breast tumours: 569 samples, 30 measurements of the cell nuclei in an image."""
    return _from_scikit_learn(
        "breast-cancer",
        label_name="diagnosis",
        source="Breast Cancer Wisconsin (Diagnostic) data of UCI, with scikit-learn.",
    )


def house_prices() -> Sample:
    """Price and area of five houses, where one number says all: the first component holds 100 %."""
    return _sample(
        "house-prices",
        np.array([(10, 10), (2, 2), (7, 7), (1, 1), (5, 5)]),
        columns=("House price (million)", "House area (100 m²)"),
        ids=list("abcde"),
        source="The worked example of the lecture notes on PCA.",
    )


def crumbs_on_the_floor(n: int = 100, random_state: int | np.random.Generator | None = 0) -> Sample:
    """Crumbs at (x, y, 0): three numbers a crumb, of which two are enough.

    Parameters
    ----------
    n : int
        How many crumbs.
    random_state : int, Generator or None
        Where they fall: x and y are uniform between 0 and 1.
    """
    return _crumbs("crumbs-on-the-floor", n, random_state, height=0.0)


def crumbs_on_the_table(n: int = 100, random_state: int | np.random.Generator | None = 0) -> Sample:
    """Crumbs at (x, y, 1): two numbers are enough only once the mean is taken away.

    No linear map of x and y gives the constant 1 back, which is why PCA centres.

    Parameters
    ----------
    n : int
        How many crumbs.
    random_state : int, Generator or None
        Where they fall: x and y are uniform between 0 and 1, and the same as on the floor.
    """
    return _crumbs("crumbs-on-the-table", n, random_state, height=1.0)


_LOADERS: dict[str, Callable[[], Sample]] = {
    "digits": digits,
    "iris": iris,
    "wine": wine,
    "breast-cancer": breast_cancer,
    "house-prices": house_prices,
    "crumbs-on-the-floor": crumbs_on_the_floor,
    "crumbs-on-the-table": crumbs_on_the_table,
}


def names() -> tuple[str, ...]:
    """What `load` knows."""
    return tuple(_LOADERS)


def load(name: str) -> Sample:
    """The sample called `name`.

    Parameters
    ----------
    name : str
        One of `names`; "_" may stand for "-".

    Examples
    --------
    >>> from gnomon.data import samples
    >>> samples.load("iris").X.shape
    (150, 4)
    """
    must = "be one of " + ", ".join(names())
    if not isinstance(name, str):
        refuse("name", must, name, kind=True)
    loader = _LOADERS.get(name.replace("_", "-"))
    if loader is None:
        refuse("name", must, name, "To use a file, read it instead.")
    return loader()


def _from_scikit_learn(name: str, *, label_name: str, source: str) -> Sample:
    # Imported here: scikit-learn takes a second, and `names` should not.
    from sklearn import datasets

    bunch: Any = getattr(datasets, "load_" + name.replace("-", "_"))()
    return _sample(
        name,
        bunch.data,
        columns=tuple(map(str, bunch.feature_names)),
        labels=np.asarray(bunch.target_names).astype(str)[bunch.target],
        label_name=label_name,
        source=source,
    )


def _crumbs(
    name: str, n: int, random_state: int | np.random.Generator | None, *, height: float
) -> Sample:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
        refuse("n", "be an integer ≥ 1", n, kind=True)
    if n < 1:
        refuse("n", "be an integer ≥ 1", n)
    xy = np.random.default_rng(random_state).random((n, 2))
    return _sample(
        name,
        np.column_stack([xy, np.full(n, height)]),
        columns=("x", "y", "z"),
        source="Drawn at random after the crumbs of the lecture notes on PCA.",
    )


def _sample(
    name: str,
    X: NDArray[Any],
    *,
    columns: tuple[str, ...],
    source: str,
    labels: NDArray[np.str_] | None = None,
    ids: list[str] | None = None,
    label_name: str | None = None,
) -> Sample:
    return Sample(
        name=name,
        X=_read_only(np.array(X, dtype=np.float64, order="C")),
        columns=columns,
        labels=None if labels is None else _read_only(labels),
        ids=None if ids is None else _read_only(np.array(ids)),
        label_name=label_name,
        source=source,
    )


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array
