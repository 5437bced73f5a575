"""Our t-SNE: fits, forces, new points and sizes, against intelex, openTSNE and scikit-learn.

One module a section; rows are called "SECTION ROW", so that ``--only maps`` measures a section and
``--only "maps digits"`` one row. Tables and targets are those of the t-SNE design. What needs no
quiet machine is in `map_quality`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks import (
    tsne_course,
    tsne_crossover,
    tsne_force,
    tsne_maps,
    tsne_size,
    tsne_space,
    tsne_transform,
)
from benchmarks.environment import Settings
from benchmarks.table import Report
from benchmarks.tsne_section import Raw, Section, measure_rows, report_sections

SECTIONS: Sequence[Section] = (
    tsne_maps.SECTION,
    tsne_force.SECTION,
    tsne_course.TO_KL,
    tsne_transform.SECTION,
    tsne_course.ITERATIONS,
    tsne_size.SECTION,
    tsne_space.SECTION,
    tsne_crossover.SECTION,
)


def rows(settings: Settings) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row after the other, with the section it belongs to."""
    return measure_rows(SECTIONS, settings)


def report(raw: Raw) -> Report:
    """The tables of the rows that there are."""
    return report_sections("t-SNE against intelex, openTSNE and scikit-learn", SECTIONS, raw, NOTES)


NOTES = (
    "Runs of ours and of peers alternate, and who goes first alternates. A fixed matrix product is "
    "timed before and after each pair; pairs where it moved more than 1.5-fold are discarded, "
    "counted and repeated.",
    "Everybody uses two threads and the same table, with default settings and random_state=0.",
    "Rows called mnist are MNIST in 50 principal components with --data, and generated clusters "
    "of that shape without.",
)
