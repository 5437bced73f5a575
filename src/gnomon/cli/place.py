"""`gnomon place`: new rows on a map that was made before."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.data.room import Room

HELP = """New rows on the old map, which stays as it is.

\b
gnomon place new.csv -m cells_map > placed.csv
gnomon place new.csv -m cells_map/model.gnomon -o placed.parquet

NEW is a file with the columns of the first table, in any order; - for standard input. Columns
tsne1, tsne2 … are the places. distance_ratio is about 1 for rows like those of the map; rows of
which unusual is true are like none of them, and their places mean little.
"""


@click.command("place", help=HELP)
@options.source("new")
@options.model
@options.out_file
@options.naming
@options.of_table("--missing", type=click.Choice(["error", "drop", "mean", "em"]), help="Missing "
              "values: as in `gnomon map` (default: what the model was made with).")  # fmt: skip
@options.resources
@options.writing
def command(
    new: str,
    model: Path,
    out: Path | None,
    label: str | None,
    id_: str | None,
    na: tuple[str, ...],
    missing: str | None,
    threads: int | None,
    memory: "Room | None",
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Read new rows, make them ready as the first were, place them."""
    options.check_source(new, "NEW")
    options.new_file(out, force=force)
    options.table_or_json(out, as_json)
    import time

    from gnomon.cli import results
    from gnomon.cli.stored import load_run
    from gnomon.data.read import read_source
    from gnomon.data.table import count
    from gnomon.errors import UnavailableError

    words = Words(quiet=quiet, verbose=verbose)
    run = load_run(model)
    if run.tsne is None:
        raise UnavailableError(f"{run.path} holds no map. Give a model that gnomon map wrote.")
    how = run.preparation if missing is None else replace(run.preparation, missing=missing)
    table = read_source(
        new,
        memory=memory,
        label=label,
        id=id_,
        na=list(na) or None,
        columns=list(run.preparation.columns),
    )
    results.say_read(words, table)
    run.say(words)
    with words.warnings() as warned:
        prepared = how.apply(table)
        dropped = len(table.X) - len(prepared.X)
        if dropped:
            words.say("Missing", f"{count(dropped, 'row')} dropped")
        start = time.perf_counter()
        run.tsne.n_jobs = threads
        placed = run.tsne.place(prepared.X)
        seconds = time.perf_counter() - start
        results.say_placed(words, placed, seconds)
    columns = results.names_of_rows(prepared.table)
    results.put(columns, "tsne", placed.positions)
    columns["distance_ratio"] = placed.distance_ratio
    columns["unusual"] = placed.unusual
    results.say_versions(words)
    results.write_table_or_stdout(out, columns, force=force, words=words)
    if as_json and out is not None:
        found = {
            "model": str(run.path),
            "table": table.to_dict(),
            "rows": len(prepared.X),
            "dropped": dropped,
            "unusual": int(placed.unusual.sum()),
            "columns": list(columns),
            "seconds": seconds,
            "warnings": warned,
        }
        results.say_json("place", [out], found)
