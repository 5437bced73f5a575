"""New rows on the map of a run, by the result, by its saved model and by the command."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from commands import gnomon as command

import gnomon
from gnomon.errors import DataError, UnavailableError
from gnomon.pipeline.run_model import RunModel

COLUMNS = ["height", "weight", "age"]
GAPS = [3, 40]


def people(n, seed):
    """Rows in three groups, in units that differ a hundredfold."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 3)) + 8 * np.eye(3)[group]
    frame = pd.DataFrame(X * [1, 30, 1] + [0, 100, 7], columns=COLUMNS)
    return frame.assign(kind=np.array(["x", "y", "z"])[group])


@pytest.fixture(scope="module")
def old():
    frame = people(150, 0)
    frame.loc[GAPS, "age"] = np.nan
    return frame


@pytest.fixture(scope="module")
def new():
    frame = people(20, 1)
    frame.loc[5, "weight"] = np.nan
    return frame[["age", "kind", "weight", "height"]]


@pytest.fixture(scope="module")
def result(old):
    found = gnomon.run(old, missing="drop")
    assert found.preparation.scale == "standard"
    return found


def test_result_places_rows_in_the_units_of_the_table(result, new, old):
    placed = result.place(new)
    assert placed.rows.tolist() == [i for i in range(20) if i != 5]
    assert placed.dropped.rows.tolist() == [5]
    assert placed.unusual.mean() < 0.2
    again = result.place(old)  # the map's own rows lie where they lay
    assert np.allclose(again.positions, result.positions, atol=1e-4)


def test_arrays_and_files_get_the_places_of_dataframes(result, new, tmp_path):
    expected = result.place(new).positions
    array = result.place(new[COLUMNS].to_numpy()).positions
    assert np.array_equal(array, expected)
    pc.write_csv(pa.Table.from_pandas(new), tmp_path / "new.csv")
    assert np.array_equal(result.place(tmp_path / "new.csv").positions, expected)
    source = gnomon.source(tmp_path / "new.csv", columns=COLUMNS)
    assert np.array_equal(result.place(source).positions, expected)


def test_command_places_rows_as_the_saved_model_does(result, new, tmp_path):
    pc.write_csv(pa.Table.from_pandas(new), tmp_path / "new.csv")
    result.save(tmp_path / "model.gnomon")
    args = ("place", "new.csv", "-m", "model.gnomon", "-o", "placed.parquet")
    done = command(*args, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    written = pd.read_parquet(tmp_path / "placed.parquet")
    for model in (result, gnomon.load(tmp_path), gnomon.load(tmp_path / "model.gnomon")):
        columns = model.place(tmp_path / "new.csv").to_columns()
        assert list(columns) == list(written)
        for name, values in columns.items():
            assert np.array_equal(values, written[name].to_numpy()), name
    assert written["row"].tolist() == [i for i in range(20) if i != 5]
    assert "Missing  1 row dropped: row 5 (line 7)" in done.stderr


def test_standard_output_of_place_names_every_row(result, new, tmp_path):
    pc.write_csv(pa.Table.from_pandas(new), tmp_path / "new.csv")
    result.save(tmp_path / "model.gnomon")
    done = command("place", "new.csv", "-m", "model.gnomon", folder=tmp_path)
    table = pc.read_csv(io.BytesIO(done.stdout.encode()))
    assert table["row"].to_pylist() == [i for i in range(20) if i != 5]


def test_models_of_a_standardised_run_refuse_columns_that_are_not(result, new):
    for fitted in (result.tsne.transform, result.tsne.place, result.pca.transform):
        with pytest.raises(ValueError, match="age, standardised"):
            fitted(new[COLUMNS].dropna())
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            fitted(new[COLUMNS].dropna().to_numpy())


def test_models_of_a_run_that_scaled_nothing_take_its_columns():
    result = gnomon.run("iris")
    assert result.preparation.scale == "none"
    X = gnomon.samples.load("iris").X[:5]
    assert np.array_equal(result.tsne.transform(X), result.place(X).positions)


def test_a_run_without_a_map_places_nothing(old, tmp_path):
    result = gnomon.run(old, missing="mean", dimensions=None)
    result.save(tmp_path / "m.gnomon")
    model = gnomon.load(tmp_path / "m.gnomon")
    assert isinstance(model, RunModel)
    assert model.tsne is None
    with pytest.raises(UnavailableError, match="no map"):
        model.place(old)


def test_rows_with_other_columns_are_refused(result, new, tmp_path):
    with pytest.raises(DataError, match="age"):
        result.place(new.drop(columns="age"))
    pc.write_csv(pa.Table.from_pandas(new), tmp_path / "new.csv")
    with pytest.raises(DataError, match="age"):
        result.place(gnomon.source(tmp_path / "new.csv", features=["height", "weight"]))
    with pytest.raises(DataError, match="another order"):
        result.place(gnomon.source(tmp_path / "new.csv", features=COLUMNS))


def test_report_of_a_result_is_the_page_of_gnomon_report(result, tmp_path):
    page = result.report(tmp_path / "page.html", title="People")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    assert page.html == gnomon.report(result, title="People").html
