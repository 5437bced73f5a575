"""`gnomon reduce`: principal components of a table."""

import shlex
from contextlib import nullcontext
from typing import Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.workers import engine_for

HELP = """Reduce a table to principal components, and keep the model for the way back.

\b
gnomon reduce data.parquet -k 0.95        → data_reduced/
gnomon reduce wine -k parallel -o results
gnomon reduce folder/ --workers 4         many files, on four processes
cat x.csv | gnomon reduce - -k 2 > y.csv

DATA is a file or folder as for gnomon map, a bundled sample, or standard input (-), whose
components go to standard output.
"""
SCORES = "scores.parquet"
OUTPUTS = ("report.html", SCORES, "model.gnomon", "run.json", "scree.svg")


@click.command("reduce", help=HELP)
@options.source("data")
@options.reading
@options.preparing
@options.out_folder("the data's name and _reduced")
@options.showing
@options.plain_page
@options.components
@options.computing
@options.distributing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Run the pipeline without a map."""
    options.check_source(asked.data)
    folder = None
    if asked.data == "-" and asked.out is None:
        options.table_or_json(asked.out, asked.as_json)
    else:
        folder = options.new_folder(asked.out, asked.data, "reduced", OUTPUTS, force=asked.force)
    from gnomon.cli import pages, results
    from gnomon.pipeline.flow import run
    from gnomon.pipeline.stages import Stages

    asked, words = asked.beside_workers(asked.data), asked.words
    with (
        nullcontext() if folder is None else folder.explaining(),
        words.bar("Reading") as bar,
        engine_for(asked, words) as engine,
    ):
        reading = asked.reading
        if asked.layer is None and asked.use_rep is None and asked.data.lower().endswith(".h5ad"):
            reading["use_rep"] = "X"  # components of the genes, not of an `X_pca` that is there
        result = run(
            asked.data,
            n_components=options.parse_components(asked.components),
            dimensions=None,
            missing=asked.missing,
            scale=asked.scale,
            seed=asked.seed,
            n_jobs=asked.threads,
            memory=asked.memory,
            engine=engine,
            scores=None if folder is None else folder.new / SCORES,
            on=results.reporter(words, bar, mapping=False, recorded=folder is not None),
            spool=asked.spool,
            **reading,
        )
    columns: dict[str, Any] = {}
    if result.components is not None:
        columns = result.prepared.table.names_of_rows()
        results.put(columns, "pc", result.components)
    results.say_warnings(words, result)
    results.say_versions(words)
    if folder is None:
        results.write_table_or_stdout(None, columns, force=asked.force, words=words)
        words.say("Wrote", "components to standard output; -o FOLDER keeps the model as well")
        return
    settings = pages.settings_of(asked, ("missing", "scale", "components", "seed"))
    found = results.record(result, settings)
    stage = Stages(seconds=found["seconds"])
    with folder.writing() as new:
        with stage("write"):
            results.write_together(new, SCORES, columns, result, found)
        typed = pages.as_typed("reduce", settings)
        page = pages.write_page(new, result, typed, stage, asked, words)
        results.write_record(new, found)  # again, with how long the page took
    out = folder.shown
    pages.say_page(page, out / pages.FILE, stage, show=asked.show, words=words)
    files = [out / name for name in OUTPUTS if (out / name).exists()]
    results.say_wrote(words, files, stage.seconds["write"])
    if asked.as_json:
        results.say_json("reduce", files, found)
    quoted = shlex.quote(str(out))
    words.say("Next", f"gnomon restore {quoted}/{SCORES} -m {quoted}")
