"""A section of a benchmark of maps: its rows, and how they are shown.

A section names its rows and says how one is measured and written; what holds for all of them (which
rows were asked for, errors that stay in the table) is here.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.environment import BenchmarkError, Settings, peer
from benchmarks.table import FAILED, Report, Table
from benchmarks.tsne_programs import PEERS

Measure = Callable[[Settings], dict[str, Any]]
Raw = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Section:
    """One table.

    Attributes
    ----------
    name
        Its rows are called by it: "maps digits" is row "digits" of section "maps".
    caption
        The sentence above the table.
    header
        Columns; the first holds the row's name, the last its verdict.
    rows
        What measures each row.
    lines
        The cells of a measured row, one list for every line of the table.
    notes
        How it was measured.
    peers
        Libraries without which it cannot be measured.
    on_request
        Rows so long that they are measured only when --only holds their name.
    """

    name: str
    caption: str
    header: Sequence[str]
    rows: Mapping[str, Measure]
    lines: Callable[[Mapping[str, Any]], list[list[str]]]
    notes: Sequence[str] = ()
    peers: Sequence[str] = ()
    on_request: frozenset[str] = field(default_factory=frozenset)

    def wanted(self, settings: Settings) -> list[str]:
        """Names of the rows to measure."""
        asked = (settings.only or "").lower()
        return [
            row
            for row in self.rows
            if settings.wants(f"{self.name} {row}")
            and (row not in self.on_request or row.lower() in asked)
        ]

    def measure(self, row: str, settings: Settings) -> dict[str, Any]:
        """All numbers of one row; an error stays in the table as a row that says so."""
        name = f"{self.name} {row}"
        print(f"tsne: {name}", file=sys.stderr, flush=True)
        try:
            return {"name": name, **self.rows[row](settings)}
        except BenchmarkError:
            raise
        except Exception as error:
            return {"name": name, "error": f"{type(error).__name__}: {error}"}

    def table(self, results: Sequence[Mapping[str, Any]]) -> Table:
        """The rows as text."""
        lines = [line for result in results for line in self._lines(result)]
        return Table(f"**{self.name}**: {self.caption}", self.header, lines)

    def _lines(self, result: Mapping[str, Any]) -> list[list[str]]:
        name = str(result["name"]).removeprefix(f"{self.name} ")
        if "error" in result:
            failure = f"{FAILED}: {' '.join(result['error'].split())}"
            return [[name, *["–"] * (len(self.header) - 2), failure]]
        return [[name, *line] for line in self.lines(result)]


def measure_rows(
    sections: Sequence[Section], settings: Settings
) -> Iterator[tuple[str, dict[str, Any]]]:
    """One row after the other, with the name of its section."""
    wanted = {section.name: section.wanted(settings) for section in sections}
    if not any(wanted.values()):
        names = ", ".join(f"{section.name} {row}" for section in sections for row in section.rows)
        raise BenchmarkError(f"--only must be part of a row's name; got {settings.only}: {names}")
    for name in {name for section in sections if wanted[section.name] for name in section.peers}:
        peer(*PEERS[name])  # missing peers stop us before any work
    for section in sections:
        for row in wanted[section.name]:
            yield section.name, section.measure(row, settings)


def report_sections(
    title: str, sections: Sequence[Section], raw: Raw, notes: Sequence[str]
) -> Report:
    """The tables of the rows that there are."""
    found = [section for section in sections if raw.get(section.name)]
    tables = [section.table(raw[section.name]) for section in found]
    return Report(title, tables, [*notes, *(note for section in found for note in section.notes)])
