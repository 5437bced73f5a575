"""How good maps are: scores of everybody's, and KL of ours beside the first edition's.

Nothing is timed, so that it can be measured on a busy machine. Rows are called "SECTION ROW":
``--only quality`` measures a section, ``--only "sets line"`` one row.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import tsne_quality, tsne_sets
from benchmarks.environment import Settings
from benchmarks.table import Report
from benchmarks.tsne_section import Raw, Section, measure_rows, report_sections

SECTIONS: Sequence[Section] = (tsne_quality.SECTION, tsne_sets.SECTION)
NOTES = (
    "Everybody uses two threads and the same table, with default settings and random_state=0. "
    "Nothing here is a time.",
)


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row after the other, with the section it belongs to."""
    return measure_rows(SECTIONS, settings)


def report(raw: Raw) -> Report:
    """The tables of the rows that there are."""
    return report_sections("Quality of maps", SECTIONS, raw, NOTES)
