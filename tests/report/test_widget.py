"""The map in notebooks, on Python's side: rows, selections both ways, and what stands in for it."""

import json
from importlib.machinery import ModuleSpec

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gnomon
from gnomon import PCA, TSNE
from gnomon.errors import DataError, ParameterError, ParameterTypeError
from gnomon.report import notebook, widget_rows
from gnomon.report.widget import MapWidget
from gnomon.report.widget_rows import WidgetRows


@pytest.fixture(scope="module")
def iris():
    return gnomon.samples.load("iris")


@pytest.fixture(scope="module")
def result():
    return gnomon.run("iris", seed=0)


@pytest.fixture
def view(result):
    return gnomon.show(result)


def lasso(view, rows_of_map):
    """What the browser sends when rows of the map are selected."""
    view.set_state({"_chosen": memoryview(np.array(rows_of_map, "<u4").tobytes())})


def test_the_data_of_the_page_are_sent_as_bytes_once(result, view):
    state = view.get_state()
    assert isinstance(state["_data"], bytes)
    data = json.loads(state["_data"])
    assert data["rows"] == 150
    assert data["labels"][0]["name"] == "species"
    sent = []
    view.send_state = lambda key=None: sent.append(key)
    view.selection = [1, 2]
    assert sent == ["_chosen"]


def test_what_is_selected_on_the_map_is_the_selection(view):
    assert view.selection.tolist() == []
    lasso(view, [7, 3])
    assert view.selection.tolist() == [3, 7]
    lasso(view, [])
    assert view.selection.tolist() == []


def test_what_is_assigned_goes_to_the_map(view):
    view.selection = [9, 4, 9]
    assert view.selection.tolist() == [4, 9]
    assert np.frombuffer(view._chosen, "<u4").tolist() == [4, 9]
    view.selection = np.arange(150) < 2
    assert view.selection.tolist() == [0, 1]
    view.selection = None
    assert view._chosen == b""


def test_observers_hear_each_change_once(view):
    heard = []
    view.observe(lambda change: heard.append(change.new.tolist()), "selection")
    view.selection = [1, 2]
    view.selection = np.array([2, 1])
    lasso(view, [5])
    assert heard == [[1, 2], [5]]


def test_two_widgets_have_their_own_selections(result):
    one, other = gnomon.show(result), gnomon.show(result)
    one.selection = [3]
    assert other.selection.tolist() == []
    assert one.model_id != other.model_id


def test_a_selection_cannot_be_changed_in_place(view):
    view.selection = [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        view.selection[0] = 7


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ([0, 150], ParameterError, "from 0 to 149; got 150"),
        ([-1], ParameterError, "from 0 to 149; got -1"),
        ([0.5], ParameterTypeError, "float64"),
        (["a"], ParameterTypeError, "row numbers"),
        ([[1, 2]], ParameterTypeError, "shape"),
        ([True, False], ParameterError, "each of the 150 rows"),
    ],
)
def test_a_selection_that_is_none_is_refused_and_changes_nothing(view, wrong, error, said):
    view.selection = [2]
    with pytest.raises(error, match=said):
        view.selection = wrong
    assert view.selection.tolist() == [2]


def test_a_hostile_message_selects_no_rows_that_are_not_there(view):
    lasso(view, [2, 4_000_000_000])
    assert view.selection.tolist() == [2]


def test_selected_rows_have_their_names_numbers_and_places(result, view):
    view.selection = [0, 149]
    found = view.selected
    assert found.index.tolist() == [0, 149]
    assert found["species"].tolist() == ["setosa", "virginica"]
    assert found["petal length (cm)"].tolist() == [1.4, 5.1]
    np.testing.assert_array_equal(found[["tsne1", "tsne2"]], result.positions[[0, 149]])


@pytest.mark.parametrize("library", [pd, pl])
def test_rows_of_your_own_dataframe_come_back_as_they_are(iris, library):
    frame = library.DataFrame(dict(zip("abcd", iris.X.T, strict=True)))
    if library is pd:
        frame.index = [f"flower {i}" for i in range(150)]
    view = gnomon.show(frame, pca=PCA(2).fit(iris.X), labels=iris.labels)
    view.selection = [149, 3]
    assert isinstance(view.selected, library.DataFrame)
    np.testing.assert_array_equal(view.selected.to_numpy(), iris.X[[3, 149]])
    if library is pd:
        assert view.selected.index.tolist() == ["flower 3", "flower 149"]


@pytest.mark.parametrize("missing", [["pandas"], ["pandas", "polars"]])
def test_without_pandas_another_library_makes_the_dataframe(view, monkeypatch, missing):
    monkeypatch.setattr(
        widget_rows, "find_spec", lambda name: None if name in missing else ModuleSpec(name, None)
    )
    view.selection = [3]
    found = view.selected
    assert type(found).__module__.startswith("polars" if len(missing) == 1 else "pyarrow")
    assert found["row"].to_pylist() == [3] if len(missing) == 2 else found["row"].to_list() == [3]


