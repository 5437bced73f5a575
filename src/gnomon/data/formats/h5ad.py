"""AnnData files (`.h5ad`): cells × genes with what names and describes the cells.

1. A child process looks at the file first (`CHECK`): libhdf5 may crash on a damaged one, and links
   or storage outside of the file, virtual datasets and filters from plugins are refused there.
2. The matrix is read by h5py, without anndata: X, a layer or a representation in `obsm`. It is held
   where it fits (`read_h5ad`), and otherwise read in parts (`h5ad_table`). CSR stays sparse; CSC is
   turned into rows once, in memory or in a temporary copy, and said.
3. `obs_names` are ids, columns of `obs` labels and colours, `var_names` the columns. By default, as
   in scanpy, `obsm["X_pca"]` is used where there are more than 50 genes, and otherwise the genes
   that `var["highly_variable"]` marks; both are said, and ``use_rep="X"`` takes X.

Needs ``pip install 'gnomon[anndata]'``.
"""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory
from gnomon.data.column_options import ColumnOptions
from gnomon.data.formats.matrix_parts import (
    CsrRows,
    Entries,
    Matrix,
    MatrixTable,
    spool_csr,
    stored_entries,
)
from gnomon.data.formats.old_h5ad import as_later
from gnomon.data.formats.spool import Spool
from gnomon.data.names import unique_names
from gnomon.data.raw import RawTable
from gnomon.data.refusals import COPIED_WHOLE, FileError, OptionError, listed, quoted
from gnomon.data.table import count
from gnomon.errors import DataError, DataWarning, GnomonError, warn_caller
from gnomon.inputs.csr import canonical_csr, is_sparse

__all__ = ["h5ad_bytes", "h5ad_table", "is_h5ad", "log1p_of_counts", "read_h5ad"]

MAGIC = b"\x89HDF"

CHECK_SECONDS = 120
N_PCS = 50  # as `scanpy.settings.N_PCS`: more genes are represented by `X_pca`
TARGET_COUNTS = 1e4  # counts of every cell after ``normalize="log1p"``
MANY_CELLS = 1_000  # whose numbers are looked at for whole ones
CHUNK_CACHE = 2**26  # bytes of unpacked chunks that a dense matrix in chunks keeps
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


def read_h5ad(path: Path, options: ColumnOptions, memory: Memory = None) -> RawTable:
    """The cells of an AnnData file, held in memory: X, a layer or a representation, and `obs`.

    ``normalize="log1p"`` scales the counts of each cell to 10,000 and takes log(1 + x).
    """
    with _reading(path) as file:
        cells = _Cells.of(path, file, options)
        Budget.from_memory(memory).check(f"{path.name}: {cells.what}", cells.held_bytes)
        X = cells.finished(cells.whole(file))
        cells.warn_of_counts(X)
        columns, said = unique_names(cells.genes, X.shape[1])
        beside = _obs(file, path.name, 0, X.shape[0], frozenset(columns))
        categories = _categories(file, frozenset(columns))
    return RawTable(
        path.name,
        beside,
        X,
        tuple(columns),
        notes=(*cells.notes, *said),
        named=True,
        typed=True,
        categories=categories & {*beside},
        beside=frozenset(beside),
        size=cells.size,
    )


def h5ad_bytes(path: Path, options: ColumnOptions) -> tuple[int, bool]:
    """Bytes that the matrix takes while it is brought into memory, and whether it is sparse."""
    with _reading(path) as file:
        cells = _Cells.of(path, file, options)
        return cells.held_bytes, cells.kind != "dense"


