"""What an engine is: the partitions of a source worked through, in one of three ways.

All three read every partition once, run ``function(block)`` on it wherever there is room, and hand
the results over in the order of the partitions. A function that is to run on a cluster is one that
can be pickled, with little data of its own; what belongs to single partitions (weights of rows)
goes beside them. ``on(event)`` is called here for the rows of a pass that are done; True from it
raises `Interrupted`.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from gnomon.engine.local import LocalEngine
from gnomon.engine.source import Block, Source
from gnomon.errors import refuse
from gnomon.events import On, both

T = TypeVar("T")

__all__ = ["Engine", "as_engine"]


class Engine(Protocol):
    """Who works through the partitions of a source.

    Attributes
    ----------
    on : callable or None
        Called with an event after every block of every pass, beside the `on` of a single pass.
    """

    on: On | None

    @property
    def workers(self) -> int:
        """How many blocks are worked on in this process at the same time, at most."""

    @property
    def is_local(self) -> bool:
        """Whether all of the work is done in this process."""

    @property
    def processes(self) -> int:
        """How many other processes of this machine work for this one, and take of its memory."""

    def map(
        self,
        function: Callable[[Block], T],
        source: Source,
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> list[T]:
        """``[function(block) for every block]``, for results that are small."""

    def reduce(
        self,
        function: Callable[[Block], T],
        source: Source,
        combine: Callable[[T, T], T],
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> T:
        """The results added up by `combine`, in the tree of `gnomon.engine.tree`.

        `combine` returns a new sum and leaves the two it is given as they are.
        """

    def write(
        self,
        function: Callable[[Block], T],
        source: Source,
        add: Callable[[T], object],
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> None:
        """Call ``add(result)`` for one block after the other, here, in order.

        Results wait for their turn, and only a few of them at a time.
        """


def as_engine(engine: Any = None, *, n_jobs: int | None = None, on: On | None = None) -> Engine:
    """`engine` itself, the engine of a Dask client, or threads on this machine for None.

    With `on` it is an engine of its own, which reports every pass to it.
    """
    if engine is None:
        return LocalEngine(n_jobs, on)
    if type(engine).__module__.partition(".")[0] == "distributed":
        from gnomon.engine.dask import DaskEngine

        remote: Engine = DaskEngine(engine, on=on)
        return remote
    if not all(
        hasattr(engine, method)
        for method in ("map", "reduce", "write", "workers", "is_local", "processes")
    ):
        must = "be None, a Dask client or an engine"
        refuse("engine", must, type(engine).__name__, "None works on this machine.", kind=True)
    chosen: Engine = engine
    if on is not None:
        chosen = copy.copy(engine)
        chosen.on = both(getattr(engine, "on", None), on)
    return chosen
