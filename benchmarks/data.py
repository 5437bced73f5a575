"""Tables to measure on: generated from a seed, or real ones from the folder of ``--data``."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from benchmarks.environment import BenchmarkError

SEED = 0
BLOCK_ROWS = 10_000

# Size of the real sparse table, which the generated one imitates.
SPARSE_ROWS, SPARSE_COLUMNS, SPARSE_ENTRIES = 4_186, 13_488, 780_212


def decaying(n: int, d: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Normal rows (n, d) whose j-th variance is 1/j², as pixels and embeddings roughly have it."""
    return normal_table(n, 1 / np.arange(1, d + 1), dtype)


def flat(n: int, d: int, dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """Normal rows (n, d) of equal variances: no gap anywhere, the hardest case for iterations."""
    return normal_table(n, np.ones(d), dtype)


def normal_table(n: int, deviations: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Normal rows of given standard deviations along the axes of a reflected frame.

    The reflection x − 2u(uᵀx) makes components mix all columns; it costs O(nd) where a random
    rotation would cost O(nd²). Rows are drawn in blocks, so that a table needs little more memory
    than itself.
    """
    generator = np.random.default_rng(SEED)
    d = len(deviations)
    u = generator.standard_normal(d)
    u = (u / np.linalg.norm(u)).astype(dtype)
    X = np.empty((n, d), dtype=dtype)
    for start in range(0, n, BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        generator.standard_normal(out=block, dtype=block.dtype.type)
        block *= deviations.astype(dtype)
        block -= 2 * np.outer(block @ u, u)
    return X


def images(folder: Path | None) -> NDArray[Any]:
    """MNIST (70,000 × 784, float32), or a generated table of that shape."""
    if folder is None:
        return decaying(70_000, 784)
    with open_archive(folder, "mnist.npz") as file:
        return np.concatenate([file["x_train"], file["x_test"]]).astype(np.float32)


def image_labels(folder: Path | None) -> NDArray[np.int64]:
    """The digit of every row of MNIST, in the order of `images`; needs `folder`."""
    if folder is None:
        raise BenchmarkError("Digits of MNIST need --data: generated tables have other labels.")
    with open_archive(folder, "mnist.npz") as file:
        return np.concatenate([file["y_train"], file["y_test"]]).astype(np.int64)


def clusters(
    n: int, d: int = 50, kinds: int = 10, apart: float = 1.0
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows (n, d), float32, in groups that touch here and there, and the group of each row.

    Each group is a normal cloud along 8 directions of its own, with a little noise in all others,
    as the digits of MNIST roughly are after PCA. Groups whose centres are less far `apart` overlap.
    """
    generator = np.random.default_rng(SEED)
    centres = generator.standard_normal((kinds, d), dtype=np.float32) * np.float32(apart)
    directions = generator.standard_normal((kinds, 8, d), dtype=np.float32) / np.sqrt(8.0)
    labels = generator.integers(kinds, size=n)
    X = np.empty((n, d), np.float32)
    for start in range(0, n, BLOCK_ROWS):
        kind = labels[start : start + BLOCK_ROWS]
        along = generator.standard_normal((len(kind), 1, 8), dtype=np.float32)
        noise = generator.standard_normal((len(kind), d), dtype=np.float32)
        X[start : start + len(kind)] = (along @ directions[kind])[:, 0] + centres[kind] + noise / 4
    return X, labels


def counts(folder: Path | None) -> sparse.csr_array:
    """Counts of genes in cells (4,186 × 13,488, CSR, float32), real or generated."""
    if folder is None:
        return _generated_counts()
    with open_archive(folder, "worm_neurons_counts_csr.npz") as file:
        parts = file["data"].astype(np.float32), file["indices"], file["indptr"]
        return sparse.csr_array(parts, shape=tuple(file["shape"]))


def _generated_counts(types: int = 10) -> sparse.csr_array:
    """Counts drawn gene by gene: cells of `types` types, each with its own frequent genes."""
    generator = np.random.default_rng(SEED)
    n, d = SPARSE_ROWS, SPARSE_COLUMNS
    common = generator.normal(0, 1.5, d)
    weights = np.exp(common + generator.normal(0, 1, (types, d)))
    edges = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    kinds = generator.integers(types, size=n)
    # Cells differ in depth about twofold. One draw in seven falls on a gene the cell has already,
    # so more draws than entries are needed.
    depth = generator.lognormal(0, 0.7, n)
    draws = generator.poisson(depth * (1.16 * SPARSE_ENTRIES / depth.sum()))
    genes = [
        np.searchsorted(edges[kind], generator.random(count))
        for kind, count in zip(kinds, draws, strict=True)
    ]
    columns = np.minimum(np.concatenate(genes), d - 1).astype(np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), draws)
    ones = np.ones(len(columns), dtype=np.float32)
    return sparse.csr_array(sparse.coo_array((ones, (rows, columns)), shape=(n, d)))


def open_archive(folder: Path, name: str) -> Any:
    """An .npz file of the folder of ``--data``."""
    if not (folder / name).exists():
        raise BenchmarkError(
            f"--data must hold {name}; {folder} does not. Leave --data out to generate."
        )
    return np.load(folder / name, allow_pickle=False)
