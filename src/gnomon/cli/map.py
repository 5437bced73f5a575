"""`gnomon map`: the whole job on one table."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.pipeline import Result

HELP = """PCA and a t-SNE map of a table, or of a bundled sample.

\b
gnomon map cells.csv                      → cells_map/
gnomon map digits                         a first try
gnomon map survey.csv --label region --missing drop
gnomon map wine -k parallel -o results

DATA is a CSV or TSV file (also .gz), Parquet, Feather, .npy or .npz; - for standard input; or the
name of a sample: digits, iris, wine, breast-cancer, house-prices and others.
"""
OUTPUTS = ("map.parquet", "model.gnomon", "run.json", "map.svg", "scree.svg")
MOST_COMPONENTS = 10  # of the scores written beside the map


@click.command("map", help=HELP)
@options.source("data")
@options.out_folder("the data's name and _map")
@options.reading
@options.preparing
@options.components
@options.mapping
@options.computing
@click.option("--dry-run", is_flag=True, help="Only say what would be used and what it costs.")
@options.writing
def command(
    data: str,
    out: Path | None,
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
    seed: int,
    threads: int | None,
    memory: int | None,
    dry_run: bool,
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Run the pipeline and write what it found."""
    options.check_source(data)
    words = Words(quiet=quiet, verbose=verbose)
    asked: dict[str, Any] = {
        "label": label, "id": id_, "keep": list(keep), "drop": list(drop), "na": list(na),
    }  # fmt: skip
    reading = {name: value or None for name, value in asked.items()}
    if dry_run:
        from gnomon.cli.inspect import look

        seen = look(data, words=words, missing=missing, scale=scale, components=components,
                    perplexity=perplexity, dimensions=dimensions, threads=threads, memory=memory,
                    **reading)  # fmt: skip
        if as_json:
            from gnomon.cli.results import say_json

            say_json("inspect", [], seen)
        return
    out = options.new_folder(out, data, "map", OUTPUTS, force=force)
    from gnomon import pipeline
    from gnomon.cli import results

    with words.bar() as progress:
        result = pipeline.run(
            data,
            n_components=options.parse_components(components),
            dimensions=dimensions,
            perplexity=perplexity,
            missing=missing,
            scale=scale,
            seed=seed,
            n_jobs=threads,
            memory=memory,
            told=results.reporter(words),
            progress=progress,
            **reading,
        )
    results.say_warnings(words, result)
    results.say_versions(words)
    settings = {
        "data": data, **asked, "missing": missing, "scale": scale, "components": components,
        "perplexity": perplexity, "dimensions": dimensions, "seed": seed,
    }  # fmt: skip
    found = results.record(result, settings)
    start = time.perf_counter()
    _write(out, result, found)
    files = [out / name for name in OUTPUTS]
    words.say("Wrote", ", ".join(map(str, files)))
    words.details("", [("writing", f"{time.perf_counter() - start:.1f} s")])
    if as_json:
        results.say_json("map", files, {"interrupted": result.interrupted, **found})
    if result.interrupted:
        sys.exit(130)
    words.say("Next", f"gnomon place new.csv -m {shlex.quote(str(out))}")


def _write(out: Path, result: "Result", found: dict[str, Any]) -> None:
    """Map, model, charts and the record of the run."""
    from gnomon import charts
    from gnomon.cli import results

    assert result.tsne is not None
    table = result.prepared.table
    columns = results.names_of_rows(table)
    results.put(columns, "tsne", result.tsne.embedding_)
    results.put(columns, "pc", result.components[:, :MOST_COMPONENTS])
    if result.trust is not None:
        columns["trust"] = result.trust
    results.write_together(out, "map.parquet", columns, result, found)
    chart = charts.scatter(result.tsne, table.labels, title=f"{table.name} by t-SNE")
    chart.save(out / "map.svg")
