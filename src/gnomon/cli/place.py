"""`gnomon place`: new rows on a map that was made before."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.workers import limit_reading, watched_engine

if TYPE_CHECKING:
    from gnomon.cli.stored import StoredRun
    from gnomon.data.preparation import Prepared
    from gnomon.data.table import Table
    from gnomon.tsne.place import Placement

HELP = """Place new rows on an existing map, which does not change.

\b
gnomon place new.csv -m cells_map > placed.csv
gnomon place new.csv -m cells_map/model.gnomon -o placed.parquet
gnomon place folder/ -m cells_map -o placed.parquet  many files

NEW is a file with the columns of the first table, in any order, a folder of such files, or standard
input (-). The columns tsne1, tsne2 … of the result are the positions on the map. distance_ratio
(how far the nearest rows of the map are) and residual (how far the row lies outside the principal
components) are about 1 for rows like those of the map. If unusual is true, the row is like none of
them and its position means little; why says "near nothing" or "outside the components". About 1 %
of new rows like those of the map are called unusual. Tables too large for memory are read in
blocks; rows keep their order, ids and labels.
"""
# Of a row in blocks: its place, ratio, residual and neighbours; and the words when it is written.
PLACE_BYTES = 220
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
        prepared, placed = _place(table, run, asked, engine)
        seconds = time.perf_counter() - start
        if dropped := table.n_rows - len(placed.positions):
            words.say("Missing", f"{count(dropped, 'row')} dropped")
        results.say_placed(words, placed, seconds)
        words.details("", placed.lines())
        if placed.residual_limit is None:
            words.say("Note", ONLY_DISTANCES)
    columns = prepared.table.names_of_rows()
    results.put(columns, "tsne", placed.positions)
    columns["distance_ratio"] = placed.distance_ratio
    if placed.residual_limit is not None:
        columns["residual"] = placed.residual
    columns["unusual"], columns["why"] = placed.unusual, placed.why
    results.say_versions(words)
    results.write_table_or_stdout(asked.out, columns, force=asked.force, words=words)
    if asked.as_json and asked.out is not None:
        summary = {
            "model": str(run.path),
            "table": table.to_dict(),
            "rows": len(placed.positions),
            "dropped": dropped,
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
    from gnomon.data.open import open_table

    table = open_table(
        asked.data,
        memory=asked.memory,
        in_blocks=asked.cluster,
        spool=asked.spool,
        columns=list(columns),
        **{
            name: asked.reading[name]
            for name in ("label", "id", "na", "decimal", "sheet", "layer", "use_rep", "normalize")
        },
    )
    return limit_reading(table, asked)


def _place(
    table: "Table", run: "StoredRun", asked: Asked, engine: Any
) -> "tuple[Prepared, Placement]":
    """The rows made ready, and their places."""
    from gnomon.budget import Budget
    from gnomon.tsne.place_parts import place_parts

    assert run.tsne is not None
    how = run.preparation
    prepared = (how if asked.instead is None else replace(how, missing=asked.instead)).apply(
        table, engine
    )
    if not table.in_blocks:
        return prepared, run.tsne.place(prepared.X)
    what = f"{table.name}: the places of {table.n_rows:,} rows"
    Budget.from_memory(asked.memory).check(what, PLACE_BYTES * table.n_rows)
    return prepared, place_parts(run.tsne._model(), prepared.X, engine)
