"""`gnomon inspect` of tables that are read in blocks: what is known before any pass over them."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from gnomon.cli.blocks import open_source
from gnomon.cli.inspect import Asked, Found, tell
from gnomon.cli.options import parse_components
from gnomon.cli.results import say_read
from gnomon.cli.words import Words

__all__ = ["look_at_blocks"]

SCALES = {
    "auto": "by what a first pass over the table finds",
    "none": "none: as asked",
    "standard": "standard: as asked, by a first pass over the table",
}


def look_at_blocks(
    data: str, asked: Asked, *, words: Words, reading: dict[str, Any]
) -> dict[str, Any]:
    """Say what a map of `data` would use and cost; the same as a dictionary, ready for JSON."""
    from gnomon.budget import Budget
    from gnomon.checks import check_rows, usual_perplexity
    from gnomon.errors import TooLargeError
    from gnomon.files import shown_name
    from gnomon.large import MOST_COMPONENTS, BlockTable
    from gnomon.map_budget import MapBudget
    from gnomon.pca import PCA

    start, budget = time.perf_counter(), Budget.from_memory(asked.memory)
    source = open_source(data, missing=asked.missing, reading=reading)
    table = BlockTable(shown_name(Path(data)) or data, source)
    say_read(words, table, time.perf_counter() - start, few=True)
    words.say("Scale", SCALES[asked.scale])
    n, d = source.shape
    most = min(asked.sample or n, n)
    usual = usual_perplexity(most) if asked.perplexity is None else asked.perplexity
    check_rows(table.name, n, usual, most)
    pca = PCA(parse_components(asked.components), n_jobs=asked.threads)
    with budget.explained():
        plan = pca.plan(source, memory=budget.limit)
    # Of what is not a number, such as 90%, nobody knows yet how many they are.
    most_kept = plan.n_components if isinstance(plan.n_components, int) else d
    scores = 4 * n * min(MOST_COMPONENTS, most_kept, d)
    processes = asked.workers or 0  # of a cluster elsewhere nobody knows yet how many
    fit = MapBudget(budget, table.name, (n, d), usual, scores, processes)
    sampling = None
    with suppress(TooLargeError):  # which is said below
        drawn = fit.choose(asked.sample)
        sampling = None if drawn.whole else drawn
    mapped = n if sampling is None else sampling.rows.size
    found = Found(source.shape, source.dtype, plan, sampling, usual, beside=fit.beside(mapped))
    return {
        "table": table.to_dict(),
        "preparation": {"missing": asked.missing, "scale": asked.scale},
        **tell(found, asked, words),
    }
