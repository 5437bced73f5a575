"""Two files for `gnomon.compare`, opened and joined as by the command."""

from os import PathLike, fspath
from typing import Any

from gnomon.cli.asked import Asked
from gnomon.cli.compare_page import compared_tables
from gnomon.cli.pairs import open_pairing
from gnomon.cli.run_lines import RunLines

__all__ = ["opened_pair"]


def opened_pair(
    a: str | PathLike[str], b: str | PathLike[str], id: str | None
) -> tuple[Any, Any, tuple[str, ...] | None, str | None]:
    """The shared rows of both files, and their ids; in blocks, the column of ids instead."""
    asked = Asked(ids=() if id is None else (id,))
    with compared_tables(fspath(a), fspath(b)) as (one, other):
        pair = open_pairing(one.table, other.table, asked, RunLines(quiet=True))
    X, Y = pair.shared()
    if pair.joined is None or pair.by is None:
        return X, Y, None, pair.id
    return X, Y, tuple(pair.joined.ids_left[pair.joined.rows_left].tolist()), None
