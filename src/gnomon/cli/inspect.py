"""`gnomon inspect`: what would be used and what it would cost; also `gnomon map --dry-run`."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.data.preparation import Preparation, Prepared
    from gnomon.data.table import Table
    from gnomon.pca.plan import Plan
    from gnomon.pipeline.estimate import Cost
    from gnomon.tsne.sampled import Sampling

HELP = """Check what gnomon map would use, and what it would cost, without computing anything.

\b
gnomon inspect cells.csv
gnomon inspect survey.csv --missing drop --scale standard
gnomon inspect cells.parquet --json

DATA and options are those of gnomon map. Times are estimated from measured rates, within a factor
of about two; the first map on a machine takes some seconds more, for compiling.
"""
# What is said of the scale of a table in blocks.
SCALES = {
    "auto": "by what a first pass over the table finds",
    "none": "none: as asked",
    "standard": "standard: as asked, by a first pass over the table",
}


@click.command("inspect", help=HELP)
@options.source("data")
@options.reading
@options.preparing
@options.components
@options.mapping
@options.sampling
@options.resources
@options.speaking
@as_one
def command(asked: Asked) -> None:
    """Read and say."""
    options.check_source(asked.data)
    found = look(asked, asked.words)
    if asked.as_json:
        from gnomon.cli.results import say_json

        say_json("inspect", [], found)


def look(asked: Asked, words: RunLines) -> dict[str, Any]:
    """Say what a map of the data would use and cost; the same as a dictionary, ready for JSON."""
    from gnomon.budget import Budget
    from gnomon.cli.results import say_read
    from gnomon.data.open import open_table
    from gnomon.errors import TooLargeError
    from gnomon.inputs.csr import stored_bytes
    from gnomon.pca import PCA
    from gnomon.pipeline.enough_rows import check_run, usual_perplexity
    from gnomon.pipeline.map_budget import RunBudget

    start, budget = time.perf_counter(), Budget.from_memory(asked.memory)
    table = open_table(
        asked.data,
        memory=asked.memory,
        in_blocks=asked.cluster,
        row_names=False,
        spool=asked.spool,
        **asked.reading,
    )
    say_read(words, table, time.perf_counter() - start, few=True)
    prepared, how = _prepare(table, asked, words)
    n = prepared.X.shape[0]
    most = n if asked.sample is None else min(asked.sample, n)
    usual = usual_perplexity(most) if asked.perplexity is None else asked.perplexity
    check_run(prepared, usual, most, asked.metric)
    pca = PCA(options.parse_components(asked.components), n_jobs=asked.threads)
    with budget.explained():
        plan = pca.plan(prepared.X, memory=budget.limit if table.in_blocks else None)
    # Of a cluster elsewhere it is not known yet how many processes it has.
    fit = RunBudget(budget, table, prepared, pca, usual, asked.workers or 0)
    sampling = None
    with suppress(TooLargeError):  # which is said below
        sampling = fit.choose(asked.sample)
    mapped = n if sampling is None else sampling.rows.size
    held = 0 if table.in_blocks else stored_bytes(prepared.X)
    copied = 0 if prepared.X is table.X else held
    found = Inspection(
        table.X.shape,
        table.X.dtype,
        plan,
        sampling,
        usual,
        held,
        copied,
        fit.beside(mapped),
        table.is_sparse,
    )
    return {"table": table.to_dict(), "preparation": how, **tell(found, asked, words)}


def _prepare(table: "Table", asked: Asked, words: RunLines) -> "tuple[Prepared, dict[str, Any]]":
    """The rows as a run would use them, and what is known of that; blocks are not read for it."""
    from gnomon.data.preparation import Preparation, Prepared, drop_empty_rows, prepare

    missing = asked.missing
    if not table.in_blocks:
        # What `em` fills in takes long to find, and changes neither the scale nor the cost.
        plain, means = (drop_empty_rows(table), "mean") if missing == "em" else (table, missing)
        prepared = prepare(plain, missing=means, scale=asked.scale)
        empty = table.n_rows - plain.n_rows
        _say_preparation(words, prepared.preparation, missing, empty)
        return prepared, {**prepared.preparation.to_dict(), "missing": missing}
    if missing != "error":
        words.say("Missing", f"{missing}: as asked, by a first pass over the table")
    words.say("Scale", SCALES[asked.scale])
    prepared = Prepared(table.X, table, None, Preparation.unlearned(table.columns))
    return prepared, {"missing": missing, "scale": asked.scale}


class Inspection(NamedTuple):
    """What was seen of a table, and what would be done with it."""

    shape: tuple[int, ...]
    dtype: Any
    plan: "Plan"
    sampling: "Sampling | None"
    perplexity: float
    held: int  # bytes of the table as it is kept
    copied: int  # and of those that are not the table's own
    beside: int  # and of what is kept beside a map
    sparse: bool = False


def tell(found: Inspection, asked: Asked, words: RunLines) -> dict[str, Any]:
    """Say what that would cost; the same as a dictionary."""
    from gnomon.budget import readable_bytes
    from gnomon.cli.results import say_versions
    from gnomon.compute.threads import thread_count
    from gnomon.pipeline.estimate import PAGE_BUDGET, estimate
    from gnomon.tsne.schedule import usual_iterations

    plan, sampling, (n, d) = found.plan, found.sampling, found.shape
    if sampling is not None:
        words.say("Sample", f"{sampling.title()}: {sampling.why}")
    mapped = None if sampling is None else sampling.rows.size
    cost = estimate(
        plan,
        mapped=mapped,
        dimensions=asked.dimensions,
        perplexity=found.perplexity,
        iterations=usual_iterations(n if mapped is None else mapped),
        threads=thread_count(asked.threads),
        copied=found.copied,
        beside=found.beside,
        page_budget=asked.page_budget or PAGE_BUDGET,
        stability=asked.stability or 0,
    )
    size = readable_bytes(n * d * found.dtype.itemsize)
    if found.sparse:
        size = f"sparse, {readable_bytes(found.held)}; {size} if it were dense"
    words.say("Table", f"{n:,} × {d:,} {found.dtype}, {size}")
    _say_costs(words, plan, cost, asked.dimensions, found.perplexity)
    _say_memory(words, cost, found.held, asked.memory)
    say_versions(words)
    return {
        "pca": plan.to_dict(),
        "sampling": None if sampling is None else sampling.to_dict(),
        "tsne": {
            "perplexity": found.perplexity,
            "dimensions": asked.dimensions,
            "iterations": cost.iterations,
        },
        "estimate": {**cost.to_dict(), "seconds": cost.seconds},
    }


def _say_preparation(
    words: RunLines, preparation: "Preparation", missing: str, empty: int = 0
) -> None:
    from gnomon.data.table import count

    for name, text in preparation.lines():
        if name == "missing" and missing == "em":
            values = count(preparation.n_missing, "value")
            text = f"{values} to be filled in from the other columns"
            if empty:
                text += f"; {count(empty, 'row')} without any value dropped"
        words.say(name.capitalize(), text)


def _say_costs(
    words: RunLines, plan: "Plan", cost: "Cost", dimensions: int, perplexity: float
) -> None:
    """What PCA, the map, its scores, the places of other rows and the page would take."""
    from gnomon.budget import readable_bytes
    from gnomon.data.table import count
    from gnomon.pipeline.estimate import about

    passes = f"{plan.passes} pass{'' if plan.passes == 1 else 'es'} over the table"
    words.say(
        "PCA",
        f"{plan.solver}, {passes}, {plan.operations:.1e} operations, "
        f"{readable_bytes(plan.peak_bytes)} beyond the table; "
        f"{about(cost.pca_seconds)}",
    )
    words.say("Why", plan.why)
    words.say(
        "t-SNE",
        f"{dimensions}-D, perplexity {perplexity:.3g}, about {cost.iterations} "
        f"iterations; {about(cost.tsne_seconds)}",
    )
    words.say("Trust", f"scores of the map; {about(cost.trust_seconds)}")
    if cost.place_seconds:
        words.say("Placed", f"all other rows; {about(cost.place_seconds)}")
    words.say("Page", f"about {readable_bytes(cost.page_bytes)}; {about(cost.page_seconds)}")
    words.say(
        "Time", f"{about(cost.seconds)} in all, on {count(cost.threads, 'thread')} (estimated)"
    )


def _say_memory(words: RunLines, cost: "Cost", held: int, memory: "Budget | None") -> None:
    """What is needed beyond the table, and whether there is as much."""
    from gnomon.budget import Budget, readable_bytes

    budget = Budget.from_memory(memory)
    left = max(0, budget.bytes - held) if budget.asked else budget.bytes
    there = f"left{budget.rest(table=held)}" if budget.asked else "free"
    words.say(
        "Memory",
        f"about {readable_bytes(cost.peak_bytes)} beyond the table; {readable_bytes(left)} {there}",
    )
    if cost.peak_bytes > left:
        words.say("Warning", "This is more memory than there is. Take fewer rows or columns.")
