"""The whole job for a table that is read in blocks: larger than memory, or worked on by a cluster.

The flow is that of `gnomon.pipeline`, with a source in the place of a table: one pass to see how
columns spread, one or a few for PCA, one to write the scores or to place rows on a map. What names
and colours the rows stays behind: results have the rows of the source, in its order.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.budget import Budget, Memory
from gnomon.checks import usual_perplexity, warn_of_few_rows
from gnomon.data.names import unique_names
from gnomon.data.preparation import Preparation
from gnomon.data.scaled import prepare_source
from gnomon.data.table import ColumnRoles, count
from gnomon.engine import Block, Engine, Source, as_engine
from gnomon.events import On
from gnomon.map_budget import MapBudget
from gnomon.numeric.apply import Output, apply_rows
from gnomon.pca import PCA
from gnomon.pca.components import Components
from gnomon.progress import Watch
from gnomon.records import Record
from gnomon.result import once_each
from gnomon.scores import MapScores
from gnomon.stages import Stages
from gnomon.trust import measure_trust
from gnomon.tsne import TSNE
from gnomon.tsne.graph import REDUCED, WIDE
from gnomon.tsne.sampled import (
    Placed,
    Sampling,
    place_source,
    rows_of_source,
    unplaced,
)

__all__ = ["MOST_COMPONENTS", "BlockTable", "LargeResult", "run_blocks"]

MOST_COMPONENTS = 10  # of the scores that are kept beside a map


@dataclass(frozen=True, eq=False)
class BlockTable(Record):
    """What is known of a source: its name, size and columns."""

    name: str
    source: Source

    @property
    def n_rows(self) -> int:
        """Rows of all blocks."""
        return self.source.rows

    def title(self) -> str:
        """Size and name."""
        columns = count(len(self._all_columns()), "column")
        return f"{self.name}: {count(self.source.rows, 'row')} × {columns}"

    def lines(self) -> list[tuple[str, str]]:
        """What columns are used for and why, and how it is read."""
        return self.words(command=False)

    def words(self, *, command: bool) -> list[tuple[str, str]]:
        """The same for the library, or in the words of the command line."""
        roles, blocks = self.roles, count(len(self.source.partitions), "block")
        text = f"read in {blocks}; rows keep their order"
        if roles.label is not None or roles.id is not None or roles.kept_for_colour:
            text += ", and results hold no ids, labels or colours"
        lines = [*roles.words(command=command), ("note", "; ".join(self.notes)), ("blocks", text)]
        return [(name, said) for name, said in lines if said]

    @property
    def roles(self) -> ColumnRoles:
        """What columns are used for; of what is no file, all are features."""
        known = getattr(self.source, "roles", None)
        names = self.source.names or unique_names(None, self.source.columns)[0]
        return ColumnRoles(tuple(names)) if known is None else known

    @property
    def notes(self) -> tuple[str, ...]:
        """What had to be assumed about the files."""
        return getattr(self.source, "notes", ())

    def to_dict(self) -> dict[str, Any]:
        """Size and columns, ready for JSON."""
        return {
            "name": self.name,
            "rows": self.source.rows,
            "n_columns": len(self._all_columns()),
            **self.roles.to_dict(),
            "notes": list(self.notes),
            "blocks": len(self.source.partitions),
        }

    def _all_columns(self) -> Sequence[str]:
        """Columns of the files, features or not."""
        files = getattr(self.source, "files", None)
        return self.roles.features if files is None else files[0].all_names


@dataclass(frozen=True, eq=False)
class LargeResult:
    """What a run over blocks found; the attributes are those of `gnomon.pipeline.Result`.

    Attributes
    ----------
    table : BlockTable
    preparation : Preparation
    pca : PCA
    components : array (n, k) or None
        Up to ten scores of each row, where there is a map; otherwise they are in `scores`.
    scores : Path or None
        The file that the scores were written to.
    tsne : TSNE or None
        The map of the sample.
    trust : array (n,) or None
        Share of each row's 15 nearest neighbours in the sample that stay nearest on the map.
    sampling : Sampling or None
        Which rows it was made of.
    rows : Placed or None
        Where every row is on the map.
    quality : MapScores or None
    """

    table: BlockTable
    preparation: Preparation
    pca: PCA
    components: NDArray[Any] | None = None
    scores: Path | None = None
    tsne: TSNE | None = None
    trust: NDArray[np.float64] | None = None
    sampling: Sampling | None = None
    rows: Placed | None = None
    quality: MapScores | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    warned: tuple[Warning | str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader of the results should know, in the words of Python."""
        return tuple(map(str, self.warned))

    @property
    def interrupted(self) -> bool:
        """Whether the map was cut short, or rows are left that have no place."""
        cut = self.rows is not None and not self.rows.finished
        return self.tsne is not None and (self.trust is None or cut)

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """What is to be said where only the rows of the map are here."""
        if self.sampling is None or self.positions is None:
            return ()
        some = len(self.positions) < self.sampling.n
        return (("sample", self.sampling.sentence()),) if some else ()

    def of_the_map(self) -> "LargeResult":
        """The rows that the map was made of, as a result of their own."""
        if self.sampling is None or self.tsne is None or self.components is None:
            return self
        rows = self.sampling.rows
        return replace(
            self,
            components=self.components[rows],
            trust=None if self.trust is None else self.trust[rows],
            rows=unplaced(self.tsne, Sampling(np.arange(rows.size), rows.size, 0, "")),
        )

    @property
    def positions(self) -> NDArray[Any] | None:
        """Where every row is on the map, shape (n, dimensions)."""
        return None if self.rows is None else self.rows.positions