def h5ad_table(path: Path, options: ColumnOptions, rows: int | None, spool: Spool) -> MatrixTable:
    """The cells of an AnnData file in parts; `spool` holds a copy of what is stored by columns."""
    with _reading(path) as file:
        cells = _Cells.of(path, file, options)
        matrix = _InParts(cells, cells.in_parts(file, spool))
        cells.warn_of_counts(matrix.read(0, min(MANY_CELLS, matrix.shape[0])))
        columns, said = unique_names(cells.genes, matrix.shape[1])
        categories = _categories(file, frozenset(columns))

    def beside(start: int, stop: int) -> dict[str, Any]:
        with _reading(path) as file:
            return _obs(file, path.name, start, stop, frozenset(columns))

    table = MatrixTable(
        path.name,
        matrix,
        columns,
        options,
        rows,
        named=True,
        beside=beside,
        categories=categories,
        notes=(*cells.notes, *said),
        spool=spool if cells.kind == "csc" else None,
    )
    table.size = cells.size
    return table


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """The open file, once a child process has looked through it; what h5py raises in one sentence.

    A file is looked through once for as long as it stays as it is.
    """
    now = path.stat()
    _check(path, now.st_size, now.st_mtime_ns)
    import h5py

    try:
        with h5py.File(path, "r", rdcc_nbytes=CHUNK_CACHE) as file:
            yield as_later(file)
    except GnomonError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise FileError(
            f"{path.name} is no AnnData file, or a damaged one ({str(error).splitlines()[0]}).",
            COPIED_WHOLE,
        ) from None


@lru_cache(maxsize=16)
def _check(path: Path, size: int, changed: int) -> None:
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
            f"{path.name} could not be looked through within {CHECK_SECONDS} s.", COPIED_WHOLE
        ) from None
    if done.returncode == UNSAFE:
        raise FileError(
            f"{path.name}: {done.stdout.strip()}, which is not followed.",
            "Write it anew: adata.write_h5ad(…).",
        )
    if done.returncode != 0:
        how = "crashes HDF5's own reader" if done.returncode < 0 else "is truncated or damaged"
        raise FileError(f"{path.name} {how}.", COPIED_WHOLE)


