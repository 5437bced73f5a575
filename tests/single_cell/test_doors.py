"""The door of README.md for AnnData: its lines work on a file and on an object."""

from pathlib import Path

import anndata
import h5py  # noqa: F401 (the command reads .h5ad with it)
import numpy as np
import pandas as pd
from docs.doors import doors, names, run, table

ROOT = Path(__file__).parents[2]


def test_both_lines_of_the_door_work(tmp_path):
    ((line, code),) = [door for door in doors(ROOT / "README.md") if "h5ad" in door[0]]
    X, kind = table()
    obs = pd.DataFrame({"kind": pd.Categorical([f"kind {i}" for i in kind])})
    obs.index = [f"c{i}" for i in range(len(X))]
    adata = anndata.AnnData(np.abs(X), obs=obs)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    run(line, tmp_path)
    assert "kind 2" in (tmp_path / "cells_map" / "report.html").read_text("utf-8")
    import gnomon.anndata

    eval(code, {**names(X), "gnomon": gnomon, "adata": adata})
    assert adata.obsm["X_tsne"].shape == (len(X), 2)
