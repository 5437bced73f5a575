"""The whole job, top to bottom: a table in, its components, its map and how far to trust them out.

This is the flow of ARCHITECTURE.md. The command line calls `run`; each step is an estimator or
function that can be used alone.
"""

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, overload

from gnomon.budget import Memory
from gnomon.checks import check_run, usual_perplexity, warn_of_few_rows
from gnomon.data.preparation import Prepared
from gnomon.data.prepare import prepare
from gnomon.data.read import read_source
from gnomon.data.samples import Sample
from gnomon.data.table import Table
from gnomon.engine import Source
from gnomon.engine.arrays import as_source
from gnomon.errors import GnomonWarning, ParameterError, quoted, refuse
from gnomon.events import On, both, former
from gnomon.large import LargeResult, run_blocks
from gnomon.map_budget import check_fit, sample_rows
from gnomon.numeric.apply import plain_transform
from gnomon.pca import PCA
from gnomon.progress import Frames, Watch
from gnomon.result import Result, once_each
from gnomon.stages import Stages
from gnomon.trust import measure_trust
from gnomon.tsne import TSNE
from gnomon.tsne.graph import REDUCED, WIDE
from gnomon.tsne.sampled import Sampling, place_array, unplaced

__all__ = ["Result", "run"]


@overload
def run(source: str | os.PathLike[str] | Sample | Table, **how: Any) -> Result: ...


@overload
def run(source: Source, **how: Any) -> LargeResult: ...


def run(
    source: Any,
    *,
    n_components: Any = 0.95,
    dimensions: int | None = 2,
    perplexity: float | None = None,
    sample: int | None = None,
    missing: str = "error",
    scale: str = "auto",
    seed: int = 0,
    n_jobs: int | None = None,
    memory: Memory = None,
    engine: Any = None,
    on: On | None = None,
    told: Callable[[str, float, Any], object] | None = None,
    progress: Callable[..., object] | None = None,
    placing: Callable[[int, int], object] | None = None,
    replay: bool = False,
    **reading: Any,
) -> Result | LargeResult:
    """Run every stage, from the table to the scores of its map.

    Parameters
    ----------
    source : name of a bundled sample, path, Sample, Table, Source or Dask array
        A path is read by `gnomon.data.read.read`, which takes `reading`: label, id, features, keep,
        drop, na, decimal.
        A source (`gnomon.source`) or a Dask array is read in blocks and never held as a whole.
    n_components : as in `PCA`
    dimensions : {1, 2, 3} or None
        Of the map; None makes none.
    perplexity : float, optional
        By default 30, or a third of the rows if there are fewer than 91.
    sample : int, optional
        Rows that the map is made of, drawn with `seed`; all others are placed on it. By default
        all rows are mapped, or as many as there is memory for; `Result.sampling` says which.
    missing : {"error", "drop", "mean", "em"}
        Always "error" for what is read in blocks.
    scale : {"auto", "none", "standard"}
    memory : int or str, optional
        Bytes, or a size such as "2GB", that the table and the work on it may take beside what the
        process has already; by default what the machine or its container has free. What would need
        more is refused before it begins.
    engine : Dask client or engine, optional
        Who works through blocks; by default threads of this machine.
    on : callable, optional
        Called with a `gnomon.events.Event` as each stage ends, after every iteration of the map
        and for rows that are read in blocks or placed. True from it ends the map with the
        positions it has, and raises `Interrupted` while rows are read or placed.
    told, progress, placing : callable, optional
        Deprecated: use `on`.
    replay : bool
        Keep where the rows were at some 40 iterations of the map, as `Result.replay`; only where
        the map is made of all rows.

    Returns
    -------
    Result
        Or a `gnomon.large.LargeResult`, with the same attributes but for `prepared`, of what was
        read in blocks.
    """
    on = former(on, told, progress, placing)
    if (blocks := as_source(source)) is not None:
        _refuse_for_blocks(missing, reading)
        return run_blocks(
            blocks, n_components=n_components, dimensions=dimensions, perplexity=perplexity,
            sample=sample, scale=scale, seed=seed, n_jobs=n_jobs, memory=memory, engine=engine,
            on=on,
        )  # fmt: skip
    if not isinstance(source, (str, os.PathLike, Sample, Table)):
        refuse("source", "be a path, a sample, a Table or a source", type(source).__name__,
               "Use gnomon.source for arrays and dataframes.", kind=True)  # fmt: skip
    if engine is not None:
        raise ParameterError("`engine` works through blocks. Give the table by gnomon.source.")
    stage = Stages(on)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = stage("read", lambda: read_source(source, memory=memory, **reading))
        prepared = stage("prepare", lambda: prepare(table, missing=missing, scale=scale))
        n = len(prepared.X)
        most = n if sample is None else min(sample, n)
        pca = PCA(n_components, random_state=seed, n_jobs=n_jobs)
        tsne = usual = sampling = None
        if dimensions is not None:
            usual = usual_perplexity(most) if perplexity is None else perplexity
            tsne = TSNE(dimensions, perplexity=usual, random_state=seed, n_jobs=n_jobs)
            frames = Frames() if replay else None
            watched = both(on, frames)
            if watched is not None:
                tsne.set_callbacks(Watch(watched))
        check_run(prepared, usual, most)
        warn_of_few_rows(most if tsne is not None else n, mapped=tsne is not None)
        if usual is not None:
            sampling = sample_rows(table, prepared, usual, sample, memory, seed)
        mapped = n if sampling is None else sampling.rows.size
        check_fit(table, prepared, pca, usual, memory, mapped)
        components = stage("pca", lambda: plain_transform(pca.fit(prepared.X), prepared.X), pca)
        found = {} if tsne is None else _map(tsne, prepared, sampling, stage)
        if tsne is not None and frames is not None and sampling is None:
            found["replay"] = frames.frames(tsne.embedding_)
    warned = (_with_names(each.message, prepared.table) for each in caught)
    return Result(
        table, prepared, pca, components, **found,
        seconds=stage.seconds, warned=once_each(warned),
    )  # fmt: skip


