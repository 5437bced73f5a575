"""Our t-SNE: fits, forces, new points and sizes, against intelex, openTSNE and scikit-learn.

One module a section; rows are called "SECTION ROW", so that ``--only maps`` measures a section and
``--only "maps digits"`` one row. Tables and targets are those of the t-SNE design.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import (
    tsne_course,
    tsne_crossover,
    tsne_force,
    tsne_maps,
    tsne_quality,
    tsne_sets,
    tsne_size,
    tsne_space,
    tsne_transform,
)
from benchmarks.environment import BenchmarkError, Settings, peer
from benchmarks.table import Report
from benchmarks.tsne_programs import PEERS
from benchmarks.tsne_section import Section

SECTIONS: Sequence[Section] = (
    tsne_maps.SECTION,
    tsne_quality.SECTION,
    tsne_sets.SECTION,
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
    wanted = {section.name: section.wanted(settings) for section in SECTIONS}
    if not any(wanted.values()):
        names = ", ".join(f"{section.name} {row}" for section in SECTIONS for row in section.rows)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for name in {name for section in SECTIONS if wanted[section.name] for name in section.peers}:
        peer(*PEERS[name])  # missing peers stop us before any work
    for section in SECTIONS:
        for row in wanted[section.name]:
            yield section.name, section.measure(row, settings)


def report(raw: Mapping[str, Sequence[Mapping[str, Any]]]) -> Report:
    """The tables of the rows that there are."""
    found = [section for section in SECTIONS if raw.get(section.name)]
    tables = [section.table(raw[section.name]) for section in found]
    notes = [*NOTES, *(note for section in found for note in section.notes)]
    return Report("t-SNE against intelex, openTSNE and scikit-learn", tables, notes)


NOTES = (
    "Runs of ours and of peers alternate, and who goes first alternates. A fixed matrix product is "
    "timed before and after each pair; pairs where it moved more than 1.5-fold are discarded, "
    "counted and repeated.",
    "Everybody uses two threads and the same table, with default settings and random_state=0.",
    "Rows called mnist are MNIST in 50 principal components with --data, and generated clusters "
    "of that shape without.",
)
