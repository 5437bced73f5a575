"""Progress: one event, and one callback for it.

``on(event)`` is called during the work. Returning True ends a descent with the current map, and
raises `gnomon.errors.Interrupted` in a pass over data.

==============  ==================================================================================
stage           done and total; detail
==============  ==================================================================================
``"tsne"``      iterations; `Iteration`
``"place"``     rows placed on a map of others
``"rows"``      rows of a pass over a table; within a run, under the name of the run's stage
any             1 and 1, when a stage of a run has ended; `Finished`
==============  ==================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from gnomon.errors import Interrupted, warn_caller

__all__ = ["Event", "Finished", "Iteration", "On", "both", "former", "former_rows", "report_rows"]


@dataclass(frozen=True)
class Event:
    """Progress of the work.

    Attributes
    ----------
    stage : str
        Name of the current stage.
    done : int
    total : int or None
        None if unknown. A stopping rule may end a descent before or after it.
    seconds_left : float or None
    detail : object
        Details of the stage: see the module.
    """

    stage: str
    done: int
    total: int | None = None
    seconds_left: float | None = None
    detail: Any = None


On: TypeAlias = Callable[[Event], object]


@dataclass(frozen=True)
class Iteration:
    """An iteration of a descent.

    Attributes
    ----------
    kl : float
        KL divergence when it was last measured; infinite before that.
    positions : callable
        Returns the current map, in the order of the data; only while the event is handled.
    """

    kl: float
    positions: Callable[[], Any]


@dataclass(frozen=True)
class Finished:
    """End of a stage of a run: its duration and its result."""

    seconds: float
    result: Any


def report_rows(on: On | None, done: int, total: int, stage: str = "rows") -> None:
    """Report the rows done in a pass; raise `Interrupted` if the callback returns True."""
    if on is not None and on(Event(stage, done, total)):
        raise Interrupted(
            "Interrupted by the callback after {done:,} of {total:,} rows.", done=done, total=total
        )


def both(first: On | None, second: On | None) -> On | None:
    """One callback that calls two; either of them can stop the work."""
    if first is None or second is None:
        return second if first is None else first

    def on(event: Event) -> object:
        answers = first(event), second(event)
        return any(answers)

    return on


def former_rows(on: On | None, progress: Callable[[int, int], object] | None) -> On | None:
    """Combine `on` with the deprecated callback ``progress(done, total)`` of version 0.1."""
    if progress is None:
        return on
    _deprecate("progress", "event.done and event.total")

    def both(event: Event) -> object:
        progress(event.done, event.total or 0)
        return on is not None and on(event)

    return both


def former(
    on: On | None,
    told: Callable[[str, float, Any], object] | None,
    progress: Callable[..., object] | None,
    placing: Callable[[int, int], object] | None,
) -> On | None:
    """Combine `on` with the three deprecated callbacks of `gnomon.run` in version 0.1."""
    deprecated = (
        ("told", told, "event.stage and event.detail, a gnomon.events.Finished"),
        ("progress", progress, "event.done, event.total and event.detail.kl of stage 'tsne'"),
        ("placing", placing, "event.done and event.total of stage 'place'"),
    )
    given = [(name, instead) for name, callback, instead in deprecated if callback is not None]
    if not given:
        return on
    for name, instead in given:
        _deprecate(name, instead)

    def all_of_them(event: Event) -> object:
        stops: object = False
        if isinstance(event.detail, Finished):
            if told is not None:
                told(event.stage, event.detail.seconds, event.detail.result)
        elif isinstance(event.detail, Iteration):
            if progress is not None:
                stops = progress(
                    iteration=event.done,
                    of=event.total,
                    kl=event.detail.kl,
                    seconds_left=event.seconds_left,
                )
        elif event.stage == "place" and placing is not None:
            placing(event.done, event.total or 0)
        return (on is not None and on(event)) or stops

    return all_of_them


def _deprecate(name: str, instead: str) -> None:
    text = f"`{name}` is deprecated and will be removed in 0.3. Use `on`, called with an event: "
    warn_caller(FutureWarning(f"{text}{instead}."))