@dataclass(frozen=True)
class _Cells:
    """What is read of an AnnData file, and what is done with its rows.

    Attributes
    ----------
    path : Path
    key : str
        Where the matrix is in the file.
    what : str
        What it is called: X, layers["…"] or obsm["…"].
    kind : str
        "dense", "csr" or "csc".
    shape : tuple of int
    dtype : dtype
    entries : int
        Entries of a sparse matrix.
    genes : tuple of str
        Names of the columns in use.
    used : array or None
        Their numbers, where not all columns are used.
    normalize : bool
        Whether counts are normalised.
    counts : bool
        Whether they may be raw counts, which is warned of.
    notes : tuple of str
    size : str
        Cells and genes of the file.
    """

    path: Path
    key: str
    what: str
    kind: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    entries: int
    genes: tuple[str, ...]
    used: NDArray[np.intp] | None
    normalize: bool
    counts: bool
    notes: tuple[str, ...]
    size: str

    @classmethod
    def of(cls, path: Path, file: Any, options: ColumnOptions) -> "_Cells":
        """Decide what is read, from names, types and shapes alone."""
        name, notes = path.name, list[str]()
        use_rep = options.use_rep
        plain = options.layer is None and use_rep is None and options.normalize is None
        if plain and options.columns is not None:
            use_rep = _representation_of(file, options.columns)
        elif plain and _has_pca(file):
            use_rep = "X_pca"
        elif use_rep == "X":
            use_rep = None
        part, what = _choose(file, name, options.layer, use_rep)
        kind, shape, dtype, entries = _layout(part, name, what)
        if min(shape) < 1:
            raise FileError(f"{name}: {what} is empty; its shape is {shape}.")
        ids = len(_index(file["obs"], name))
        if ids != shape[0]:
            raise FileError(
                f"{name} names {ids:,} cells, and {what} has {shape[0]:,}.", COPIED_WHOLE
            )
        if kind == "csc":
            notes.append("stored by columns (CSC): turned into rows once, which takes a copy")
        if options.normalize is not None:
            notes.append("counts scaled to 10,000 a cell, then log1p")
        used = None
        if use_rep is not None:
            genes = _axes(use_rep, shape[1])
        else:
            genes = [_text(value) for value in _index(file["var"], name)[...].tolist()]
            if len(genes) != shape[1]:
                raise FileError(
                    f"{name} names {len(genes):,} genes, and {what} has {shape[1]:,}.", COPIED_WHOLE
                )
            if options.columns is None and options.features is None:
                used = _highly_variable(file, shape[1])
            if used is not None:
                genes = [genes[j] for j in used]
                marked = f"{used.size:,} of {shape[1]:,}"
                notes.append(f"{marked} genes used: var['highly_variable']; features '*' takes all")
        if what != "X":
            notes.append(f"{what} is used{_shares_held(file, what, shape[1])}")
        n_genes = len(_index(file["var"], name))
        return cls(
            path.absolute(),
            part.name,
            what,
            kind,
            shape,
            dtype,
            entries,
            tuple(genes),
            used,
            options.normalize is not None,
            options.normalize is None and use_rep is None,
            tuple(notes),
            f"{count(ids, 'cell')} × {count(n_genes, 'gene')}",
        )

    @property
    def held_bytes(self) -> int:
        """Bytes that the whole matrix takes while it is brought into memory."""
        if self.kind == "dense":
            return self.shape[0] * self.shape[1] * self.dtype.itemsize
        each = self.entries * (self.dtype.itemsize + 4) + 8 * self.shape[0]
        return (2 if self.kind == "csc" else 1) * each

    def whole(self, file: Any) -> Any:
        """The whole matrix as it is stored, sparse ones by rows."""
        part, name = file[self.key], self.path.name
        if self.kind == "dense":
            return part[...]
        made = sp.csr_array if self.kind == "csr" else sp.csc_array
        try:
            arrays = part["data"][...], part["indices"][...], part["indptr"][...]
            return canonical_csr(made(arrays, shape=self.shape))
        except DataError as error:
            raise FileError(f"{name}: {error.replace(table=self.what)}") from None
        except (ValueError, TypeError, IndexError) as error:
            raise FileError(
                f"{name}: {self.what} is a broken sparse matrix ({error}).", COPIED_WHOLE
            ) from None

    def in_parts(self, file: Any, spool: Spool) -> Matrix:
        """The matrix as it is stored, by rows."""
        called = f"{self.path.name}: {self.what}"
        if self.kind == "dense":
            return _DenseRows(self.path, self.key, self.shape, self.dtype)
        if self.kind == "csr":
            return _StoredCsr(called, self, file[self.key]["indptr"][...])
        part = file[self.key]
        indptr = np.asarray(part["indptr"][...], np.int64)

        def batches() -> Iterator[Entries]:
            return stored_entries(indptr, part["indices"], part["data"], by_rows=False)

        return spool_csr(called, self.shape, self.dtype, batches, spool)

    def finished(self, X: Any) -> Any:
        """Rows as they are used: normalised, and of the chosen genes."""
        if self.normalize:
            X = log1p_of_counts(X)
        if self.used is not None:
            X = X[:, self.used]
        return X

    def warn_of_counts(self, X: Any) -> None:
        """Warn of raw counts in some rows."""
        if self.counts:
            _warn_of_counts(X, self.what)


class _InParts(Matrix):
    """Rows of the stored matrix, finished."""

    def __init__(self, cells: _Cells, stored: Matrix) -> None:
        self.cells, self.matrix = cells, stored
        self.shape = (stored.shape[0], len(cells.genes))
        self.dtype = cells.finished(stored.read(0, 1)).dtype
        self.stored = stored.stored  # at most so many of the genes in use

    def read(self, start: int, stop: int) -> Any:
        """Some rows."""
        return self.cells.finished(self.matrix.read(start, stop))

    def row_bytes(self, start: int, stop: int) -> int:
        """Bytes of some rows before genes are chosen."""
        return self.matrix.row_bytes(start, stop)

    def release(self) -> None:
        """Close the file."""
        self.matrix.release()


class _OpenFile:
    """A file that is opened when it is first read, in each process."""

    def __init__(self, path: Path) -> None:
        self.path, self.file, self.lock = path, None, threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["path"])  # type: ignore[misc]

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """The open file, for one thread at a time, as libhdf5 has it anyway."""
        import h5py

        with self.lock:
            if self.file is None:
                self.file = h5py.File(self.path, "r", rdcc_nbytes=CHUNK_CACHE)
            yield as_later(self.file)

    def close(self) -> None:
        """Close it until it is read again."""
        with self.lock:
            if self.file is not None:
                self.file.close()
            self.file = None


