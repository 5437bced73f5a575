"""`gnomon report`: the page of a former run, built again."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.budget import Budget
    from gnomon.cli.stored import StoredRun
    from gnomon.data.preparation import Prepared
    from gnomon.data.table import Table

HELP = """Build the page of an earlier run again, from its folder and its data.

\b
gnomon report cells_map --force           → cells_map/report.html
gnomon report cells_map -o page.html --title "Cells of May"
gnomon report cells_map --data moved/cells.csv --stability 8 --force

The data are read from where run.json says they were. Without them the page has neither statistics
of columns nor the rows with the largest reconstruction error, like pages of tables too large for
memory.
"""
ROUGHLY = 1e-4  # scores that differ by more, relative to the largest, are of other numbers


@click.command("report", help=HELP)
@click.argument("model", metavar="FOLDER", type=click.Path(path_type=Path))
@options.of_table("--data", "table", metavar="FILE", help="The table, if it has moved.")
@options.of_result(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Page to write (default: report.html in FOLDER).",
)
@options.page
@options.resources
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Find the run, its data, and build."""
    from gnomon.cli import pages, results
    from gnomon.cli.run_folder import RunFolder
    from gnomon.cli.stored import load_run
    from gnomon.errors import ParameterError
    from gnomon.pipeline.stages import Stages
    from gnomon.report.python_lines import run_lines
    from gnomon.report.report import build_report

    words, model, stability = asked.words, asked.model, asked.stability
    folder = model if model.is_dir() else model.parent
    out = folder / pages.FILE if asked.out is None else asked.out
    pages.refuse_page(out, force=asked.force)
    if out.parent.resolve() == folder.resolve():
        options.until_the_end(RunFolder(folder))
    run = load_run(model)
    run.say(words)
    record = pages.read_record(folder)
    found: dict[str, Any] = {
        "title": asked.title,
        "n_jobs": asked.threads,
        "command": record.command(stability, asked.vary),
        "python": None if (call := record.call()) is None else run_lines(call, stability),
        "warnings": record.warnings(),
        "seconds": record.seconds(),
        "notes": record.notes,
    }
    stored = pages.read_stored(folder, run)
    found |= {"Y": stored.positions, "trust": stored_trust(run, stored)}
    if stability is not None and (
        run.tsne is None or len(run.tsne.embedding_) < len(stored.scores)
    ):
        raise ParameterError("--stability is for maps of all rows, and this run has no such map.")
    ready = find_rows(asked.table, record, stored, run, words, asked.memory)
    stage = Stages()
    with stage("page"):
        content = _content(run, record, stored, ready, stability, asked.vary, found)
        assert asked.page_budget is not None
        page = build_report(content, asked.page_budget)
    page.save(out, force=True)
    if page.content.stability is not None:
        results.say_stability(words, page.content.stability)
    pages.say_page(page, out, stage, show=asked.show, words=words)
    if asked.as_json:
        results.say_json("report", [out], {"data": None if ready is None else ready[0].name})


def stored_trust(run: "StoredRun", stored: Any) -> Any:
    """Trust as it was stored; None, so that it is computed again, for maps of few rows.

    Those of the first edition counted all other rows as neighbours.
    """
    from gnomon.scores.few_rows import TRUSTED, trusted

    counted_alike = run.tsne is None or trusted(len(run.tsne.embedding_)) == TRUSTED
    return stored.trust if counted_alike else None


def find_rows(
    data: str | None,
    record: Any,
    stored: Any,
    run: "StoredRun",
    words: RunLines,
    memory: "Budget | None",
) -> "tuple[Table, Prepared] | None":
    """The run's own rows, read and made ready as they were; None where they are not to be had."""
    from gnomon.data.refusals import OptionError
    from gnomon.errors import DataError, TooLargeError

    where = data or record.data()
    if where is None:
        words.say("Without", _why_without(record))
        return None
    options.check_source(where, "--data")
    try:
        table = _read(where, record, run, memory)
        prepared = run.preparation.apply(table)
        # Not by `transform`: the model of blocks has the columns' names, and would miss them here.
        stored.refuse_others(
            run.pca._model().scores(prepared.X, whiten=run.pca.whiten), table.name, ROUGHLY
        )
    except (DataError, OptionError) as error:
        if data is not None:  # the user named it
            raise
        words.say("Without", f"the data, which changed since: {error}")
        return None
    except TooLargeError:
        if data is not None or not _in_blocks(record):
            raise
        words.say("Without", _why_without(record))  # as it was in the run
        return None
    words.say("Read", table.title())
    return table, prepared


def _read(where: str, record: Any, run: "StoredRun", memory: "Budget | None") -> "Table":
    """The run's table, with its own columns where the rules of today would choose others."""
    from gnomon.data.read import read_source
    from gnomon.data.refusals import OptionError
    from gnomon.errors import DataError

    columns = run.preparation.columns
    try:
        table = read_source(where, memory=memory, **record.reading())
    except (DataError, OptionError):
        pass
    else:
        if table.columns == columns:
            return table
    return read_source(where, memory=memory, columns=list(columns), **record.names())


def _in_blocks(record: Any) -> bool:
    """Whether the run's table was read in blocks, as tables too large for memory are."""
    return "blocks" in record.of("table", {})


def _why_without(record: Any) -> str:
    if _in_blocks(record):
        return (
            f"the data: {record.name} was read in blocks, and pages of such tables are built from "
            "the model and the scores, in the run too"
        )
    return f"the data: {record.name} is not where it was; --data FILE adds it"


def _content(
    run: "StoredRun",
    record: Any,
    stored: Any,
    ready: "tuple[Table, Prepared] | None",
    stability: int | None,
    vary: str,
    found: dict[str, Any],
) -> Any:
    """What the page is made from: the data too, where there are any."""
    import numpy as np

    from gnomon.data.table import Table
    from gnomon.inputs.csr import is_sparse
    from gnomon.report.run_page import gather_run, gather_without_table

    if ready is not None and not is_sparse(ready[0].X):
        table, prepared = ready
        how = record.pictures() | found | {"stability": stability, "vary": vary}
        return gather_run(table, prepared, run.pca, run.tsne, **how)
    id_name, ids = stored.ids or (None, None)
    table = Table(
        record.name,
        np.empty((len(stored.scores), 0)),
        run.preparation.columns,
        labels=stored.labels,
        label_name=stored.label_name,
        ids=ids,
        id_name=id_name,
    )
    found |= {
        "preparation": tuple(run.preparation.lines()),
        "roles": record.roles(),
        "given_rows": stored.rows,
    }
    return gather_without_table(
        run.pca, run.tsne, stored.scores, table, stability=stability, vary=vary, **found
    )
