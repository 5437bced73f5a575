"""`gnomon restore`: from components back to the original columns and units."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.place import open_like
from gnomon.cli.workers import in_blocks, refuse_output, watched_engine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gnomon.cli.stored import StoredRun
    from gnomon.data.preparation import Preparation
    from gnomon.data.table import Table
    from gnomon.engine import Block
    from gnomon.pca.components import Components

HELP = """Restore the original columns and units from principal components.

\b
gnomon restore data_reduced/scores.parquet -m data_reduced > data.csv
gnomon restore changed.csv -m data_reduced/model.gnomon -o data.parquet
gnomon restore folder/ -m data_reduced -o data.parquet  many files

SCORES is a file with the columns pc1, pc2 … that gnomon reduce wrote, a folder of such files, or
standard input (-). Fewer components than columns give the data back without the variance that they
do not hold. Tables too large for memory are read and written in blocks; rows keep their order, ids
and labels.
"""


@click.command("restore", help=HELP)
@click.argument("data", metavar="SCORES")
@options.model
@options.naming
@options.out_file
@options.resources
@options.distributing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Read components, undo the PCA, undo the preparation."""
    options.new_file(asked.out, force=asked.force)
    options.table_or_json(asked.out, asked.as_json)
    from gnomon.cli import results
    from gnomon.cli.stored import load_run
    from gnomon.data.refusals import LackingError

    asked, words = asked.beside_workers(asked.data), asked.words
    if in_blocks(asked, asked.data):
        refuse_output(asked.out)
    run = load_run(asked.model)
    run.pca.n_jobs = asked.threads
    try:
        table = open_like(asked, _names(run))
    except LackingError as error:
        if run.tsne is None:
            raise
        where = "gnomon map writes the first ten only; gnomon reduce writes all."
        raise error.replace(ways=(where,)) from None
    results.say_read(words, table)
    run.say(words)
    if not table.in_blocks:
        _refuse_gaps_and_size(table, run, asked)
    names = list(run.preparation.columns)
    beside = {name: cells for name, cells in table.names_of_rows().items() if name not in names}
    restored = _Restored(run.pca._model(), run.pca.whiten, run.preparation)
    with watched_engine(asked, words) as engine:
        columns = results.compute_rows(table, restored, names, beside, asked, engine)
    words.say(
        "Restored",
        f"{len(names)} columns from {len(_names(run))} components, which hold "
        f"{100 * _share(run):.4g} % of the variance",
    )
    results.say_versions(words)
    results.write_table_or_stdout(asked.out, columns, force=asked.force, words=words)
    if asked.as_json and asked.out is not None:
        found = {
            "model": str(run.path),
            "rows": table.n_rows,
            "columns": names if asked.out.suffix.lower() == ".npy" else [*beside, *names],
            "n_components": int(run.pca.n_components_),
            "explained_variance_ratio": _share(run),
        }
        results.say_json("restore", [asked.out], found)


def _refuse_gaps_and_size(table: "Table", run: "StoredRun", asked: Asked) -> None:
    """Refuse a table in memory that has gaps, or whose rows would not fit beside it."""
    from gnomon.budget import Budget
    from gnomon.data.missing import refuse_gaps, refuse_infinities
    from gnomon.data.spread import measure_spread

    spread = measure_spread(table.X)
    refuse_infinities(table, spread)
    refuse_gaps(table, spread.gaps, "Components have no gaps: drop those rows.")
    n, d = table.n_rows, len(run.preparation.columns)
    what = f"{table.name}: restoring {n:,} × {d:,} numbers"
    Budget.from_memory(asked.memory).check(what, 2 * 8 * n * d)


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
