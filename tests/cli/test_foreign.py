"""Rows unlike those of a map, as users of the command meet them: files, blocks and the page."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import gnomon
from tsne.kinds import noise, rows

from gnomon import load

D = 130  # columns, which a PCA reduces
JUDGED = ["distance_ratio", "residual", "unusual", "why"]
FIRST_EDITION = Path(__file__).parents[1] / "references" / "first_edition"


def write(path, X):
    pq.write_table(pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])}), path)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A map of 300 rows; 60 new ones, the last 20 of them noise, in one file and in three."""
    folder, rng = tmp_path_factory.mktemp("foreign"), np.random.default_rng(0)
    write(folder / "old.parquet", rows(rng, 300, D))
    new = np.vstack([rows(rng, 40, D), noise(rng, 20, D)])
    write(folder / "new.parquet", new)
    (folder / "parts").mkdir()
    for i, part in enumerate(np.array_split(new, 3)):
        write(folder / "parts" / f"{i}.parquet", part)
    done = gnomon("map", "old.parquet", "--scale", "none", folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, new


def test_noise_is_called_unusual_and_the_table_says_why(here):
    folder, new = here
    done = gnomon(
        "place", "new.parquet", "-m", "old_map", "-o", "p.parquet", "--json", "-v", folder=folder
    )
    assert done.returncode == 0, done.stderr
    table = pq.read_table(folder / "p.parquet")
    assert table.column_names == ["tsne1", "tsne2", *JUDGED]
    unusual, why = (np.array(table[name].to_pylist()) for name in ("unusual", "why"))
    assert unusual[40:].all()
    assert set(why[40:]) == {"outside the components"}
    assert unusual[:40].sum() <= 2
    placed = load(folder / "old_map" / "model.gnomon").place(new)
    assert np.array_equal(table["residual"].to_numpy(), placed.residual)
    told = json.loads(done.stdout)
    odd = int(unusual.sum())
    assert told["unusual"] == sum(told["why"].values()) == odd
    assert told["why"]["outside the components"] >= 20
    assert told["limits"] == {
        "distance_ratio": placed.distance_limit,
        "residual": placed.residual_limit,
    }
    assert f"Placed   60 rows, {odd} of them unusual (" in done.stderr
    assert "20 outside the components" in done.stderr
    assert "residual: median" in done.stderr


def test_blocks_say_the_same(here):
    folder, _ = here
    for given, out in (("new.parquet", "whole.parquet"), ("parts", "parts.parquet")):
        done = gnomon("place", given, "-m", "old_map", "-o", out, "-q", folder=folder)
        assert done.returncode == 0, done.stderr
    whole, parts = (pq.read_table(folder / f"{name}.parquet") for name in ("whole", "parts"))
    assert whole.to_pydict() == parts.to_pydict()


def test_a_map_of_a_sample_says_on_the_page_how_many_rows_are_unlike_it(tmp_path):
    X = np.vstack([rows(np.random.default_rng(3), 400, D), noise(np.random.default_rng(4), 3, D)])
    write(tmp_path / "all.parquet", X)
    done = gnomon(
        "map", "all.parquet", "--sample", "200", "--scale", "none", "-o", "m", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "m" / "run.json").read_text())["sampling"]
    assert told["unusual"] == sum(told["why"].values()) >= 1
    said = told["placed_words"]
    assert said.startswith(f"203 rows placed, {told['unusual']} of them unlike any of the sample")
    assert said.endswith("): do not read their places.")
    page = (tmp_path / "m" / "report.html").read_text()
    assert said.rstrip(".") in page
    done = gnomon("report", "m", "-o", "again.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert said.rstrip(".") in (tmp_path / "again.html").read_text()


def test_a_model_of_the_first_edition_goes_on_by_distances_and_says_so(tmp_path):
    done = gnomon(
        "place",
        FIRST_EDITION / "flowers.csv",
        "-m",
        FIRST_EDITION / "run",
        "-o",
        "p.parquet",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "Note     the model was made by Gnomon 0.1 and judges rows by distances" in done.stderr
    table = pq.read_table(tmp_path / "p.parquet")
    assert "residual" not in table.column_names
    assert {"distance_ratio", "unusual", "why"} <= set(table.column_names)
