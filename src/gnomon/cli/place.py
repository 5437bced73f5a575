"""`gnomon place`: new rows on a map that was made before."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.workers import limit_reading, watched_engine

if TYPE_CHECKING:
    from gnomon.data.table import Table

HELP = """Place new rows on an existing map, which does not change.

\b
gnomon place new.csv -m cells_map > placed.csv
gnomon place new.csv -m cells_map/model.gnomon -o placed.parquet
gnomon place folder/ -m cells_map -o placed.parquet  many files

NEW is a file with the columns of the first table, in any order, a folder of such files, or standard
input (-). The columns tsne1, tsne2 … of the result are the positions on the map. distance_ratio
(how far the nearest rows of the map are) and residual (how far the row lies outside the principal
components; 0 where these hold everything) are about 1 for rows like those of the map. If unusual
is true, the row is like none of them and its position means little; why says "near nothing" or
"outside the components". About 1 % of new rows like those of the map are called unusual. Tables
too large for memory are read in blocks; rows keep their order, ids and labels.
"""
# What is asked about the columns of new rows.
OF_NEW = ("label", "id", "na", "decimal", "sheet", "layer", "use_rep", "normalize")
ONLY_DISTANCES = (
    "the model was made by Gnomon 0.1 and judges rows by distances alone: rows that its components "
    "do not hold may pass for usual. Make the map again to find them."
)


@click.command("place", help=HELP)
@options.source("data", metavar="NEW")
@options.model
@options.naming
@options.of_cells
@options.of_table(
    "--missing",
    "instead",
    type=click.Choice(["error", "drop", "mean", "em"]),
    help="Missing values: as in gnomon map (default: as when the map was made).",
)
@options.out_file
@options.resources
@options.distributing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Read new rows, make them ready as the first were, place them."""
    options.check_source(asked.data, "NEW")
    options.new_file(asked.out, force=asked.force)
    options.table_or_json(asked.out, asked.as_json)
    from gnomon.cli import results
    from gnomon.cli.stored import load_run
    from gnomon.data.table import count
    from gnomon.errors import UnavailableError
    from gnomon.pipeline.placing import place_table
    from gnomon.tsne.novelty import count_reasons

    asked, words = asked.beside_workers(asked.data), asked.words
    run = load_run(asked.model)
    if run.tsne is None:
        raise UnavailableError(f"{run.path} holds no map. Give a model that gnomon map wrote.")
    run.tsne.n_jobs = asked.threads
    with words.warnings() as warned, watched_engine(asked, words) as engine:
        table = open_like(asked, run.preparation.columns)
        results.say_read(words, table)
        run.say(words)
        start = time.perf_counter()
        placed = place_table(
            table,
            run.preparation,
            run.tsne,
            engine,
            missing=asked.instead,
            memory=asked.memory,
        )
        seconds = time.perf_counter() - start
        if placed.dropped is not None:
            many = count(len(placed.dropped.rows), "row")
            words.say("Missing", f"{many} dropped: {placed.dropped}")
        results.say_placed(words, placed, seconds)
        words.details("", placed.lines())
        if placed.residual_limit is None:
            words.say("Note", ONLY_DISTANCES)
    columns = placed.to_columns()
    results.say_versions(words)
    results.write_table_or_stdout(asked.out, columns, force=asked.force, words=words)
    if asked.as_json and asked.out is not None:
        summary = {
            "model": str(run.path),
            "table": table.to_dict(),
            "rows": len(placed.positions),
            "dropped": table.n_rows - len(placed.positions),
            "dropped_rows": [] if placed.dropped is None else placed.dropped.rows.tolist(),
            "unusual": int(placed.unusual.sum()),
            "why": count_reasons(placed.reason),
            "limits": {"distance_ratio": placed.distance_limit, "residual": placed.residual_limit},
            "columns": list(columns),
            "seconds": seconds,
            "warnings": warned,
        }
        results.say_json("place", [asked.out], summary)


def open_like(asked: Asked, columns: Sequence[str]) -> "Table":
    """The table with the columns of a model: by name, or in their order where it has no names."""
    from gnomon.pipeline.placing import open_new

    table = open_new(
        asked.data,
        columns,
        memory=asked.memory,
        in_blocks=asked.cluster,
        spool=asked.spool,
        **{name: asked.reading[name] for name in OF_NEW},
    )
    return limit_reading(table, asked)
