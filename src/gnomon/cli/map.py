"""`gnomon map`: the whole job on one table."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.workers import engine_for

if TYPE_CHECKING:
    from gnomon.pipeline.result import Result

HELP = """Make a map of a table: PCA, t-SNE, and a page that says how far to trust it.

\b
gnomon map cells.csv                      → cells_map/
gnomon map digits                         a first try
gnomon map survey.csv --label region --missing drop --na n/a
gnomon map wine -k parallel -o results
gnomon map documents.parquet --metric cosine --text title
gnomon map cells.parquet --sample 100000  map 100,000 rows, place the others

DATA is a CSV or TSV file (also .gz), Parquet, Feather, .npy, .npz, JSON, an Excel workbook, a
sparse matrix (.npz, .mtx, a 10x folder) or an AnnData file (.h5ad); a folder of such tables (of one
kind, not sparse), which are one table; standard input (-); or a sample: digits, iris, wine,
breast-cancer, house-prices and others.
"""
OUTPUTS = ("report.html", "map.parquet", "model.gnomon", "run.json", "map.svg", "scree.svg")
MAP_SETTINGS = (
    "missing",
    "scale",
    "components",
    "perplexity",
    "metric",
    "dimensions",
    "sample",
    "seed",
    "stability",
    "vary",
    "replay",
)


@click.command("map", help=HELP)
@options.source("data")
@options.reading
@options.preparing
@options.out_folder("the data's name and _map")
@options.showing
@options.replaying
@options.page
@options.components
@options.mapping
@options.sampling
@options.computing
@options.distributing
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only print what would be used and what it would cost, like gnomon inspect.",
)
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Run the pipeline and write what it found."""
    options.check_source(asked.data)
    asked, words = asked.beside_workers(asked.data), asked.words
    if asked.dry_run:
        from gnomon.cli.inspect import look

        seen = look(asked, words)
        if asked.as_json:
            from gnomon.cli.results import say_json

            say_json("inspect", [], seen)
        return
    folder = options.new_folder(asked.out, asked.data, "map", OUTPUTS, force=asked.force)
    out = folder.shown
    from gnomon.cli import pages, results
    from gnomon.pipeline.flow import run
    from gnomon.pipeline.stages import Stages

    with words.bar() as bar, engine_for(asked, words) as engine:
        result = run(
            asked.data,
            n_components=options.parse_components(asked.components),
            dimensions=asked.dimensions,
            perplexity=asked.perplexity,
            metric=asked.metric or "euclidean",
            sample=asked.sample,
            missing=asked.missing,
            scale=asked.scale,
            seed=asked.seed,
            n_jobs=asked.threads,
            memory=asked.memory,
            engine=engine,
            replay=asked.replay,
            on=results.reporter(words, bar),
            spool=asked.spool,
            **asked.reading,
        )
    if asked.seed and result.sampling is None:
        words.say("Seed", f"{asked.seed}: the map starts from the components, without chance")
    results.say_among(words, result.neighbor_labels, result.prepared)
    results.say_warnings(words, result)
    results.say_versions(words)
    settings = pages.settings_of(asked, MAP_SETTINGS)
    found = results.record(result, settings)
    stage = Stages(seconds=found["seconds"])
    with folder.writing() as new:
        with stage("write"):
            _write(new, result, found)
        page = pages.write_page(new, result, pages.as_typed("map", settings), stage, asked, words)
        if (stable := page.content.stability) is not None:
            results.say_stability(words, stable)
            found["stability"] = stable.summary()
        results.write_record(new, found)  # again, with how long the page took
    pages.say_page(page, out / pages.FILE, stage, show=asked.show, words=words)
    files = [out / name for name in OUTPUTS]
    results.say_wrote(words, files, stage.seconds["write"])
    if asked.as_json:
        results.say_json("map", files, {"interrupted": result.interrupted, **found})
    if result.interrupted:
        sys.exit(130)
    words.say("Next", f"gnomon place new.csv -m {shlex.quote(str(out))}")


def _write(out: Path, result: "Result", found: dict[str, Any]) -> None:
    """Map, model, charts and the record of the run."""
    import numpy as np

    from gnomon import charts
    from gnomon.cli import results
    from gnomon.pipeline.map_budget import MOST_COMPONENTS

    assert result.tsne is not None
    assert result.positions is not None
    assert result.components is not None
    table = result.prepared.table
    columns = table.names_of_rows()
    results.put(columns, "tsne", result.positions)
    results.put(columns, "pc", result.components[:, :MOST_COMPONENTS])
    if result.trust is not None:
        columns["trust"] = result.trust
    if result.neighbor_labels is not None:
        columns |= result.neighbor_labels.columns()
    if result.rows is not None:
        columns["placed"] = result.rows.placed
    results.write_together(out, "map.parquet", columns, result, found)
    there = ~np.isnan(result.positions).any(axis=1)
    shown = None if table.labels is None else table.labels[there]
    chart = charts.scatter(result.positions[there], shown, title=f"{result.table.name} by t-SNE")
    chart.save(out / "map.svg")
