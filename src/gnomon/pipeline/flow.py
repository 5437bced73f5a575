"""The whole pipeline: from a table to its components, its map and how far to trust them.

This is the flow of ARCHITECTURE.md, for a table in memory and for one read in
blocks, here or on a cluster. The command line calls `run`; each step is an estimator or function
that can be used alone.
"""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory
from gnomon.data.column_options import check_reading
from gnomon.data.open import open_table
from gnomon.data.preparation import Prepared, prepare
from gnomon.data.table import Table
from gnomon.engine import Block, Engine, Source, as_engine
from gnomon.errors import GnomonWarning, quoted
from gnomon.events import On, both, former
from gnomon.numeric.apply import Output, apply_rows, plain_transform
from gnomon.pca import PCA
from gnomon.pca.components import Components
from gnomon.pipeline.enough_rows import check_run, usual_perplexity, warn_of_few_rows
from gnomon.pipeline.map_budget import MOST_COMPONENTS, RunBudget
from gnomon.pipeline.result import Result, once_each
from gnomon.pipeline.row_trust import measure_trust
from gnomon.pipeline.stages import Stages
from gnomon.progress import Frames, Watch
from gnomon.tsne import TSNE
from gnomon.tsne.graph import REDUCED, WIDE
from gnomon.tsne.sampled import Sampling, place_array, place_source, rows_of_source, unplaced

__all__ = ["Result", "run"]


def run(
    source: Any,
    *,
    n_components: Any = 0.95,
    dimensions: int | None = 2,
    perplexity: float | None = None,
    metric: str = "euclidean",
    sample: int | None = None,
    missing: str = "error",
    scale: str = "auto",
    seed: int = 0,
    n_jobs: int | None = None,
    memory: Memory = None,
    engine: Any = None,
    scores: str | os.PathLike[str] | None = None,
    on: On | None = None,
    told: Callable[[str, float, Any], object] | None = None,
    progress: Callable[..., object] | None = None,
    placing: Callable[[int, int], object] | None = None,
    replay: bool = False,
    **reading: Any,
) -> Result:
    """Run every stage, from the table to the scores of its map.

    Parameters
    ----------
    source : name of a bundled sample, path, dataframe, array, sparse matrix, Source or Dask array
        Columns of a dataframe get their roles as those of a file do. A file or folder is read by
        `gnomon.data.read.read`. Both take `reading`: label, id, features, keep, drop, na, decimal;
        files also `spool`, a folder for temporary copies. A file that does not fit into memory is
        read in blocks, as are a source (`gnomon.source`) and a Dask array; results have the same
        ids and labels.
    n_components : as in `PCA`
    dimensions : {1, 2, 3} or None
        Dimensions of the map; None for no map.
    perplexity : float, optional
        By default 30, or a third of the rows if there are fewer than 91.
    metric : str
        Distance between rows for the map and its scores, as in `TSNE`: "cosine" for embeddings.
    sample : int, optional
        Number of rows for the map, drawn with `seed`; all others are placed on it. By default
        all rows are mapped, or as many as fit into memory; see `Result.sampling`.
    missing : {"error", "drop", "mean", "em"}
        How to treat missing values. "em" holds the table in memory, and is refused if
        it does not fit.
    scale : {"auto", "none", "standard"}
    memory : int or str, optional
        Bytes, or a size such as "2GB", for the table and the work on it, beyond what the
        process uses already; by default the free memory of the machine or its container. Work
        that needs more is refused before it begins.
    engine : Dask client or engine, optional
        Engine that processes blocks; by default threads of this machine. With it, files are read
        in blocks even if they fit into memory.
    scores : path, optional
        File for all components of a table in blocks, ``.parquet`` (with ids and labels) or
        ``.npy``; an existing file is replaced.
    on : callable, optional
        Called with a `gnomon.events.Event` as each stage ends, after every iteration of the map
        and for rows that are read in blocks or placed. Returning True ends the map with its
        current positions, and raises `Interrupted` while rows are read or placed.
    told, progress, placing : callable, optional
        Deprecated: use `on`.
    replay : bool
        Whether to keep the positions of about 40 iterations of the map, as `Result.replay`; only
        if the map is computed from all rows.

    Returns
    -------
    Result

    Examples
    --------
    >>> import gnomon
    >>> result = gnomon.run("iris")
    >>> result.tsne.embedding_.shape
    (150, 2)
    """
    check_reading("gnomon.run", reading)
    arguments = _arguments(
        source,
        n_components=n_components,
        dimensions=dimensions,
        perplexity=perplexity,
        metric=metric,
        sample=sample,
        missing=missing,
        scale=scale,
        seed=seed,
        replay=replay,
        **reading,
    )
    on = former(on, told, progress, placing)
    budget, stage = Budget.from_memory(memory), Stages(on)
    placer = as_engine(engine, n_jobs=n_jobs)
    workers = as_engine(placer, on=None if on is None else stage.rows)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with stage("read") as ended:
            table = open_table(source, memory=memory, in_blocks=engine is not None, **reading)
            if table.in_blocks:
                table = replace(table, X=table.X.limit(budget.each(placer.processes)))
            ended.result = table
        with stage("prepare") as ended:
            prepared = prepare(table, missing=missing, scale=scale, engine=workers, memory=memory)
            ended.result = prepared
        n = prepared.X.shape[0]
        most = n if sample is None else min(sample, n)
        pca, usual, tsne = PCA(n_components, random_state=seed, n_jobs=n_jobs), None, None
        if dimensions is not None:
            usual = usual_perplexity(most) if perplexity is None else perplexity
            tsne = TSNE(
                dimensions, perplexity=usual, metric=metric, random_state=seed, n_jobs=n_jobs
            )
            frames = Frames() if replay else None
            if (watched := both(on, frames)) is not None:
                tsne.set_callbacks(Watch(watched))
        check_run(prepared, usual, most, metric)
        warn_of_few_rows(n if tsne is None else most, mapped=tsne is not None)
        fit = RunBudget(budget, table, prepared, pca, usual, placer.processes)
        sampling = None if tsne is None else fit.choose(sample, seed)
        fit.check(sampling)
        work = _Work(prepared, budget, stage, workers, placer)
        found = work.reduce(pca, scores, keep=tsne is not None)
        if tsne is not None:
            found |= work.map(tsne, sampling)
            if frames is not None and sampling is None:
                found["replay"] = frames.frames(tsne.embedding_)
    _name_standardised(prepared, pca, tsne)
    warned = once_each(_with_names(each.message, prepared.table) for each in caught)
    return Result(
        table,
        prepared,
        pca,
        **found,
        seconds=stage.seconds,
        warned=warned,
        arguments=arguments,
    )


