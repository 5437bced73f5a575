"""What is settled before a run begins: whether there is a map of the table, and room for it."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gnomon.data.preparation import Prepared
from gnomon.data.refusals import FileError
from gnomon.data.room import Memory, Room
from gnomon.data.table import Table, count
from gnomon.errors import DataWarning
from gnomon.estimate import map_bytes
from gnomon.inputs import check_real
from gnomon.pca import PCA
from gnomon.scores.few import few_rows
from gnomon.tsne.sampled import LEAST_SAMPLE, Sampling, choose_sample

__all__ = [
    "check_room",
    "check_rows",
    "check_run",
    "sample_rows",
    "sample_within",
    "usual_perplexity",
    "warn_of_few_rows",
]

PERPLEXITY = 30.0
FIRST = 100  # rows that are looked at before all are


def usual_perplexity(n: int) -> float:
    """The perplexity of a map of `n` rows where none was asked for."""
    return min(PERPLEXITY, max(1.0, (n - 1) / 3))


def check_run(prepared: Prepared, perplexity: float | None, mapped: int | None = None) -> None:
    """Refuse what there is no map of, or no PCA if `perplexity` is None, before any work.

    `mapped` are the rows that the map is made of, if not all.
    """
    X, name = prepared.X, prepared.table.name
    check_rows(name, len(X), perplexity, mapped)
    if perplexity is None:
        return
    if (X[:FIRST] == X[0]).all() and (X[FIRST:] == X[0]).all():
        raise FileError(
            f"{name}: all rows are the same in the columns in use, so there is nothing to map.",
            "Use other columns.",
        )


def check_rows(name: str, n: int, perplexity: float | None, mapped: int | None = None) -> None:
    """Refuse fewer rows than there is a map of, or a PCA if `perplexity` is None."""
    least, what = (2, "PCA") if perplexity is None else (3, "a map")
    if n < least:
        raise FileError(f"{name}: {count(n, 'row')}, where {what} needs {least} or more.")
    if perplexity is not None:
        check_real("perplexity", perplexity, 1.0, (n if mapped is None else mapped) - 1)


def warn_of_few_rows(n: int, *, mapped: bool) -> None:
    """Warn where `n` rows, those of a map or of a PCA alone, are too few to conclude from."""
    if said := few_rows(n, mapped=mapped):
        warnings.warn(said, DataWarning, stacklevel=3)


def check_room(
    table: Table,
    prepared: Prepared,
    pca: PCA,
    perplexity: float | None,
    memory: Memory = None,
    mapped: int | None = None,
) -> None:
    """Refuse a run that would not fit into the memory that the table leaves.

    `perplexity` is that of the map, None if there is none; `mapped` are the rows it is made of, if
    not all.
    """
    X, room = prepared.X, Room.of(memory)
    n, d = X.shape
    needs = {"PCA": (n, pca.plan(X).peak_bytes)}
    if perplexity is not None:
        rows = n if mapped is None else mapped
        needs["a map"] = rows, map_bytes(rows, d, perplexity)
    what = max(needs, key=lambda name: needs[name][1])
    rows, needed = needs[what]
    size = f"{rows:,} × {d:,}"
    room.check(f"{table.name}: {what} of {size} numbers", _held(table, prepared, room) + needed)


def sample_rows(
    table: Table,
    prepared: Prepared,
    perplexity: float,
    sample: int | None = None,
    memory: Memory = None,
    seed: int = 0,
) -> Sampling | None:
    """Which rows are mapped while the others are placed; None if there is room for all."""
    n, d = prepared.X.shape
    if sample is None and n <= LEAST_SAMPLE:  # then it is all or nothing, which `check_room` says
        return None
    room = Room.of(memory)
    return sample_within(
        room,
        table.name,
        n,
        asked=sample,
        needed=lambda rows: map_bytes(rows, d, perplexity),
        seed=seed,
        table=_held(table, prepared, room),
    )


def sample_within(
    room: Room,
    name: str,
    n: int,
    *,
    asked: int | None,
    needed: Callable[[int], float],
    seed: int,
    **held: int,
) -> Sampling | None:
    """`choose_sample`, with what the user allowed in its refusal and in its reason.

    `held` are bytes that are taken of the room already, by what takes them.
    """
    taken = sum(held.values())
    if asked is None:
        least = min(LEAST_SAMPLE, n)
        room.check(f"{name}: a map of {least:,} rows", taken + needed(least))
    chosen = choose_sample(n, asked=asked, budget=room.bytes - taken, needed=needed, seed=seed)
    if chosen is None or asked is not None:
        return chosen
    return replace(chosen, why=chosen.why + room.rest(**held))


def _held(table: Table, prepared: Prepared, room: Room) -> int:
    """What the tables take of the room.

    What the user allows is for all; of what the machine has free, the tables are taken already.
    """
    parts = (table.X, prepared.table.X, prepared.X)
    held = {id(part): part.nbytes for part in parts if not isinstance(part, np.memmap)}
    return sum(held.values()) if room.asked else 0
