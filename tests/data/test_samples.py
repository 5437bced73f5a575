import numpy as np
import pytest

from gnomon.data import samples
from gnomon.errors import ParameterError, ParameterTypeError

SHAPES = {
    "digits": (1797, 64),
    "iris": (150, 4),
    "wine": (178, 13),
    "breast-cancer": (569, 30),
    "house-prices": (5, 2),
    "crumbs-on-the-floor": (100, 3),
    "crumbs-on-the-table": (100, 3),
}


def test_every_sample_is_listed():
    assert samples.names() == tuple(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_sample_is_a_consistent_table(name):
    sample = samples.load(name)
    rows, columns = SHAPES[name]
    assert sample.name == name
    assert sample.X.shape == (rows, columns)
    assert sample.X.dtype == np.float64
    assert np.isfinite(sample.X).all()
    assert len(sample.columns) == columns
    assert len(set(sample.columns)) == columns
    assert all(type(column) is str for column in sample.columns)
    assert sample.source.endswith(".")
    for about_rows in (sample.labels, sample.ids):
        assert about_rows is None or (about_rows.shape == (rows,) and about_rows.dtype.kind == "U")
    assert (sample.labels is None) == (sample.label_name is None)


@pytest.mark.parametrize("name", SHAPES)
def test_a_sample_cannot_be_changed(name):
    sample = samples.load(name)
    with pytest.raises(ValueError, match="read-only"):
        sample.X[0, 0] = 1.0
    with pytest.raises(AttributeError):
        sample.name = "mine"


def test_labels_are_words():
    assert set(samples.iris().labels) == {"setosa", "versicolor", "virginica"}
    assert set(samples.digits().labels) == set("0123456789")
    assert set(samples.breast_cancer().labels) == {"malignant", "benign"}


def test_house_prices_are_those_of_the_notes():
    sample = samples.house_prices()
    assert list(sample.ids) == list("abcde")
    assert sample.columns == ("House price (million)", "House area (100 m²)")
    np.testing.assert_array_equal(sample.X, [(10, 10), (2, 2), (7, 7), (1, 1), (5, 5)])


def test_crumbs_lie_flat_on_the_floor_and_on_the_table():
    floor = samples.crumbs_on_the_floor(7, 3)
    table = samples.crumbs_on_the_table(7, 3)
    np.testing.assert_array_equal(floor.X[:, 2], np.zeros(7))
    np.testing.assert_array_equal(table.X[:, 2], np.ones(7))
    np.testing.assert_array_equal(floor.X[:, :2], table.X[:, :2])


def test_crumbs_fall_in_the_same_place_for_the_same_seed():
    first, again = (samples.crumbs_on_the_floor(5, 1).X for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, samples.crumbs_on_the_floor(5, 2).X)


@pytest.mark.parametrize(("n", "error"), [(0, ParameterError), (2.0, ParameterTypeError)])
def test_crumbs_need_a_whole_number_of_rows(n, error):
    with pytest.raises(error, match="`n` must be an integer ≥ 1"):
        samples.crumbs_on_the_floor(n)


def test_an_underscore_may_stand_for_a_hyphen():
    assert samples.load("breast_cancer").name == "breast-cancer"


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ParameterError, match=r"digits, iris, wine, breast-cancer.*got 'penguins'"):
        samples.load("penguins")
    with pytest.raises(ParameterTypeError, match="`name` must be one of"):
        samples.load(3)


def test_a_sample_reads_as_a_sentence():
    assert str(samples.iris()).startswith("iris: 150 rows × 4 columns, labelled by species. ")
