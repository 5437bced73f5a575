"""What commands say of the pipeline's stages, and what they write."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.failures import CommandWording
from gnomon.cli.run_lines import Bar, RunLines
from gnomon.errors import worded
from gnomon.events import Event, Finished, On

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gnomon.cli.asked import Asked
    from gnomon.data.preparation import Prepared
    from gnomon.data.table import Table
    from gnomon.engine import Block, Engine
    from gnomon.pipeline.flow import Result
    from gnomon.procrustes.stability import Stability
    from gnomon.scores.neighbor_labels import NeighborLabels
    from gnomon.tsne.sampled import Placed

__all__ = [
    "compute_rows",
    "json_content",
    "put",
    "record",
    "reporter",
    "say_among",
    "say_json",
    "say_placed",
    "say_prepared",
    "say_read",
    "say_stability",
    "say_versions",
    "say_warnings",
    "say_wrote",
    "to_stdout",
    "versions",
    "warnings_of",
    "write_record",
    "write_table_or_stdout",
    "write_together",
]

ENOUGH = 0.95  # of the variance
MUCH = 0.2  # share of neighbours kept by chance that is said beside the map's
NAMED = 8  # rows among another group that are named


def reporter(
    words: RunLines, bar: Bar | None = None, *, mapping: bool = True, recorded: bool = True
) -> On:
    """A callback that writes a line for each stage that ends, and shows the others on a bar.

    A map of principal components has no line about the PCA of these. `recorded` says whether the
    run will write run.json, which lists rows that were dropped.
    """
    from gnomon.data.names import are_components

    components = ""

    def on(event: Event) -> None:
        nonlocal components
        if isinstance(event.detail, Finished):
            if event.stage == "read" and mapping:
                columns = event.detail.result.columns
                components = f"{len(columns)} principal components, taken from the file"
                components = components if are_components(columns) else ""
            if event.stage == "pca" and components:
                words.say("PCA", components)
            elif event.stage == "prepare":
                say_prepared(words, event.detail.result, event.detail.seconds, recorded=recorded)
            else:
                _say(words, event.stage, event.detail.seconds, event.detail.result)
        elif bar is not None:
            bar(event)

    return on


def say_read(
    words: RunLines, table: "Table", seconds: float | None = None, *, few: bool = False
) -> None:
    """What was read, used and left out; `few` says so where the rows are too few to conclude from.

    That is not for rows that are placed, or compared with others.
    """
    from gnomon.scores.few_rows import FEW_ROWS

    title = table.title()
    if few and table.n_rows < FEW_ROWS:
        title += ": too few rows to tell structure from chance"
    words.say("Read", title, seconds)
    for name, text in table.words(command=True):
        words.say(name.capitalize(), text)


def say_prepared(words: RunLines, prepared: "Prepared", seconds: float, *, recorded: bool) -> None:
    """What was done about missing values, and to the scale."""
    *first, (name, text) = prepared.lines()
    for before, said in first:
        more = before == "missing" and prepared.dropped is not None and prepared.dropped.more
        words.say(
            before.capitalize(), f"{said} (run.json lists them)" if more and recorded else said
        )
    words.say(name.capitalize(), text, seconds)


def _say(words: RunLines, stage: str, seconds: float, what: Any) -> None:
    """One line or more for a stage that has ended."""
    if stage == "read":
        say_read(words, what, seconds, few=True)
    elif stage == "sample":
        words.say("Sample", f"{what.title()}: {what.why}")
    elif stage == "pca":
        words.say("PCA", _pca_words(what), seconds)
        words.details("Plan", [("solver", what.solver_), *what.plan_.lines()])
        words.say("Exact", what.certificate_.title())
        words.details("", what.certificate_.lines())
    elif stage == "tsne":
        from gnomon.charts.words import stopped

        c = what.certificate_
        cut = f" ({why})" if (why := stopped(c.stop_reason)) else ""
        text = f"perplexity {what.perplexity:.3g}, {c.n_iter} iterations{cut}"
        text += f", KL {c.kl_divergence:.3g}"
        words.say("t-SNE", text, seconds)
        words.details("", [*c.lines(), *((stage, f"{s:.1f} s") for stage, s in _took(what))])
    elif stage == "trust":
        from gnomon.scores.few_rows import FEW_ROWS
        from gnomon.scores.map_verdict import verdict

        kept, scores = what
        far = scores.distances.value
        said = f"neighbours kept {kept.mean():.2f}{_chance_words(len(kept))}"
        if len(kept) >= FEW_ROWS:
            said += f" · {_far_words(far)}"
        words.say("Trust", said, seconds)
        if judged := verdict(scores):
            words.say("", judged.rstrip("."))
    elif stage == "place" and what.placed.any():
        say_placed(words, what, seconds)
    elif stage == "scores":
        words.say("Scores", "written as they were computed", seconds)


def _took(tsne: Any) -> list[tuple[str, float]]:
    return [(name, seconds) for name, seconds in tsne.timings_.items() if seconds >= 0.05]


def say_versions(words: RunLines) -> None:
    """Versions of the software, with --verbose."""
    if words.verbose:
        words.say("Versions", ", ".join(f"{name} {text}" for name, text in versions().items()))


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers come from."""
    import importlib.metadata
    import platform

    packages = ("gnomon", "numpy", "scipy", "numba", "pyarrow")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"python": platform.python_version(), **found}


