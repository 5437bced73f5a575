"""The stages of a run: each is timed, and told as it ends."""

import time
from collections.abc import Callable
from typing import Any

__all__ = ["Stages", "Told"]

# Told the name of a stage that has ended, its seconds, and what came of it.
Told = Callable[[str, float, Any], None]


class Stages:
    """Does the work of one stage after the other and keeps their times.

    Attributes
    ----------
    seconds : dict
        Time of each stage by its name, in the order of their first ends; what is done in several
        parts of the same name adds up.
    """

    def __init__(self, told: Told | None = None, seconds: dict[str, float] | None = None) -> None:
        self.told = told
        self.seconds: dict[str, float] = {} if seconds is None else seconds

    def __call__(self, name: str, work: Callable[[], Any], what: Any = None) -> Any:
        """Do `work` and return its result; `what` is told in the place of it, if given."""
        start = time.perf_counter()
        result = work()
        took = time.perf_counter() - start
        self.seconds[name] = self.seconds.get(name, 0.0) + took
        self.tell(name, result if what is None else what, took)
        return result

    def tell(self, name: str, what: Any, seconds: float = 0.0) -> None:
        """Tell of something that took no time worth keeping, or of a stage that has ended."""
        if self.told is not None:
            self.told(name, seconds, what)
