"""What a run says while it works: aligned lines on stderr, data on stdout."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from gnomon.cli import plain
from gnomon.cli.failures import in_words

WIDTH = 76


class Words:
    """Lines such as ``PCA      2 of 4 components hold 88.2 %      0.0 s``.

    Colours and emphasis follow the terminal; a pipe, and whoever sets NO_COLOR, gets plain lines.
    """

    def __init__(self, *, quiet: bool = False, verbose: bool = False) -> None:
        self.verbose = verbose and not quiet
        self.console = Console(
            stderr=True,
            quiet=quiet,
            highlight=False,
            soft_wrap=True,
            color_system=None if plain() else "auto",
        )

    def say(self, label: str, text: str, seconds: float | None = None) -> None:
        """One line: what, its outcome, and how long it took."""
        line = Text.assemble((f"{label:<9}", "bold cyan"), text)
        if seconds is not None:
            line.append(" " * max(2, WIDTH - line.cell_len))
            line.append(f"{seconds:.1f} s", "dim")
        self.console.print(line)

    def details(self, label: str, lines: Iterable[tuple[str, str]]) -> None:
        """Lines for whoever asked for more by -v: their name once, then one below the other."""
        if self.verbose:
            for number, (name, text) in enumerate(lines):
                self.say("" if number else label, f"{name}: {text}")

    @contextmanager
    def warnings(self) -> Iterator[list[str]]:
        """Say what is warned of within, once each, when it is over; fills the list it gives."""
        said: list[str] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield said
        said += dict.fromkeys(in_words(str(warning.message)) for warning in caught)
        for text in said:
            self.say("Warning", text)

    @contextmanager
    def bar(self) -> Iterator["Bar | None"]:
        """What to tell of a map's iterations and placed rows: a bar on a terminal, or nothing.

        The bar is gone when its work is done; the lines stay.
        """
        if self.console.quiet or plain() or not sys.stderr.isatty():  # a bar is made of escapes
            yield None
            return
        columns = (
            TextColumn("{task.fields[stage]:<8}"), BarColumn(), TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )  # fmt: skip
        with Progress(*columns, console=self.console, transient=True) as progress:
            yield Bar(progress)


class Bar:
    """How far a map is: iterations first, then rows that are placed on it."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.task = progress.add_task("", total=None, stage="t-SNE")
        self.placed: TaskID | None = None

    def __call__(self, iteration: int, of: int, kl: float, seconds_left: float) -> bool:
        """See `gnomon.run`; never ends a map."""
        if iteration % 10 == 0:
            text = f"{iteration}/{of}" + (f"  KL {kl:.3g}" if kl < 1e6 else "")
            self.progress.update(self.task, description=text, completed=iteration, total=of)
        return False

    def placing(self, rows: int, of: int) -> None:
        """So many rows have their places."""
        if self.placed is None:
            self.progress.update(self.task, visible=False)
            self.placed = self.progress.add_task("", total=of, stage="Placing")
        self.progress.update(self.placed, description=f"{rows:,}/{of:,} rows", completed=rows)
