"""Reading a table from a file or a folder: bytes, columns, their roles, numbers."""

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gnomon.budget import Memory
from gnomon.data import samples
from gnomon.data.column_options import ColumnOptions, as_column_options
from gnomon.data.columns import colour_of, shown_of, texts_of
from gnomon.data.file_content import open_content
from gnomon.data.folder import read_folder
from gnomon.data.formats.h5ad import is_h5ad, read_h5ad
from gnomon.data.formats.readers import read_whole, refuse_cell_options
from gnomon.data.formats.sparse import find_10x, read_10x
from gnomon.data.in_memory import index_name, raw_table
from gnomon.data.matrix import gather_numbers
from gnomon.data.raw import RawTable
from gnomon.data.refusals import lacks_columns
from gnomon.data.roles import assign_roles
from gnomon.data.samples import Sample
from gnomon.data.table import Table, table_of_sample
from gnomon.errors import Parameter, ParameterError

__all__ = ["read", "read_given", "read_source"]


def read(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    id: str | None = None,
    keep: Any = None,
    drop: Any = None,
    na: Any = None,
    features: Any = None,
    decimal: str | None = None,
    columns: Any = None,
    text: str | None = None,
    image: str | None = None,
    link: str | None = None,
    sheet: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    normalize: str | None = None,
    memory: Memory = None,
) -> Table:
    r"""Read a table from a file.

    CSV and its kin (also gz), Parquet, Feather, .npy, .npz, JSON lines or arrays, Excel or
    OpenDocument workbooks (extra ``gnomon[excel]``), sparse matrices (SciPy's .npz, Matrix Market,
    10x folders), and AnnData files (.h5ad, extra ``gnomon[anndata]``).

    A folder is read as one table: its files in the order of their names, one below the other; or
    as the matrix of a 10x folder. Sparse matrices (SciPy's .npz, .mtx, 10x, .h5ad) stay sparse.

    The format is recognised by the file's first bytes. Of a text, the encoding, the delimiter, the
    decimal point and the header row are guessed. Columns of numbers are features; the others
    name or colour the rows or are ignored, and the table says which and why. `gnomon.data.roles`
    has the rules.

    Parameters
    ----------
    path : str or path
        The file or folder; "-" is standard input.
    label : str, optional
        The column to colour by. It is no feature unless `keep` names it too.
    id : str, optional
        The column that says what rows are called.
    keep : str or list of str, optional
        Columns to use as features although they would be none, by name or by patterns; added to
        `features`.
    drop : str or list of str, optional
        Columns to ignore, by name or by patterns; taken from `features`.
    na : str or list of str, optional
        Text that means a missing value, besides an empty cell, NA, NaN and null.
    features : str or list of str, optional
        The features, by name or by patterns such as ``"pc*"``; no others are used. By default they
        are guessed.
    decimal : {".", ","}, optional
        What divides decimals in text; the other mark may then divide thousands. By default both
        are guessed.
    columns : list of str, optional
        Use these columns and no others, in this order: those of a model, for new rows. A file
        without names must have as many.
    text, image, link : str, optional
        Columns that a page shows for each row: what it says; its picture, as bytes or as a path
        below the file's folder; and an address. They are no features.
    sheet : str, optional
        The sheet of an Excel workbook; by default its first one.
    layer, use_rep : str, optional
        Key of `layers` or of `obsm` of an AnnData file. By default, as in scanpy, ``X_pca`` where
        there are more than 50 genes, otherwise X; "X" takes X itself.
    normalize : {"log1p"}, optional
        Scale the counts of each cell of an AnnData file to 10,000, then take log(1 + x).
    memory : int or str, optional
        Bytes, or a size such as "2GB", that may be used; by default what the machine has free.

    Returns
    -------
    Table
        With `X` of shape (n, d) and NaN for missing values; see `gnomon.data.preparation`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gnomon.data.read import read
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = file.write_text("species;length\nlily;1,5\nrose;2,5\nlily;1,75\nrose;2,0\n")
    >>> print(read(file))
    flowers.csv: 4 rows × 2 columns
      features  1 numeric column (length)
      label     species
      note      columns are delimited by semicolons; decimals are written with a comma
    """
    options = as_column_options(
        label=label,
        id=id,
        keep=keep,
        drop=drop,
        na=na,
        columns=columns,
        features=features,
        decimal=decimal,
        text=text,
        image=image,
        link=link,
        sheet=sheet,
        layer=layer,
        use_rep=use_rep,
        normalize=normalize,
    )

    def read_file(file: str | os.PathLike[str], texts: Collection[str]) -> RawTable:
        return read_whole(open_content(file, memory), options, texts)

    refuse_cell_options(path, options)
    folder = os.fspath(path) != "-" and Path(path).is_dir()
    if folder and (cells := find_10x(Path(path))) is not None:
        raw = read_10x(cells, Path(path).name, memory)
    elif os.fspath(path) != "-" and is_h5ad(Path(path)):
        raw = read_h5ad(Path(path), options, memory)
    else:
        raw = read_folder(Path(path), read_file) if folder else read_file(path, ())
    place = None if os.fspath(path) == "-" else Path(path) if folder else Path(path).parent
    return as_table_of(raw, options, place)


