"""`gnomon restore`: from components back to the original columns and units."""

from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.data.room import Room

HELP = """Back from components to the original columns and units.

\b
gnomon restore data_reduced/scores.parquet -m data_reduced > data.csv
gnomon restore changed.csv -m data_reduced/model.gnomon -o data.parquet

SCORES is a file with the columns pc1, pc2 … that `gnomon reduce` wrote, or - for standard input.
Fewer components than columns give the data back without the variance that they do not hold.
"""


@click.command("restore", help=HELP)
@click.argument("scores", metavar="SCORES")
@options.model
@options.out_file
@options.naming
@options.resources
@options.writing
def command(
    scores: str,
    model: Path,
    out: Path | None,
    label: str | None,
    id_: str | None,
    na: tuple[str, ...],
    threads: int | None,
    memory: "Room | None",
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Read components, undo the PCA, undo the preparation."""
    options.new_file(out, force=force)
    options.table_or_json(out, as_json)
    from gnomon.cli import results
    from gnomon.cli.stored import load_run
    from gnomon.data.missing import refuse_gaps, refuse_infinities
    from gnomon.data.read import read
    from gnomon.data.refusals import FileError, LackingError
    from gnomon.data.room import Room
    from gnomon.data.spread import measure_spread

    words = Words(quiet=quiet, verbose=verbose)
    run = load_run(model)
    names = [f"pc{j + 1}" for j in range(run.pca.n_components_)]
    try:
        table = read(scores, label=label, id=id_, na=list(na) or None, columns=names, memory=memory)
    except LackingError as error:
        if run.tsne is None:
            raise
        raise FileError(
            error.problem, "gnomon map writes the first ten only; gnomon reduce writes all."
        ) from None
    results.say_read(words, table)
    run.say(words)
    spread = measure_spread(table.X)
    refuse_infinities(table, spread)
    refuse_gaps(table, spread.gaps, "Components have no gaps: drop those rows.")
    n, d = len(table.X), len(run.preparation.columns)
    Room.of(memory).check(f"{table.name}: restoring {n:,} × {d:,} numbers", 2 * 8 * n * d)
    run.pca.n_jobs = threads
    X = run.preparation.undo(run.pca.inverse_transform(table.X))
    columns = results.names_of_rows(table)
    columns |= dict(zip(run.preparation.columns, X.T, strict=True))
    share = float(run.pca.explained_variance_ratio_.sum())
    words.say("Restored", f"{X.shape[1]} columns from {len(names)} components, which hold "
              f"{100 * share:.4g} % of the variance")  # fmt: skip
    results.say_versions(words)
    results.write_table_or_stdout(out, columns, force=force, words=words)
    if as_json and out is not None:
        found = {
            "model": str(run.path),
            "rows": len(X),
            "columns": list(columns),
            "n_components": len(names),
            "explained_variance_ratio": share,
        }
        results.say_json("restore", [out], found)