def test_rows_that_stand_along_the_map_keep_the_numbers_of_the_table(iris, monkeypatch):
    from gnomon.report import build

    monkeypatch.setattr(build, "MANY_ROWS", 100)  # as of more than 50,000 rows
    view = gnomon.show(iris.X, pca=PCA(2).fit(iris.X))
    order = view._rows.of_map
    assert order.tolist() != list(range(150))
    lasso(view, [0, 1])
    assert view.selection.tolist() == sorted(order[:2].tolist())
    view.selection = [17]
    assert order[np.frombuffer(view._chosen, "<u4")].tolist() == [17]
    view.selection = [3, 140]
    np.testing.assert_array_equal(view.selected[["x1", "x2"]], iris.X[[3, 140], :2])


def test_rows_that_were_dropped_count_and_cannot_be_selected(tmp_path):
    path = tmp_path / "gaps.csv"
    rng = np.random.default_rng(0)
    lines = [",".join(f"{x:.3f}" for x in row) for row in rng.normal(size=(60, 4))]
    lines[0] = lines[10] = "0.1,,0.2,0.3"
    path.write_text("a,b,c,d\n" + "\n".join(lines) + "\n")
    view = gnomon.show(gnomon.run(path, missing="drop", dimensions=None))
    assert view.rows.tolist() == [i for i in range(60) if i not in (0, 10)]
    lasso(view, [0])
    assert view.selection.tolist() == [1]
    assert view.selected["a"].tolist() == [float(lines[1].split(",")[0])]
    with pytest.raises(DataError, match=r"does not show row 10 .* 58 of 60 rows"):
        view.selection = [10]


def test_a_map_of_a_sample_shows_its_own_rows(result):
    rows = WidgetRows(10, np.array([7, 2, 9]), (("x", np.array([70.0, 20.0, 90.0])),))
    assert rows.from_map(np.array([0, 1], "<u4").tobytes()).tolist() == [2, 7]
    assert np.frombuffer(rows.to_map(np.array([2, 9])), "<u4").tolist() == [1, 2]
    assert rows.take(np.array([7, 9]))["x"].tolist() == [70.0, 90.0]


def test_models_are_shown_with_their_rows(iris):
    tsne = TSNE(max_iter=60, random_state=0).fit(iris.X)
    view = gnomon.show(tsne, iris.X, labels=iris.labels, title="Flowers")
    assert isinstance(view, MapWidget)
    assert view._about["title"] == "Flowers"
    assert json.loads(view._data)["maps"][0]["name"] == "t-SNE"
    with pytest.raises(ParameterError, match=r"gnomon\.show\(tsne, X\)"):
        gnomon.show(tsne)
    with pytest.raises(ParameterError, match="be None for a table"):
        gnomon.show(iris.X, iris.X)


def test_a_comparison_shows_both_maps(iris):
    found = gnomon.compare(iris.X[:, :2], iris.X[:, 2:])
    view = gnomon.show(found, labels=iris.labels)
    assert json.loads(view._data)["pair"]
    view.selection = [4, 8]
    assert view.selected["changed"].tolist() == np.isin([4, 8], found.changes.changed).tolist()


def test_where_no_kernel_runs_the_picture_stands_in(view):
    bundle, _ = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "<svg" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]


def test_without_anywidget_the_page_is_shown_and_the_extra_named(result, monkeypatch):
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    view = gnomon.show(result)
    assert view._repr_html_().startswith("<iframe srcdoc=")
    assert "gnomon-data" in view.html
    for attribute in ("selection", "selected"):
        with pytest.raises(ImportError, match=r"gnomon\[widget\]"):
            getattr(view, attribute)
    with pytest.raises(ImportError, match=r"gnomon\[widget\]"):
        view.selection = [1]


def test_a_result_shows_the_widget_only_where_a_kernel_answers(result, monkeypatch):
    assert result._repr_mimebundle_() == {}
    monkeypatch.setattr(notebook, "is_live", lambda: True)
    bundle = result._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "text/html" not in bundle  # the card comes from `_repr_html_`
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    assert result._repr_mimebundle_() == {}


def test_hostile_names_stay_data(tmp_path):
    path = tmp_path / "bad.csv"
    rows = "\n".join(f"{i},{i * i % 7},</script><script>alert(1)" for i in range(40))
    path.write_text("a,b,<img src=x onerror=alert(1)>\n" + rows + "\n")
    view = gnomon.show(gnomon.run(path, dimensions=None))
    assert b"<" not in view._data
    assert "<img" not in view._repr_mimebundle_()[0]["text/html"]
    assert "<script" not in view._repr_mimebundle_()[0]["text/html"]
