"""An engine that tells how far each of its passes over a source is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from gnomon.engine.engine import Done, Engine
from gnomon.engine.source import Block, Source

T = TypeVar("T")

__all__ = ["WatchedEngine"]


@dataclass(frozen=True)
class WatchedEngine:
    """`engine`, and ``told(rows done, rows of the pass)`` after every block."""

    engine: Engine
    told: Callable[[int, int], object]

    @property
    def workers(self) -> int:
        """As many as the engine's."""
        return self.engine.workers

    @property
    def processes(self) -> int:
        """As many as the engine's."""
        return self.engine.processes

    def map(
        self,
        function: Callable[[Block], T],
        source: Source,
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> list[T]:
        """See `Engine.map`."""
        return self.engine.map(function, source, beside=beside, done=self._both(source, done))

    def reduce(
        self,
        function: Callable[[Block], T],
        source: Source,
        combine: Callable[[T, T], T],
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> T:
        """See `Engine.reduce`."""
        both = self._both(source, done)
        return self.engine.reduce(function, source, combine, beside=beside, done=both)

    def write(
        self,
        function: Callable[[Block], T],
        source: Source,
        add: Callable[[T], object],
        *,
        beside: Sequence[Any] | None = None,
        done: Done | None = None,
    ) -> None:
        """See `Engine.write`."""
        self.engine.write(function, source, add, beside=beside, done=self._both(source, done))

    def _both(self, source: Source, done: Done | None) -> Done:
        of = sum(partition.rows for partition in source.partitions)  # there may be gaps

        def tell(rows: int) -> None:
            self.told(rows, of)
            if done is not None:
                done(rows)

        return tell
