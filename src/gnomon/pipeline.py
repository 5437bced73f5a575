"""The whole job, top to bottom: a table in, its components, its map and how far to trust them out.

This is the flow of ARCHITECTURE.md. The command line calls `run`; each step is an estimator or
function that can be used alone.
"""

import os
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.data.content import Room
from gnomon.data.preparation import Preparation, Prepared
from gnomon.data.prepare import prepare
from gnomon.data.read import read
from gnomon.data.refusals import FileError, quoted
from gnomon.data.samples import Sample, load, names
from gnomon.data.table import Table, count, table_of_sample
from gnomon.errors import ParameterError
from gnomon.estimate import map_bytes
from gnomon.inputs import check_real
from gnomon.neighbors import find_neighbors
from gnomon.pca import PCA
from gnomon.progress import Watch
from gnomon.scores import MapScores, score_map
from gnomon.scores.kept import TRUSTED, share_kept
from gnomon.tsne import TSNE
from gnomon.tsne.graph import REDUCED, WIDE
from gnomon.tsne.sampled import (
    LEAST_SAMPLE,
    Placed,
    Sampling,
    choose_sample,
    place_array,
    unplaced,
)

__all__ = [
    "Result",
    "Told",
    "check_room",
    "check_run",
    "measure_trust",
    "read_source",
    "run",
    "sample_rows",
    "usual_perplexity",
]

PERPLEXITY = 30.0
FIRST = 100  # rows that are looked at before all are

Told = Callable[[str, float, Any], None]


