"""What a rotation alone can do between real sets of vectors, and what it cannot.

Alignments: published 300 × 300 orthogonal matrices, one of them a reflection, are recovered from
pairs made with them. With n normal rows of d columns and noise ε, R is off by about ε·d / √(2n).

Words: 960 words stand in two sets of vectors that were made independently, GloVe with 100 columns
and word2vec with 300. A map is fitted to some of them, the anchors; held-out words are carried over
and looked up among all 960 by the cosine.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import open_archive
from benchmarks.environment import THREADS, Settings
from benchmarks.table import Table, number

NAMES = ("alignment-de", "alignment-es", "words")
ANCHORS = (25, 50, 100, 200, 400, 800)
HELD_OUT = 160
DRAWS = 5
NOISE, ROWS = 0.1, 5_000

# SciPy 1.17.1 on the same words: both sets centred, word2vec reduced to 100 principal components,
# both divided by their norms, orthogonal_procrustes.
SCIPY_DISPARITY = 0.49767350830008517


def cases(settings: Settings) -> list[tuple[str, Callable[[], dict[str, Any]]]]:
    """Sections and rows that were asked for; they need the real vectors of ``--data``."""
    folder = settings.data
    if folder is None:
        return []
    found: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("alignments", partial(measure_alignment, folder, name))
        for name in NAMES[:2]
        if settings.wants(name)
    ]
    if settings.wants("words"):
        found += [("words", partial(measure_words, folder, k)) for k in ANCHORS]
        found.append(("reference", partial(measure_reference, folder)))
    return found


def measure_alignment(folder: Path, name: str) -> dict[str, Any]:
    """Error of the rotation found from exact and from noisy pairs."""
    from gnomon import Procrustes

    W = open_archive(folder, f"fasttext_{name.replace('-', '_')}.npz")["W"]
    generator = np.random.default_rng(0)
    X = generator.standard_normal((ROWS, len(W)))
    noisy = X @ W + NOISE * generator.standard_normal(X.shape)
    exact, rough = (Procrustes(n_jobs=THREADS).fit(X, Y) for Y in (X @ W, noisy))
    return {
        "name": name,
        "reflection": bool(exact.reflected_),
        "exact_error": float(np.abs(exact.rotation_ - W).max()),
        "orthogonality": float(np.abs(W @ W.T - np.eye(len(W))).max()),
        "noisy_error": float(np.linalg.norm(rough.rotation_ - W)),
        "predicted": NOISE * len(W) / np.sqrt(2 * ROWS),
    }


def measure_words(folder: Path, anchors: int) -> dict[str, Any]:
    """Share of held-out words found first, and among the first five, by kind of map."""
    glove, word2vec = read_words(folder)
    scores: dict[str, list[tuple[float, float]]] = {name: [] for name in MAPS}
    for draw in range(DRAWS):
        order = np.random.default_rng([draw]).permutation(len(glove))
        held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
        known = rest[:anchors]
        for name, fit in MAPS.items():
            moved, targets = fit(glove, word2vec, known)
            scores[name].append(found_at(moved[held_out], targets, held_out))
    means = {name: np.mean(both, axis=0).tolist() for name, both in scores.items()}
    return {"name": f"words-{anchors}", "anchors": anchors, "accuracy": means}


def measure_reference(folder: Path) -> dict[str, Any]:
    """Our disparity of all 960 words beside SciPy's."""
    from gnomon import PCA, Procrustes

    glove, word2vec = read_words(folder, unit=False)
    scores = PCA(100).fit_transform(word2vec.astype(np.float64))
    model = Procrustes(scaling=True).fit(glove.astype(np.float64), scores)
    return {"name": "words-all", "disparity": model.disparity_, "scipy": SCIPY_DISPARITY}


def read_words(folder: Path, *, unit: bool = True) -> tuple[Any, Any]:
    """Vectors of the words that both files hold, in word2vec's order; of length 1 if `unit`."""
    first = open_archive(folder, "glove_100d_top20k.npz")
    second = open_archive(folder, "word2vec_googlenews_300d_1000.npz")
    place = {word: i for i, word in enumerate(first["words"].tolist())}
    words = second["words"].tolist()
    shared = [i for i, word in enumerate(words) if word in place]
    glove = first["vectors"][[place[words[i]] for i in shared]].astype(np.float64)
    word2vec = second["vectors"][shared].astype(np.float64)
    if unit:
        glove, word2vec = _unit(glove), _unit(word2vec)
    return glove, word2vec