def _with_names(warning: Warning | str, table: Table) -> Warning | str:
    """The warning of a fit, which counts columns and rows, with what the file calls them."""
    if not isinstance(warning, GnomonWarning):
        return warning
    fields: dict[str, Any] = {}
    if isinstance(column := warning.fields.get("column"), int):
        fields["column"] = quoted(table.columns[column])
    if isinstance(row := warning.fields.get("row"), int):
        place = table.places.of(row)
        fields["place"] = f"{place[0].upper()}{place[1:]}"
    return warning.replace(**fields)


def _refuse_for_blocks(missing: str, reading: Mapping[str, Any]) -> None:
    """What a source does not take here."""
    if missing != "error":
        refuse("missing", "be 'error' for a table that is read in blocks", missing,
               "Fill the gaps in beforehand.")  # fmt: skip
    if reading:
        raise ParameterError(f"`{next(iter(reading))}` is for files. Give it to gnomon.source.")


def _map(
    tsne: TSNE,
    prepared: Prepared,
    sampling: Sampling | None,
    stage: Stages,
) -> dict[str, Any]:
    """The map, how far to trust it, and places for the rows that it was not made of.

    Ctrl-C ends it early; what there is by then is kept, if there is a map at all.
    """
    found: dict[str, Any] = {"tsne": tsne, "sampling": sampling}
    X, mapped, table = prepared.X, prepared.X, prepared.table
    if sampling is not None:
        stage.report("sample", sampling)
        mapped, table = X[sampling.rows], table.take(sampling.rows)
        if X.shape[1] > WIDE:  # reduced by the PCA of all rows
            tsne.pca = PCA(REDUCED, random_state=tsne.random_state, n_jobs=tsne.n_jobs).fit(X)
    try:
        stage("tsne", lambda: tsne.fit(mapped, ids=table.ids))
        if tsne.stop_reason_ != "interrupted":
            kept, quality = stage(
                "trust", lambda: measure_trust(mapped, tsne, table.labels, tsne.n_jobs)
            )
            if sampling is not None:
                rows = stage("place", lambda: place_array(tsne, sampling, X, stage.on))
                kept, found["rows"] = rows.with_trust(sampling, kept), rows
            found |= {"trust": kept, "quality": quality}
    except KeyboardInterrupt:
        if not hasattr(tsne, "certificate_"):  # there is no map yet
            raise
    if sampling is not None and "rows" not in found:  # no row was placed
        found["rows"] = unplaced(tsne, sampling)
    return found
