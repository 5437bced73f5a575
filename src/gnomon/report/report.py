"""`gnomon.report`: a page about the PCA and t-SNE of a table."""

import html
import os
import tempfile
import webbrowser
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gnomon.budget import check_free, readable_bytes
from gnomon.charts import words
from gnomon.errors import DataError, refuse
from gnomon.files import writing
from gnomon.inputs import as_table, check_integer, is_sparse
from gnomon.pca import PCA
from gnomon.procrustes import stability as repeat_map
from gnomon.procrustes.stability import Stability
from gnomon.report.arguments import given_ids, given_names, read_labels, read_texts
from gnomon.report.build import build
from gnomon.report.content import PageContent, gather
from gnomon.report.given_map import audit_found, judge_map
from gnomon.report.payload import PAGE_BUDGET
from gnomon.report.pictures import GivenPictures, PixelPictures, RowPictures
from gnomon.report.pixels import find_pixels, parse_pixels
from gnomon.scores import Audit
from gnomon.tsne import TSNE

__all__ = [
    "LEAST_BUDGET",
    "Report",
    "build_report",
    "find_stability",
    "gather_given",
    "report",
]

LEAST_BUDGET = 100_000  # bytes; the page without data takes more than that already
FRAME_HEIGHT = 900  # pixels, in a notebook


@dataclass(frozen=True, eq=False)
class Report:
    """A page: one HTML file that opens offline; notebooks display it.

    Attributes
    ----------
    html : str
        The whole page.
    content : PageContent or ComparedContent
        Contents of the page.
    """

    html: str = field(repr=False)
    content: Any = field(repr=False)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> Path:
        """Write the page to `path`, which must end in .html, and return it.

        The file is written atomically, and nothing is overwritten unless `force`.
        """
        target = Path(path)
        if target.suffix.lower() not in (".html", ".htm"):
            refuse("path", "end in .html", str(path))
        with writing(target, force=force) as part:
            part.write_text(self.html, encoding="utf-8", newline="\n")
        return target

    def open(self) -> Path:
        """Open the page in the browser, from a temporary file, and return its path."""
        path = self.save(Path(tempfile.mkdtemp(prefix="gnomon-")) / "report.html")
        webbrowser.open(path.as_uri())
        return path

    def __str__(self) -> str:
        size = readable_bytes(len(self.html.encode()))
        return f"{self.content.title}: a page of {self.content.about}, {size}"

    def _repr_html_(self) -> str:
        # In a sandboxed frame, so that neither the notebook nor the page can reach the other.
        page = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="{FRAME_HEIGHT}" frameborder="0"></iframe>'
        )


def report(
    X: Any,
    *,
    pca: PCA | None = None,
    tsne: TSNE | None = None,
    map: Any = None,
    metric: str | None = None,
    audit: Audit | None = None,
    labels: Any = None,
    ids: Any = None,
    names: Any = None,
    title: str | None = None,
    stability: int | Stability | None = None,
    text: Any = None,
    images: Any = None,
    links: Any = None,
    pixels: str | None = None,
    page_budget: int = PAGE_BUDGET,
    n_jobs: int | None = None,
) -> Report:
    """Build one offline page that shows the map, its meaning, and how far to trust it.

    Parameters
    ----------
    X : array, dataframe or sparse matrix, shape (n, d); or Result
        The rows that the models were fitted to. For a result of `gnomon.run` the page shows all
        that it holds; only `title`, `stability`, `pixels`, `page_budget` and `n_jobs` apply to it.
    pca : PCA, optional
        Fitted to `X`; by default one with 95 % of the variance.
    tsne : TSNE, optional
        Fitted to `X`, or to `pca.transform(X)`. Without it the page shows the PCA alone.
    map : array-like (n, 1), (n, 2) or (n, 3), optional
        A map of the same rows by another program, instead of `tsne`. It is scored in `X`:
        give the table that the map was computed from.
    metric : str, optional
        Metric of `X` for such a map: ``"euclidean"``, the default, or ``"cosine"``.
    audit : Audit, optional
        Result of `gnomon.audit` for the map; computed for a `map` that is given without it.
    labels : column, mapping of names to columns, or dataframe, optional
        Labels to colour by: text or numbers, one value per row.
    ids : column, optional
        Names of the rows; by default a dataframe's own index, or numbers from 0.
    names : sequence of str, optional
        Names of the columns; by default those of the dataframe or of the model.
    title : str, optional
    stability : int or Stability, optional
        Number of repeated maps, to see which points are stable, or the result of
        `gnomon.stability`.
    text : column, optional
        Text of each row: shown beside its point, and searched.
    images : column, optional
        A picture of each row: bytes of PNG, JPEG, WebP or GIF, or a path below the working folder;
        None for none. Decoding needs Pillow (``pip install 'gnomon[pictures]'``).
    links : column, optional
        URL of each row.
    pixels : str, optional
        How the columns of `X` form a picture, such as ``"28x28"``, ``"32x32x3"``, ``"28x28,F"``
        (down the columns first) or ``"none"``; recognised by default.
    page_budget : int
        Bytes that the page may take, by default 3 million; the page lists what is left out.
    n_jobs : int, optional
        Threads; they do not change the page.

    Returns
    -------
    Report
        With `save`, `open`, and a preview in notebooks.

    Examples
    --------
    >>> from gnomon import PCA, report, samples
    >>> wine = samples.load("wine")
    >>> pca = PCA(2, standardize=True).fit(wine.X)
    >>> page = report(wine.X, pca=pca, labels=wine.labels, names=wine.columns)
    >>> page.html.startswith("<!doctype html>")
    True
    """
    check_integer("page_budget", page_budget, LEAST_BUDGET)
    content = gather_given(
        X,
        pca=pca,
        tsne=tsne,
        map=map,
        metric=metric,
        audit=audit,
        labels=labels,
        ids=ids,
        names=names,
        title=title,
        stability=stability,
        text=text,
        images=images,
        links=links,
        pixels=pixels,
        n_jobs=n_jobs,
    )
    return build_report(content, page_budget)


