"""A page of a run: of a table that was read from a file, made ready, reduced and mapped."""

from datetime import date
from typing import Any

import numpy as np

from gnomon.data.preparation import Prepared
from gnomon.data.table import Table
from gnomon.inputs import check_integer
from gnomon.pca import PCA
from gnomon.report.build import build
from gnomon.report.columns import as_label
from gnomon.report.content import gather
from gnomon.report.payload import PAGE_BUDGET
from gnomon.report.report import LEAST_BUDGET, Report, find_stability
from gnomon.tsne import TSNE

__all__ = ["report_run", "told_of_table"]


def report_run(
    table: Table,
    prepared: Prepared,
    pca: PCA,
    tsne: TSNE | None = None,
    *,
    title: str | None = None,
    stability: Any = None,
    page_budget: int = PAGE_BUDGET,
    n_jobs: int | None = None,
    **found: Any,
) -> Report:
    """The page of what was found in `table`.

    Parameters
    ----------
    table : Table
        As it was read.
    prepared : Prepared
        Its rows as `pca` and `tsne` got them.
    title, stability, page_budget, n_jobs
        As for `gnomon.report`.
    found : optional
        What else is known: scores, trust, neighbors, quality, warnings, seconds, command,
        versions.
    """
    budget = check_integer("page_budget", page_budget, LEAST_BUDGET)
    used = prepared.table
    content = gather(
        prepared.X,
        X=used.X,
        pca=pca,
        tsne=tsne,
        title=title or table.name,
        names=used.columns,
        ids=None if used.ids is None else (str(used.id_name), used.ids),
        labels=labels_of(used),
        stability=find_stability(stability, prepared.X, pca, tsne, n_jobs),
        preparation=tuple(prepared.preparation.lines()),
        made=date.today().isoformat(),
        n_jobs=n_jobs,
        **told_of_table(table),
        **found,
    )
    return Report(build(content, budget=budget), content)


def told_of_table(table: Table) -> dict[str, Any]:
    """What the page says about the file."""
    return {
        "source": table.name,
        "left_out": tuple((left.column, left.why) for left in table.left_out),
        "notes": table.notes,
    }


def labels_of(table: Table) -> list[tuple[str, Any]]:
    """The column that rows are coloured by; text that is all numbers is a quantity."""
    if table.labels is None:
        return []
    values = table.labels
    try:
        numbers = np.array([np.nan if v is None else float(v) for v in values.tolist()])
    except ValueError:
        numbers = None
    label = values if numbers is None else as_label(numbers, len(values))
    return [(str(table.label_name), values if label.dtype.kind == "O" else label)]
