"""Results as a Markdown table for people and as JSON for programs."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MISSED = "**missed**"
FAILED = "**failed**"


@dataclass(frozen=True)
class Table:
    """One table of text; `caption` stands above it as a sentence."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_markdown(self) -> str:
        """The table, its columns padded so that the source reads as well as the page."""
        lines = [[cell.replace("|", "\\|") for cell in row] for row in (self.header, *self.rows)]
        widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
        lines.insert(1, ["-" * width for width in widths])
        padded = (
            " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )
        return f"{self.caption}\n\n" + "\n".join(f"| {line} |" for line in padded)


@dataclass(frozen=True)
class Report:
    """The answer to one question.

    Attributes
    ----------
    title
        The question, as a heading.
    tables
        What people read.
    notes
        How it was measured, one sentence each.
    raw
        Every number behind the tables.
    """

    title: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    raw: dict[str, Any] = field(default_factory=dict)

    def to_markdown(self, environment: dict[str, Any]) -> str:
        """Title, machine and versions, tables, notes."""
        parts = [f"# {self.title}", describe_environment(environment)]
        parts += [table.to_markdown() for table in self.tables]
        parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(parts) + "\n"

    def to_json(self, environment: dict[str, Any]) -> str:
        """The raw numbers and the environment; NaN, which JSON lacks, becomes null."""
        whole = {"title": self.title, "environment": environment, **self.raw}
        return json.dumps(_plain(whole), indent=1, allow_nan=False, ensure_ascii=False) + "\n"

    def write(self, folder: Path, name: str, environment: dict[str, Any]) -> None:
        """Write ``name.md`` and ``name.json`` into `folder`."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {"md": self.to_markdown(environment), "json": self.to_json(environment)}
        for ending, text in texts.items():
            # Written beside and renamed: an interrupted run leaves a whole file.
            part = folder / f".{name}.{ending}.part"
            part.write_text(text, encoding="utf-8")
            part.replace(folder / f"{name}.{ending}")


def describe_environment(environment: dict[str, Any]) -> str:
    """One paragraph: commit, machine, versions."""
    versions = ", ".join(f"{name} {text}" for name, text in environment["versions"].items())
    return (
        f"Commit {environment['commit']}, {environment['measured']}, {environment['cpu']} "
        f"({environment['cpus']} CPUs, {environment['threads']} threads used, load "
        f"{environment['load_average']} at the start), {environment['system']}; {versions}."
    )


def verdict(complaints: Sequence[str]) -> str:
    """Either "reached", or the mark of a missed target with every reason."""
    return f"{MISSED}: {'; '.join(complaints)}" if complaints else "reached"


def number(value: float | None, form: str = ".3g") -> str:
    """A number in a cell; a dash for what was not measured."""
    return "–" if value is None or math.isnan(value) else format(value, form)


def each(values: Sequence[float | None], form: str = ".3g") -> str:
    """Numbers of ours and of every peer in one cell, in the order of the table's columns."""
    return " / ".join(number(value, form) for value in values)


def _plain(value: Any) -> Any:
    """`value` as JSON knows it: NumPy's scalars become Python's, NaN and infinities None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
