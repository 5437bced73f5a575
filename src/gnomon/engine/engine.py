"""What an engine is: the partitions of a source worked through, in one of three ways.

All three read every partition once, run ``function(block)`` on it wherever there is room, and hand
the results over in the order of the partitions. A function that is to run on a cluster is one that
can be pickled, with little data of its own; what belongs to single partitions (weights of rows)
goes beside them. ``done(rows)`` is told how many rows have been worked through so far, on the
calling side, and may raise to stop.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from gnomon.engine.local import LocalEngine
from gnomon.engine.source import Block, Source
from gnomon.errors import refuse

T = TypeVar("T")
Done = Callable[[int], object]

__all__ = ["Done", "Engine", "as_engine"]


class Engine(Protocol):
    """Who works through the partitions of a source."""

    @property
    def workers(self) -> int:
        """How many blocks are worked on in this process at the same time, at most."""

    @property
    def processes(self) -> int:
        """How many other processes of this machine work for this one, and take of its memory."""

    def map(
        self,
        function: Callable[[Block], T],
        source: Source,
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> list[T]:
        """``[function(block) for every block]``, for results that are small."""

    def reduce(
        self,
        function: Callable[[Block], T],
        source: Source,
        combine: Callable[[T, T], T],
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
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
        done: Done | None = None,
    ) -> None:
        """Call ``add(result)`` for one block after the other, here, in order.

        Results wait for their turn, and only a few of them at a time.
        """


def as_engine(engine: Any = None, *, n_jobs: int | None = None) -> Engine:
    """`engine` itself, the engine of a Dask client, or threads on this machine for None."""
    if engine is None:
        return LocalEngine(n_jobs)
    if type(engine).__module__.partition(".")[0] == "distributed":
        from gnomon.engine.dask import DaskEngine

        remote: Engine = DaskEngine(engine)
        return remote
    if not all(
        hasattr(engine, method) for method in ("map", "reduce", "write", "workers", "processes")
    ):
        must = "be None, a Dask client or an engine"
        refuse("engine", must, type(engine).__name__, "None works on this machine.", kind=True)
    chosen: Engine = engine
    return chosen