def found_at(moved: Any, targets: Any, truth: Any) -> tuple[float, float]:
    """Shares of rows whose true partner is the nearest by the cosine, or among the five nearest."""
    similar = _unit(moved) @ _unit(targets).T
    own = similar[np.arange(len(truth)), truth]
    ahead = (similar > own[:, None]).sum(axis=1)
    return float(np.mean(ahead < 1)), float(np.mean(ahead < 5))


def by_rotation(X: Any, Y: Any, known: Any) -> tuple[Any, Any]:
    from gnomon import Procrustes

    model = Procrustes(scaling=True, n_jobs=THREADS).fit(X[known], Y[known])
    return model.transform(X) - Y[known].mean(axis=0), Y - Y[known].mean(axis=0)


def by_rotation_of_components(X: Any, Y: Any, known: Any) -> tuple[Any, Any]:
    from gnomon import PCA

    return by_rotation(X, PCA(X.shape[1]).fit_transform(Y), known)


def by_any_linear_map(X: Any, Y: Any, known: Any) -> tuple[Any, Any]:
    """Least squares, lightly regularised: what a map that may stretch and shear can do."""
    x, y = X[known] - X[known].mean(axis=0), Y[known] - Y[known].mean(axis=0)
    penalty = 0.1 * np.trace(x.T @ x) / x.shape[1]
    A = np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)
    return (X - X[known].mean(axis=0)) @ A, Y - Y[known].mean(axis=0)


MAPS = {
    "rotation": by_rotation,
    "rotation, 100 components": by_rotation_of_components,
    "any linear map": by_any_linear_map,
}


def tables(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Table]:
    """The sections that were measured, as text."""
    found = []
    if raw.get("alignments"):
        header = ["alignment", "reflection", "error from exact pairs", "(own orthogonality)"]
        header += ["error from noisy pairs", "predicted"]
        lines = [_alignment_cells(row) for row in raw["alignments"]]
        found.append(Table("Published alignments recovered from 5,000 pairs.", header, lines))
    if raw.get("words"):
        header = ["anchors", *(f"{name}: first, in five" for name in MAPS)]
        caption = f"Held-out words looked up in the other set: {HELD_OUT} of 960, {DRAWS} draws."
        found.append(Table(caption, header, [_word_cells(row) for row in raw["words"]]))
    if raw.get("reference"):
        (row,) = raw["reference"]
        cells = [f"{row['disparity']:.12f}", f"{row['scipy']:.12f}"]
        found.append(Table("Disparity of all 960 words.", ["gnomon", "scipy"], [cells]))
    return found


def _alignment_cells(row: Mapping[str, Any]) -> list[str]:
    return [
        row["name"].partition("-")[2],
        "yes" if row["reflection"] else "no",
        number(row["exact_error"], ".1e"),
        number(row["orthogonality"], ".1e"),
        number(row["noisy_error"], ".4f"),
        number(row["predicted"], ".4f"),
    ]


def _word_cells(row: Mapping[str, Any]) -> list[str]:
    accuracy = row["accuracy"]
    return [str(row["anchors"]), *(f"{a:.1%}, {b:.1%}" for a, b in map(accuracy.get, MAPS))]


def _unit(Z: Any) -> Any:
    return Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-300)


NOTES = (
    "Alignments and words need --data. Errors of an alignment: the largest entry of R − W from "
    "exact pairs, whose floor is how far W itself is from orthogonal; ‖R − W‖ from pairs with "
    "noise 0.1, beside what first-order theory predicts.",
    "Words: rows of length 1, GloVe (100 columns) carried to word2vec (300 columns, or its first "
    "100 principal components) and looked up among all 960 words by the cosine. Chance is 0.1 %. "
    "The linear map is ridge regression with a tenth of the mean variance.",
)