def build_report(content: PageContent, page_budget: int = PAGE_BUDGET) -> Report:
    """Build the page of `content` in `page_budget` bytes."""
    budget = check_integer("page_budget", page_budget, LEAST_BUDGET)
    return Report(build(content, budget=budget), content)


def gather_given(
    X: Any,
    *,
    pca: PCA | None = None,
    tsne: TSNE | None = None,
    map: Any = None,
    metric: str | None = None,
    audit: Audit | None = None,
    labels: Any = None,
    ids: Any = None,
    names: Any = None,
    title: str | None = None,
    stability: int | Stability | None = None,
    text: Any = None,
    images: Any = None,
    links: Any = None,
    pixels: str | None = None,
    n_jobs: int | None = None,
) -> PageContent:
    """Everything that the page of `X` is made from; parameters as for `report`."""
    if hasattr(X, "prepared"):
        own = {
            "pca": pca,
            "tsne": tsne,
            "map": map,
            "metric": metric,
            "audit": audit,
            "labels": labels,
            "ids": ids,
            "names": names,
            "text": text,
            "images": images,
            "links": links,
        }
        for name, value in own.items():
            if value is not None:
                refuse(name, "be None for a result, which has its own", type(value).__name__)
        from gnomon.report.run_page import gather_result

        return gather_result(X, title=title, stability=stability, pixels=pixels, n_jobs=n_jobs)
    if map is not None and tsne is not None:
        refuse("map", "be None if `tsne` is given", "both", "A page shows one map.")
    table = _table(X)
    if pca is None:
        pca = PCA(0.95, random_state=0, n_jobs=n_jobs).fit(table)
    check_is_fitted(pca)
    n, d = table.shape
    if pca.n_features_in_ != d:
        raise DataError(f"X has {d} columns; `pca` was fitted to {pca.n_features_in_}.")
    if tsne is not None:
        check_is_fitted(tsne, "embedding_")
        if len(tsne.embedding_) != n:
            raise DataError(
                f"X has {n} rows; the map has {len(tsne.embedding_)}. Give the rows that `tsne` "
                "was fitted to."
            )
    table = _without_gaps(table, pca)
    what = "PCA" if tsne is None and map is None else "Map"
    called = given_names(names, X, pca)
    shape = find_pixels(called, table) if pixels is None else parse_pixels(pixels, d)
    pictures: RowPictures | None = None
    if images is not None:
        given = read_texts("images", images, n, missing=None)
        pictures = GivenPictures(given[1].tolist(), Path.cwd())
    elif shape is not None:
        pictures = PixelPictures(table, shape)
    return gather(
        table,
        pca=pca,
        names=called,
        pixels=shape,
        pictures=pictures,
        texts=None if text is None else read_texts("text", text, n),
        links=None if links is None else read_texts("links", links, n),
        tsne=tsne,
        title=title or f"{what} of {words.count(n, 'row')}",
        ids=given_ids(ids, X, n),
        labels=read_labels(labels, n),
        stability=find_stability(stability, table, pca, tsne, n_jobs),
        made=date.today().isoformat(),
        n_jobs=n_jobs,
        **(audit_found(audit, n) if map is None else judge_map(map, table, metric, audit, n_jobs)),
    )


def _table(X: Any) -> NDArray[Any]:
    table = as_table(X)
    if not is_sparse(table):
        return np.asarray(table)
    needed = table.shape[0] * table.shape[1] * table.dtype.itemsize
    way_out = "Give fewer columns, or the scores of a PCA."
    check_free("A page of the whole table, as a dense one,", 2 * needed, way_out)
    return np.asarray(table.toarray())


def _without_gaps(table: NDArray[Any], pca: PCA) -> NDArray[Any]:
    """Fill in the table if the model was fitted to do so; `transform` refuses other gaps."""
    if getattr(pca, "missing_", None) is None or np.isfinite(table).all():
        return table
    return np.asarray(pca._model().filled(table))


def find_stability(
    asked: int | Stability | None,
    table: NDArray[Any],
    pca: PCA,
    tsne: TSNE | None,
    n_jobs: int | None,
    vary: str = "rows",
) -> Stability | None:
    """Return a given stability, or compute that of the map of `table` over `asked` runs."""
    if asked is None or isinstance(asked, Stability):
        return asked
    if tsne is None:
        refuse("stability", "be None without a map", asked, "Give `tsne` as well.")
    given = table
    if tsne.n_features_in_ != table.shape[1]:
        given = pca._model().scores(table, whiten=pca.whiten, n_jobs=n_jobs)
    return repeat_map(tsne, given, runs=asked, vary=vary, n_jobs=n_jobs)