class _DenseRows(Matrix):
    """Rows of a dense matrix."""

    stored = None

    def __init__(self, path: Path, key: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self.open, self.key, self.shape, self.dtype = _OpenFile(path), key, shape, dtype

    def read(self, start: int, stop: int) -> Any:
        """Some rows."""
        with self.open.reading() as file:
            return file[self.key][start:stop]

    def release(self) -> None:
        """Close the file."""
        self.open.close()


class _StoredCsr(CsrRows):
    """Rows of a CSR matrix."""

    def __init__(self, called: str, cells: _Cells, indptr: NDArray[Any]) -> None:
        super().__init__(called, cells.shape, cells.dtype, indptr)
        if int(self.indptr[-1]) > cells.entries:
            raise FileError(
                f"{called} is a broken sparse matrix: entries are missing.", COPIED_WHOLE
            )
        self.open, self.key = _OpenFile(cells.path), cells.key

    def take(self, start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Columns and values of some entries."""
        with self.open.reading() as file:
            part = file[self.key]
            return part["indices"][start:stop], part["data"][start:stop]

    def release(self) -> None:
        """Close the file."""
        self.open.close()


def _has_pca(file: Any) -> bool:
    """Whether scanpy would use `X_pca`: it is there, and there are many genes."""
    genes = file["var"][file["var"].attrs.get("_index", "_index")] if "var" in file else ()
    return "X_pca" in file.get("obsm", ()) and len(genes) > N_PCS


def _shares_held(file: Any, what: str, k: int) -> str:
    """How much of the genes' variance `X_pca` holds, where scanpy wrote that beside it."""
    stored = file.get("uns", {}).get("pca")
    if what != 'obsm["X_pca"]' or stored is None or not hasattr(stored, "keys"):
        return ""
    ratio = stored.get("variance_ratio")
    if getattr(ratio, "shape", None) != (k,) or ratio.dtype.kind != "f":
        return ""
    share = float(ratio[...].sum())
    held = f", which hold {100 * share:.3g} % of the variance of the genes"
    return f": {k} principal components{held if 0 < share <= 1 + 1e-6 else ''}"


def _representation_of(file: Any, columns: tuple[str, ...]) -> str | None:
    """The representation whose axes the columns of a model are; None if they are genes."""
    for key, part in file.get("obsm", {}).items():
        if hasattr(part, "dtype") and part.ndim == 2 and {*columns} <= {*_axes(key, part.shape[1])}:
            return str(key)
    return None


def _axes(key: str, d: int) -> list[str]:
    stem = key.removeprefix("X_")
    return [f"{stem}_{j + 1}" for j in range(d)]


def _highly_variable(file: Any, d: int) -> NDArray[np.intp] | None:
    """Genes that `var["highly_variable"]` marks, if it marks any."""
    if "highly_variable" not in file["var"]:
        return None
    marked = file["var"]["highly_variable"]
    chosen = np.asarray(marked[...] if hasattr(marked, "dtype") else marked["values"][...])
    if chosen.dtype == bool and chosen.shape == (d,) and chosen.any():
        return np.flatnonzero(chosen)
    return None


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
    key, group = (layer, "layers") if layer is not None else (use_rep, "obsm")
    there = list(file.get(group, ()))
    if group == "obsm" and key not in there and f"X_{key}" in there:
        key = f"X_{key}"  # as scanpy's functions take it
    if key not in there:
        known = f"It has {listed(there)}." if there else "It has none."
        raise OptionError(f"{name} has no {group}[{quoted(str(key))}].", known)
    return file[group][key], f"{group}[{quoted(str(key))}]"


def _layout(part: Any, name: str, what: str) -> tuple[str, tuple[int, int], np.dtype[Any], int]:
    """How a matrix is stored, its shape and type, and its entries if it is sparse."""
    kind = str(part.attrs.get("encoding-type", part.attrs.get("h5sparse_format", "")))
    if hasattr(part, "dtype"):  # a dataset
        if part.dtype.kind not in "biuf" or part.ndim != 2:
            raise FileError(
                f"{name}: {what} holds {part.dtype} of shape {part.shape}, no table of numbers.",
                "Name a layer with numbers.",
            )
        return "dense", part.shape, part.dtype, 0
    kind = kind.removesuffix("_matrix")
    if kind not in ("csr", "csc"):
        raise FileError(f"{name}: {what} is stored as {quoted(kind or 'a group')}, no matrix.")
    data = part["data"]
    if data.dtype.kind not in "biuf":
        raise FileError(
            f"{name}: {what} holds {data.dtype}, not numbers.", "Name a layer with numbers."
        )
    stored = part.attrs.get("shape", part.attrs.get("h5sparse_shape"))
    try:
        shape = int(stored[0]), int(stored[1])
    except (TypeError, ValueError, IndexError):
        raise FileError(f"{name}: {what} does not say what shape it has.", COPIED_WHOLE) from None
    return kind, shape, data.dtype, int(data.size)


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
    values = X.data if is_sparse(X) else X
    if values.size and values.min() < 0:
        raise OptionError(
            "normalize is for counts, and there are negative numbers: the table is scaled already.",
            "Leave it out.",
        )
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float32)
    total = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    factor = np.where(total > 0, TARGET_COUNTS / np.where(total > 0, total, 1.0), 0.0)
    if not is_sparse(X):
        return np.log1p(X * factor[:, None]).astype(dtype)
    scaled = X.astype(dtype)
    scaled.data = np.log1p(X.data * np.repeat(factor, np.diff(X.indptr))).astype(dtype)
    return scaled


def _index(group: Any, name: str) -> Any:
    """Names of cells or genes, as they are stored."""
    key = group.attrs.get("_index", "_index")
    if key not in group:
        raise FileError(f"{name}: {quoted(group.name)} has no index.", COPIED_WHOLE)
    return group[key]


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _obs(file: Any, name: str, start: int, stop: int, taken: frozenset[str]) -> dict[str, Any]:
    """Ids and columns of `obs` of some cells, by name; those of an unknown layout are left out."""
    obs, rows = file["obs"], slice(start, stop)
    columns: dict[str, Any] = {"cell": _texts(_index(obs, name)[rows])}
    order = [_text(key) for key in obs.attrs.get("column-order", ())]
    for key in order:
        cells = _column(obs[key], rows) if key in obs else None
        if cells is not None and len(cells) == stop - start:
            columns[f"{key} (obs)" if key in {*taken, *columns} else key] = cells
    return columns


def _categories(file: Any, taken: frozenset[str]) -> frozenset[str]:
    """Columns of `obs` that hold categories, by the names of `_obs`."""
    obs = file["obs"]
    order = [_text(key) for key in obs.attrs.get("column-order", ())]
    grouped = [key for key in order if key in obs and _is_category(obs[key])]
    return frozenset(f"{key} (obs)" if key in {*taken, "cell"} else key for key in grouped)


def _is_category(part: Any) -> bool:
    return not hasattr(part, "dtype") and {"categories", "codes"} <= set(part)


def _column(part: Any, rows: slice) -> Any:
    """Some rows of a column of `obs`: numbers, truth values, text, or categories."""
    if hasattr(part, "dtype"):
        if part.ndim != 1:
            return None
        if part.dtype.kind in "biuf":
            return pa.chunked_array([pa.array(part[rows])])
        return _texts(part[rows]) if part.dtype.kind in "SUO" else None
    if _is_category(part):
        categories = part["categories"][...].tolist()
        words = np.array([*map(_text, categories), None], dtype=object)
        codes = np.asarray(part["codes"][rows], np.int64)
        if codes.size and not -1 <= codes.min() <= codes.max() < len(categories):
            return None
        return pa.chunked_array([pa.array(words[codes], pa.string())])
    if {"values", "mask"} <= set(part):
        values, mask = part["values"][rows], np.asarray(part["mask"][rows], bool)
        return pa.chunked_array([pa.array(values, mask=mask)])
    return None


def _texts(values: NDArray[Any]) -> Any:
    return pa.chunked_array([pa.array([_text(value) for value in values.tolist()], pa.string())])
