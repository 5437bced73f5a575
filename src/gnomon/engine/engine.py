"""The contract of an engine: process the partitions of a source in one of three ways.

All three read every partition once, run ``function(block)`` on it wherever there is capacity, and
deliver the results in the order of the partitions. A function for a cluster must be picklable and
carry little data; data of single partitions (weights of rows) is passed in `beside`.
``on(event)`` is called in this process with the rows done in a pass; returning True raises
`Interrupted`.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from gnomon.engine.source import Block, Source
from gnomon.engine.tree_sum import Tree
from gnomon.errors import DataError, refuse
from gnomon.events import On, both

T = TypeVar("T")

__all__ = ["Engine", "as_engine"]


class Engine(Protocol):
    """Processes the partitions of a source.

    Attributes
    ----------
    on : callable or None
        Called with an event after every block of every pass, besides the `on` of a single pass.
    is_local : bool
        Whether all work is done in this process.
    processes : int
        Number of other processes of this machine that work for this one and share its memory.
    """

    on: On | None
    is_local: bool
    processes: int

    @property
    def workers(self) -> int:
        """Maximum number of blocks that are processed in this process at the same time."""

    def map(
        self,
        function: Callable[[Block], T],
        source: Source,
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> list[T]:
        """Return ``[function(block) for every block]``, for results that are small."""
        results: list[T] = []
        self.write(function, source, results.append, beside=beside, on=on)
        return results

    def reduce(
        self,
        function: Callable[[Block], T],
        source: Source,
        combine: Callable[[T, T], T],
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> T:
        """Add up the results by `combine`, in the tree of `gnomon.engine.tree_sum`.

        `combine` returns a new sum and does not modify its operands.
        """
        if not source.partitions:
            raise DataError("The source has no rows. Add rows.")
        tree = Tree(combine)
        self.write(function, source, tree.add, beside=beside, on=on)
        return tree.total()

    def write(
        self,
        function: Callable[[Block], T],
        source: Source,
        add: Callable[[T], object],
        *,
        beside: Sequence[Any] | None = None,
        on: On | None = None,
    ) -> None:
        """Call ``add(result)`` for one block after the other, in this process, in order.

        Results wait for their turn, only a few of them at a time.
        """


def as_engine(engine: Any = None, *, n_jobs: int | None = None, on: On | None = None) -> Engine:
    """Return `engine` itself, the engine of a Dask client, or local threads for None.

    With `on`, returns a new engine that reports every pass to it.
    """
    if engine is None:
        from gnomon.engine.local import LocalEngine

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
        refuse("engine", must, type(engine).__name__, "Use None for threads.", kind=True)
    chosen: Engine = engine
    if on is not None:
        chosen = copy.copy(engine)
        chosen.on = both(getattr(engine, "on", None), on)
    return chosen
