"""The command killed while it writes: every file is the old one or the new one, never a part."""

import numpy as np
import pytest
from killing import torn_files

# The table is reduced twice beforehand, so that nearly all that is left for the command to do, and
# for the blow to fall into, is its writing.
PREPARE = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from gnomon import load, pipeline
from gnomon.cli import main

out = Path(path)
made = [pipeline.run(out.with_name("x.npy"), n_components=k, dimensions=None) for k in (3, 8)]

def write(version):
    pipeline.run = lambda *_, **__: made[version]
    sys.argv = ["gnomon", "reduce", "iris", "-o", path, "--force", "-q"]
    main()

def is_whole():
    # All children before this one have written both versions; this one leaves what it left.
    try:
        rows = pq.read_table(out / "scores.parquet", use_threads=False).num_rows
        parts = load(out / "model.gnomon")
        run = json.loads((out / "run.json").read_text("utf-8"))
        chart = (out / "scree.svg").read_text("utf-8")
    except Exception:
        return False
    return (rows == 20_000 and parts["pca"].n_components_ in (3, 8)
            and run["pca"]["n_components"] in (3, 8) and chart.rstrip().endswith("</svg>"))
"""
CARELESS = """
import contextlib, gnomon.data.write, gnomon.models.file

@contextlib.contextmanager
def writing(path, *, force=False):
    yield Path(path)

gnomon.data.write.writing = gnomon.models.file.writing = writing
"""


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(20_000, 10)))
    return tmp_path / "out"


@pytest.mark.slow
def test_a_careless_command_that_is_killed_tears_its_files(folder):
    assert torn_files(PREPARE + CARELESS, folder, times=100) > 10  # or the next proves nothing


@pytest.mark.slow
def test_a_command_that_is_killed_never_tears_a_file(folder):
    assert torn_files(PREPARE, folder, times=100) == 0
