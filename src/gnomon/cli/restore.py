"""`gnomon restore`: from components back to the original columns and units."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gnomon.budget import Budget
    from gnomon.cli.stored import StoredRun
    from gnomon.data.preparation import Preparation
    from gnomon.engine import Block
    from gnomon.pca.components import Components

HELP = """Back from components to the original columns and units.

\b
gnomon restore data_reduced/scores.parquet -m data_reduced > data.csv
gnomon restore changed.csv -m data_reduced/model.gnomon -o data.parquet
gnomon restore folder/ -m data_reduced -o data.parquet    # many files

SCORES is a file with the columns pc1, pc2 … that `gnomon reduce` wrote, a folder of such files, or
- for standard input. Fewer components than columns give the data back without the variance that
they do not hold. Tables too large for memory are read and written in blocks: rows keep their order,
and ids and labels are left out.
"""


@click.command("restore", help=HELP)
@click.argument("scores", metavar="SCORES")
@options.model
@options.out_file
@options.naming
@options.resources
@options.distributing
@options.writing
def command(
    scores: str,
    model: Path,
    out: Path | None,
    label: str | None,
    id_: str | None,
    na: tuple[str, ...],
    decimal: str | None,
    threads: int | None,
    memory: "Budget | None",
    dask: str | None,
    workers: int | None,
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Read components, undo the PCA, undo the preparation."""
    options.new_file(out, force=force)
    options.table_or_json(out, as_json)
    from gnomon.cli import blocks, results
    from gnomon.cli.stored import load_run
    from gnomon.data.refusals import LackingError

    words = Words(quiet=quiet, verbose=verbose)
    memory = blocks.beside_workers(memory, workers)
    in_blocks = blocks.in_blocks(scores, dask=dask, workers=workers, memory=memory)
    if in_blocks:
        blocks.refuse_output(out)
    run = load_run(model)
    run.pca.n_jobs = threads
    reading = {"label": label, "id": id_, "na": list(na) or None, "decimal": decimal}
    to: dict[str, Any] = {"out": out, "force": force}
    try:
        if in_blocks:
            cluster = blocks.watched_engine(
                dask, workers, words=words, memory=memory, threads=threads
            )
            rows, columns = _restore_blocks(scores, run, reading, memory, cluster, words, **to)
        else:
            rows, columns = _restore_table(scores, run, reading, memory, words, **to)
    except LackingError as error:
        if run.tsne is None:
            raise
        where = "gnomon map writes the first ten only; gnomon reduce writes all."
        raise error.replace(ways=(where,)) from None
    if as_json and out is not None:
        found = {
            "model": str(run.path),
            "rows": rows,
            "columns": columns,
            "n_components": int(run.pca.n_components_),
            "explained_variance_ratio": _share(run),
        }
        results.say_json("restore", [out], found)


def _restore_table(
    scores: str,
    run: "StoredRun",
    reading: dict[str, Any],
    memory: "Budget | None",
    words: Words,
    *,
    out: Path | None,
    force: bool,
) -> tuple[int, list[str]]:
    """Of a table that is read as a whole; how many rows were written, and which columns."""
    from gnomon.budget import Budget
    from gnomon.cli import results
    from gnomon.data.missing import refuse_gaps, refuse_infinities
    from gnomon.data.read import read
    from gnomon.data.spread import measure_spread

    table = read(scores, columns=_names(run), memory=memory, **reading)
    results.say_read(words, table)
    run.say(words)
    spread = measure_spread(table.X)
    refuse_infinities(table, spread)
    refuse_gaps(table, spread.gaps, "Components have no gaps: drop those rows.")
    n, d = len(table.X), len(run.preparation.columns)
    Budget.from_memory(memory).check(
        f"{table.name}: restoring {n:,} × {d:,} numbers", 2 * 8 * n * d
    )
    X = run.preparation.undo(run.pca.inverse_transform(table.X))
    columns = results.names_of_rows(table)
    columns |= dict(zip(run.preparation.columns, X.T, strict=True))
    _say_restored(words, run)
    results.write_table_or_stdout(out, columns, force=force, words=words)
    return n, list(columns)


def _restore_blocks(
    scores: str,
    run: "StoredRun",
    reading: dict[str, Any],
    memory: "Budget | None",
    cluster: Any,
    words: Words,
    *,
    out: Path | None,
    force: bool,
) -> tuple[int, list[str]]:
    """The same in blocks."""
    from gnomon.cli import blocks, results
    from gnomon.engine.sink import writing_blocks
    from gnomon.files import shown_name
    from gnomon.large import BlockTable
    from gnomon.numeric.view import naming_rows

    assert out is not None
    source = blocks.open_like(scores, _names(run), reading=reading, memory=memory)
    results.say_read(words, BlockTable(shown_name(Path(scores)) or scores, source))
    run.say(words)
    columns = list(run.preparation.columns)
    with (
        cluster as engine,
        naming_rows(source, engine),
        writing_blocks(out, source.rows, columns, force=force) as add,
    ):
        engine.write(_Restored(run.pca._model(), run.pca.whiten, run.preparation), source, add)
    _say_restored(words, run)
    words.say("Wrote", str(out))
    return source.rows, columns


@dataclass(frozen=True)
class _Restored:
    """A block of components in the original columns and units."""

    model: "Components"
    whiten: bool
    preparation: "Preparation"

    def __call__(self, block: "Block") -> "NDArray[Any]":
        from gnomon.inputs import refuse_bad_values

        refuse_bad_values(block.X)
        return self.preparation.undo(self.model.restore(block.X, whiten=self.whiten, n_jobs=1))


def _names(run: "StoredRun") -> list[str]:
    return [f"pc{j + 1}" for j in range(run.pca.n_components_)]


def _share(run: "StoredRun") -> float:
    return float(run.pca.explained_variance_ratio_.sum())


def _say_restored(words: Words, run: "StoredRun") -> None:
    from gnomon.cli import results

    words.say("Restored", f"{len(run.preparation.columns)} columns from {len(_names(run))} "
              f"components, which hold {100 * _share(run):.4g} % of the variance")  # fmt: skip
    results.say_versions(words)