def _pca_words(pca: Any) -> str:
    """How much the components hold, and how many hold 95 % where they do not."""
    from gnomon.charts.fitted import components_needed, known_shares
    from gnomon.charts.words import hold

    kept, share = int(pca.n_components_), float(pca.explained_variance_ratio_.sum())
    known = min(pca.n_samples_ - 1, pca.n_features_in_)  # rows about their mean have no more
    kept = min(kept, known)
    said = f"{kept} of {known} components {hold(kept)} {100 * share:.1f} % of the variance"
    needed = components_needed(known_shares(pca), ENOUGH) if share < ENOUGH else None
    return said if needed is None else f"{said}; {100 * ENOUGH:.0f} % needs {needed}"


def _chance_words(n: int) -> str:
    """Share of neighbours that a random map of `n` rows keeps, where that is much."""
    from gnomon.scores.few_rows import trusted

    chance = trusted(n) / (n - 1)
    return f" (by chance {chance:.2f})" if chance >= MUCH else ""


def _far_words(correlation: float) -> str:
    """How far distances on the map are correlated; nothing where they do not differ at all."""
    if correlation != correlation:
        return "far distances do not differ"
    return f"far distances {correlation:.2f}"


def say_placed(words: RunLines, placed: Any, seconds: float) -> None:
    """How many rows were placed, and how many of them are like none of the map's."""
    words.say("Placed", placed.title().replace(" placed", "", 1), seconds)


def say_stability(words: RunLines, found: "Stability") -> None:
    """Whether the map came out the same again."""
    words.say("Repeated", found.verdict().rstrip("."))
    words.say("", found.title())
    words.details("", found.lines())


def say_among(words: RunLines, found: "NeighborLabels | None", prepared: "Prepared") -> None:
    """How many rows lie among another group on the map, and which; nothing without groups."""
    import numpy as np

    from gnomon.scores.neighbor_labels import UNGROUPED

    if found is None or not (rows := found.on_map).size:
        return
    there = found.only_on_map[rows]
    many, alone = rows.size, int(there.sum())
    table = prepared.table
    group = table.label_name
    lie = "row lies" if many == 1 else "rows lie"
    if found.many:
        words.say("Among", f"{many:,} {lie} among another {group} than their own: {UNGROUPED}")
        return
    where = f"{alone:,} only on the map, {many - alone:,} in the data, too"
    words.say("Among", f"{many:,} {lie} among another {group} than their own: {where}")
    # Those that the map alone puts there come first.
    first = np.concatenate([rows[there], rows[~there]])[:NAMED]
    if table.ids is not None:
        names = [str(table.ids[row]) for row in first]
    else:  # numbers of the table that was given
        names = [str(row) for row in (first if prepared.kept is None else prepared.kept[first])]
    named = ", ".join(names) + (", …" if many > NAMED else "")
    kind = "rows" if table.ids is None else str(table.id_name)
    words.say("", f"{kind} {named}: columns among and among_in_data of map.parquet")


def say_wrote(words: RunLines, files: list[Path], seconds: float) -> None:
    """The files of a folder, which is named once."""
    words.say("Wrote", f"{files[0].parent}/: {', '.join(file.name for file in files)}", seconds)


def put(columns: dict[str, Any], name: str, values: Any) -> None:
    """Add columns ``name1…``, one for each column of `values`."""
    for j, axis in enumerate(values.T):
        columns[f"{name}{j + 1}"] = axis


