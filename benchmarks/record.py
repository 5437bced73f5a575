"""Results on disk: written after every row, and a few rows put in the place of older ones.

A question whose module has ``rows(settings)``, a generator of sections and rows, and
``report(raw)`` is recorded here. Each row is a dictionary with a "name"; `raw` holds lists of them
by section.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.environment import BenchmarkError
from benchmarks.table import Report

Raw = dict[str, list[dict[str, Any]]]

# Rows measured where any of these differ do not belong into one table.
SAME = ("commit", "cpu", "cpus", "threads", "system", "versions")


class Record:
    """The rows of one question, on disk after each of them if there is a folder.

    Attributes
    ----------
    raw
        Rows by section, those of an earlier run first.
    finished
        Whether all rows are there; a table on disk that is not finished says so.
    """

    def __init__(
        self,
        name: str,
        report: Callable[[Raw], Report],
        environment: dict[str, Any],
        folder: Path | None,
        *,
        only: str | None = None,
        former: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.folder, self._only = name, folder, only
        self._report, self._again = report, former is not None
        self.environment = environment if former is None else former["environment"]
        self._now = environment["measured"]
        self.raw: Raw = {} if former is None else _sections(former)
        # Rows that replace others leave a table as whole as it was.
        self.finished = former is not None and bool(former.get("finished", True))

    def add_all(self, rows: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Take in every row as it is measured, and write what there is."""
        for section, row in rows:
            if self._again:
                row = {**row, "measured_again": self._now}
            _put(self.raw.setdefault(section, []), row)
            self._write()
        self.finished = self.finished or not self._again
        self._write()

    def report(self) -> Report:
        """The tables of all rows so far."""
        report = self._report(self.raw)
        notes = list(report.notes)
        again = [row for rows in self.raw.values() for row in rows if "measured_again" in row]
        if again:
            names = ", ".join(f"{row['name']} ({row['measured_again']})" for row in again)
            where = " where none is named" if "commit" in names else ""
            notes.append(f"Measured again later, at the same commit{where}: {names}.")
        if self._only and not self._again:
            notes.append(f"Only the rows whose name contains {self._only!r} were measured.")
        if not self.finished:
            notes.append("**Unfinished**: the run was still going, or was interrupted, here.")
        raw = {"finished": self.finished, **self.raw}
        return Report(report.title, report.tables, notes, raw)

    def _write(self) -> None:
        if self.folder is not None and self.raw:
            self.report().write(self.folder, self.name, self.environment)


def former_results(
    folder: Path, name: str, environment: dict[str, Any]
) -> tuple[dict[str, Any] | None, str]:
    """Results of the same commit on the same machine in `folder`, or None and why there are none.

    Trees with changes of their own are never the same: nobody knows what they held.
    """
    path = folder / f"{name}.json"
    if not path.exists():
        return None, f"{path} does not exist"
    former = json.loads(path.read_text("utf-8"))
    was = former["environment"]
    for key in SAME:
        if was.get(key) != json.loads(json.dumps(environment[key])):
            return None, f"{path} was measured with {key} {was.get(key)}, not {environment[key]}"
    if str(environment["commit"]).endswith("+dirty"):
        return None, f"{path} was measured with changes that are not committed"
    return former, ""


def refuse_to_mix(folder: Path, name: str, why: str) -> None:
    """Stop before rows of another commit or machine would be lost."""
    if (folder / f"{name}.json").exists():
        message = f"--only replaces rows of the same commit and machine only: {why}."
        raise BenchmarkError(f"{message} Use another --out.")


def _put(rows: list[dict[str, Any]], row: dict[str, Any]) -> None:
    """In the place of the row of that name, or at the end."""
    for i, old in enumerate(rows):
        if old["name"] == row["name"]:
            rows[i] = row
            return
    rows.append(row)


def _sections(former: dict[str, Any]) -> Raw:
    return {key: value for key, value in former.items() if isinstance(value, list)}
