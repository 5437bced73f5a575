"""The stages of a run: each is timed, and an event reports its end."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gnomon.events import Event, Finished, On

__all__ = ["Stages"]


class Stages:
    """Does the work of one stage after the other and keeps their times.

    Attributes
    ----------
    seconds : dict
        Time of each stage by its name, in the order of their first ends; what is done in several
        parts of the same name adds up.
    """

    def __init__(self, on: On | None = None, seconds: dict[str, float] | None = None) -> None:
        self.on, self.name = on, ""
        self.seconds: dict[str, float] = {} if seconds is None else seconds

    def __call__(self, name: str, work: Callable[[], Any], what: Any = None) -> Any:
        """Do `work` and return its result; the event has `what` in the place of it, if given."""
        self.name = name
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self.report(name, result if what is None else what, took)
        return result

    def report(self, name: str, result: Any, seconds: float = 0.0) -> None:
        """Report the end of a stage, or a result that took no time worth keeping."""
        if self.on is not None:
            self.on(Event(name, 1, 1, 0.0, Finished(seconds, result)))

    def rows(self, event: Event) -> object:
        """Report the rows of a pass under the name of the stage that is under way."""
        return self.on is not None and self.on(replace(event, stage=self.name or event.stage))