def record(result: "Result", settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, versions, timings, warnings and certificates."""
    pca, tsne = result.pca, result.tsne
    found: dict[str, Any] = {
        "settings": settings,
        "table": result.table.to_dict(),
        "preparation": result.preparation.to_dict() | _dropped(result),
        "pca": {
            "n_components": pca.n_components_,
            "explained_variance_ratio": pca.explained_variance_ratio_.tolist(),
            "plan": pca.plan_.to_dict(),
            "certificate": pca.certificate_.to_dict(),
        },
    }
    if tsne is not None:
        found["tsne"] = {"certificate": tsne.certificate_.to_dict(), "seconds": tsne.timings_}
        found["trust"] = None if result.quality is None else result.quality.to_dict()
        found["sampling"] = None if result.sampling is None else result.sampling.to_dict()
        if result.rows is not None:
            found["sampling"] |= _unusual(result.rows)
    return found | {
        "seconds": dict(result.seconds),  # to which those of the files will be added
        "warnings": list(warnings_of(result)),
        "versions": versions(),
    }


def _dropped(result: "Result") -> dict[str, Any]:
    """Numbers of the rows that were dropped, from 0, and their IDs if rows have IDs."""
    dropped, ids = result.prepared.dropped, result.table.ids
    if dropped is None:
        return {}
    named = {} if ids is None else {"dropped_ids": ids[dropped.rows].tolist()}
    return {"dropped_rows": dropped.rows.tolist(), **named}


def _unusual(rows: "Placed") -> dict[str, Any]:
    """How many of the rows that were placed on the map of others are unusual, and why."""
    from gnomon.tsne.novelty import count_reasons

    return {
        "unusual": int(rows.unusual.sum()),
        "why": count_reasons(rows.reason),
        "placed_words": rows.sentence(),
    }


def write_together(
    out: Path,
    table: str,
    columns: dict[str, Any],
    result: "Result",
    found: dict[str, Any],
) -> None:
    """The results' table, the model, the record of the run and the scree chart, in folder `out`.

    Without `columns` the table was written block by block already.
    """
    from gnomon import charts
    from gnomon.data.write import write_table
    from gnomon.models.file import RUN_FILE

    if columns:
        write_table(out / table, list(columns), list(columns.values()))
    result.save(out / RUN_FILE)
    write_record(out, found)
    charts.scree(result.pca).save(out / "scree.svg")


def write_record(out: Path, found: dict[str, Any]) -> None:
    """The record of the run, in folder `out`."""
    from gnomon.data.write import write_json

    write_json(out / "run.json", found, force=True)


def compute_rows(
    table: "Table",
    make: "Callable[[Block], NDArray[Any]]",
    names: Sequence[str],
    beside: dict[str, Any],
    asked: "Asked",
    engine: "Engine",
) -> dict[str, Any]:
    """Columns `beside`, then columns `names` that `make` computes from blocks of rows.

    Those of a table in blocks are written to a file as they are computed; nothing is returned.
    """
    import numpy as np

    from gnomon.engine.arrays import ArraySource
    from gnomon.engine.sink import writing_blocks
    from gnomon.numeric.view import naming_rows

    if not table.in_blocks:
        rows = np.concatenate(engine.map(make, ArraySource(table.X, checked=False)))
        return beside | dict(zip(names, rows.T, strict=True))
    assert asked.out is not None
    numbers_only = asked.out.suffix.lower() == ".npy"
    with (
        naming_rows(table.X, engine),
        writing_blocks(
            asked.out,
            table.n_rows,
            names,
            force=asked.force,
            beside={} if numbers_only else beside,
        ) as add,
    ):
        engine.write(make, table.X, add)
    return {}


def write_table_or_stdout(
    out: Path | None, columns: dict[str, Any], *, force: bool, words: RunLines
) -> None:
    """Named columns as a file, or as CSV on standard output; ``.npy`` gets the numbers only.

    Without `columns` the table was written block by block already.
    """
    from gnomon.data.write import csv_text, write_table

    if out is None:
        to_stdout(csv_text(list(columns), list(columns.values())))
        return
    if out.suffix.lower() == ".npy":
        text = [name for name, values in columns.items() if values.dtype.kind not in "biuf"]
        columns = {name: values for name, values in columns.items() if name not in text}
        if text:
            words.say("Left out", f"{', '.join(text)} (text; .npy holds numbers only)")
    if columns:
        write_table(out, list(columns), list(columns.values()), force=force)
    words.say("Wrote", str(out))


def say_warnings(words: RunLines, result: "Result") -> None:
    """What the reader of the results should know."""
    for text in warnings_of(result):
        words.say("Warning", text)


def warnings_of(result: "Result") -> tuple[str, ...]:
    """What the reader of the results should know, in the words of the command line."""
    return tuple(worded(warning, CommandWording()) for warning in result.warned)


def say_json(command: str, files: list[Path], found: dict[str, Any]) -> None:
    """What was done and found, as the one JSON object on standard output."""
    from gnomon.data.write import json_text

    to_stdout(json_text(json_content(command, files, found)).encode())


def json_content(command: str, files: list[Path], found: dict[str, Any]) -> dict[str, Any]:
    """What was done and found, ready for JSON."""
    return {"command": command, "files": [str(file) for file in files], **found}


def to_stdout(content: bytes) -> None:
    """Write to standard output; end quietly if its reader has closed it."""
    from gnomon.errors import WriteError

    if sys.stdout is None:
        raise WriteError("Standard output is closed. Write to a file with -o.")
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's last flush
        raise WriteError(
            f"Standard output could not be written ({error.strerror}). Write to a file with -o."
        ) from None
