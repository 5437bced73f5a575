"""A map computed by another program, checked and audited for a page."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.errors import DataError, refuse
from gnomon.inputs import as_table
from gnomon.report.sections.misplaced import tested_columns
from gnomon.scores import Audit
from gnomon.scores import audit as audit_map

__all__ = ["audit_found", "judge_map"]


def judge_map(
    map: Any,
    table: NDArray[Any],
    metric: str | None,
    audit: Audit | None,
    n_jobs: int | None,
) -> dict[str, Any]:
    """Check positions, and return them with their space and audit as arguments of `gather`."""
    if hasattr(map, "embedding_"):
        refuse(
            "map",
            "be the positions of the rows",
            f"a {type(map).__name__}",
            "Give a TSNE of Gnomon as `tsne`; give the `embedding_` of other programs.",
            kind=True,
        )
    n, d = table.shape
    Y = np.asarray(as_table(map), np.float64)
    if not 1 <= Y.shape[1] <= 3:
        refuse("map", "have 1, 2 or 3 columns", Y.shape[1])
    if len(Y) != n:
        raise DataError(f"X has {n} rows; the map has {len(Y)}. Give the rows of the map.")
    metric = metric or "euclidean"
    found = audit_map(table, Y, metric=metric, n_jobs=n_jobs) if audit is None else audit
    space = table, "the one column" if d == 1 else f"all {d:,} columns"
    return {"Y": Y, "space": space, "metric": metric, **audit_found(found, n)}


def audit_found(audit: Audit | None, n: int) -> dict[str, Any]:
    """Results of an audit of `n` rows, as arguments of `gather`."""
    if audit is None:
        return {}
    if audit.n != n:
        raise DataError(f"X has {n} rows; `audit` is of {audit.n}.")
    return {"audit": audit, "tested": tested_columns(audit)}
