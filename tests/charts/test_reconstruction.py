import numpy as np
import pytest

from gnomon import charts
from gnomon.charts.reconstruction import relative_errors


def test_errors_are_roots_of_the_shares_that_are_left(fit):
    X = np.diag([3.0, 2.0, 1.0]) @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    X = np.vstack([X, -X])  # variances 9 : 4 : 1
    model = fit(X, standardize=False)
    assert relative_errors(model) == pytest.approx(np.sqrt([1, 5 / 14, 1 / 14, 0]))


def test_the_error_of_the_components_kept_is_told_and_marked(fit, read):
    X = np.vstack([np.diag([3.0, 2.0, 1.0]), -np.diag([3.0, 2.0, 1.0])])
    chart = charts.reconstruction(fit(X, n_components=1, standardize=False))
    assert "From 1 component a cell is reconstructed to within 59.8 % of" in chart.description
    assert "1 kept: 59.8 %" in read(chart).texts()


def test_everything_kept_is_nothing_lost(fit, table):
    chart = charts.reconstruction(fit(*table))
    assert "From 6 components every value is reconstructed exactly." in chart.description
