"""`gnomon inspect` of tables that are read in blocks: what is known before any pass over them."""

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.blocks import open_source
from gnomon.cli.inspect import say_costs, say_memory
from gnomon.cli.options import parse_components
from gnomon.cli.results import say_read, say_versions
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.data.room import Room

__all__ = ["look_at_blocks"]

SCALES = {
    "auto": "by what a first pass over the table finds",
    "none": "none: as asked",
    "standard": "standard: as asked, by a first pass over the table",
}


def look_at_blocks(
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
    reading: dict[str, Any],
) -> dict[str, Any]:
    """Say what a map of `data` would use and cost; the same as a dictionary, ready for JSON."""
    from gnomon.checks import usual_perplexity
    from gnomon.data.room import Room
    from gnomon.errors import TooLargeError
    from gnomon.estimate import estimate
    from gnomon.large import MOST_COMPONENTS, BlockTable, rows_to_map
    from gnomon.memory import readable_bytes
    from gnomon.parallel import thread_count
    from gnomon.pca import PCA
    from gnomon.tsne import TSNE

    start, room = time.perf_counter(), Room.of(memory)
    source = open_source(data, missing=missing, reading=reading)
    table = BlockTable(Path(data).name or data, source)
    say_read(words, table, time.perf_counter() - start)
    words.say("Scale", SCALES[scale])
    n, d = source.shape
    usual = usual_perplexity(min(sample or n, n)) if perplexity is None else perplexity
    pca = PCA(parse_components(components), n_jobs=threads)
    with room.explained():
        plan = pca.plan(source, memory=room.limit)
    sampling = None
    with suppress(TooLargeError):  # which is said below
        scores = 4 * n * min(MOST_COMPONENTS, d)
        sampling = rows_to_map(room, table.name, (n, d), usual, scores=scores, asked=sample)
    whole = sampling is None or sampling.whole
    if sampling is not None and not whole:
        words.say("Sample", f"{sampling.title()}: {sampling.why}")
    cost = estimate(
        plan, mapped=None if sampling is None else sampling.rows.size, dimensions=dimensions,
        perplexity=usual, iterations=TSNE().max_iter, threads=thread_count(threads),
    )  # fmt: skip
    size = readable_bytes(n * d * source.dtype.itemsize)
    words.say("Table", f"{n:,} × {d:,} {source.dtype}, {size}")
    say_costs(words, plan, cost, dimensions, usual)
    say_memory(words, cost, 0, memory)
    say_versions(words)
    return {
        "table": table.to_dict(),
        "preparation": {"missing": missing, "scale": scale},
        "pca": plan.to_dict(),
        "sampling": None if sampling is None or whole else sampling.to_dict(),
        "tsne": {"perplexity": usual, "dimensions": dimensions, "iterations": cost.iterations},
        "estimate": {**cost.to_dict(), "seconds": cost.seconds},
    }
