"""What a run shows on a terminal while it works."""

import io
import logging
import sys
from functools import partial

import numpy as np
import pytest
from numba import njit
from rich.progress import Progress

import gnomon.compute.kernels  # noqa: F401  (logs what is compiled)
from gnomon.cli import run_lines as words
from gnomon.cli.run_lines import RunLines
from gnomon.events import Event, Iteration


class Terminal(io.StringIO):
    """Somebody is looking."""

    def isatty(self):
        return True


def terminal(monkeypatch):
    """Standard error on a screen; called by the test itself, since pytest turns it round before."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def shown(screen):
    """What was drawn since it was last asked."""
    text = screen.getvalue()
    screen.truncate(0)
    screen.seek(0)
    return text


def test_rows_that_are_read_are_shown(monkeypatch):
    screen = terminal(monkeypatch)
    monkeypatch.setattr(words, "Progress", partial(Progress, auto_refresh=False))
    with RunLines().bar("Reading") as bar:
        bar(Event("rows", 500, 2_000))
        bar.progress.refresh()
        drawn = shown(screen)
    assert "Reading" in drawn
    assert "500/2,000 rows" in drawn


def test_the_bar_says_that_kernels_are_compiled(monkeypatch):
    screen, logger = terminal(monkeypatch), logging.getLogger("gnomon")
    before = (logger.level, list(logger.handlers))
    monkeypatch.setattr(words, "Progress", partial(Progress, auto_refresh=False))
    with RunLines().bar() as bar:
        njit(_twice)(np.ones(3))  # without a cache: compiled whenever the test runs
        bar.progress.refresh()
        assert "compiling, once on this machine" in shown(screen)
    assert (logger.level, logger.handlers) == before


def _twice(values):
    return values * 2


def test_iterations_are_shown_and_then_the_rows_that_are_placed(monkeypatch):
    screen = terminal(monkeypatch)
    # Drawn when the test says so, and not by a thread of Rich's in between.
    monkeypatch.setattr(words, "Progress", partial(Progress, auto_refresh=False))
    with RunLines().bar() as bar:
        assert not bar(Event("tsne", 120, 750, 3.0, Iteration(1.25, list)))
        bar.progress.refresh()
        drawn = shown(screen)
        assert "t-SNE" in drawn
        assert "120/750  KL 1.25" in drawn
        assert "Placing" not in drawn
        bar(Event("place", 32_768, 1_900_000))
        bar(Event("place", 65_536, 1_900_000))
        shown(screen)
        bar.progress.refresh()
        drawn = shown(screen)
        assert "Placing" in drawn
        assert "65,536/1,900,000 rows" in drawn
        assert "t-SNE" not in drawn
        assert ":" in drawn[drawn.rindex("rows") :]  # and how long it will take


@pytest.mark.parametrize("how", ["quiet", "pipe", "plain"])
def test_nobody_who_is_not_looking_gets_a_bar(monkeypatch, how):
    terminal(monkeypatch)
    if how == "pipe":
        monkeypatch.setattr(sys, "stderr", io.StringIO())
    if how == "plain":
        monkeypatch.setenv("NO_COLOR", "1")
    with RunLines(quiet=how == "quiet").bar() as bar:
        assert bar is None
