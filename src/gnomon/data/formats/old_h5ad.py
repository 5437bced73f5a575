"""AnnData files from before anndata 0.7, read as if they had the layout of later ones.

`obs`, `var` and `obsm` are datasets of records there, one record a cell or gene; the first field of
`obs` and `var` is the index. A column of categories holds their numbers; the texts are in
``uns["NAME_categories"]``. The samples that come with scanpy have this layout.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

__all__ = ["as_later"]


def as_later(file: Any) -> Any:
    """The open file itself, or, if it has the old layout, a view of it with the later one."""
    obs = file.get("obs")
    return _OldFile(file) if getattr(obs, "dtype", None) is not None and obs.dtype.names else file


class _Field:
    """One field of a dataset of records; with entries that are arrays, a matrix."""

    def __init__(self, records: Any, key: str) -> None:
        kind = records.dtype[key]
        self.records, self.key, self.dtype = records, key, kind.base
        self.shape = (*records.shape, *kind.shape)
        self.ndim, self.name = len(self.shape), f"{records.name}/{key}"
        self.attrs: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        return self.records.fields(self.key)[rows]


class _Frame(Mapping[str, Any]):
    """A dataset of records as columns by name."""

    def __init__(self, records: Any, uns: Any) -> None:
        index, *rest = records.dtype.names
        self.records, self.uns, self.name = records, uns, records.name
        self.attrs = {"_index": index, "column-order": rest}

    def __iter__(self) -> Iterator[str]:
        return iter(self.records.dtype.names)

    def __len__(self) -> int:
        return len(self.records.dtype.names)

    def __getitem__(self, key: str) -> Any:
        if key not in self.records.dtype.names:
            raise KeyError(key)
        field, categories = _Field(self.records, key), self.uns.get(f"{key}_categories")
        if field.dtype.kind not in "iu" or getattr(categories, "dtype", None) is None:
            return field
        texts = np.atleast_1d(categories[()])
        # `obs` and `var` shared these names: the categories may be those of the other's column.
        fits = field[...].max(initial=-1) < len(texts)
        return {"categories": texts, "codes": field} if fits else field


class _OldFile(Mapping[str, Any]):
    """The parts of the file by name or path."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __iter__(self) -> Iterator[str]:
        return iter(self.file)

    def __len__(self) -> int:
        return len(self.file)

    def __getitem__(self, path: str) -> Any:
        first, _, rest = path.strip("/").partition("/")
        part = self.file[first]
        if getattr(part, "dtype", None) is not None and part.dtype.names:
            part = _Frame(part, self.file.get("uns", {}))
        return part[rest] if rest else part