def _arguments(source: Any, **given: Any) -> dict[str, Any]:
    """Arguments of a run that are not defaults, without those that do not change its result."""
    usual = {name: each.default for name, each in signature(run).parameters.items()}
    asked = {
        name: value for name, value in given.items() if name != "spool" and value != usual.get(name)
    }
    named = isinstance(source, (str, os.PathLike)) and os.fspath(source) != "-"
    return {"source": os.fspath(source)} | asked if named else asked


def _name_standardised(prepared: Prepared, *models: PCA | TSNE | None) -> None:
    """Name the columns of models as standardised, if they are.

    So rows in the units of the table, which `Result.place` takes, are not taken for prepared ones:
    scikit-learn refuses columns with other names, and warns of columns without any.
    """
    if prepared.preparation.scale != "standard" or not prepared.table.named:
        return
    names = np.array([f"{name}, standardised" for name in prepared.preparation.columns], object)
    for model in models:
        if model is not None and hasattr(model, "n_features_in_"):
            model.feature_names_in_ = names


def _with_names(warning: Warning | str, table: Table) -> Warning | str:
    """Replace the numbers of columns and rows in a warning by their names in the file."""
    if not isinstance(warning, GnomonWarning):
        return warning
    fields: dict[str, Any] = {}
    if isinstance(column := warning.fields.get("column"), int):
        fields["column"] = quoted(table.columns[column])
    if isinstance(row := warning.fields.get("row"), int):
        place = table.places.of(row)
        fields["place"] = f"{place[0].upper()}{place[1:]}"
    return warning.replace(**fields)


