"""The page of a run: of a table read from a file, prepared, reduced and mapped."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gnomon.data.preparation import Prepared
from gnomon.data.table import Table
from gnomon.errors import ParameterError, refuse
from gnomon.inputs.csr import is_sparse
from gnomon.pca import PCA
from gnomon.procrustes.stability import Stability
from gnomon.procrustes.stability import stability as repeat_map
from gnomon.report.arguments import as_label
from gnomon.report.content import PageContent, gather
from gnomon.report.pictures import GivenPictures, PixelPictures
from gnomon.report.pixels import find_pixels, parse_pixels
from gnomon.report.python_lines import run_lines
from gnomon.scores.neighbor_labels import NeighborLabels
from gnomon.tsne import TSNE

__all__ = [
    "WITHOUT",
    "gather_result",
    "gather_run",
    "gather_scores",
    "gather_without_table",
    "read_label",
]

WITHOUT = (
    "The page was built without the table: the columns' own numbers and the rows with the largest "
    "reconstruction error are missing."
)
MOST_CLASSES = 50  # distinct integers that may be group names, as in `gnomon.data.guess`
SAMPLE_ROWS = 200_000  # rows; of more, a page with a sampled map shows only the sample
MOST_ROWS = 1_000_000  # rows; more cannot be viewed, nor held by a browser
FROM_FILE = 50_000, 50  # rows and scores that are read from a file that does not fit into memory
OF_ROWS = ("scores", "Y", "trust", "neighbors", "neighbor_labels")
SCORE = re.compile(r"pc\d+")  # name of a score in a file, besides ids and labels


def gather_run(
    table: Table,
    prepared: Prepared,
    pca: PCA,
    tsne: TSNE | None = None,
    *,
    title: str | None = None,
    stability: Any = None,
    vary: str = "rows",
    pixels: str | None = None,
    image_root: Path | None = None,
    n_jobs: int | None = None,
    **found: Any,
) -> PageContent:
    """Everything that a page of what was found in `table` is made from.

    Parameters
    ----------
    table : Table
        The table as read.
    prepared : Prepared
        Its rows as `pca` and `tsne` got them.
    title, stability, n_jobs
        As for `gnomon.report`.
    vary : {"rows", "start"}
        As for `gnomon.stability`.
    pixels : str, optional
        How the columns form a picture, such as "28x28" or "none"; recognised by default.
    image_root : path, optional
        Folder of pictures named by the table; by default its own folder.
    found : optional
        Other results: scores, Y, trust, neighbors, quality, notes, warnings, seconds,
        command, versions.
    """
    rows, notes = shown_rows(len(prepared.X), found.get("Y"))
    given = prepared.kept if rows is None else _of_table(prepared.kept, rows)
    if rows is not None:
        prepared = replace(prepared, X=prepared.X[rows], table=prepared.table.take(rows))
        found |= _some_rows(found, rows)
    used = prepared.table
    if rows is not None or (found.get("Y") is not None and found["Y"].shape[1] != 2):
        found.pop("replay", None)
    shown = find_shown(used, pixels=pixels, image_root=image_root)
    return gather(
        prepared.X,
        X=used.X,
        pca=pca,
        tsne=tsne,
        title=title or table.name,
        names=used.columns,
        ids=_ids(used),
        labels=labels_of(used),
        stability=_repeated(tsne, stability, len(prepared.X), n_jobs, vary),
        preparation=tuple(prepared.lines()),
        total=int(pca.n_samples_),  # the components of a run are of all rows
        made=date.today().isoformat(),
        n_jobs=n_jobs,
        source=table.name,
        roles=tuple(table.roles.final().lines()),
        notes=(*table.notes, *found.pop("notes", ()), *notes),
        given_rows=given,
        **shown,
        **found,
    )


def _of_table(kept: NDArray[np.int64] | None, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the caller's table, where `kept` says which are left and `rows` which of these."""
    return rows if kept is None else kept[rows]


def _some_rows(found: dict[str, Any], rows: NDArray[np.int64]) -> dict[str, Any]:
    """Results for some of the rows: also another program's map and its audit."""
    part = {
        name: values.take(rows) if isinstance(values, NeighborLabels) else values[rows]
        for name, values in found.items()
        if name in OF_ROWS and values is not None
    }
    if "space" in found:
        part["space"] = found["space"][0][rows], found["space"][1]
    if "tested" in found:
        part["tested"] = tuple((name, values[rows]) for name, values in found["tested"])
    return part


