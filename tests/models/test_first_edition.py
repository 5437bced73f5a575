"""Files of the first edition (format 2) load, and give the numbers recorded beside them."""

import json
import zipfile
from pathlib import Path
from shutil import copytree

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from commands import gnomon

from gnomon import PCA, TSNE, Procrustes, load, samples, save

FOLDER = Path(__file__).parents[1] / "references" / "first_edition"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())
X = samples.load("iris").X
NEW = X[[3, 71, 133]]
MODELS = {"pca": PCA, "pca_moments": PCA, "tsne": TSNE, "procrustes": Procrustes}
# What BLAS, and numbers of float32 where maps are concerned, may round differently elsewhere. Where
# forces nearly cancel, rounding moves a placed row of a map of 22 rows by a thousandth of its size.
PLACED = 2e-3
ROUNDING = {"pca": 1e-12, "pca_moments": 1e-12, "tsne": PLACED, "procrustes": 1e-12}


def rows_for(name):
    return NEW[:, :2] if name == "procrustes" else NEW


@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_the_numbers_that_it_gave_then(name):
    model = load(FOLDER / f"{name}.gnomon")
    assert type(model) is MODELS[name]
    for attribute, value in EXPECTED[name].items():
        found = getattr(model, attribute)
        found = found(rows_for(name)) if callable(found) else found
        np.testing.assert_allclose(found, value, rtol=ROUNDING[name], atol=ROUNDING[name])


@pytest.mark.parametrize("name", MODELS)
def test_a_model_saved_again_is_a_model_of_today(name, tmp_path):
    model = load(FOLDER / f"{name}.gnomon")
    save(model, tmp_path / "today.gnomon")
    again = load(tmp_path / "today.gnomon")
    rows = rows_for(name)
    assert again.transform(rows).tobytes() == model.transform(rows).tobytes()


def test_the_files_are_of_format_2():
    """Files made again by later code would test nothing."""
    for path in [*FOLDER.glob("*.gnomon"), FOLDER / "run" / "model.gnomon"]:
        with zipfile.ZipFile(path) as archive:
            assert json.loads(archive.read("model.json"))["version"] == 2


def test_moments_go_on_where_they_were():
    model = load(FOLDER / "pca_moments.gnomon")
    assert "components_" not in vars(model)
    model.partial_fit(NEW)
    whole = PCA(2).fit(np.concatenate([X, NEW]))
    # as rounding of two sums of 153 numbers below 10 differs
    np.testing.assert_allclose(model.components_, whole.components_, atol=1e-12)


@pytest.mark.filterwarnings("ignore:KL ended at")  # a few points swing
def test_a_map_goes_on_and_others_are_aligned_to_it():
    tsne = load(FOLDER / "tsne.gnomon")
    assert np.array_equal(tsne.transform(X[::7]), tsne.embedding_)
    again = TSNE(perplexity=5, max_iter=60, align_to=tsne).fit(X[::7])
    assert again.embedding_.shape == tsne.embedding_.shape
    assert np.isfinite(tsne.resume(5).embedding_).all()


def test_a_run_places_rows_where_it_did_then(tmp_path):
    run = load(FOLDER / "run" / "model.gnomon")
    expected = EXPECTED["run"]
    np.testing.assert_allclose(run.pca.transform(NEW), expected["scores"], atol=1e-12)
    np.testing.assert_allclose(run.tsne.transform(NEW), expected["places"], atol=PLACED)
    done = gnomon(
        "place", FOLDER / "flowers.csv", "-m", FOLDER / "run", "-o", "p.csv", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    placed = pyarrow.csv.read_csv(tmp_path / "p.csv")
    written = pyarrow.parquet.read_table(FOLDER / "run" / "map.parquet")
    for axis in ("tsne1", "tsne2"):  # its own rows lie where they lay
        np.testing.assert_allclose(placed[axis], written[axis], rtol=1e-6)


def test_the_page_of_a_run_is_built_again(tmp_path):
    copytree(FOLDER / "run", tmp_path / "run")
    data = FOLDER / "flowers.csv"
    done = gnomon("report", "run", "--data", data, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "setosa" in (tmp_path / "run" / "report.html").read_text()
    alone = gnomon("report", "run", "-o", "alone.html", folder=tmp_path)
    assert alone.returncode == 0, alone.stderr


def test_a_run_is_restored_and_compared(tmp_path):
    run = FOLDER / "run"
    done = gnomon("restore", run / "map.parquet", "-m", run, "-o", "back.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pyarrow.csv.read_csv(tmp_path / "back.csv").num_rows == 22
    done = gnomon("compare", run / "map.parquet", run / "map.parquet", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["correlation"] == pytest.approx(1)