def read_given(table: Any, **reading: Any) -> Table:
    """The table of a dataframe, an array or a sparse matrix, with the roles of its columns."""
    options = as_column_options(**reading)
    for name in ("sheet", "layer", "use_rep", "normalize"):
        if getattr(options, name) is not None:
            raise ParameterError(
                "{parameter} is for files; the table is in memory already. Leave it out.",
                parameter=Parameter(name),
            )
    if options.id is None and (index := index_name(table)) is not None:
        options = replace(options, id=index)
    return as_table_of(raw_table(table), options, None)


def as_table_of(raw: RawTable, options: ColumnOptions, folder: Path | None) -> Table:
    """The columns of a file, or of what was given, by their roles."""
    roles = assign_roles(raw, options)
    X, names = gather_numbers(raw, roles, options.na)
    if options.columns is not None:
        X, names = _in_order(X, names, options.columns, raw)
    used, seen = replace(roles.names, features=names), roles.seen
    labels = None if used.label is None else texts_of(seen[used.label], options.na, gaps=True)
    ids = None if used.id is None else texts_of(seen[used.id], options.na, gaps=False)
    return Table(
        name=raw.name,
        X=X,
        columns=names,
        labels=labels,
        label_name=used.label,
        ids=ids,
        id_name=used.id,
        roles=used,
        others=tuple(
            (left.column, colour_of(seen[left.column], options.na)) for left in used.kept_for_colour
        ),
        **{role: shown_of(seen[name], role) for role, name in roles.shown.items()},
        folder=folder,
        notes=(*raw.notes, *roles.notes),
        n_columns=len(raw.names),
        named=raw.named,
        places=raw.places,
        size=raw.size,
    )


def read_source(
    source: str | os.PathLike[str] | Sample | Table,
    *,
    memory: Memory = None,
    **reading: Any,
) -> Table:
    """The table of a bundled sample, or of a file read with `reading`."""
    if isinstance(source, str) and source in samples.names() and not Path(source).exists():
        source = samples.load(source)
    if not isinstance(source, (Sample, Table)):
        return read(source, memory=memory, **reading)
    for name, value in reading.items():
        if value and name != "columns":
            raise ParameterError(
                "{parameter} is for files; {table} is in memory already. Leave it out.",
                parameter=Parameter(name),
                table=source.name,
            )
    return source if isinstance(source, Table) else table_of_sample(source)


def _in_order(
    X: NDArray[Any], names: tuple[str, ...], columns: tuple[str, ...], raw: RawTable
) -> tuple[NDArray[Any], tuple[str, ...]]:
    """The model's columns as the model has them; only vectors give others, or in another order."""
    if names == columns or not raw.named:
        return X, columns
    place = {name: j for j, name in enumerate(names)}
    absent = [name for name in columns if name not in place]
    if absent:
        raise lacks_columns(raw.name, absent, len(columns))
    return X[:, [place[name] for name in columns]], columns
