"""`gnomon audit`: how far any map can be trusted, row by row and against chance."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.cli.audited import Audited
    from gnomon.scores import Audit

HELP = """Check how far a map by any program can be trusted, row by row and against chance.

\b
gnomon audit umap.csv --data cells.csv               → umap_audit/
gnomon audit umap.csv --data cells.csv --id cell     match rows by IDs
gnomon audit all.csv --data X.npy --columns 'umap*'  the map's columns
gnomon audit cells_map                               a map by gnomon map
gnomon audit cells.h5ad --map X_umap                 a map of an AnnData

MAP is a table with one to three columns of positions, DATA the table that the map was made from:
the same rows, in the same order or with the same IDs. A row is placed if it lies better than at
random, misplaced if at least half of the places on the map would suit it as well, and undecided
otherwise. A map by gnomon map is also made again from tables with shuffled columns: a row that
scores no higher than rows do there is unsupported.
"""
OUTPUTS = ("report.html", "map.parquet", "run.json")


@click.command("audit", help=HELP)
@options.source("map")
@options.of_table(
    "--data",
    "table",
    metavar="DATA",
    help="Table that the map was made from; for a folder by gnomon map only if it has moved.",
)
@options.of_table(
    "--map",
    "map_key",
    metavar="KEY",
    help="Key of the map in obsm of an .h5ad file. It is audited beside X_pca, or beside what "
    "--use-rep names.",
)
@options.of_table(
    "--use-rep",
    metavar="KEY",
    help="What the map of an .h5ad file was made from: a key of obsm, or X.",
)
@options.of_table(
    "--id",
    "ids",
    metavar="COLUMN",
    multiple=True,
    help="Column that names the rows of both tables; give it twice where the names of the "
    "columns differ, first MAP's (default: a column of IDs in both, otherwise the order of the "
    "rows).",
)
@options.of_table(
    "--columns",
    metavar="NAME",
    multiple=True,
    help="Columns of MAP that hold the positions, such as 'umap*'. May be given again.",
)
@options.of_table("--label", metavar="COLUMN", help="Column of DATA that colours the map.")
@options.features
@options.numbers
@options.missing
@options.of_table(
    "--scale",
    type=click.Choice(["none", "auto", "standard"]),
    default="none",
    show_default=True,
    help="Divide columns of DATA by their standard deviations: as the map's own program did.",
)
@options.out_folder("the map's name and _audit")
@options.plain_page
@options.of_method(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="Distance in DATA (default: euclidean, or that of the model).",
)
@options.of_method(
    "--shuffles",
    type=click.IntRange(3),
    metavar="N",
    default=3,
    show_default=True,
    help="Number of shuffled tables to compare a map by gnomon map with.",
)
@options.of_method(
    "--sample",
    type=click.IntRange(2),
    metavar="N",
    help="Number of rows to test (default: all of up to 5,000, and 1,000 of more).",
)
@options.computing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Read, join, test, write."""
    folder = options.new_folder(asked.out, asked.map, "audit", OUTPUTS, force=asked.force)
    out = folder.shown
    from gnomon.cli import audited, pages, results
    from gnomon.pipeline.stages import Stages

    stage, words = Stages(), asked.words
    with words.warnings() as warned:
        read = audited.read_run if audited.is_run(asked.map) else audited.read_given
        subject = read(asked, words)
        with stage("audit"):
            found = subject.audit(
                shuffles=asked.shuffles,
                sample=asked.sample,
                random_state=asked.seed,
                n_jobs=asked.threads,
            )
        _say(words, found, stage.seconds["audit"], out / "map.parquet")
        with stage("page"):
            assert asked.page_budget is not None
            page = subject.page(
                found,
                command=_as_typed(),
                title=asked.title,
                page_budget=asked.page_budget,
                n_jobs=asked.threads,
            )
        results.say_among(words, page.content.neighbor_labels, subject.prepared)
    with folder.writing() as new:
        with stage("write"):
            _write(new, subject, found, page)
        record = subject.record(found) | {
            "settings": {"map": asked.map, "data": asked.table, "seed": asked.seed},
            "seconds": stage.seconds,
            "warnings": warned,
            "versions": results.versions(),
        }
        results.write_record(new, record)
    results.say_versions(words)
    pages.say_page(page, out / pages.FILE, stage, show=asked.show, words=words)
    files = [out / name for name in OUTPUTS]
    results.say_wrote(words, files, stage.seconds["write"])
    if asked.as_json:
        results.say_json("audit", files, record)


def _as_typed() -> str:
    """The command as it was typed, without what only says where results go."""
    import sys

    return shlex.join(["gnomon", *sys.argv[1:]])


def _say(words: RunLines, found: "Audit", seconds: float, table: Path) -> None:
    lines = dict(found.lines())
    words.say("Audit", f"trustworthiness {lines['trustworthiness']}", seconds)
    from gnomon.scores.map_verdict import verdict

    if judged := verdict(found.scores):
        words.say("", judged.rstrip("."))
    for name in ("tested", "placed", "undecided", "misplaced", "at random", "unsupported"):
        if name in lines:
            words.say("", lines[name] if name == "at random" else f"{name} {lines[name]}")
    if many := int(found.misplaced.sum()):
        words.say("", f"{many:,} misplaced row{'s' * (many > 1)}: column misplaced of {table}")
    words.details("", [(name, text) for name, text in found.scores.lines()])


def _write(out: Path, subject: "Audited", found: "Audit", page: Any) -> None:
    from gnomon.data.write import write_table

    columns = subject.columns(page.content) | found.columns()
    write_table(out / "map.parquet", list(columns), list(columns.values()))
    page.save(out / "report.html")
