"""Lines of code that the documents promise, and the tables that they work on."""

import base64
import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from commands import gnomon as command

import gnomon

ROW = re.compile(r"^\| (?!asked \||I have \||-)(.+) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
# One red pixel.
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
N = 80


def lines_of(page, section=""):
    """Cells of every row of the tables on a page, or in one section of it, without their heads."""
    text = page.read_text(encoding="utf-8")
    if section:
        text = text[text.index(section) :].partition("\n## ")[0]
    return [row.split(" | ") for row in ROW.findall(text)]


def doors(page):
    """What "Pick your door" says to write, by row."""
    return [CODE.findall(row[1]) for row in lines_of(page, "## Pick your door")]


def table(n=N, seed=0):
    """Rows of three kinds in eight columns."""
    random = np.random.default_rng(seed)
    kind = random.integers(3, size=n)
    return 6 * np.eye(8)[kind] + random.normal(size=(n, 8)), kind


def write_tables(folder):
    """Write the files that the documents name."""
    X, kind = table()
    ids = [f"c{i}" for i in range(N)]
    columns = {f"gene{j}": X[:, j] for j in range(8)}
    named = {"id": ids, "kind": np.array(["a", "b", "c"])[kind], **columns}
    pc.write_csv(pa.table(named), folder / "cells.csv")
    pc.write_csv(pa.table({"id": ids, "x": X[:, 0], "y": X[:, 1]}), folder / "umap.csv")
    np.save(folder / "table.npy", X)
    pq.write_table(
        pa.table({
            "title": [f"Document {i}" for i in range(N)],
            "thumb": [PICTURE] * N,
            "vector": pa.FixedSizeListArray.from_arrays(X.ravel(), 8),
        }),
        folder / "docs.parquet",
    )  # fmt: skip
    for month, noise in (("january", 0.0), ("february", 0.01)):
        moved = {name: values + noise * np.sin(values) for name, values in columns.items()}
        pq.write_table(pa.table({"id": ids, **moved}), folder / f"{month}.parquet")


def names(X):
    """What the lines of Python in the documents call by name."""
    random = np.random.default_rng(1)
    tsne = gnomon.TSNE(max_iter=60).fit(X[:60])
    gaps = X.copy()
    gaps[3, 2] = np.nan
    A = random.normal(size=(40, 3))
    return {
        **{name: getattr(gnomon, name) for name in ("PCA", "TSNE", "Procrustes", "report")},
        "gnomon": gnomon,
        "np": np,
        "scores": gnomon.scores,
        "X": X[:60],
        "X_new": X[60:],
        "X_grown": X,
        "X_with_gaps": gaps,
        "weights": np.arange(1.0, 61.0),
        "tsne": tsne,
        "Y": tsne.embedding_,
        "Y_old": tsne.embedding_ @ [[0, 1], [1, 0]],
        "A": A,
        "B": 2 * A @ np.linalg.qr(random.normal(size=(3, 3)))[0] + 1,
        "rows": np.arange(40),
    }


def run(line, folder, former=None):
    """Run a line of a shell; options alone are added to the `former` line."""
    words = shlex.split(line)
    if words[0].startswith("--"):
        words = [*shlex.split(former), *words]
    done = command(*words[1:], "--force", folder=folder) if words[1] != "inspect" else (
        command(*words[1:], folder=folder)
    )  # fmt: skip
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    return done