def run_blocks(
    source: Source,
    *,
    name: str = "data",
    n_components: Any = 0.95,
    dimensions: int | None = None,
    perplexity: float | None = None,
    sample: int | None = None,
    scale: str = "auto",
    seed: int = 0,
    n_jobs: int | None = None,
    memory: Memory = None,
    engine: Any = None,
    scores: str | PathLike[str] | None = None,
    force: bool = False,
    on: On | None = None,
) -> LargeResult:
    """PCA of a source, and a map of it or a file of its scores.

    Parameters
    ----------
    source : Source
        From `gnomon.source`.
    name : str
        What it is called in sentences.
    n_components, perplexity, scale, seed, n_jobs, on
        As in `gnomon.run`.
    dimensions : {1, 2, 3} or None
        Of the map; None makes none.
    sample : int, optional
        Rows that the map is made of; the others are placed on it. By default as many as memory
        allows.
    memory : int or str, optional
        Bytes, or a size such as "1GB", that this process may use, and with it the workers of a
        local cluster; their libraries are not counted.
    engine : Dask client or engine, optional
        Who works through the blocks; by default threads of this machine.
    scores : path, optional
        File for all scores, ``.parquet`` or ``.npy``.
    force : bool
        Whether it is replaced if it exists.
    """
    placer, budget, stage = as_engine(engine, n_jobs=n_jobs), Budget.from_memory(memory), Stages(on)
    workers = as_engine(placer, on=None if on is None else stage.rows)
    source = source.within(budget.each(placer.processes))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = stage("read", lambda: BlockTable(name, source))
        prepared = stage("prepare", lambda: prepare_source(source, scale, workers))
        ready = prepared.source
        rows = source.rows if dimensions is None or sample is None else min(sample, source.rows)
        warn_of_few_rows(rows, mapped=dimensions is not None)
        pca = PCA(n_components, random_state=seed, n_jobs=n_jobs)
        with budget.explained():
            stage("pca", lambda: pca.fit(ready, memory=budget.limit, engine=workers))
        found: dict[str, Any] = {}
        if scores is not None:
            where = Path(scores)
            names = [f"pc{j + 1}" for j in range(pca.n_components_)]
            to = Output(where, force, engine=workers)
            where.parent.mkdir(parents=True, exist_ok=True)
            stage(
                "scores",
                lambda: apply_rows(pca._model().scores, ready, lambda: names, to),
            )
            found["scores"] = where
        if dimensions is not None:
            most = source.rows if sample is None else min(sample, source.rows)
            usual = usual_perplexity(most) if perplexity is None else perplexity
            tsne = TSNE(dimensions, perplexity=usual, random_state=seed, n_jobs=n_jobs)
            if on is not None:
                tsne.set_callbacks(Watch(on))
            place = partial(place_source, engine=placer, on=on)
            found |= _map(tsne, pca, ready, workers, stage, name=name, memory=memory,
                          asked=sample, seed=seed, place=place)  # fmt: skip
    warned = once_each(each.message for each in caught)
    return LargeResult(
        table, prepared.preparation, pca, **found, seconds=stage.seconds, warned=warned
    )


def _map(
    tsne: TSNE,
    pca: PCA,
    source: Source,
    engine: Engine,
    stage: Stages,
    *,
    name: str,
    memory: Memory,
    asked: int | None,
    seed: int,
    place: Callable[[TSNE, Sampling, Source], Placed],
) -> dict[str, Any]:
    """The map of as many rows as there is memory for, and the places of all others."""
    (n, d), budget = source.shape, Budget.from_memory(memory)
    components = _first_scores(pca, source, engine)
    fit = MapBudget(budget, name, (n, d), tsne.perplexity, components.nbytes, engine.processes)
    sampling = fit.choose(asked, seed)
    fit.check(sampling)
    if not sampling.whole:
        stage.report("sample", sampling)
    if d > WIDE:
        nameless = source.only(source.partitions)
        nameless.names = None  # as the rows are that it will see
        reduced = PCA(REDUCED, random_state=seed, n_jobs=pca.n_jobs)
        with budget.explained():
            tsne.pca = reduced.fit(nameless, memory=budget.limit, engine=engine)
    X = rows_of_source(source, sampling.rows, engine)
    stage("tsne", lambda: tsne.fit(X))
    found = {"components": components, "tsne": tsne, "sampling": sampling}
    if tsne.stop_reason_ == "interrupted":
        return {**found, "rows": unplaced(tsne, sampling)}
    kept, quality = stage("trust", lambda: measure_trust(X, tsne, None, tsne.n_jobs))
    rows = stage("place", lambda: place(tsne, sampling, source))
    trust = rows.with_trust(sampling, kept)
    return {**found, "quality": quality, "rows": rows, "trust": trust}


def _first_scores(pca: PCA, source: Source, engine: Engine) -> NDArray[np.float32]:
    """The scores that are kept beside a map, of all rows; never twice in memory."""
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
    """The scores of a block that are kept beside a map."""

    model: Components

    def __call__(self, block: Block) -> NDArray[Any]:
        return self.model.scores(block.X, n_jobs=1)[:, :MOST_COMPONENTS].astype(np.float32)
