"""`gnomon place`: new rows on a map that was made before."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.cli.stored import StoredRun
    from gnomon.data.table import Table
    from gnomon.large import BlockTable
    from gnomon.tsne.place import Placement

HELP = """New rows on the old map, which stays as it is.

\b
gnomon place new.csv -m cells_map > placed.csv
gnomon place new.csv -m cells_map/model.gnomon -o placed.parquet
gnomon place folder/ -m cells_map -o placed.parquet       # many files

NEW is a file with the columns of the first table, in any order, or a folder of such files; - for
standard input. Columns tsne1, tsne2 … are the places. distance_ratio (how far the nearest rows of
the map are) and residual (how far the row lies outside the principal components) are about 1 for
rows like those of the map. Rows of which unusual is true are like none of them, and their places
mean little; why says "near nothing" or "outside the components". Of new rows like those of the map
about 1 % are called unusual.
Tables too large for memory are read in blocks: rows keep their order, and ids and labels are left
out.
"""
# Of a row in blocks: its place, ratio, residual and neighbours; and the words when it is written.
PLACE_BYTES = 220
ONLY_DISTANCES = (
    "the model was made by Gnomon 0.1 and judges rows by distances alone: rows that its components "
    "do not hold may pass for usual. Make the map again to find them."
)


class Found(NamedTuple):
    """Rows and their places; `names` are the columns that name and colour them."""

    table: "Table | BlockTable"
    names: dict[str, Any]
    dropped: int
    placed: "Placement"
    seconds: float


@click.command("place", help=HELP)
@options.source("new")
@options.model
@options.out_file
@options.naming
@options.of_table("--missing", type=click.Choice(["error", "drop", "mean", "em"]), help="Missing "
              "values: as in `gnomon map` (default: what the model was made with).")  # fmt: skip
@options.resources
@options.distributing
@options.writing
def command(
    new: str,
    model: Path,
    out: Path | None,
    label: str | None,
    id_: str | None,
    na: tuple[str, ...],
    decimal: str | None,
    missing: str | None,
    threads: int | None,
    memory: "Budget | None",
    dask: str | None,
    workers: int | None,
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Read new rows, make them ready as the first were, place them."""
    options.check_source(new, "NEW")
    options.new_file(out, force=force)
    options.table_or_json(out, as_json)
    from gnomon.cli import blocks, results
    from gnomon.cli.stored import load_run
    from gnomon.errors import UnavailableError
    from gnomon.tsne.novelty import count_reasons

    words = Words(quiet=quiet, verbose=verbose)
    memory = blocks.beside_workers(memory, workers)
    in_blocks = blocks.in_blocks(new, dask=dask, workers=workers, memory=memory)
    run = load_run(model)
    if run.tsne is None:
        raise UnavailableError(f"{run.path} holds no map. Give a model that gnomon map wrote.")
    run.tsne.n_jobs = threads
    reading = {"label": label, "id": id_, "na": list(na) or None, "decimal": decimal}
    with words.warnings() as warned:
        if in_blocks:
            cluster = blocks.watched_engine(
                dask, workers, words=words, memory=memory, threads=threads
            )
            found = _place_blocks(new, run, missing, reading, memory, cluster, words)
        else:
            found = _place_table(new, run, missing, reading, memory, words)
        results.say_placed(words, found.placed, found.seconds)
        words.details("", found.placed.lines())
        if found.placed.residual_limit is None:
            words.say("Note", ONLY_DISTANCES)
    columns, placed = found.names, found.placed
    results.put(columns, "tsne", placed.positions)
    columns["distance_ratio"] = placed.distance_ratio
    if placed.residual_limit is not None:
        columns["residual"] = placed.residual
    columns["unusual"], columns["why"] = placed.unusual, placed.why
    results.say_versions(words)
    results.write_table_or_stdout(out, columns, force=force, words=words)
    if as_json and out is not None:
        told = {
            "model": str(run.path),
            "table": found.table.to_dict(),
            "rows": len(placed.positions),
            "dropped": found.dropped,
            "unusual": int(placed.unusual.sum()),
            "why": count_reasons(placed.reason),
            "limits": {"distance_ratio": placed.distance_limit, "residual": placed.residual_limit},
            "columns": list(columns),
            "seconds": found.seconds,
            "warnings": warned,
        }
        results.say_json("place", [out], told)


def _place_table(
    new: str,
    run: "StoredRun",
    missing: str | None,
    reading: dict[str, Any],
    memory: "Budget | None",
    words: Words,
) -> Found:
    """Rows of a table that is read as a whole."""
    from gnomon.cli import results
    from gnomon.data.read import read_source
    from gnomon.data.table import count

    assert run.tsne is not None
    how = run.preparation if missing is None else replace(run.preparation, missing=missing)
    table = read_source(new, memory=memory, columns=list(how.columns), **reading)
    results.say_read(words, table)
    run.say(words)
    prepared = how.apply(table)
    dropped = len(table.X) - len(prepared.X)
    if dropped:
        words.say("Missing", f"{count(dropped, 'row')} dropped")
    start = time.perf_counter()
    placed = run.tsne.place(prepared.X)
    seconds = time.perf_counter() - start
    return Found(table, results.names_of_rows(prepared.table), dropped, placed, seconds)


def _place_blocks(
    new: str,
    run: "StoredRun",
    missing: str | None,
    reading: dict[str, Any],
    memory: "Budget | None",
    cluster: Any,
    words: Words,
) -> Found:
    """Rows that are read in blocks, all of them in their order."""
    from gnomon.budget import Budget
    from gnomon.cli import blocks, results
    from gnomon.data.scaled import ReadySource
    from gnomon.errors import ParameterError
    from gnomon.files import shown_name
    from gnomon.large import BlockTable
    from gnomon.tsne.blocks import place_blocks

    assert run.tsne is not None
    if missing == "drop":
        raise ParameterError(
            "--missing drop leaves out rows, and a table that is read in blocks keeps all of them, "
            "in their order. Use --missing mean, or drop them beforehand."
        )
    how = run.preparation if missing is None else replace(run.preparation, missing=missing)
    source = blocks.open_like(new, how.columns, reading=reading, memory=memory)
    table = BlockTable(shown_name(Path(new)) or new, source)
    results.say_read(words, table)
    run.say(words)
    Budget.from_memory(memory).check(f"{table.name}: the places of {source.rows:,} rows",
                          PLACE_BYTES * source.rows)  # fmt: skip
    with cluster as engine:
        start = time.perf_counter()
        placed = place_blocks(run.tsne._model(), ReadySource(source, how), engine)
        seconds = time.perf_counter() - start
    return Found(table, {}, 0, placed, seconds)
