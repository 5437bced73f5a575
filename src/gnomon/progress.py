"""Progress through scikit-learn's callbacks, behind one small shim.

scikit-learn 1.9's callback protocol is experimental; this module is the only one that knows it.
An estimator inherits `CallbackSupportMixin`, decorates `fit` with `with_callbacks`, and reports::

    with Steps(self, total=1000) as steps:
        for iteration in range(1000):
            ...
            if steps.done(kl=kl):       # a callback asked to stop
                break

What a callback sees is scikit-learn's context: the step's number is its ``task_id`` and the
keywords given to `done` are its ``metadata``.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from sklearn import callback
from sklearn.callback import CallbackSupportMixin

Fit = TypeVar("Fit", bound=Callable[..., Any])

__all__ = ["CallbackSupportMixin", "Steps", "Watch", "with_callbacks"]


def with_callbacks(fit: Fit) -> Fit:
    """Tear callbacks down when `fit` ends, in whatever way it ends."""
    return cast("Fit", callback.with_callbacks(fit))


class Watch:
    """A callback made of one function, which is told the numbers of every step.

    ``told(iteration=…, of=…, kl=…, seconds_left=…)`` for t-SNE; True from it asks to stop.
    """

    def __init__(self, told: Callable[..., Any]) -> None:
        self.told = told

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing to prepare."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing to clear up."""

    def on_fit_task_begin(self, estimator: Any, context: Any, **_: Any) -> None:
        """Steps are told when they end."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, metadata: dict[str, Any] | None = None, **_: Any
    ) -> bool:
        """Hand the numbers on."""
        return bool(metadata and self.told(**metadata))


class Steps:
    """The steps of one fit, reported to whatever callbacks the user has set.

    Parameters
    ----------
    estimator : CallbackSupportMixin
        Its `fit` must be decorated with `with_callbacks`.
    total : int or None
        The largest number of steps; None when it is not known.
    name : str
        What a step is, for progress bars: "iteration", "rows".
    """

    def __init__(self, estimator: Any, total: int | None, name: str = "iteration") -> None:
        self.estimator = estimator
        self.name = name
        self.root = estimator._init_callback_context(max_subtasks=total)
        self.heard = bool(
            getattr(self.root, "_callbacks", True)
        )  # a step nobody hears costs nothing
        self._step: Any = None

    def __enter__(self) -> "Steps":
        self.root.call_on_fit_task_begin(estimator=self.estimator)
        return self

    def begin(self) -> None:
        """Tell the callbacks that a step begins (`done` does it where this was not called)."""
        if not self.heard:
            return
        self._step = self.root.subcontext(task_name=self.name)
        self._step.call_on_fit_task_begin(estimator=self.estimator)

    def done(self, **metadata: Any) -> bool:
        """Tell the callbacks that a step has ended; True when one of them asks to stop."""
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
