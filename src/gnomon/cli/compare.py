"""`gnomon compare`: how alike two maps or embeddings are."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from gnomon.cli import options
from gnomon.cli.asked import Asked, as_one
from gnomon.cli.compare_page import (
    build_compared_page,
    compared_tables,
    page_path,
    write_compared_page,
)
from gnomon.cli.compared_rows import all_rows, changed_ids, changed_rows, refuse_blocks
from gnomon.cli.gate import ConditionType, judge, refuse_failed, verdict_of
from gnomon.cli.run_lines import RunLines

if TYPE_CHECKING:
    from gnomon.cli.pairs import Pairing
    from gnomon.procrustes.compare import Comparison
    from gnomon.procrustes.permute import PermutationTest

HELP = """Compare two maps or embeddings: how alike they are, which rows moved, with a p-value.

\b
gnomon compare a.csv b.csv --id name
gnomon compare a.csv b.csv --id name --json > alike.json
gnomon compare a.npz b.npz --metric cosine     embeddings
gnomon compare a_map b_map --page              both maps on one page
gnomon compare a_map b_map --columns 'pc*'     components, not maps
gnomon compare a/ b/ --id cell                 folders of files
gnomon compare a.csv b.csv --fail-if 'neighbours < 0.8'    exit code 5

A and B may differ in their number of columns; rotation, shift and scale count as no difference.
Tables are CSV, TSV, Parquet, Feather, .npy or .npz; of a map.parquet by gnomon map, the map is
used. A folder written by gnomon map or gnomon reduce, or its model, stands for its table.
A folder of files is one table. Tables too large for memory are read in blocks; --id is then a
column of numbers that ascends, and neighbours and shuffles are those of 10,000 rows drawn at
random.
"""


@click.command("compare", help=HELP)
@options.source("a")
@options.source("b")
@options.pairing
@options.of_result(
    "-o",
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File for the numbers: .json, or one row as .csv, .tsv, .parquet, .feather or .npy; or "
    "for the page: .html.",
)
@options.of_result(
    "--fail-if",
    "conditions",
    metavar="CONDITION",
    multiple=True,
    type=ConditionType(),
    help="End with exit code 5 if this holds: a figure (neighbours, changed, disparity, "
    "correlation, angular_distance, rmsd, rv, cka, p, rows, only_a, only_b), then <, <=, > or >=, "
    "then a number or a percentage. May be given again.",
)
@options.of_result(
    "--rows",
    "rows_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File for all rows, as .csv, .tsv, .parquet or .feather: whether each changed company, "
    "and which neighbours it lost and gained.",
)
@options.of_page(
    "--page",
    is_flag=True,
    help="Write a page with both maps, what changed and how alike they are (default: "
    "A_and_B.html; with -o, its name with .html).",
)
@options.of_page(
    "--names",
    nargs=2,
    metavar="A B",
    help="Names of A and B on the page (default: those of the files).",
)
@options.of_page(
    "--reruns",
    type=click.IntRange(0, 50),
    default=0,
    metavar="N",
    help="Make the map of A, a folder of gnomon map, N more times with other seeds, to show what "
    "chance alone changes.",
)
@options.compared_page
@options.of_method(
    "--metric",
    type=click.Choice(["euclidean", "cosine"]),
    help="Distance between rows: cosine, for embeddings, divides them by their lengths first, for "
    "all figures (default: euclidean).",
)
@options.of_method(
    "--neighbors",
    type=click.IntRange(1),
    metavar="N",
    default=10,
    show_default=True,
    help="Number of nearest rows whose agreement is counted.",
)
@options.of_method(
    "--permutations",
    type=click.IntRange(1),
    metavar="N",
    default=999,
    show_default=True,
    help="Number of shuffles for the p-value.",
)
@options.computing
@options.distributing
@options.writing
@as_one
def command(asked: Asked) -> None:
    """Read, join, compare, say."""
    out, force = asked.out, asked.force
    options.new_file(out, force=force, also=(".json", ".html"))
    options.new_file(asked.rows_file, force=force, option="--rows")
    from gnomon.cli.pairs import open_pairing
    from gnomon.cli.results import say_json, say_versions, write_table_or_stdout
    from gnomon.cli.workers import watched_engine

    asked, words = asked.beside_workers(), asked.words
    with words.warnings() as warned, compared_tables(asked.a, asked.b) as subjects:
        path = page_path(out, subjects, page=asked.page)
        if asked.reruns and path is None:
            raise click.UsageError("--reruns is for the page: add --page.")
        if path is not None:
            options.new_file(path, force=force, endings=(".html", ".htm"))
        tables = subjects[0].table, subjects[1].table
        pair = open_pairing(*tables, asked, words, row_names=path is not None)
        if asked.rows_file is not None:
            refuse_blocks(pair)
        with watched_engine(asked, words) as engine:
            found, test = _compare(pair, asked, engine)
        pair.say(words, found.n)
        _say_metric(words, found, asked)
        _say(words, pair, found, test)
        numbers = _numbers(pair, found, test, asked.seed)
        verdicts = judge(asked.conditions, numbers)
        rows = None if asked.rows_file is None else all_rows(pair, found)
        html = None
        if path is not None:
            verdict = verdict_of(asked.conditions, verdicts)
            html = build_compared_page(subjects, asked, found, test, pair, verdict, words)
    say_versions(words)
    numbers["conditions"] = verdicts
    numbers["failed"] = [each for each in verdicts if each["holds"]]
    numbers |= changed_rows(pair, found) | pair.lists("a", "b") | {"warnings": warned}
    numbers_file = None if out == path else out
    files = [file for file in (numbers_file, asked.rows_file, path) if file is not None]
    _write(numbers_file, files, numbers, force=force, words=words)
    if rows is not None:
        write_table_or_stdout(asked.rows_file, rows, force=force, words=words)
    if path is not None and html is not None:
        write_compared_page(path, html, force=force, show=asked.show, words=words)
    if asked.as_json:
        say_json("compare", files, numbers)
    refuse_failed(asked.conditions, verdicts, words)


def _compare(pair: "Pairing", asked: Asked, engine: Any) -> tuple["Comparison", "PermutationTest"]:
    """How alike they are, and how alike shuffled rows would be."""
    import numpy as np

    from gnomon.data.refusals import FileError
    from gnomon.procrustes.compare import compare
    from gnomon.procrustes.permute import permutation_test

    left, right = pair.shared()
    for table, X in (pair.left, left), (pair.right, right):
        if not table.in_blocks and not np.ptp(X, axis=0).any():
            raise FileError(f"{table.name}: all shared rows are the same point: no shape.")
    metric = asked.metric or "euclidean"
    if metric == "cosine" and pair.joined is not None:
        _refuse_no_direction(pair)
    how: dict[str, Any] = {"id": pair.id, "engine": engine, "n_jobs": asked.threads}
    how["metric"] = metric
    found = compare(left, right, n_neighbors=asked.neighbors, **how)
    test = permutation_test(left, right, asked.permutations, random_state=asked.seed, **how)
    return found, test


def _refuse_no_direction(pair: "Pairing") -> None:
    """Refuse tables in memory with a row of zeros, which has no direction."""
    import numpy as np

    from gnomon.data.refusals import FileError, quoted

    assert pair.joined is not None
    both = pair.joined
    for table, rows in ((pair.left, both.rows_left), (pair.right, both.rows_right)):
        zero = np.flatnonzero(~table.X[rows].any(axis=1))
        if zero.size:
            name = quoted(both.ids_left[both.rows_left[zero[0]]])
            raise FileError(
                f"{table.name}: row {name} is all 0 and has no direction, which cosine needs.",
                "Remove it, or leave --metric cosine out.",
            )


def _say_metric(words: RunLines, found: "Comparison", asked: Asked) -> None:
    """The distance that was used, and whether another one was meant."""
    from gnomon.procrustes.unit_rows import lengths_matter

    words.say("Distance", dict(found.lines())["metric"])
    why = None if asked.metric is not None else lengths_matter(*found.tables)
    if why is not None:
        words.say("Note", f"{why}; for embeddings, --metric cosine leaves lengths out")


def _say(words: RunLines, pair: "Pairing", found: "Comparison", test: "PermutationTest") -> None:
    from gnomon.data.refusals import listed

    said = dict(found.lines())
    words.say(
        "Alike",
        f"Procrustes correlation {found.correlation:.4f} (1: same shape); "
        f"disparity {found.disparity:.3g}, rmsd {found.rmsd:.4g}",
    )
    words.say("RV", said["RV, linear CKA"].removesuffix("; unbiased nan"))
    words.say("Near", said["neighbours"])
    limit = f"{100 * found.changes.limit:.3g} % of all rows lie"
    between = f"more than {limit} between them and their former neighbours"
    first = listed(changed) if (changed := changed_ids(pair, found)) else ""
    words.say("Changed", f"{found.changes.title()} ({between}){first and ': '}{first}")
    counts, chance = (text for _, text in test.lines())
    some = f", of {test.rows:,} rows" if test.rows < found.n else ""
    words.say("p-value", f"{test.p_value:.3g}: {counts}{some} as alike; by chance {chance}")


def _numbers(
    pair: "Pairing", found: "Comparison", test: "PermutationTest", seed: int
) -> dict[str, Any]:
    """What was compared and what was found, for JSON."""
    return {
        **pair.numbers(found.n, "a", "b"),
        **found.to_dict(),
        "p_value": test.p_value,
        "rv_p_value": test.rv_p_value,
        "cka_p_value": test.cka_p_value,
        "n_permutations": test.n_permutations,
        "as_large": test.as_large,
        "shuffled_rows": test.rows,
        "seed": seed,
        "n_changed": len(found.changes.changed),
    }


def _write(
    out: Path | None, files: list[Path], numbers: dict[str, Any], *, force: bool, words: RunLines
) -> None:
    """What --json prints, or one row of its numbers, without lists."""
    if out is None:
        return
    import numpy as np

    from gnomon.cli.results import json_content, write_table_or_stdout
    from gnomon.data.write import write_json

    if out.suffix.lower() == ".json":
        write_json(out, json_content("compare", files, numbers), force=force)
        words.say("Wrote", str(out))
        return
    single = {name: v for name, v in numbers.items() if not isinstance(v, list)}
    single["failed"] = len(numbers["failed"])
    row = {name: np.array([v]) for name, v in single.items() if v is not None}
    write_table_or_stdout(out, row, force=force, words=words)
