"""The stages of a run: each is timed, and an event reports its end."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from gnomon.events import Event, Finished, On

__all__ = ["Stage", "Stages"]


@dataclass
class Stage:
    """A stage under way; `result` is what the event about its end has."""

    result: Any = None


class Stages:
    """One stage after the other, and their times.

    >>> from gnomon.stages import Stages
    >>> stage = Stages()
    >>> with stage("read") as ended:
    ...     ended.result = table = [1, 2, 3]
    >>> list(stage.seconds)
    ['read']

    Attributes
    ----------
    seconds : dict
        Time of each stage by its name, in the order of their first ends; what is done in several
        parts of the same name adds up.
    """

    def __init__(self, on: On | None = None, seconds: dict[str, float] | None = None) -> None:
        self.on, self.name = on, ""
        self.seconds: dict[str, float] = {} if seconds is None else seconds

    @contextmanager
    def __call__(self, name: str) -> Iterator[Stage]:
        """Time the work within; its end is reported unless it raises an error."""
        self.name, stage = name, Stage()
        start = time.perf_counter()
        yield stage
        took = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self.report(name, stage.result, took)

    def report(self, name: str, result: Any, seconds: float = 0.0) -> None:
        """Report the end of a stage, or a result that took no time worth keeping."""
        if self.on is not None:
            self.on(Event(name, 1, 1, 0.0, Finished(seconds, result)))

    def rows(self, event: Event) -> object:
        """Report the rows of a pass under the name of the stage that is under way."""
        return self.on is not None and self.on(replace(event, stage=self.name or event.stage))
