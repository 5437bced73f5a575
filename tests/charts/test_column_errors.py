import numpy as np
import pytest

from gnomon import charts
from gnomon.charts.column_errors import lost_shares


@pytest.fixture
def three():
    """Columns a and b are one; c stands alone, and is a fifth as large."""
    angle = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    return np.column_stack([5 * np.cos(angle), 5 * np.cos(angle), np.sin(angle)])


def test_a_column_loses_what_the_components_do_not_hold(fit, three):
    model = fit(three, ["a", "b", "c"], n_components=1, standardize=False)
    assert lost_shares(model, three.var(axis=0)) == pytest.approx([0, 0, 1], abs=1e-9)


def test_constant_columns_have_nothing_to_lose(fit, three):
    X = np.column_stack([three, np.full(16, 7.0)])
    model = fit(X, n_components=1, standardize=False)
    assert np.isnan(lost_shares(model)[3])
    assert np.isnan(lost_shares(model, X.var(axis=0))[3])


def test_bars_are_the_columns_held_worst_without_such_as_hardly_vary(fit, read):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5)) * [9, 8, 7, 6, 1e-3]
    model = fit(X, list("vwxyz"), n_components=2, standardize=False)
    by_loss = [name for _, name in sorted(zip(-lost_shares(model), "vwxyz", strict=True))]
    assert "z" in by_loss[:3]
    texts = read(charts.column_errors(model, 3)).texts("label ink")
    assert texts[::2] == by_loss[:3]
    chart = charts.column_errors(model, 3, variances=X.var(axis=0))
    assert read(chart).texts("label ink")[::2] == [name for name in by_loss if name != "z"][:3]
    lost = lost_shares(model)[4]
    assert lost > 0.5
    assert "The 3 worst of 5 columns are shown. Below 10 % of the average variance" in (
        chart.description
    )
    assert "and not shown: z " in chart.description


def test_a_column_that_hardly_varies_is_named_with_its_loss_where_all_others_are_shown(fit, read):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [9, 8, 7, 0.5]
    model = fit(X, ["rain", "high", "low", "wind"], n_components=3, standardize=False)
    chart = charts.column_errors(model, variances=X.var(axis=0))
    assert "wind" not in read(chart).texts("label ink")
    assert "and not shown: wind 99" in chart.description or "wind 100" in chart.description


def test_nothing_lost_is_told(fit, table):
    chart = charts.column_errors(fit(*table))
    assert "6 components hold every column entirely." in chart.description


def test_variances_that_do_not_fit_are_refused(fit, table):
    with pytest.raises(ValueError, match="`variances` must be 6 finite, non-negative numbers"):
        charts.column_errors(fit(*table), variances=[1.0, 2.0])