@dataclass(frozen=True)
class _Work:
    """The computing stages, on prepared rows.

    `workers` report every pass over blocks; `placer` is the same engine without reports.
    """

    prepared: Prepared
    budget: Budget
    stage: Stages
    workers: Engine
    placer: Engine

    def reduce(
        self, pca: PCA, scores: str | os.PathLike[str] | None, *, keep: bool = False
    ) -> dict[str, Any]:
        """Fit the components; return all scores of a table in memory, or write those of blocks.

        With `keep`, the first scores of blocks are kept as well.
        """
        X, found = self.prepared.X, dict[str, Any]()
        with self.stage("pca") as ended:
            ended.result = pca
            if not self.prepared.table.in_blocks:
                return {"components": plain_transform(pca.fit(X), X)}
            with self.budget.explained():
                pca.fit(X, memory=self.budget.limit, engine=self.workers)
        if scores is not None:
            with self.stage("scores"):
                found["scores"] = self._write_scores(pca, Path(scores))
        return {**found, "components": _first_scores(pca, X, self.workers) if keep else None}

    def _write_scores(self, pca: PCA, path: Path) -> Path:
        """Write all scores, with ids and labels if the format allows it."""
        names = [f"pc{j + 1}" for j in range(pca.n_components_)]
        beside = {} if path.suffix.lower() == ".npy" else self.prepared.table.names_of_rows()
        path.parent.mkdir(parents=True, exist_ok=True)
        output = Output(path, force=True, engine=self.workers, beside=beside)
        apply_rows(pca._model().scores, self.prepared.X, lambda: names, output)
        return path

    def map(self, tsne: TSNE, sampling: Sampling | None) -> dict[str, Any]:
        """Compute the map, its trust, and the positions of rows that it was not computed from.

        Ctrl-C ends it early; the current result is kept, if there is a map at all.
        """
        stage, X, table = self.stage, self.prepared.X, self.prepared.table
        found: dict[str, Any] = {"tsne": tsne, "sampling": sampling}
        if sampling is not None:
            stage.report("sample", sampling)
            wide = X.shape[1] > WIDE and tsne.metric == "euclidean"
            if wide or table.is_sparse:  # reduced by the PCA of all rows
                tsne.pca = self._fit_reduction(tsne)
        mapped = self._mapped_rows(sampling)
        ids, labels = (
            names if names is None or sampling is None else names[sampling.rows]
            for names in (table.ids, table.labels)
        )
        try:
            with stage("tsne") as ended:
                ended.result = tsne.fit(mapped, ids=None if ids is None else np.asarray(ids))
            if tsne.stop_reason_ != "interrupted":
                with stage("trust") as ended:
                    kept, quality, mixed = measure_trust(mapped, tsne, labels, tsne.n_jobs)
                    ended.result = kept, quality
                if sampling is not None:
                    with stage("place") as ended:
                        ended.result = found["rows"] = self._place(tsne, sampling)
                    kept = found["rows"].with_trust(sampling, kept)
                    mixed = None  # placed rows have no neighbours that were compared
                found |= {"trust": kept, "quality": quality, "neighbor_labels": mixed}
        except KeyboardInterrupt:
            if not hasattr(tsne, "certificate_"):  # there is no map yet
                raise
        if sampling is not None and "rows" not in found:  # no row was placed
            found["rows"] = unplaced(tsne, sampling)
        return found

    def _fit_reduction(self, tsne: TSNE) -> PCA:
        """PCA of all rows that `tsne` uses to reduce a wide table."""
        X = self.prepared.X
        k = min(REDUCED, *X.shape)
        reduced = PCA(k, random_state=tsne.random_state, n_jobs=tsne.n_jobs)
        if not self.prepared.table.in_blocks:
            return reduced.fit(X)
        nameless = X.only(X.partitions)
        nameless.names = None  # like the rows that it will transform
        with self.budget.explained():
            return reduced.fit(nameless, memory=self.budget.limit, engine=self.workers)

    def _mapped_rows(self, sampling: Sampling | None) -> NDArray[Any]:
        X = self.prepared.X
        if self.prepared.table.in_blocks:
            rows = np.arange(X.rows) if sampling is None else sampling.rows
            return rows_of_source(X, rows, self.workers)
        array: NDArray[Any] = X if sampling is None else X[sampling.rows]
        return array

    def _place(self, tsne: TSNE, sampling: Sampling) -> Any:
        if self.prepared.table.in_blocks:
            return place_source(tsne, sampling, self.prepared.X, self.placer, self.stage.on)
        return place_array(tsne, sampling, self.prepared.X, self.stage.on)


def _first_scores(pca: PCA, source: Source, engine: Engine) -> NDArray[np.float32]:
    """Scores of all rows that are kept with a map; never twice in memory."""
    scores = np.empty((source.rows, min(MOST_COMPONENTS, pca.n_components_)), np.float32)
    done = 0

    def add(block: NDArray[np.float32]) -> None:
        nonlocal done
        scores[done : done + len(block)] = block
        done += len(block)

    engine.write(_FirstScores(pca._model()), source, add)
    return scores


@dataclass(frozen=True)
class _FirstScores:
    """Scores of a block that are kept with a map."""

    model: Components

    def __call__(self, block: Block) -> NDArray[Any]:
        return self.model.scores(block.X, n_jobs=1)[:, :MOST_COMPONENTS].astype(np.float32)
