"""`gnomon inspect`: what would be used and what it would cost; also `gnomon map --dry-run`."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.data.preparation import Preparation
    from gnomon.data.room import Room
    from gnomon.estimate import Cost
    from gnomon.pca.plan import Plan

HELP = """What gnomon map would use, and what it would cost. Nothing is computed or written.

\b
gnomon inspect cells.csv
gnomon inspect survey.csv --missing drop --scale standard
gnomon inspect cells.parquet --json

DATA is what gnomon map takes, with the same options. Times are estimates from measured rates, good
to a factor of about two; the first map on a machine takes some seconds more, for compiling.
"""


@click.command("inspect", help=HELP)
@options.source("data")
@options.reading
@options.preparing
@options.components
@options.mapping
@options.sampling
@options.resources
@options.speaking
def command(
    data: str,
    label: str | None,
    id_: str | None,
    na: tuple[str, ...],
    keep: tuple[str, ...],
    drop: tuple[str, ...],
    missing: str,
    scale: str,
    components: str,
    perplexity: float | None,
    dimensions: int,
    sample: int | None,
    threads: int | None,
    memory: "Room | None",
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Read and say."""
    options.check_source(data)
    found = look(
        data,
        words=Words(quiet=quiet, verbose=verbose),
        missing=missing,
        scale=scale,
        components=components,
        perplexity=perplexity,
        dimensions=dimensions,
        sample=sample,
        threads=threads,
        memory=memory,
        label=label,
        id=id_,
        na=list(na) or None,
        keep=list(keep) or None,
        drop=list(drop) or None,
    )
    if as_json:
        from gnomon.cli.results import say_json

        say_json("inspect", [], found)


def look(
    data: str,
    *,
    words: Words,
    missing: str,
    scale: str,
    components: str,
    perplexity: float | None,
    dimensions: int,
    sample: int | None,
    threads: int | None,
    memory: "Room | None",
    **reading: Any,
) -> dict[str, Any]:
    """Say what a map of `data` would use and cost; the same as a dictionary, ready for JSON."""
    from gnomon.cli.blocks import in_blocks

    if in_blocks(data, dask=None, workers=None, memory=memory):
        from gnomon.cli.inspect_blocks import look_at_blocks

        return look_at_blocks(
            data, words=words, missing=missing, scale=scale, components=components,
            perplexity=perplexity, dimensions=dimensions, sample=sample, threads=threads,
            memory=memory, reading=reading,
        )  # fmt: skip
    from gnomon.checks import check_run, sample_rows, usual_perplexity
    from gnomon.cli.results import say_read, say_versions
    from gnomon.data.prepare import prepare
    from gnomon.data.read import read_source
    from gnomon.errors import TooLargeError
    from gnomon.estimate import estimate
    from gnomon.memory import readable_bytes
    from gnomon.parallel import thread_count
    from gnomon.pca import PCA
    from gnomon.tsne import TSNE

    start = time.perf_counter()
    table = read_source(data, memory=memory, **reading)
    say_read(words, table, time.perf_counter() - start)
    # What `em` fills in takes long to find, and changes neither the scale nor the cost.
    prepared = prepare(table, missing="mean" if missing == "em" else missing, scale=scale)
    X, preparation = prepared.X, prepared.preparation
    _say_preparation(words, preparation, missing)
    most = len(X) if sample is None else min(sample, len(X))
    usual = usual_perplexity(most) if perplexity is None else perplexity
    check_run(prepared, usual, most)
    plan = PCA(options.parse_components(components), n_jobs=threads).plan(X)
    sampling = None
    with suppress(TooLargeError):  # which is said below
        sampling = sample_rows(table, prepared, usual, sample, memory)
    if sampling is not None:
        words.say("Sample", f"{sampling.title()}: {sampling.why}")
    cost = estimate(
        plan,
        mapped=None if sampling is None else sampling.rows.size,
        dimensions=dimensions,
        perplexity=usual,
        iterations=TSNE().max_iter,
        threads=thread_count(threads),
        copied=0 if X is table.X else X.nbytes,
    )
    n, d = table.X.shape
    size = readable_bytes(table.X.nbytes)
    words.say("Table", f"{n:,} × {d:,} {table.X.dtype}, {size}")
    say_costs(words, plan, cost, dimensions, usual)
    say_memory(words, cost, X.nbytes, memory)
    say_versions(words)
    return {
        "table": table.to_dict(),
        "preparation": {**preparation.to_dict(), "missing": missing},
        "pca": plan.to_dict(),
        "sampling": None if sampling is None else sampling.to_dict(),
        "tsne": {"perplexity": usual, "dimensions": dimensions, "iterations": cost.iterations},
        "estimate": {**cost.to_dict(), "seconds": cost.seconds},
    }


def _say_preparation(words: Words, preparation: "Preparation", missing: str) -> None:
    for name, text in preparation.lines():
        if name == "missing" and missing == "em":
            text = f"{preparation.n_missing:,} values to be filled in from the other columns"
        words.say(name.capitalize(), text)


def say_costs(words: Words, plan: "Plan", cost: "Cost", dimensions: int, perplexity: float) -> None:
    """What PCA, the map, its scores and the places of other rows would take."""
    from gnomon.data.table import count
    from gnomon.estimate import about
    from gnomon.memory import readable_bytes

    passes = f"{plan.passes} pass{'' if plan.passes == 1 else 'es'} over the table"
    words.say("PCA", f"{plan.solver}, {passes}, {plan.operations:.1e} operations, "
              f"{readable_bytes(plan.peak_bytes)} beyond the table; "
              f"{about(cost.pca_seconds)}")  # fmt: skip
    words.say("Why", plan.why)
    words.say("t-SNE", f"{dimensions}-D, perplexity {perplexity:.3g}, {cost.iterations} iterations"
              f"; {about(cost.tsne_seconds)}")  # fmt: skip
    words.say("Trust", f"scores of the map; {about(cost.trust_seconds)}")
    if cost.place_seconds:
        words.say("Placed", f"all other rows; {about(cost.place_seconds)}")
    words.say(
        "Time", f"{about(cost.seconds)} in all, on {count(cost.threads, 'thread')} (estimated)"
    )


def say_memory(words: Words, cost: "Cost", held: int, memory: "Room | None") -> None:
    """What is needed beyond the table, and whether there is as much."""
    from gnomon.data.room import Room
    from gnomon.memory import readable_bytes

    room = Room.of(memory)
    left = max(0, room.bytes - held) if room.asked else room.bytes
    there = f"left{room.rest(table=held)}" if room.asked else "free"
    words.say("Memory", f"about {readable_bytes(cost.peak_bytes)} beyond the table; "
              f"{readable_bytes(left)} {there}")  # fmt: skip
    if cost.peak_bytes > left:
        words.say("Warning", "This is more memory than there is. Take fewer rows or columns.")
