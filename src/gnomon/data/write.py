"""Writing that cannot leave half a file: a temporary file beside the target, then a rename."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["write_json", "write_table", "writing"]


@contextmanager
def writing(path: Path | str) -> Iterator[Path]:
    """A temporary path to write to; it takes the place of `path` only when all went well.

    The file is flushed to disk before the rename, so that after a crash there is the old file or
    the new one, never a part of it.
    """
    path = Path(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.chmod(0o666 & ~_umask())  # mkstemp's files are private
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path | str, content: dict[str, Any]) -> None:
    """`content` as readable JSON; NaN and infinities become null, which JSON has no word for."""
    with writing(path) as part:
        text = json.dumps(_without_nan(content), indent=2, ensure_ascii=False, allow_nan=False)
        part.write_text(text + "\n", encoding="utf-8")


def _without_nan(value: Any) -> Any:
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value


def write_table(path: Path | str, names: Sequence[str], columns: Sequence[NDArray[Any]]) -> None:
    """Named columns as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_arrays([pa.array(column) for column in columns], names=list(names))
    with writing(path) as part:
        pq.write_table(table, part)
