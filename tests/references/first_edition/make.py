"""How the files beside this one were made: by Gnomon 0.1.0, whose model files have format 2.

``python make.py`` in an empty copy of this folder. The page of the run, report.html, is removed: it
is large, and no command reads it.

Later editions load these files, and `tests/models/test_first_edition.py` compares what they give
with `expected.json`. Do not make them again with later code.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from gnomon import PCA, TSNE, Procrustes, load, samples

HERE = Path(__file__).parent
IRIS = samples.load("iris")
X = IRIS.X
NEW = X[[3, 71, 133]]


def main() -> None:
    """Fit, save, and record what the models give."""
    solved = PCA(2, standardize=True).fit(X[:30])
    solved.save(HERE / "pca.gnomon")
    # Saved before anything looks at the components: the file holds moments only.
    PCA(2).partial_fit(X[:75]).partial_fit(X[75:]).save(HERE / "pca_moments.gnomon")
    tsne = TSNE(perplexity=5, max_iter=120, random_state=0).fit(X[::7])
    tsne.save(HERE / "tsne.gnomon")
    procrustes = Procrustes(scaling=True).fit(X[:20, :2], X[:20, 2:])
    procrustes.save(HERE / "procrustes.gnomon")
    expected = {
        "pca": _pca(solved),
        "pca_moments": _pca(load(HERE / "pca_moments.gnomon")),
        "tsne": {
            "embedding_": tsne.embedding_,
            "kl_divergence_": tsne.kl_divergence_,
            "transform": tsne.transform(NEW),
        },
        "procrustes": {
            name: getattr(procrustes, name)
            for name in ("rotation_", "scale_", "translation_", "disparity_", "rmsd_")
        }
        | {"transform": procrustes.transform(NEW[:, :2])},
        "run": _run(),
    }
    text = json.dumps(expected, indent=1, default=lambda value: np.asarray(value).tolist())
    (HERE / "expected.json").write_text(text + "\n")


def _pca(model: PCA) -> dict[str, object]:
    names = ("n_samples_", "mean_", "components_", "explained_variance_", "total_variance_")
    return {name: getattr(model, name) for name in names} | {"transform": model.transform(NEW)}


def _run() -> dict[str, object]:
    """`gnomon map flowers.csv -o run`, and where its map places new rows."""
    lines = ["flower," + ",".join(IRIS.columns) + ",species"]
    for row in range(0, len(X), 7):
        lines.append(",".join([f"f{row}", *map(str, X[row].tolist()), str(IRIS.labels[row])]))
    (HERE / "flowers.csv").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-c", "from gnomon.cli import main; main()"]
    subprocess.run([*command, "map", "flowers.csv", "-o", "run"], cwd=HERE, check=True)
    (HERE / "run" / "report.html").unlink()
    parts = load(HERE / "run" / "model.gnomon")
    return {"scores": parts["pca"].transform(NEW), "places": parts["tsne"].transform(NEW)}


if __name__ == "__main__":
    main()
