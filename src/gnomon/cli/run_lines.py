"""What a run says while it works: aligned lines on stderr, data on stdout."""

import logging
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from gnomon.cli import plain
from gnomon.cli.failures import CommandWording
from gnomon.errors import worded
from gnomon.events import Event, Iteration
from gnomon.files import shown

WIDTH = 76


class RunLines:
    """Lines such as ``PCA      2 of 4 components hold 88.2 %      0.0 s``.

    Colours and emphasis follow the terminal; with NO_COLOR, and in a pipe, lines are plain.
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
        line = Text.assemble((f"{label:<9}", "bold cyan"), shown(text))
        if seconds is not None:
            line.append(" " * max(2, WIDTH - line.cell_len))
            line.append(f"{seconds:.1f} s", "dim")
        with suppress(OSError):  # a full disk under a log ends no run
            self.console.print(line)

    def details(self, label: str, lines: Iterable[tuple[str, str]]) -> None:
        """Lines that only -v shows: their name once, then one below the other."""
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
        said += dict.fromkeys(worded(each.message, CommandWording()) for each in caught)
        for text in said:
            self.say("Warning", text)

    @contextmanager
    def bar(self, stage: str = "t-SNE") -> Iterator["Bar | None"]:
        """What to tell of iterations and rows: a bar on a terminal, `stage` first; or nothing.

        The bar is gone when its work is done; the lines stay.
        """
        terminal = sys.stderr is not None and sys.stderr.isatty()  # a bar is made of escapes
        if self.console.quiet or plain() or not terminal:
            yield None
            return
        columns = (
            TextColumn("{task.fields[stage]:<8}"),
            BarColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            bar, logger = Bar(progress, stage), logging.getLogger("gnomon")
            level = logger.level
            logger.addHandler(bar)
            logger.setLevel(logging.INFO)
            try:
                yield bar
            finally:
                logger.removeHandler(bar)
                logger.setLevel(level)


class Bar(logging.Handler):
    """How far the work is: rows that are read, iterations of a map, rows that are placed on it.

    What the library logs meanwhile, such as that kernels are compiled, stands beside the bar.
    """

    def __init__(self, progress: Progress, stage: str) -> None:
        super().__init__(logging.INFO)
        self.progress, self.stage = progress, stage
        self.task = progress.add_task("", total=None, stage=stage)

    def __call__(self, event: Event) -> None:
        """Show how far a descent or a pass over rows is."""
        done, total = event.done, event.total or 0
        if event.stage == "tsne" and isinstance(event.detail, Iteration):
            if done % 10 == 0:
                kl = event.detail.kl
                text = f"{done}/{total}" + (f"  KL {kl:.3g}" if kl < 1e6 else "")
                self._show("t-SNE", text, done, total)
            return
        stage = "Placing" if event.stage == "place" else "Reading"
        self._show(stage, f"{done:,}/{total:,} rows", done, total)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a logged sentence until there is progress to show."""
        self.progress.update(self.task, description=record.getMessage())

    def _show(self, stage: str, text: str, done: int, of: int) -> None:
        if stage != self.stage:
            self.stage = stage
            self.progress.reset(self.task, stage=stage)  # what took how long, too
        self.progress.update(self.task, description=text, completed=done, total=of)
