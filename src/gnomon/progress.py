"""Progress through scikit-learn's callbacks, behind one small shim.

scikit-learn 1.9's callback protocol is experimental; only this module depends on it.
An estimator inherits `CallbackSupportMixin`, decorates `fit` with `with_callbacks`, and reports::

    with Steps(self, total=1000) as steps:
        for iteration in range(1000):
            ...
            if steps.done(kl=kl):       # a callback returned True
                break

A callback gets scikit-learn's context: the step's number is its ``task_id`` and the
keywords given to `done` are its ``metadata``.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from sklearn import callback

from gnomon.events import Event, Iteration, On

Fit = TypeVar("Fit", bound=Callable[..., Any])

__all__ = ["CallbackSupportMixin", "Frames", "Steps", "Watch", "with_callbacks"]


class CallbackSupportMixin(callback.CallbackSupportMixin):
    """scikit-learn's callbacks, and plain functions as callbacks."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks of `fit`: scikit-learn's, or functions of an event.

        A function is called as ``on(event)`` with a `gnomon.events.Event` after every step; for
        t-SNE ``event.detail.positions()`` is the current map, and returning True ends the descent.
        """
        return super().set_callbacks(*(_as_callback(each) for each in callbacks))


def _as_callback(each: Any) -> Any:
    plain = callable(each) and not isinstance(each, type) and not hasattr(each, "setup")
    return Watch(each) if plain else each


def with_callbacks(fit: Fit) -> Fit:
    """Tear callbacks down when `fit` ends, with or without an error."""
    return cast("Fit", callback.with_callbacks(fit))


class Watch:
    """A scikit-learn callback that calls ``on(event)`` for every step; True stops the work.

    Steps of a descent are events of stage "tsne", rows of a pass are those of stage "rows", and
    others have the name of their task.
    """

    def __init__(self, on: On) -> None:
        self.on = on

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing: there is nothing to prepare."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing: there is nothing to clean up."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Do nothing: steps are reported when they end."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None, **_: Any
    ) -> bool:
        """Report the numbers of a step."""
        return bool(metadata and self.on(_event(context.task_name, metadata)))


def _event(task: str, numbers: dict[str, Any]) -> Event:
    total, left = numbers.get("of"), numbers.get("seconds_left")
    if "kl" in numbers:
        detail = Iteration(numbers["kl"], numbers["positions"])
        return Event("tsne", numbers["iteration"], total, left, detail)
    if "rows" in numbers:
        return Event("rows", numbers["rows"], total, left)
    return Event(task, numbers.get("iteration", 0), total, left, numbers)


class Frames:
    """Event callback that keeps the positions of evenly spaced iterations, for a replay.

    The number of iterations is not known beforehand: at twice as many frames as wanted,
    every second one is dropped, and from then on every second iteration is skipped.
    """

    def __init__(self, wanted: int = 40) -> None:
        self.wanted, self.every, self.kept = wanted, 1, list[tuple[int, Any]]()

    def __call__(self, event: Event) -> bool:
        """Keep the positions if the iteration is one of those to keep."""
        if isinstance(event.detail, Iteration) and event.done % self.every == 0:
            self.kept.append((event.done, event.detail.positions()))
        if len(self.kept) > 2 * self.wanted:
            self.every *= 2
            self.kept = [frame for frame in self.kept if frame[0] % self.every == 0]
        return False

    def frames(self, last: Any) -> tuple[tuple[int, Any], ...]:
        """Frames that were kept, at most `wanted`, and `last`, the final positions."""
        step = -(-len(self.kept) // self.wanted) or 1
        some = self.kept[::step]
        end = self.kept[-1][0] if self.kept else 0
        return (*(frame for frame in some if frame[0] < end), (end, last))


class Steps:
    """The steps of one fit, reported to the callbacks that the user has set.

    Parameters
    ----------
    estimator : CallbackSupportMixin
        Its `fit` must be decorated with `with_callbacks`.
    total : int or None
        Largest number of steps; None if it is unknown.
    name : str
        Name of a step, for progress bars: "iteration", "rows".
    """

    def __init__(self, estimator: Any, total: int | None, name: str = "iteration") -> None:
        self.estimator = estimator
        self.name = name
        self.root = estimator._init_callback_context(max_subtasks=total)
        self.heard = bool(
            getattr(self.root, "_callbacks", True)
        )  # without a callback a step costs nothing
        self._step: Any = None

    def __enter__(self) -> "Steps":
        self.root.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def begin(self) -> None:
        """Report that a step begins (`done` does it if this was not called)."""
        if not self.heard:
            return
        self._step = self.root.subcontext(task_name=self.name)
        self._step.call_on_fit_task_begin(estimator=self.estimator)

    def done(self, **metadata: Any) -> bool:
        """Report that a step has ended; True if a callback stops the work."""
        if not self.heard:
            return False
        if self._step is None:
            self.begin()
        step, self._step = self._step, None
        return bool(step.call_on_fit_task_end(estimator=self.estimator, metadata=metadata))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.root.call_on_fit_task_end(estimator=self.estimator)
