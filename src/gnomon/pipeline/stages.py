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
    """A running stage; `result` is reported by the event at its end."""

    result: Any = None


class Stages:
    """Runs stages one after the other, and times them.

    >>> from gnomon.pipeline.stages import Stages
    >>> stage = Stages()
    >>> with stage("read") as ended:
    ...     ended.result = table = [1, 2, 3]
    >>> list(stage.seconds)
    ['read']

    Attributes
    ----------
    seconds : dict
        Seconds of each stage by name, in the order in which they first ended; parts with
        the same name are added up.
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
        """Report the end of a stage, or a result that took no time worth reporting."""
        if self.on is not None:
            self.on(Event(name, 1, 1, 0.0, Finished(seconds, result)))

    def rows(self, event: Event) -> object:
        """Report the rows of a pass under the name of the current stage."""
        return self.on is not None and self.on(replace(event, stage=self.name or event.stage))
