"""Against chance: rows placed better than at random, misplaced, or no better than in noise."""

import numpy as np

from gnomon import charts
from gnomon.charts.words import count, percent
from gnomon.report.content import PageContent
from gnomon.report.section import Block, Facts, Figures, Grid, Section, row_link
from gnomon.scores import Audit
from gnomon.scores.audit import MISPLACED

__all__ = ["misplaced", "tested_columns"]

MOST_ROWS = 25
UNSUPPORTED, SUPPORTED = "unsupported", "more faithful than noise"

HELP = (
    "Each row is tested by its trustworthiness: how few strangers are among its nearest rows on "
    "the map. For the first test the row is moved to the points of other rows. It is placed if "
    "its own place is clearly better than such random ones, misplaced if at least half of them "
    "would suit it as well, and undecided in between. The second test maps tables whose columns "
    "were shuffled one by one, so that they are unrelated; a row that scores no higher than rows "
    "do there is called unsupported.",
    "Of the rows called placed, about 5\u00a0% at most lie at random (Benjamini and Hochberg's "
    "procedure). Of rows that lie at random, about half are called misplaced, so twice the share "
    "of misplaced rows estimates how many there are. Undecided does not mean wrong: where a table "
    "has few large groups and no order within them, a random place is often in the right group, "
    "and the test can clear few rows. Unsupported means that nothing shows otherwise, not that the "
    "opposite is shown.",
)


def misplaced(content: PageContent) -> Section | None:
    """Tests of the map; None if it was not tested."""
    found = content.audit
    if found is None or content.Y is None:
        return None
    lead = [_placed(found), _misplaced(found)]
    if found.unsupported is not None:
        lead.append(_unsupported(found, found.unsupported))
    blocks: list[Block] = [Figures((_histogram(found),)), Facts(tuple(found.lines()))]
    return Section(
        "audit", "Is it better than chance?", tuple(lead), (*blocks, *_worst(content)), HELP
    )


def tested_columns(found: Audit) -> tuple[tuple[str, np.ndarray], ...]:
    """Test results of each row, to colour by; None and NaN for rows that were not tested."""
    columns = found.columns()
    tested = [(name, columns[name]) for name in ("trustworthiness", "placement")]
    if "unsupported" in columns:
        values = columns["unsupported"].astype(np.float64)
        known = np.isfinite(values)
        texts = np.full(found.n, None, dtype=object)
        texts[known] = np.where(values[known] > 0, UNSUPPORTED, SUPPORTED)
        tested.append(("support", texts))
    return tuple(tested)


def _placed(found: Audit) -> str:
    """Say how many rows lie better than at random, and of how many it is not shown."""
    if found.placed.all():
        return f"Every row{_tested(found)} lies better than at random."
    said = f"{_share(found, found.placed)} of the rows{_tested(found)} lie better than at random"
    if not found.undecided.any():
        return f"{said}."
    return (
        f"{said}; {_share(found, found.undecided)} are undecided: the test shows it neither way, "
        "which is common where groups are few."
    )


def _misplaced(found: Audit) -> str:
    if not found.misplaced.any():
        return "No row is misplaced."
    return (
        f"{_share(found, found.misplaced)} are misplaced: at least half of the places on the map "
        f"would suit them as well. About {percent(found.at_random)} of all rows lie as if at "
        "random (estimate)."
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
    note = ""
    if where.size > len(rows):
        note = (
            f"{len(rows)} of {where.size:,} misplaced rows. To see all, choose placement under "
            "\u201cColour by\u201d."
        )
        if content.command:
            note += " The column misplaced of map.parquet marks them."
    head = ("row", "trustworthiness")
    return (Grid("Misplaced rows, the lowest first", head, rows, frozenset({"row"}), note),)