def gather_result(result: Any, **asked: Any) -> PageContent:
    """Everything that a page of a result is made from; `asked` is for `gather_run`.

    A page of many rows shows those that the map was computed from. For a table in blocks it is
    built from the model, the scores and the names of the rows.
    """
    notes: tuple[str, ...] = ()
    if result.sampling is not None:
        placed = "" if result.rows is None else result.rows.sentence()
        notes = (result.sampling.to_dict()["words"], *filter(None, [placed]))
    shown = result
    if result.interrupted or result.pca.n_samples_ > SAMPLE_ROWS:
        shown = result.of_the_map()  # with notes about the others
    found = {
        "python": run_lines(result.arguments, _runs(asked.get("stability"))),
        "Y": shown.positions,
        "trust": shown.trust,
        "quality": shown.quality,
        "neighbor_labels": shown.neighbor_labels,
        "score": shown.trust is not None,
        "warnings": shown.warnings,
        "seconds": shown.seconds,
        "notes": notes,
        **asked,
    }
    if not result.table.in_blocks and not is_sparse(result.table.X):
        return gather_run(
            shown.table,
            shown.prepared,
            shown.pca,
            shown.tsne,
            scores=shown.components,
            replay=shown.replay,
            **found,
        )
    table = replace(shown.prepared.table, notes=shown.table.notes)
    found["preparation"] = tuple(shown.prepared.lines())
    found["given_rows"] = shown.prepared.kept
    found.pop("pixels", None)  # which need the numbers
    if shown.components is not None:
        return gather_without_table(shown.pca, shown.tsne, shown.components, table, **found)
    if shown.scores is not None:  # they were written as they were computed
        return gather_scores(shown.pca, shown.scores, table, **found)
    raise ParameterError(
        "There are no components for a page: the table was read in blocks. Run it again "
        "with `scores='scores.parquet'`."
    )


def _repeated(
    tsne: TSNE | None, asked: Any, n: int, n_jobs: int | None, vary: str
) -> Stability | None:
    """Stability of a run's map of `n` rows, over `asked` maps of the table that its model keeps."""
    if asked is None or isinstance(asked, Stability):
        return asked
    search = None if tsne is None else tsne._search
    if tsne is None or search is None or search.Z.shape[0] != n:
        refuse("stability", "be None without a map of all rows", asked)
    again = clone(tsne).set_params(pca=None)  # the table is reduced already
    return repeat_map(again, search.table(), runs=asked, vary=vary, n_jobs=n_jobs)


def _runs(stability: int | Stability | None) -> int | None:
    """Number of repeated maps."""
    return len(stability.runs) if isinstance(stability, Stability) else stability


def find_shown(
    table: Table, *, pixels: str | None = None, image_root: Path | None = None
) -> dict[str, Any]:
    """Pictures, texts and links of the rows, for `gather`."""
    shown: dict[str, Any] = {}
    if pixels is None:
        shown["pixels"] = find_pixels(table.columns, table.X)
    else:
        shown["pixels"] = parse_pixels(pixels, len(table.columns))
    if table.image is not None:
        shown["pictures"] = GivenPictures(table.image[1].tolist(), image_root or table.folder)
    elif shown["pixels"] is not None:
        shown["pictures"] = PixelPictures(table.X, shown["pixels"])
    shown["texts"], shown["links"] = table.text, table.link
    return shown


