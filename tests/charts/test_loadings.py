import numpy as np
import pytest

from gnomon.charts import loadings
from gnomon.errors import ParameterError, ParameterTypeError


def test_cells_hold_the_loadings(fit, table, read):
    X, names = table
    model = fit(X, names)
    drawing = read(loadings(model))
    tips = drawing.tips()
    for d, name in enumerate(names):
        for j in range(6):
            value = f"{model.loadings_[d, j]:.3g}".replace("-", "−")
            assert f"{name} on PC{j + 1}: {value}" in tips
    written = {float(text.replace("−", "-")) for text in drawing.texts("cell")}
    assert written == {float(f"{value:.2f}") for value in model.loadings_.ravel()}


def test_the_strongest_cell_has_the_strongest_colour_and_zero_the_middle(fit, read):
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [2.0, 0.5], [-2.0, -0.5]]) * [1, 0]
    model = fit(X, ["moves", "constant"], standardize=False)
    model.loadings_ = np.array([[-2.0, 0.0], [0.0, 0.0]])
    cells = [rect for rect in read(loadings(model)).all("rect") if len(list(rect))]
    colours = {cell[0].text: cell.get("class") for cell in cells}
    assert colours["moves on PC1: −2"] == "gn-d0"
    assert colours["constant on PC2: 0"] == "gn-d8"


def test_columns_stand_by_the_component_they_load_on_most(fit, table, read):
    X, names = table
    model = fit(X, names)
    shown = read(loadings(model)).texts("label ink")
    main = {name: int(np.abs(model.loadings_[d]).argmax()) for d, name in enumerate(names)}
    order = [main[name] for name in shown if name in main]
    assert len(order) == 6
    assert order == sorted(order)


def test_the_subtitle_names_the_leading_columns(fit, table):
    X, names = table
    model = fit(X, names)
    leader = names[int(np.abs(model.loadings_[:, 0]).argmax())]
    assert loadings(model).description.startswith(f"PC1 is led by {leader} (loading ")


def test_only_the_columns_asked_for_are_shown(fit, table, read):
    X, names = table
    model = fit(X, names)
    chart = loadings(model, n_components=2, n_columns=3)
    shown = [text for text in read(chart).texts("label ink") if text in names]
    largest = np.argsort(-np.abs(model.loadings_[:, :2]).max(axis=1))[:3]
    assert sorted(shown) == sorted(names[d] for d in largest)
    assert "Shown: 3 of 6 columns" in chart.description
    assert "PC3" not in chart.svg


def test_more_than_there_is_shows_all(fit, table, read):
    chart = loadings(fit(*table), n_components=99, n_columns=99)
    assert len(read(chart).texts("cell")) == 36


def test_long_names_are_shortened_with_the_whole_on_hovering(fit, read):
    name = "a column whose name goes on for much longer than there is room"
    text = read(loadings(fit(np.eye(3), ["short", name, "other"]))).all("text", "label ink")
    (shortened,) = [t for t in text if t.text.startswith("a column")]
    assert shortened.text.endswith("…")
    assert shortened[0].text == name


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"n_components": 0}, ParameterError),
        ({"n_columns": 0}, ParameterError),
        ({"n_components": 2.0}, ParameterTypeError),
        ({"n_columns": True}, ParameterTypeError),
    ],
)
def test_bad_numbers_are_refused(fit, table, arguments, error):
    with pytest.raises(error, match="must be an integer ≥ 1"):
        loadings(fit(*table), **arguments)


def test_correlations_are_shown_under_their_own_name(fit, table, read):
    """Columns are chosen and led by what they weigh, whatever the cells hold."""
    X, names = table
    model = fit(X * [100.0, 1, 1, 1, 1, 0.001], names, standardize=False)
    chart = loadings(model, n_components=2, n_columns=3, measure="correlation")
    r = model.correlations()
    leader = int(np.abs(model.loadings_[:, 0]).argmax())
    named = f"PC1 is led by {names[leader]} (correlation {r[leader, 0]:.2f})"
    assert chart.description.startswith(named.replace("-", "−"))
    assert chart.title == "Correlations of columns and components"
    assert "oading" not in chart.svg
    weigh = np.argsort(-np.abs(model.loadings_[:, :2]).max(axis=1))[:3]
    written = {float(text.replace("−", "-")) for text in read(chart).texts("cell")}
    assert written == {float(f"{value:.2f}") + 0.0 for value in r[weigh][:, :2].ravel()}
    with pytest.raises(ParameterError, match="`measure` must be"):
        loadings(model, measure="weight")
