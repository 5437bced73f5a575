"""Against chance: rows placed no better than at random, or no better than in noise."""

import numpy as np

from gnomon import charts
from gnomon.charts.words import count, percent
from gnomon.report.content import PageContent
from gnomon.report.section import Block, Facts, Figures, Grid, Section, row_link
from gnomon.scores import Audit

__all__ = ["MISPLACED", "misplaced", "tested_columns"]

MOST_ROWS = 8
MISPLACED, PLACED = "misplaced", "better than at random"
UNSUPPORTED, SUPPORTED = "unsupported", "more faithful than noise"

HELP = (
    "Each row is tested by its trustworthiness: how few strangers are among its nearest rows on "
    "the map. For the first test the row is moved to the points of other rows; if its own place is "
    "not clearly better than such random ones, it is called misplaced. The second test maps "
    "tables whose columns were shuffled one by one, so that they are unrelated; a row that "
    "scores no higher than rows do there is called unsupported.",
    "Both words mean that nothing shows otherwise, not that the opposite is shown. Of the rows "
    "that are not called misplaced, about 5\u00a0% at most are placed at random (Benjamini and "
    "Hochberg's procedure). Where a table has few large groups and no order within them, a random "
    "place is often in the right group, and the test can clear few rows.",
)


def misplaced(content: PageContent) -> Section | None:
    """Tests of the map; None if it was not tested."""
    found = content.audit
    if found is None or content.Y is None:
        return None
    lead = [_misplaced(found)]
    if found.unsupported is not None:
        lead.append(_unsupported(found, found.unsupported))
    blocks: list[Block] = [Figures((_histogram(found),)), Facts(tuple(found.lines()))]
    return Section(
        "audit", "Is it better than chance?", tuple(lead), (*blocks, *_worst(content)), HELP
    )


def tested_columns(found: Audit) -> tuple[tuple[str, np.ndarray], ...]:
    """Test results of each row, to colour by; None and NaN for rows that were not tested."""
    columns = found.columns()
    words = {"misplaced": (PLACED, MISPLACED), "unsupported": (SUPPORTED, UNSUPPORTED)}
    titles = {"misplaced": "placement", "unsupported": "support"}
    tested: list[tuple[str, np.ndarray]] = []
    for name, values in columns.items():
        if name not in words:
            tested.append((name, values))
            continue
        texts = np.full(found.n, None, dtype=object)
        known = np.isfinite(values.astype(np.float64))
        texts[known] = np.array(words[name], dtype=object)[values[known].astype(np.intp)]
        tested.append((titles[name], texts))
    return tuple(tested)


def _misplaced(found: Audit) -> str:
    share = found.misplaced.mean()
    if not share:
        return f"Every row{_tested(found)} lies better than at random, as far as the test tells."
    return (
        f"{_share(found, found.misplaced)} of the rows{_tested(found)} are misplaced: nothing "
        "shows that they lie better than at random."
    )


def _unsupported(found: Audit, flagged: np.ndarray) -> str:
    if not flagged.any():
        return "Every row is placed more faithfully than rows of tables with independent columns."
    return (
        f"{_share(found, flagged)} are unsupported: no more faithful than rows of tables with "
        "independent columns."
    )


def _share(found: Audit, flagged: np.ndarray) -> str:
    _, error = found.share_of(flagged)
    said = percent(float(flagged.mean()))
    return said if not error else f"{said} (± {percent(error)})"


def _tested(found: Audit) -> str:
    return "" if len(found.rows) == found.n else f" (tested: {len(found.rows):,}, drawn at random)"


def _histogram(found: Audit) -> charts.Chart:
    scores = found.trustworthiness
    return charts.histogram(
        scores,
        title="Trustworthiness, row by row",
        subtitle=f"The mean is {float(scores.mean()):.3f}; a random map has {found.by_chance:.3f}.",
        axis=f"trustworthiness of {count(found.n_neighbors, 'neighbour')}",
        span=(min(0.0, float(scores.min())), 1.0),
    )


def _worst(content: PageContent) -> tuple[Grid, ...]:
    """List misplaced rows, the lowest scores first."""
    tested = dict(content.tested)
    if "placement" not in tested:
        return ()
    where = np.flatnonzero(tested["placement"] == MISPLACED)
    if not where.size:
        return ()
    scores = tested["trustworthiness"]
    order = where[np.argsort(scores[where], kind="stable")][:MOST_ROWS]
    rows = tuple((row_link(content, int(row)), f"{scores[row]:.3f}") for row in order)
    note = f"{len(rows)} of {where.size:,} misplaced rows." if where.size > len(rows) else ""
    head = ("row", "trustworthiness")
    return (Grid("Misplaced rows, the lowest first", head, rows, frozenset({"row"}), note),)
