"""`gnomon reduce`: principal components of a table."""

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.large import LargeResult
    from gnomon.pipeline import Result

HELP = """PCA alone: the table with fewer columns, and the model for the way back.

\b
gnomon reduce data.parquet -k 0.95        → data_reduced/
gnomon reduce wine -k parallel -o results
gnomon reduce folder/ --workers 4         many files, on four processes
cat x.csv | gnomon reduce - -k 2 > y.csv

DATA is a file or folder as for `gnomon map`, a bundled sample, or - for standard input, whose
components go to standard output.
"""
OUTPUTS = ("report.html", "scores.parquet", "model.gnomon", "run.json", "scree.svg")


@click.command("reduce", help=HELP)
@options.source("data")
@options.out_folder("the data's name and _reduced")
@options.reading
@options.showing
@options.preparing
@options.components
@options.computing
@options.distributing
@options.plain_page
@options.writing
def command(
    data: str,
    out: Path | None,
    components: str,
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
    seed: int,
    threads: int | None,
    memory: "Budget | None",
    dask: str | None,
    workers: int | None,
    title: str | None,
    page_budget: int,
    show: bool,
    force: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> None:
    """Run the pipeline without a map."""
    options.check_source(data)
    to_stdout = data == "-" and out is None
    folder = None
    if to_stdout:
        options.table_or_json(out, as_json)
    else:
        folder = options.new_folder(out, data, "reduced", OUTPUTS, force=force)
    from gnomon import pipeline
    from gnomon.cli import blocks, pages, results
    from gnomon.stages import Stages

    words = Words(quiet=quiet, verbose=verbose)
    memory = blocks.beside_workers(memory, workers)
    asked: dict[str, Any] = {
        "label": label, "id": id_, "features": list(features), "keep": list(keep),
        "drop": list(drop), "na": list(na), "decimal": decimal,
        "text": text, "image": image, "link": link,
    }  # fmt: skip
    reading: dict[str, Any] = {name: value or None for name, value in asked.items()}
    how: dict[str, Any] = {
        "n_components": options.parse_components(components), "dimensions": None,
        "missing": missing, "scale": scale, "seed": seed, "n_jobs": threads, "memory": memory,
    }  # fmt: skip
    columns: dict[str, Any] = {}
    result: Result | LargeResult
    if blocks.in_blocks(data, dask=dask, workers=workers, memory=memory):
        with nullcontext() if folder is None else folder.explaining(), words.bar("Reading") as bar:
            result = blocks.run(
                data, words=words, dask=dask, workers=workers, wishes=reading, bar=bar,
                scores=None if folder is None else folder.new / "scores.parquet", **how,
            )  # fmt: skip
    else:
        result = pipeline.run(data, on=results.reporter(words), **how, **reading)
        columns = results.names_of_rows(result.prepared.table)
        results.put(columns, "pc", result.components)
    results.say_warnings(words, result)
    results.say_versions(words)
    if folder is None:
        results.write_table_or_stdout(None, columns, force=force, words=words)
        words.say("Wrote", "components to standard output; -o FOLDER keeps the model as well")
        return
    settings = {"data": data, **asked, "missing": missing, "scale": scale,
                "components": components, "seed": seed,
                **pages.asked_pictures(pixels, image_root)}  # fmt: skip
    found = results.record(result, settings)
    stage = Stages(seconds=found["seconds"])
    with folder.writing() as new:
        stage(
            "write", lambda: results.write_together(new, "scores.parquet", columns, result, found)
        )
        page = pages.write_page(
            new, result, pages.as_typed("reduce", settings), stage, title=title, stability=None,
            page_budget=page_budget, threads=threads, words=words, pixels=pixels,
            image_root=image_root,
        )  # fmt: skip
        results.write_record(new, found)  # again, with how long the page took
    out = folder.shown
    if page is not None:
        pages.say_page(page, out / pages.FILE, stage, show=show, words=words)
    files = [out / name for name in OUTPUTS if (out / name).exists()]
    results.say_wrote(words, files, stage.seconds["write"])
    if as_json:
        results.say_json("reduce", files, found)
    quoted = shlex.quote(str(out))
    words.say("Next", f"gnomon restore {quoted}/scores.parquet -m {quoted}")
