"""`gnomon map`: the whole job on one table."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.large import LargeResult
    from gnomon.pipeline import Result

HELP = """PCA and a t-SNE map of a table, or of a bundled sample.

\b
gnomon map cells.csv                      → cells_map/
gnomon map digits                         a first try
gnomon map survey.csv --label region --missing drop --na n/a
gnomon map wine -k parallel -o results
gnomon map cells.parquet --sample 100000  maps so many, places the others

DATA is a CSV or TSV file (also .gz), Parquet, Feather, .npy or .npz; a folder of such files, which
are one table; - for standard input; or the name of a sample: digits, iris, wine, breast-cancer,
house-prices and others.
"""
OUTPUTS = ("report.html", "map.parquet", "model.gnomon", "run.json", "map.svg", "scree.svg")
MOST_COMPONENTS = 10  # of the scores written beside the map


@click.command("map", help=HELP)
@options.source("data")
@options.out_folder("the data's name and _map")
@options.reading
@options.showing
@options.preparing
@options.components
@options.mapping
@options.sampling
@options.computing
@options.distributing
@options.replaying
@options.page
@click.option("--dry-run", is_flag=True, help="Only say what would be used and what it costs.")
@options.writing
def command(
    data: str,
    out: Path | None,
    label: str | None,
    id_: str | None,
    na: tuple[str, ...],
    features: tuple[str, ...],
    keep: tuple[str, ...],
    drop: tuple[str, ...],
    decimal: str | None,
    text: str | None,
    image: str | None,
    image_root: Path | None,
    link: str | None,
    pixels: str | None,
    missing: str,
    scale: str,
    components: str,
    perplexity: float | None,
    dimensions: int,
    sample: int | None,
    seed: int,
    threads: int | None,
    memory: "Budget | None",
    dask: str | None,
    workers: int | None,
    replay: bool,
    title: str | None,
    stability: int | None,
    page_budget: int,
    show: bool,
    dry_run: bool,
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Run the pipeline and write what it found."""
    options.check_source(data)
    from gnomon.cli import blocks

    words = Words(quiet=quiet, verbose=verbose)
    memory = blocks.beside_workers(memory, workers)
    in_blocks = blocks.in_blocks(data, dask=dask, workers=workers, memory=memory)
    if in_blocks:
        blocks.refuse_stability(data, stability)
    asked: dict[str, Any] = {
        "label": label, "id": id_, "features": list(features), "keep": list(keep),
        "drop": list(drop), "na": list(na), "decimal": decimal,
        "text": text, "image": image, "link": link,
    }  # fmt: skip
    reading: dict[str, Any] = {name: value or None for name, value in asked.items()}
    if dry_run:
        from gnomon.cli.inspect import Asked, look

        wanted = Asked(missing, scale, components, perplexity, dimensions, sample, threads, memory,
                       dask, workers, page_budget, stability)  # fmt: skip
        seen = look(data, wanted, words=words, **reading)
        if as_json:
            from gnomon.cli.results import say_json

            say_json("inspect", [], seen)
        return
    folder = options.new_folder(out, data, "map", OUTPUTS, force=force)
    out = folder.shown
    from gnomon import pipeline
    from gnomon.cli import pages, results
    from gnomon.stages import Stages

    how: dict[str, Any] = {
        "n_components": options.parse_components(components), "dimensions": dimensions,
        "perplexity": perplexity, "sample": sample, "missing": missing, "scale": scale,
        "seed": seed, "n_jobs": threads, "memory": memory,
    }  # fmt: skip
    result: Result | LargeResult
    with words.bar() as bar:
        if in_blocks:
            result = blocks.run(
                data, words=words, dask=dask, workers=workers, wishes=reading, bar=bar, **how
            )
        else:
            on = results.reporter(words, bar)
            result = pipeline.run(data, on=on, replay=replay, **how, **reading)
    results.say_warnings(words, result)
    results.say_versions(words)
    settings = {
        "data": data, **asked, "missing": missing, "scale": scale, "components": components,
        "perplexity": perplexity, "dimensions": dimensions, "sample": sample, "seed": seed,
        "stability": stability, "replay": replay, **pages.asked_pictures(pixels, image_root),
    }  # fmt: skip
    found = results.record(result, settings)
    stage = Stages(seconds=found["seconds"])
    with folder.writing() as new:
        stage("write", lambda: _write(new, result, found))
        page = pages.write_page(
            new, result, pages.as_typed("map", settings), stage, title=title, stability=stability,
            page_budget=page_budget, threads=threads, words=words, pixels=pixels,
            image_root=image_root,
        )  # fmt: skip
        results.write_record(new, found)  # again, with how long the page took
    if page is not None:
        pages.say_page(page, out / pages.FILE, stage, show=show, words=words)
    files = [out / name for name in OUTPUTS]
    results.say_wrote(words, files, stage.seconds["write"])
    if as_json:
        results.say_json("map", files, {"interrupted": result.interrupted, **found})
    if result.interrupted:
        sys.exit(130)
    words.say("Next", f"gnomon place new.csv -m {shlex.quote(str(out))}")


def _write(out: Path, result: "Result | LargeResult", found: dict[str, Any]) -> None:
    """Map, model, charts and the record of the run."""
    import numpy as np

    from gnomon import charts
    from gnomon.cli import results
    from gnomon.pipeline import Result

    assert result.tsne is not None
    assert result.positions is not None
    assert result.components is not None
    labels = None
    columns: dict[str, Any] = {}
    if isinstance(result, Result):
        labels = result.prepared.table.labels
        columns = results.names_of_rows(result.prepared.table)
    results.put(columns, "tsne", result.positions)
    results.put(columns, "pc", result.components[:, :MOST_COMPONENTS])
    if result.trust is not None:
        columns["trust"] = result.trust
    if result.rows is not None:
        columns["placed"] = result.rows.placed
    results.write_together(out, "map.parquet", columns, result, found)
    there = ~np.isnan(result.positions).any(axis=1)
    shown = labels if labels is None else labels[there]
    chart = charts.scatter(result.positions[there], shown, title=f"{result.table.name} by t-SNE")
    chart.save(out / "map.svg")
