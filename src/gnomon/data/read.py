"""Reading a table from a file, top to bottom: bytes, columns, their roles, numbers."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from gnomon.data import samples
from gnomon.data.arrow_files import read_feather, read_parquet
from gnomon.data.columns import texts_of
from gnomon.data.content import Content, open_content
from gnomon.data.csv_files import read_csv
from gnomon.data.matrix import gather_numbers
from gnomon.data.names import as_names
from gnomon.data.numpy_files import read_npy, read_npz
from gnomon.data.raw import RawTable
from gnomon.data.refusals import lacks_columns
from gnomon.data.roles import Wishes, assign_roles
from gnomon.data.room import Memory
from gnomon.data.samples import Sample
from gnomon.data.table import Table, table_of_sample
from gnomon.errors import ParameterError, refuse

__all__ = ["read", "read_source"]

READERS: dict[str, Callable[[Content], RawTable]] = {
    "parquet": read_parquet,
    "feather": read_feather,
    "npy": read_npy,
    "zip": read_npz,
}


def read(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    id: str | None = None,
    keep: Any = None,
    drop: Any = None,
    na: Any = None,
    columns: Any = None,
    memory: Memory = None,
) -> Table:
    r"""Read a table from a file: CSV and its kin (also gz), Parquet, Feather, .npy or .npz.

    The format is told by the file's first bytes. Of a text, the encoding, the delimiter, the
    decimal point and the line of names are guessed. Columns of numbers are used; the others name
    or group the rows or are left out, and the table says which and why.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    label : str, optional
        The column to colour by. It is not among the numbers unless `keep` names it too.
    id : str, optional
        The column that says what rows are called.
    keep : str or list of str, optional
        Columns to use as numbers although they would be left out.
    drop : str or list of str, optional
        Columns to leave out.
    na : str or list of str, optional
        What stands for a missing value, beside an empty cell, NA, NaN and null.
    columns : list of str, optional
        Use these columns and no others, in this order: those of a model, for new rows. A file
        without names must have as many.
    memory : int or str, optional
        Bytes, or a size such as "2GB", that may be used; by default what the machine has free.

    Returns
    -------
    Table
        With `X` of shape (n, d) and NaN for missing values; see `gnomon.data.prepare`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gnomon.data.read import read
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "flowers.csv"
    >>> _ = file.write_text("species;length\nlily;1,5\nrose;2,5\nlily;1,75\nrose;2,0\n")
    >>> print(read(file))
    flowers.csv: 4 rows × 2 columns
      using  1 numeric column (length), coloured by species
      note   columns are divided by semicolons; decimals are written with a comma
    """
    for option, name in (("label", label), ("id", id)):
        if name is not None and not isinstance(name, str):
            refuse(option, "be the name of a column", name, kind=True)
    wishes = Wishes(
        label=label,
        id=id,
        keep=as_names("keep", keep),
        drop=as_names("drop", drop),
        na=as_names("na", na),
        columns=None if columns is None else as_names("columns", columns),
    )
    raw = _read_raw(open_content(path, memory), wishes)
    roles = assign_roles(raw, wishes)
    X, names = gather_numbers(raw, roles, wishes.na, wishes.keep)
    if wishes.columns is not None:
        X, names = _in_order(X, names, wishes.columns, raw)
    labels = (
        None if roles.label is None else texts_of(roles.seen[roles.label], wishes.na, gaps=True)
    )
    ids = None if roles.id is None else texts_of(roles.seen[roles.id], wishes.na, gaps=False)
    return Table(
        name=raw.name,
        X=X,
        columns=names,
        labels=labels,
        label_name=roles.label,
        ids=ids,
        id_name=roles.id,
        left_out=roles.left_out,
        others=tuple(
            (name, texts_of(roles.seen[name], wishes.na, gaps=True)) for name in roles.others
        ),
        notes=raw.notes,
        n_columns=len(raw.names),
        named=raw.named,
        places=raw.places,
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
    for name in ("label", "id", "keep", "drop", "na"):
        if reading.get(name):
            raise ParameterError(
                f"`{name}` is for files; {source.name} is in memory already. Leave it out."
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


def _read_raw(content: Content, wishes: Wishes) -> RawTable:
    if content.kind == "text":
        literal = [name for name in (wishes.label, wishes.id) if name is not None]
        return read_csv(content, literal=literal, na=wishes.na)
    return READERS[content.kind](content)