@dataclass(frozen=True, eq=False)
class Result:
    """What a run found.

    Attributes
    ----------
    table : Table
        What was read, and what was left out and why.
    prepared : Prepared
        The rows that were used, and how they were made ready.
    pca : PCA
    components : array (n, k)
        The rows in the components' frame.
    tsne : TSNE or None
        The map; None if none was asked for, or the run was interrupted before it began.
    trust : array (n,) or None
        Share of each row's 15 nearest neighbours that are among its 15 nearest on the map.
    quality : MapScores or None
        How far the map can be trusted, in all.
    seconds : dict
        Time of each stage.
    warnings : tuple of str
    sampling : Sampling or None
        Which rows the map was made of; None if it was made of all.
    rows : Placed or None
        Where every row is on the map, if some were placed on it afterwards.
    """

    table: Table
    prepared: Prepared
    pca: PCA
    components: NDArray[Any]
    tsne: TSNE | None
    trust: NDArray[np.float64] | None
    quality: MapScores | None
    seconds: dict[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    sampling: Sampling | None = None
    rows: Placed | None = None

    @property
    def interrupted(self) -> bool:
        """Whether the map was cut short, or nobody waited for the places or how far to trust it."""
        cut = self.rows is not None and not self.rows.finished
        return self.tsne is not None and (self.trust is None or cut)

    def of_the_map(self) -> "Result":
        """The rows that the map was made of, as a result of their own, which says so.

        That is this result where the map was made of all rows.
        """
        if self.sampling is None:
            return self
        rows = self.sampling.rows
        return replace(
            self,
            table=replace(self.table, notes=(*self.table.notes, self.sampling.sentence())),
            prepared=self.prepared.take(rows),
            components=self.components[rows],
            trust=None if self.trust is None else self.trust[rows],
            sampling=None,
            rows=None,
        )

    @property
    def preparation(self) -> Preparation:
        """How the rows were made ready."""
        return self.prepared.preparation

    @property
    def positions(self) -> NDArray[Any] | None:
        """Where every row is on the map, shape (n, dimensions)."""
        if self.rows is not None:
            return self.rows.positions
        return None if self.tsne is None else self.tsne.embedding_


def run(
    source: str | os.PathLike[str] | Sample | Table,
    *,
    n_components: Any = 0.95,
    dimensions: int | None = 2,
    perplexity: float | None = None,
    sample: int | None = None,
    missing: str = "error",
    scale: str = "auto",
    seed: int = 0,
    n_jobs: int | None = None,
    memory: int | str | None = None,
    told: Told = lambda stage, seconds, what: None,
    progress: Callable[..., Any] | None = None,
    **reading: Any,
) -> Result:
    """Run every stage, telling `told(stage, seconds, what)` as each one ends.

    Parameters
    ----------
    source : name of a bundled sample, path, Sample or Table
        A path is read by `gnomon.data.read.read`, which takes `reading`: label, id, keep, drop, na.
    n_components : as in `PCA`
    dimensions : {1, 2, 3} or None
        Of the map; None makes none.
    perplexity : float, optional
        By default 30, or a third of the rows if there are fewer than 91; what was taken is told.
    sample : int, optional
        Rows that the map is made of, drawn with `seed`; all others are placed on it. By default
        all rows are mapped, or as many as there is memory for; `Result.sampling` says which.
    missing : {"error", "drop", "mean", "em"}
    scale : {"auto", "none", "standard"}
    memory : int or str, optional
        Bytes, or a size such as "2GB", that may be used; by default what the machine or its
        container has free. What would need more is refused before it begins.
    progress : callable, optional
        Told ``iteration``, ``of``, ``kl`` and ``seconds_left`` after every iteration of the map;
        True from it ends the map there.
    """
    seconds: dict[str, float] = {}

    def stage(name: str, work: Callable[[], Any], what: Any = None) -> Any:
        start = time.perf_counter()
        result = work()
        seconds[name] = time.perf_counter() - start
        told(name, seconds[name], result if what is None else what)
        return result

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = stage("read", lambda: read_source(source, memory=memory, **reading))
        prepared = stage("prepare", lambda: prepare(table, missing=missing, scale=scale))
        X = prepared.X
        most = len(X) if sample is None else min(sample, len(X))
        usual = usual_perplexity(most) if perplexity is None else perplexity
        pca = PCA(n_components, random_state=seed, n_jobs=n_jobs)
        check_run(prepared, None if dimensions is None else usual, most)
        sampling = None
        if dimensions is not None:
            sampling = sample_rows(table, prepared, usual, sample, memory, seed)
        mapped = len(X) if sampling is None else sampling.rows.size
        check_room(table, prepared, pca, None if dimensions is None else usual, memory, mapped)
        components = stage("pca", lambda: pca.fit_transform(X), pca)
        tsne = trust = quality = rows = None
        if dimensions is not None:
            if sampling is not None:
                told("sample", 0.0, sampling)
            tsne = TSNE(dimensions, perplexity=usual, random_state=seed, n_jobs=n_jobs)
            if progress is not None:
                tsne.set_callbacks(Watch(progress))
            chosen = prepared.table if sampling is None else prepared.table.take(sampling.rows)
            some = X if sampling is None else X[sampling.rows]
            if sampling is not None and X.shape[1] > WIDE:  # reduced by the PCA of all rows
                tsne.pca = PCA(REDUCED, random_state=seed, n_jobs=n_jobs).fit(X)
            try:
                stage("tsne", lambda: tsne.fit(some, ids=chosen.ids))
                if tsne.stop_reason_ != "interrupted":
                    labels = chosen.labels
                    trust, quality = stage(
                        "trust", lambda: measure_trust(some, tsne, labels, n_jobs)
                    )
                    if sampling is not None:
                        rows = stage("place", lambda: place_array(tsne, sampling, X))
                        trust = rows.with_trust(sampling, trust)
            except KeyboardInterrupt:
                if not hasattr(tsne, "certificate_"):  # there is no map yet
                    raise
            if sampling is not None and rows is None:  # no row was placed
                rows = unplaced(tsne, sampling)
    said = (_with_names(str(warning.message), prepared.table) for warning in caught)
    warned = tuple(dict.fromkeys(said))
    return Result(
        table, prepared, pca, components, tsne, trust, quality, seconds, warned, sampling, rows
    )


def read_source(
    source: str | os.PathLike[str] | Sample | Table,
    *,
    memory: int | str | None = None,
    **reading: Any,
) -> Table:
    """The table of a bundled sample, or of a file read with `reading`."""
    if isinstance(source, str) and source in names() and not Path(source).exists():
        source = load(source)
    if not isinstance(source, (Sample, Table)):
        return read(source, memory=memory, **reading)
    for name in ("label", "id", "keep", "drop", "na"):
        if reading.get(name):
            raise ParameterError(
                f"`{name}` is for files; {source.name} is in memory already. Leave it out."
            )
    return source if isinstance(source, Table) else table_of_sample(source)


def check_run(prepared: Prepared, perplexity: float | None, mapped: int | None = None) -> None:
    """Refuse what there is no map of, or no PCA if `perplexity` is None, before any work.

    `mapped` are the rows that the map is made of, if not all.
    """
    X, name = prepared.X, prepared.table.name
    least, what = (2, "PCA") if perplexity is None else (3, "a map")
    if len(X) < least:
        raise FileError(f"{name}: {count(len(X), 'row')}, where {what} needs {least} or more.")
    if perplexity is None:
        return
    check_real("perplexity", perplexity, 1.0, (len(X) if mapped is None else mapped) - 1)
    if (X[:FIRST] == X[0]).all() and (X[FIRST:] == X[0]).all():
        raise FileError(
            f"{name}: all rows are the same in the columns in use, so there is nothing to map.",
            "Use other columns.",
        )


def check_room(
    table: Table,
    prepared: Prepared,
    pca: PCA,
    perplexity: float | None,
    memory: int | str | None = None,
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
    memory: int | str | None = None,
    seed: int = 0,
) -> Sampling | None:
    """Which rows are mapped while the others are placed; None if there is room for all."""
    n, d = prepared.X.shape
    if sample is None and n <= LEAST_SAMPLE:  # then it is all or nothing, which `check_room` says
        return None
    room = Room.of(memory)
    return choose_sample(
        n,
        asked=sample,
        budget=room.bytes - _held(table, prepared, room),
        needed=lambda rows: map_bytes(rows, d, perplexity),
        seed=seed,
    )


def _held(table: Table, prepared: Prepared, room: Room) -> int:
    """What the tables take of the room.

    What the user allows is for all; of what the machine has free, the tables are taken already.
    """
    parts = (table.X, prepared.table.X, prepared.X)
    held = {id(part): part.nbytes for part in parts if not isinstance(part, np.memmap)}
    return sum(held.values()) if room.asked else 0


def usual_perplexity(n: int) -> float:
    """The perplexity of a map of `n` rows where none was asked for."""
    return min(PERPLEXITY, max(1.0, (n - 1) / 3))


def _with_names(text: str, table: Table) -> str:
    """A sentence of `PCA`, which counts columns and rows, with what the file calls them."""

    def column(found: re.Match[str]) -> str:
        return found[1] + quoted(table.columns[int(found[2])])

    text = re.sub(r"^(Column )(\d+)(?= varies )", column, text)
    text = re.sub(r"(\(first: )(\d+)(?=\) cannot be standardised)", column, text)
    row = re.match(r"Row (\d+) is ", text)
    if row is None:
        return text
    where = table.places.of(int(row[1]))
    return f"{where[0].upper()}{where[1:]} is {text[row.end() :]}"


def measure_trust(
    X: NDArray[Any], tsne: TSNE, labels: Any, n_jobs: int | None
) -> tuple[NDArray[np.float64], MapScores]:
    """The share of neighbours that each row keeps, and the scores of the whole map."""
    Z = X if tsne.pca_ is None else tsne.pca_.transform(X)
    k = min(TRUSTED, len(Z) - 1)
    data, plane = (
        find_neighbors(table, k, n_jobs=n_jobs).indices
        for table in (Z, tsne.embedding_.astype(np.float64))
    )
    kept = share_kept(data, plane)
    sizes = sorted({size for size in (5, 15, 50) if 2 * size < len(Z)} or {1})
    scores = score_map(Z, tsne.embedding_, labels, n_neighbors=sizes, n_jobs=n_jobs)
    return kept, scores
