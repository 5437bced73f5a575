"""What `gnomon audit` looks at: a map by another program beside its table, or a run's own map."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.cli import options, pages
from gnomon.cli.asked import Asked
from gnomon.cli.pairs import (
    Pairing,
    chosen_columns,
    ids_asked,
    join_rows,
    only,
    refuse_unequal,
)
from gnomon.cli.results import say_read
from gnomon.cli.run_lines import RunLines
from gnomon.cli.stored import StoredRun, load_run
from gnomon.data.preparation import Prepared, prepare
from gnomon.data.read import read_source
from gnomon.data.refusals import OptionError, listed
from gnomon.data.table import Table, count
from gnomon.errors import ParameterError
from gnomon.pca import PCA
from gnomon.report.content import PageContent
from gnomon.report.given_map import audit_found
from gnomon.report.python_lines import audit_lines, audit_run_lines
from gnomon.report.report import Report, build_report
from gnomon.report.run_page import gather_run
from gnomon.scores import Audit
from gnomon.scores import audit as audit_map
from gnomon.tsne import TSNE

__all__ = ["Audited", "is_run", "read_given", "read_run"]

MOST_POSITIONS = 3
OURS = re.compile(
    r"trust|among|among_in_data|trustworthiness|placement|misplaced|unsupported"
)  # columns that an audit writes


@dataclass(frozen=True, eq=False)
class Audited:
    """A map and the rows that it is of.

    Attributes
    ----------
    name : str
        What the map is called.
    Y : array (n, 1 to 3)
    positions : tuple of str
        Names of the map's columns.
    table : Table
        As it was read.
    prepared : Prepared
        The rows that the map has, in its order, as the map was made from them.
    metric : str or None
    trust : array (n,) or None
        Trust of each row as the run stored it: another search for neighbours has another recall.
    tsne : TSNE or None
        The model of the map, where it is one of ours and was made of all rows.
    pca : PCA or None
    python : str or None
        Lines of Python that make the same page.
    """

    name: str
    Y: NDArray[Any]
    positions: tuple[str, ...]
    table: Table
    prepared: Prepared
    metric: str | None = None
    trust: NDArray[np.float64] | None = None
    tsne: TSNE | None = None
    pca: PCA | None = None
    python: str | None = None

    def audit(self, *, shuffles: int, **how: Any) -> Audit:
        """Test every row; against shuffled columns as well where the map can be made again."""
        Y = self.Y if self.tsne is None else self.tsne
        labels = self.prepared.table.labels
        return audit_map(
            self.prepared.X, Y, labels=labels, metric=self.metric, shuffles=shuffles, **how
        )

    def page(self, found: Audit, *, page_budget: int, n_jobs: int | None, **asked: Any) -> Report:
        """The page of the map, with what its audit found."""
        X, d = self.prepared.X, self.prepared.X.shape[1]
        if self.trust is not None:
            asked |= {"trust": self.trust}
        pca = self.pca or PCA(0.95, random_state=0, n_jobs=n_jobs).fit(X)
        if self.tsne is None:
            columns = "the one column" if d == 1 else f"all {d:,} columns"
            asked |= {"space": (X, columns), "metric": found.scores.metric}
        content = gather_run(
            self.table,
            self.prepared,
            pca,
            self.tsne,
            Y=self.Y,
            n_jobs=n_jobs,
            python=self.python,
            **audit_found(found, len(X)),
            **asked,
        )
        return build_report(content, page_budget)

    def columns(self, content: PageContent) -> dict[str, NDArray[Any]]:
        """Names, labels, positions and trust of the rows, for a table."""
        columns = self.prepared.table.names_of_rows()
        for name, values in zip(self.positions, self.Y.T, strict=True):
            taken = name in columns or OURS.fullmatch(name) is not None
            columns[f"{name} (map)" if taken else name] = values
        mixed = content.neighbor_labels
        return columns | {"trust": content.trust} | ({} if mixed is None else mixed.columns())

    def record(self, found: Audit) -> dict[str, Any]:
        """What was looked at and what was found, for JSON."""
        return {
            "map": {"name": self.name, "columns": list(self.positions)},
            "table": self.table.to_dict(),
            "preparation": self.prepared.preparation.to_dict(),
            "audit": found.to_dict(),
        }


def is_run(path: str) -> bool:
    """Whether `path` is a folder of `gnomon map`."""
    return (Path(path) / "model.gnomon").is_file()


def read_run(asked: Asked, words: RunLines) -> Audited:
    """The map of a former run, and its own rows made ready as they were."""
    from gnomon.cli.report import find_rows, stored_trust

    given = {**asked.reading, "id": asked.ids, "columns": asked.columns, "metric": asked.metric}
    for name, value in given.items():
        if value:
            raise ParameterError(f"--{name} is for maps by other programs; this run has its own.")
    path, folder = asked.map, Path(asked.map)
    run: StoredRun = load_run(folder)
    if run.tsne is None:
        raise ParameterError(f"'{path}' is of gnomon reduce and has no map to audit.")
    record = pages.read_record(folder)
    stored = pages.read_stored(folder, run)
    ready = find_rows(asked.table, record, stored, run, words, asked.memory)
    if ready is None:
        raise ParameterError(f"The data of '{path}' are not where they were. Use --data FILE.")
    table, prepared = ready
    assert stored.positions is not None
    there = np.flatnonzero(np.isfinite(stored.positions).all(axis=1))
    if there.size < len(stored.positions):
        prepared = prepared.take(there)
    Y = stored.positions[there]
    whole = len(run.tsne.embedding_) == len(Y)
    if not whole:
        words.say("Left out", "unsupported: the map was made of a part of the rows")
    names = tuple(f"tsne{j + 1}" for j in range(Y.shape[1]))
    call = record.call()
    if call is not None and asked.table is not None:
        call["source"] = asked.table
    python = None if call is None else audit_run_lines(call, _given(asked), whole=whole)
    return Audited(
        record.name,
        Y,
        names,
        table,
        prepared,
        None if whole else str(run.tsne.metric),
        None if (trust := stored_trust(run, stored)) is None else trust[there],
        run.tsne if whole else None,
        run.pca if whole else None,
        python,
    )


def read_given(asked: Asked, words: RunLines) -> Audited:
    """A map by another program, and the rows of its table in the map's order.

    `asked.map_key` is the key of a map in `obsm` of an AnnData file.
    """
    path, key, memory = asked.map, asked.map_key, asked.memory
    data = asked.table if key is None else asked.table or path
    if data is None:
        raise ParameterError(
            "A map is audited beside the table it was made from. Use --data FILE, or --map KEY "
            "for a map that an AnnData file holds in obsm, such as X_umap."
        )
    if path == data == "-":
        raise ParameterError("Only one table can come from standard input. Name a file for one.")
    for name, where in (("MAP", path), ("--data", data)):
        options.check_source(where, name)
    first, second = ids_asked(asked.ids, path, data)
    start = time.perf_counter()
    text = {name: asked.reading[name] for name in ("na", "decimal")}
    if key is not None:
        text["use_rep"] = key
    places = read_source(path, id=first, memory=memory, **text)
    (chosen,) = chosen_columns([places.name], [list(places.columns)], asked.columns)
    places = only(places, _positions(places, chosen), "no position")
    say_read(words, places, time.perf_counter() - start)
    start = time.perf_counter()
    table = read_source(data, memory=memory, **{**asked.reading, "id": second})
    say_read(words, table, time.perf_counter() - start)
    prepared = prepare(table, missing=asked.missing, scale=asked.scale)
    for name, said in prepared.lines():
        words.say(name.capitalize(), said)
    places_ready = prepare(places, missing="drop", scale="none")  # rows without a place are on none
    pair = _pair(places_ready, prepared, asked=bool(asked.ids))
    joined = pair.joined
    assert joined is not None  # both tables are held
    pair.say(words, len(joined.rows_left))
    python = None
    if "-" not in (path, data):
        given = {name: value for name, value in asked.reading.items() if value and name != "id"}
        how: dict[str, Any] = {"dimensions": None, "scale": asked.scale}
        how |= {"missing": asked.missing} if asked.missing != "error" else {}
        of_map = {name: value for name, value in text.items() if value}
        of_map |= {"features": list(places.columns), "dimensions": None, "scale": "none"}
        ids = [
            {} if table.id_name is None else {"id": table.id_name}
            for table in (pair.left, pair.right)
        ]
        whole = len(pair.left.X) == len(pair.right.X) == len(joined.rows_left)
        same = whole and np.array_equal(joined.rows_left, joined.rows_right)
        python = audit_lines(
            {"source": data} | given | ids[1] | how,
            {"source": path} | of_map | ids[0] | {"missing": "drop"},
            {"metric": asked.metric or "euclidean"} | _given(asked),
            joined=None if same else "numbers" if pair.by is None else "ids",
        )
    if not np.array_equal(joined.rows_right, np.arange(pair.right.n_rows)):
        prepared = prepared.take(joined.rows_right)
    return Audited(
        places.name,
        pair.left.X[joined.rows_left],
        places.columns,
        table,
        prepared,
        asked.metric,
        python=python,
    )


def _given(asked: Asked) -> dict[str, Any]:
    """Options of an audit that are not defaults, as `gnomon.audit` takes them."""
    given = {"sample": asked.sample, "random_state": asked.seed or None}
    return {name: value for name, value in given.items() if value is not None}


def _positions(table: Table, names: Sequence[str]) -> list[str]:
    if not 1 <= len(names) <= MOST_POSITIONS:
        raise OptionError(
            f"{table.name} has {count(len(names), 'column')} of numbers; a map has one to three.",
            f"Name its columns by --columns; it has {listed(list(names))}.",
        )
    return list(names)


def _pair(places: Prepared, data: Prepared, *, asked: bool) -> Pairing:
    """The rows of both, joined by ids where both have them, otherwise by their order."""
    left, right = (replace(each.table, X=each.X) for each in (places, data))
    by = left.id_name
    if left.id_name != right.id_name:
        by = f"{left.id_name} and {right.id_name}" if asked else None
    if by is None:
        refuse_unequal([left, right], [each.preparation.n_rows for each in (places, data)])
    return join_rows(left, right, [places.kept, data.kept], by)
