"""`gnomon align` and `gnomon compare` of tables that are read in blocks, here or on a cluster.

Rows belong together by their order, or by a column of numbers that ascends in both. All else that
names rows stays behind.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.cli.asked import Asked
from gnomon.cli.pairs import chosen_columns, ids_asked, roles_of, say_shared, why_unused
from gnomon.cli.results import say_read
from gnomon.cli.run_lines import RunLines
from gnomon.data.names import find_name, is_id_like
from gnomon.data.open import table_of_source
from gnomon.data.refusals import FileError, OptionError, listed
from gnomon.data.sources import source as source_of
from gnomon.data.table import ColumnRoles, LeftOut
from gnomon.engine import Block, Source, as_engine
from gnomon.engine.paired_tables import call
from gnomon.engine.sink import writing_blocks
from gnomon.errors import Parameter, ParameterError, Remedy
from gnomon.procrustes import Procrustes
from gnomon.procrustes.similarity import Similarity

__all__ = ["BlockPair", "open_block_pair", "write_moved"]


@dataclass(frozen=True, eq=False)
class BlockPair:
    """Two tables in blocks: the columns in use, and ids under one name.

    Attributes
    ----------
    left, right : Source
    names : tuple of str
        What they are called.
    by : str or None
        The column of ids; None where rows belong together by their order.
    """

    left: Source
    right: Source
    names: tuple[str, str]
    by: str | None

    def say(self, words: RunLines, shared: int) -> None:
        """How many rows are shared."""
        left, right = self.names
        say_shared(words, shared, (left, self.left.rows), (right, self.right.rows), by=self.by)

    def numbers(self, shared: int, left: str, right: str) -> dict[str, Any]:
        """What belongs together, for JSON; `left` and `right` are what a command calls them."""
        return {
            left: self.names[0],
            right: self.names[1],
            "id": self.by,
            f"n_only_{left}": self.left.rows - shared,
            f"n_only_{right}": self.right.rows - shared,
        }


def open_block_pair(left: str, right: str, asked: Asked, words: RunLines) -> BlockPair:
    """Both tables with the columns of --columns, or of the map where both are of `gnomon map`."""
    paths = left, right
    ids = ids_asked(asked.ids, left, right)
    found = [_look(path, name, asked) for path, name in zip(paths, ids, strict=True)]
    called = [Path(path).name or path for path in paths]
    if called[0] == called[1]:
        called = list(paths)
    both = [[name for name in names if name != own] for _, names, own in found]
    wanted = chosen_columns(called, both, asked.columns)
    sources: list[Source] = []
    for path, name, (source, names, own), used in zip(paths, called, found, wanted, strict=True):
        roles = _roles_of(source, names, own, used, why_unused(asked.columns))
        if len(used) < len(both[len(sources)]):
            kept = used if own is None else [own, *used]
            source = _open(path, asked, columns=kept)
            names = list(source.names or kept)
        table = table_of_source(source, name, row_names=False)
        say_read(words, replace(table, columns=roles.features, roles=roles))
        sources.append(call(_named(source, names, own, found[0][2]), name))
    _say_unused_ids(words, [each[0] for each in found], ids[0])
    if ids[0] is None and sources[0].rows != sources[1].rows:
        a, b = (f"{name} has {source.rows:,}" for name, source in zip(called, sources, strict=True))
        raise FileError(
            f"{a} rows and {b}: they do not belong together by their order.", ("id", "COLUMN")
        )
    return BlockPair(sources[0], sources[1], (called[0], called[1]), found[0][2])


def _open(path: str, asked: Asked, **columns: Any) -> Source:
    """The table as a source, whose rows are all used."""
    if asked.missing != "error":
        raise ParameterError(
            f"--missing {asked.missing} needs the whole table in memory, and this one is read in "
            "blocks. Fill the gaps in beforehand."
        )
    # Workers have other working folders, so the path is absolute.
    found = source_of(
        Path(path).resolve(),
        na=list(asked.na),
        decimal=asked.decimal,
        spool=asked.spool,
        **columns,
    )
    # Of the processes whose libraries are counted, this one does not work beside the others.
    memory = asked.memory
    return found if memory is None else found.limit(memory.each(memory.processes - 1))


def _look(path: str, id: str | None, asked: Asked) -> tuple[Source, list[str], str | None]:
    """The table, the names of its columns of numbers, and its column of ids as it spells it."""
    if path == "-":
        raise ParameterError(
            "Standard input is not read in blocks, and the other table is. Save it as a file."
        )
    if not Path(path).exists():
        raise ParameterError(f"There is no file or folder '{path}'. Check the name.")
    try:
        source = _open(path, asked, keep=[] if id is None else [id])
    except (FileError, OptionError) as error:
        raise (error if id is None else _about_ids(error)) from None
    names = list(source.names or source.files[0].all_names)  # type: ignore[attr-defined]
    return source, names, None if id is None else find_name("id", id, names, Path(path).name)


def _roles_of(
    source: Source, names: list[str], own: str | None, asked: list[str], why: str
) -> ColumnRoles:
    """What columns are used for: `own` names the rows, and `asked` are compared."""
    roles: ColumnRoles = source.roles.final()  # type: ignore[attr-defined]  # of a file
    features = tuple(name for name in names if name != own)
    if own is not None and roles.id not in (None, own):
        other = LeftOut(str(roles.id), "another id")
        roles = replace(roles, ignored=(*roles.ignored, other))
    roles = replace(roles, features=features, id=roles.id if own is None else own)
    return roles_of(roles, asked, why)


def _about_ids(error: FileError | OptionError) -> FileError | OptionError:
    """Name --id in an error about --keep, which stands for it here."""
    if error.fields.get("parameter") != "keep":
        return error
    ways = [way for way in error.ways if way is not Remedy.LEAVE_OUT]
    ascends = "In blocks --id must be a column of numbers that ascends."
    return error.replace(ways=(*ways, ascends), parameter=Parameter("id"))


def _named(source: Source, names: list[str], own: str | None, ids: str | None) -> Source:
    """The source with names, its ids under the name that they have in the other table too."""
    named = source.only(source.partitions)
    named.names = tuple(ids if ids is not None and name == own else name for name in names)
    return named


def _say_unused_ids(words: RunLines, sources: list[Source], id: str | None) -> None:
    """Columns that would name rows in memory and are not looked at in blocks."""
    if id is not None:
        return
    behind = [
        name
        for source in sources
        for name in source.files[0].all_names  # type: ignore[attr-defined]
        if is_id_like(name) and name not in (source.names or ())
    ]
    if behind:
        words.say(
            "Note",
            f"{listed(list(dict.fromkeys(behind)))} not looked at: rows belong "
            "together by their order; --id joins by a column of numbers that ascends",
        )


def write_moved(pair: BlockPair, model: Procrustes, out: Path, *, force: bool, engine: Any) -> None:
    """All rows of the left table in the frame of the right one, with their ids, block by block."""
    left, right = (
        [name for name in source.names or () if name != pair.by]
        for source in (pair.left, pair.right)
    )
    wide = model.rotation_.shape[1]
    names = right if len(right) == wide else left
    if pair.by in names or len(names) != wide:
        names = [f"axis{j + 1}" for j in range(wide)]
    at = None if pair.by is None else (pair.left.names or ()).index(pair.by)
    whole = names if pair.by is None else [pair.by, *names]
    moved = _Moved(model.similarity_, at)
    with writing_blocks(out, pair.left.rows, whole, force=force) as add:
        as_engine(engine, n_jobs=model.n_jobs).write(moved, pair.left, add)


@dataclass(frozen=True)
class _Moved:
    """A block carried through the map, with its ids in front."""

    model: Similarity
    ids: int | None

    def __call__(self, block: Block) -> NDArray[Any]:
        if self.ids is None:
            return self.model.transform(block.X, n_jobs=1)
        moved = self.model.transform(np.delete(block.X, self.ids, axis=1), n_jobs=1)
        return np.column_stack([block.X[:, self.ids], moved])