def shown_rows(n: int, Y: NDArray[Any] | None) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Rows that a page shows, None for all, and notes about the others."""
    there = np.ones(n, bool) if Y is None else np.isfinite(Y).all(axis=1)
    rows, notes = np.flatnonzero(there).astype(np.int64), []
    if rows.size < n:
        notes.append(f"{n - rows.size:,} rows are not on the map: the run was interrupted.")
    if rows.size > MOST_ROWS:
        notes.append(f"The page shows {MOST_ROWS:,} of {rows.size:,} rows, drawn at random.")
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    return (None if rows.size == n else rows), tuple(notes)


def _ids(table: Table) -> tuple[str, NDArray[np.object_]] | None:
    """Names of the rows."""
    return None if table.ids is None else (str(table.id_name), table.ids)


def labels_of(table: Table) -> list[tuple[str, NDArray[Any]]]:
    """Label column, then the other columns to colour by."""
    labels = [] if table.labels is None else [(str(table.label_name), table.labels)]
    labels = [(name, read_label(values)) for name, values in labels]
    return [*labels, *((name, read_quantity(values)) for name, values in table.others)]


def read_label(texts: NDArray[Any]) -> NDArray[Any]:
    """Convert a label to numbers if it holds amounts, and no names of groups."""
    return texts if _are_classes(texts) else read_quantity(texts)


def _are_classes(texts: NDArray[Any]) -> bool:
    """Whether labels are few integers, each of several rows: group names, not amounts."""
    found = Counter(text for text in texts.tolist() if text is not None)
    whole = all(text.lstrip("-").isdigit() for text in found)
    return whole and len(found) <= MOST_CLASSES and min(found.values(), default=0) >= 2


def read_quantity(texts: NDArray[Any]) -> NDArray[Any]:
    """Convert labels to numbers if they are all numbers, and too many to be names."""
    try:
        numbers = np.array([np.nan if text is None else float(text) for text in texts.tolist()])
    except ValueError:
        return texts
    label = as_label(numbers, len(texts))
    return texts if label.dtype.kind == "O" else label


def gather_without_table(
    pca: PCA,
    tsne: TSNE | None,
    scores: NDArray[Any],
    table: Table,
    *,
    title: str | None = None,
    stability: int | Stability | None = None,
    vary: str = "rows",
    image_root: Path | None = None,
    n_jobs: int | None = None,
    **found: Any,
) -> PageContent:
    """Everything that is known of a run whose numbers are gone: what model and scores still tell.

    `table` holds names, colours and descriptions of the rows; its numbers are not used.
    Neighbours are those of the table that the map stores, if there is a map; otherwise those of
    the scores. From that table the map is also computed again, if its `stability` is requested.
    """
    rows, notes = shown_rows(len(scores), found.get("Y"))
    if rows is not None:
        scores = scores[rows]
        found["given_rows"] = _of_table(found.get("given_rows"), rows)
        found |= _some_rows(found, rows)
    nothing, at = np.empty((len(scores), 0)), np.arange(len(scores)) if rows is None else rows
    shown = table.with_rows(nothing, at)
    search = None if tsne is None else tsne._search
    if search is not None and len(search.Z) != len(scores):  # the map is of some of the rows
        search = None
    if shown.image is not None:
        found["pictures"] = GivenPictures(shown.image[1].tolist(), image_root or table.folder)
    found.setdefault("ids", _ids(shown))
    found.setdefault("roles", tuple(table.roles.final().lines()))
    return gather(
        None,
        pca=pca,
        tsne=tsne,
        scores=scores,
        names=table.columns,
        title=title or table.name,
        source=table.name,
        labels=labels_of(shown),
        texts=shown.text,
        links=shown.link,
        stability=_repeated(tsne, stability, len(scores), n_jobs, vary),
        space=None if search is None else (search.Z, "the table that the map was computed from"),
        notes=(WITHOUT, *table.notes, *found.pop("notes", ()), *notes),
        total=int(pca.n_samples_),
        made=date.today().isoformat(),
        n_jobs=n_jobs,
        **found,
    )


def gather_scores(
    pca: PCA, path: Path, table: Table, *, notes: Sequence[str] = (), **found: Any
) -> PageContent:
    """Everything that the page of a reduction in blocks is made from.

    Its scores are in the Parquet file `path` alone.

    The components are those of all rows; of many rows some are shown, drawn at random. `found` is
    for `gather_without_table`.
    """
    n, most = int(pca.n_samples_), FROM_FILE[0]
    rows = np.arange(n)
    if n > most:
        rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        notes = (*notes, f"The page shows {most:,} of {n:,} rows, drawn at random.")
        table = table.with_rows(np.empty((most, 0)), rows)
        found["given_rows"] = _of_table(found.get("given_rows"), rows)
    return gather_without_table(pca, None, _read_rows(path, rows), table, notes=notes, **found)


def _read_rows(path: Path, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Read some rows of a Parquet file of numbers, by ascending number; its first columns."""
    import pyarrow.parquet as pq

    with path.open("rb") as octets, pq.ParquetFile(octets) as file:
        names = [name for name in file.schema_arrow.names if SCORE.fullmatch(name)][: FROM_FILE[1]]
        parts, start = [], 0
        for batch in file.iter_batches(columns=names):
            first, last = np.searchsorted(rows, [start, start + batch.num_rows])
            mine = rows[first:last] - start
            parts.append(np.column_stack([column.to_numpy()[mine] for column in batch.columns]))
            start += batch.num_rows
    return np.concatenate(parts).astype(np.float64)
