"""AnnData files (`.h5ad`): cells × genes with what names and describes the cells.

1. A child process looks at the file first (`CHECK`): libhdf5 may crash on a damaged one, and links
   or storage outside of the file, virtual datasets and filters from plugins are refused there.
2. The matrix is read by h5py, without anndata: X, a layer or a representation in `obsm`. CSR stays
   sparse; CSC is turned into rows once, and said.
3. `obs_names` are ids, columns of `obs` labels and colours, `var_names` the columns. By default, as
   in scanpy, `obsm["X_pca"]` is used where there are more than 50 genes, and otherwise the genes
   that `var["highly_variable"]` marks; both are said, and ``use_rep="X"`` takes X.

Needs ``pip install 'gnomon[anndata]'``.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from gnomon.budget import Budget, Memory
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import FileError, OptionError, listed, quoted
from gnomon.errors import DataError, DataWarning, warn_caller
from gnomon.inputs.csr import canonical_csr, is_sparse

__all__ = ["is_h5ad", "log1p_of_counts", "read_h5ad"]

MAGIC = b"\x89HDF"

CHECK_SECONDS = 120
N_PCS = 50  # as `scanpy.settings.N_PCS`: more genes are represented by `X_pca`
TARGET_COUNTS = 1e4  # counts of every cell after ``normalize="log1p"``
MANY_CELLS = 1_000  # whose numbers are looked at for whole ones
WHOLE = "Was it copied whole?"
UNSAFE = 3  # exit code of the child that found something to refuse
# Filters that every build of libhdf5 has: gzip, shuffle, fletcher32, nbit, scaleoffset; and lzf.
CHECK = """
import sys
import h5py
KNOWN = {1, 2, 3, 5, 6, 32000}
def refuse(what):
    print(what)
    sys.exit(3)
def look(group, at=""):
    for name in group:
        where = at + "/" + name
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            refuse(where + " is a link to another file")
        if isinstance(link, h5py.SoftLink):
            refuse(where + " is a soft link")
        item = group[name]
        if isinstance(item, h5py.Group):
            look(item, where)
        elif isinstance(item, h5py.Dataset):
            if item.external:
                refuse(where + " is stored in another file")
            if item.is_virtual:
                refuse(where + " is a virtual dataset, made of others")
            plist = item.id.get_create_plist()
            for i in range(plist.get_nfilters()):
                if plist.get_filter(i)[0] not in KNOWN:
                    refuse(where + " is packed by a filter that takes a plugin")
with h5py.File(sys.argv[1], "r") as file:
    look(file)
