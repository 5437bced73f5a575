"""Cards of results in a notebook: a table, a small picture, and the next steps.

A card is HTML without a script or style sheet, so that it also works in notebooks that are only
viewed, without a kernel.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from gnomon import charts
from gnomon.charts import Chart
from gnomon.charts.words import percent
from gnomon.pca import PCA
from gnomon.procrustes.compare import Comparison
from gnomon.report.compared.pair_content import CHANGED, KEPT
from gnomon.report.compared.pair_maps import is_map
from gnomon.tsne import TSNE

__all__ = ["Card", "comparison_card", "model_card", "result_card"]

MOST_POINTS = 1_500  # points of a small map
WIDTH = 420  # pixels

Lines = Sequence[tuple[str, str]]


@dataclass(frozen=True, eq=False)
class Card:
    """A title, a table of names and texts, a picture, and lines of code to go on."""

    title: str
    lines: Lines
    picture: Chart | None
    after: Sequence[str]

    def html(self) -> str:
        """The card as HTML."""
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self.lines
        )
        drawn = ""
        if self.picture is not None:
            drawn = f"<div style='max-width:{WIDTH}px'>{self.picture.svg}</div>"
        code = html.escape("\n".join(self.after))
        return (
            f"<div><p><strong>{html.escape(self.title)}</strong></p>"
            f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start'>{drawn}"
            f"<table>{rows}</table></div><p>Next</p>"
            f"<pre style='font-family:monospace'>{code}</pre></div>"
        )


def model_card(model: Any) -> Card | None:
    """The card of a fitted PCA or t-SNE, None where it is not fitted."""
    if isinstance(model, TSNE) and hasattr(model, "embedding_"):
        return _tsne_card(model)
    if not isinstance(model, PCA):
        return None
    try:
        check_is_fitted(model)
    except NotFittedError:
        return None
    return _pca_card(model)


def _pca_card(pca: PCA) -> Card:
    shares = np.nan_to_num(np.asarray(pca.explained_variance_ratio_, np.float64))
    k, d = int(pca.n_components_), int(pca.n_features_in_)
    lines = [
        ("rows and columns", f"{int(pca.n_samples_):,} × {d:,}"),
        ("components", f"{k:,}, which hold {percent(float(shares.sum()))} of the variance"),
        ("solver", str(pca.solver_)),
        ("accuracy", pca.certificate_.title()),
    ]
    picture = charts.scree(pca) if k else None
    after = (
        "Z = pca.transform(X)                       # scores",
        "gnomon.report(X, pca=pca).open()           # the whole page",
    )
    return Card(f"PCA of {d:,} columns", lines, picture, after)


def _tsne_card(tsne: TSNE) -> Card:
    n, dimensions = np.shape(tsne.embedding_)
    known = tsne.certificate_
    lines = [("rows", f"{n:,}"), ("accuracy", known.title()), *known.lines()]
    picture = None
    if dimensions <= 3 and np.isfinite(tsne.embedding_).all():
        picture = charts.scatter(tsne.embedding_, title="t-SNE", most_points=MOST_POINTS)
    after = (
        "tsne.transform(X_new)                      # new rows on the same map",
        "gnomon.report(X, tsne=tsne).open()         # how far to trust it",
    )
    return Card(f"t-SNE map of {n:,} rows", lines, picture, after)


def comparison_card(found: Comparison) -> Card:
    """What `compare` found, with both maps where the tables are maps."""
    X, Y = (np.asarray(Z) for Z in found.tables)
    picture = None
    if is_map(X) and is_map(Y):
        company = np.full(len(X), None, object)
        company[found.changes.changed] = CHANGED
        step = max(1, len(X) // MOST_POINTS)
        both = {"a": X[::step], "b": Y[::step]}
        picture = charts.maps(both, company[::step], unlabelled=KEPT, title="Both maps")
    after = (
        "found.changes.changed                      # rows that changed company",
        "found.report().open()                      # both maps on one page",
    )
    return Card(found.title(), found.lines(), picture, after)


def result_card(result: Any) -> Card:
    """What `gnomon.run` found, with its map, or its components where there is none."""
    lines = [("data", result.table.title()), *result.prepared.lines()]
    shares = np.nan_to_num(np.asarray(result.pca.explained_variance_ratio_, np.float64))
    lines.append(
        (
            "PCA",
            f"{int(result.pca.n_components_)} components hold "
            f"{percent(float(shares.sum()))} of the variance",
        )
    )
    if result.trust is not None:
        lines.append(("neighbours kept", percent(float(np.nanmean(result.trust)))))
    lines += [("warning", text) for text in result.warnings]
    Y, picture = result.positions, None
    if Y is not None:
        there = np.isfinite(Y).all(axis=1)
        labels = result.prepared.table.labels
        groups = None if labels is None else labels[there]
        picture = charts.scatter(Y[there], groups, title="t-SNE", most_points=MOST_POINTS)
    elif len(shares):
        picture = charts.scree(result.pca)
    after = (
        "view = gnomon.show(result)                 # the map; view.selection, view.selected",
        "gnomon.report(result).open()               # the whole page",
        "result.place(new)                          # new rows on the same map"
        if Y is not None
        else "result.components                          # scores of the rows",
    )
    return Card(f"Result for {result.table.name}", lines, picture, after)