"""


def is_h5ad(path: Path) -> bool:
    """Whether a file is called ``.h5ad`` and is HDF5."""
    if path.suffix.lower() != ".h5ad" or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_h5ad(
    path: Path,
    *,
    layer: str | None = None,
    use_rep: str | None = None,
    normalize: str | None = None,
    memory: Memory = None,
) -> RawTable:
    """The cells of an AnnData file: X, `layers[layer]` or `obsm[use_rep]`, and columns of `obs`.

    ``normalize="log1p"`` scales the counts of each cell to 10,000 and takes log(1 + x).
    """
    if normalize not in (None, "log1p"):
        raise OptionError(f"normalize must be log1p; got {quoted(str(normalize))}.")
    if normalize is not None and use_rep not in (None, "X"):
        raise OptionError(
            "normalize is for counts, and use_rep names a representation.", "Leave one out."
        )
    if layer is not None and use_rep is not None:
        raise OptionError("layer and use_rep are mutually exclusive.", "Leave one out.")
    _check(path)
    import h5py

    try:
        with h5py.File(path, "r") as file:
            if layer is None and use_rep is None and normalize is None and _has_pca(file):
                use_rep = "X_pca"
            elif use_rep == "X":
                use_rep = None
            budget = Budget.from_memory(memory)
            return _read(file, path.name, layer, use_rep, normalize, budget)
    except (OSError, RuntimeError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise FileError(
            f"{path.name} is no AnnData file, or a damaged one ({str(error).splitlines()[0]}).",
            WHOLE,
        ) from None


def _check(path: Path) -> None:
    """Have a child process open every part of the file, and refuse what it refuses."""
    import importlib.util

    if importlib.util.find_spec("h5py") is None:
        raise FileError(
            f"{path.name} is HDF5, which takes the package h5py.",
            "Install it: pip install 'gnomon[anndata]'.",
        )
    command = [sys.executable, "-I", "-c", CHECK, str(path.absolute())]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise FileError(
            f"{path.name} could not be looked through within {CHECK_SECONDS} s.", WHOLE
        ) from None
    if done.returncode == UNSAFE:
        raise FileError(
            f"{path.name}: {done.stdout.strip()}, which is not followed.",
            "Write it anew: adata.write_h5ad(…).",
        )
    if done.returncode != 0:
        how = "crashes HDF5's own reader" if done.returncode < 0 else "is truncated or damaged"
        raise FileError(f"{path.name} {how}.", WHOLE)


def _has_pca(file: Any) -> bool:
    """Whether scanpy would use `X_pca`: it is there, and there are many genes."""
    genes = file["var"][file["var"].attrs.get("_index", "_index")] if "var" in file else ()
    return "X_pca" in file.get("obsm", ()) and len(genes) > N_PCS


def _read(
    file: Any,
    name: str,
    layer: str | None,
    use_rep: str | None,
    normalize: str | None,
    budget: Budget,
) -> RawTable:
    part, what = _choose(file, name, layer, use_rep)
    notes: list[str] = []
    genes: list[str] | None = None
    if use_rep is None:
        genes = _index(file["var"], name)
    X = _matrix(part, name, what, budget, notes)
    if X.shape[0] < 1 or X.shape[1] < 1:
        raise FileError(f"{name}: {what} is empty; its shape is {X.shape}.")
    if normalize is not None:
        X = log1p_of_counts(X)
        notes.append("counts scaled to 10,000 a cell, then log1p")
    if genes is not None and use_rep is None and "highly_variable" in file["var"]:
        marked = file["var"]["highly_variable"]
        chosen = np.asarray(marked[...] if hasattr(marked, "dtype") else marked["values"][...])
        if chosen.dtype == bool and chosen.shape == (X.shape[1],) and chosen.any():
            at = np.flatnonzero(chosen)
            X, genes = X[:, at], [genes[j] for j in at]
            notes.append(f"{at.size:,} of {chosen.size:,} genes used: var['highly_variable']")
    if use_rep is not None:
        stem = use_rep.removeprefix("X_")
        genes = [f"{stem}_{j + 1}" for j in range(X.shape[1])]
    elif normalize is None:
        _warn_of_counts(X, what)
    if what != "X":
        notes.append(f"{what} is used")
    columns, said = unique_names(genes, X.shape[1])
    beside = _obs(file, name, X.shape[0], set(columns))
    return RawTable(
        name,
        beside,
        X,
        tuple(columns),
        notes=(*notes, *said),
        named=True,
        typed=True,
        beside=frozenset(beside),
    )


def _choose(file: Any, name: str, layer: str | None, use_rep: str | None) -> tuple[Any, str]:
    """The part of the file that holds the numbers, and what it is called."""
    for group in ("obs", "var"):
        if group not in file:
            raise FileError(f"{name} is HDF5 without {quoted(group)}: no AnnData file.")
    if layer is None and use_rep is None:
        if "X" not in file or file["X"].attrs.get("encoding-type") == "null":
            there = [*file.get("layers", ()), *file.get("obsm", ())]
            raise FileError(
                f"{name} has no X.", f"Name a layer or a representation: it has {listed(there)}."
            )
        return file["X"], "X"
    option, key, group = (
        ("layer", layer, "layers") if layer is not None else ("use_rep", use_rep, "obsm")
    )
    there = list(file.get(group, ()))
    if key not in there:
        known = f"It has {listed(there)}." if there else "It has none."
        raise OptionError(f"{name} has no {group}[{quoted(str(key))}] (`{option}`).", known)
    return file[group][key], f"{group}[{quoted(str(key))}]"


def _matrix(part: Any, name: str, what: str, budget: Budget, notes: list[str]) -> Any:
    """A dense or sparse matrix of numbers, in memory; refused first where it does not fit."""
    kind = str(part.attrs.get("encoding-type", part.attrs.get("h5sparse_format", "")))
    if hasattr(part, "dtype"):  # a dataset
        if part.dtype.kind not in "biuf" or part.ndim != 2:
            raise FileError(
                f"{name}: {what} holds {part.dtype} of shape {part.shape}, no table of numbers.",
                "Name a layer with numbers.",
            )
        budget.check(f"{name}: {what}", int(part.size) * part.dtype.itemsize)
        return part[...]
    kind = kind.removesuffix("_matrix")
    if kind not in ("csr", "csc"):
        raise FileError(f"{name}: {what} is stored as {quoted(kind or 'a group')}, no matrix.")
    data, indices, indptr = part["data"], part["indices"], part["indptr"]
    if data.dtype.kind not in "biuf":
        raise FileError(
            f"{name}: {what} holds {data.dtype}, not numbers.", "Name a layer with numbers."
        )
    twice = 2 if kind == "csc" else 1
    needed = int(data.size) * (data.dtype.itemsize + indices.dtype.itemsize) + 8 * indptr.size
    budget.check(f"{name}: {what}", twice * needed)
    stored = part.attrs.get("shape", part.attrs.get("h5sparse_shape"))
    made = sp.csr_array if kind == "csr" else sp.csc_array
    try:
        shape = int(stored[0]), int(stored[1])
        X = canonical_csr(made((data[...], indices[...], indptr[...]), shape=shape))
    except DataError as error:
        raise FileError(f"{name}: {error.replace(table=what)}") from None
    except (ValueError, TypeError, IndexError) as error:
        raise FileError(f"{name}: {what} is a broken sparse matrix ({error}).", WHOLE) from None
    if kind == "csc":
        notes.append("stored by columns (CSC): turned into rows once, which takes a copy")
    return X


def _warn_of_counts(X: Any, what: str) -> None:
    """Warn where numbers are whole and none is negative: counts that were not normalised."""
    some: Any = X[:MANY_CELLS]
    values = some.data if is_sparse(some) else some.ravel()
    if values.size and values.min() >= 0 and values.max() > 1 and not (values % 1).any():
        warn_caller(
            DataWarning(
                f"{what} holds whole numbers only, as raw counts do: the largest counts decide "
                "everything. Use --normalize log1p (normalize='log1p')."
            )
        )


def log1p_of_counts(X: Any) -> Any:
    """Scale the counts of each cell to 10,000, then take log(1 + x).

    The same as scanpy's ``normalize_total(target_sum=1e4)`` and ``log1p``. A cell without counts
    stays without.
    """
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float32)
    total = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    factor = np.where(total > 0, TARGET_COUNTS / np.where(total > 0, total, 1.0), 0.0)
    if not is_sparse(X):
        return np.log1p(X * factor[:, None]).astype(dtype)
    scaled = X.astype(dtype)
    scaled.data = np.log1p(X.data * np.repeat(factor, np.diff(X.indptr))).astype(dtype)
    return scaled


def _index(group: Any, name: str) -> list[str]:
    """Names of cells or genes."""
    key = group.attrs.get("_index", "_index")
    if key not in group:
        raise FileError(f"{name}: {quoted(group.name)} has no index.", WHOLE)
    return [_text(value) for value in group[key][...].tolist()]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _obs(file: Any, name: str, n: int, taken: set[str]) -> dict[str, Any]:
    """Ids and columns of `obs`, by name; those of an unknown layout are left out."""
    obs = file["obs"]
    ids = _index(obs, name)
    if len(ids) != n:
        raise FileError(f"{name} names {len(ids):,} cells and has {n:,}.", WHOLE)
    columns: dict[str, Any] = {"cell": pa.chunked_array([pa.array(ids, pa.string())])}
    order = [_text(key) for key in obs.attrs.get("column-order", ())]
    for key in order:
        cells = _column(obs[key]) if key in obs else None
        if cells is not None and len(cells) == n:
            columns[f"{key} (obs)" if key in {*taken, *columns} else key] = cells
    return columns


def _column(part: Any) -> Any:
    """A column of `obs`: numbers, truth values, text, or categories."""
    if hasattr(part, "dtype"):
        if part.ndim != 1:
            return None
        if part.dtype.kind in "biuf":
            return pa.chunked_array([pa.array(part[...])])
        return pa.chunked_array([pa.array([_text(value) for value in part[...].tolist()])])
    if {"categories", "codes"} <= set(part):
        categories = part["categories"][...].tolist()
        words = np.array([*map(_text, categories), None], dtype=object)
        codes = np.asarray(part["codes"][...], np.int64)
        if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
            return None
        return pa.chunked_array([pa.array(words[codes], pa.string())])
    if {"values", "mask"} <= set(part):
        values, mask = part["values"][...], np.asarray(part["mask"][...], bool)
        return pa.chunked_array([pa.array(values, mask=mask)])
    return None
