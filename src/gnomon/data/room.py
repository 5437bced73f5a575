"""How much memory may be used, whose libraries take a part of it, and how that is said."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from gnomon.data.refusals import RoomError, libraries_words
from gnomon.errors import TooLargeError
from gnomon.memory import LIBRARIES, available_bytes, parse_bytes, readable_bytes

__all__ = ["Memory", "Room"]


@dataclass(frozen=True)
class Room:
    """Bytes that may be used, and whether the user said so.

    Attributes
    ----------
    bytes : int
        For tables and the work on them.
    asked : bool
        Whether the user allowed them; otherwise they are what the machine has free.
    processes : int
        Whose libraries are counted in what the user allowed: with a command, its own process and
        its workers; 0 from Python, where all of it is for the work.
    """

    bytes: int
    asked: bool
    processes: int = 0

    @classmethod
    def of(cls, memory: "Memory") -> "Room":
        """What `memory` says, otherwise what the machine has free."""
        if isinstance(memory, Room):
            return memory
        if memory is None:
            return cls(available_bytes(), asked=False)
        return cls(parse_bytes(memory), asked=True)

    @property
    def limit(self) -> int | None:
        """The bytes, where the user allowed them."""
        return self.bytes if self.asked else None

    def each(self, workers: int) -> int | None:
        """The same for each of several processes that work side by side, asked for or not."""
        return self.limit if workers < 2 else self.bytes // workers

    @property
    def allowed(self) -> int:
        """What the user allowed in all."""
        return self.bytes + self.processes * LIBRARIES

    def shared(self, processes: int) -> "Room":
        """The same with the libraries of so many more processes counted; may have none left."""
        left = self.bytes - processes * LIBRARIES
        return replace(self, bytes=left, processes=self.processes + processes)

    def check(self, what: str, needed: float, *, at_least: bool = False) -> None:
        """Refuse `what` before anything is allocated if it needs more."""
        if needed > self.bytes:
            raise RoomError(
                what, None if at_least else needed, self.bytes,
                asked=self.asked, processes=self.processes,
            )  # fmt: skip

    def rest(self, **held: int) -> str:
        """What was allowed, if anything, and what takes the rest of it, to go on with a sentence.

        `held` are bytes by what takes them, such as ``table=…``:

            … of the 1.0 GB allowed: 300 MB are for the libraries, 200 MB for the table
        """
        taken = self._taken(held)
        return f" of the {readable_bytes(self.allowed)} allowed: {taken}" if taken else ""

    def _taken(self, held: Mapping[str, int]) -> str:
        """``"300 MB are for the libraries, 200 MB for the table"``, of what the user allowed."""
        parts = [(f"the {name}", bytes_) for name, bytes_ in held.items() if bytes_]
        if self.processes:
            parts.insert(0, (libraries_words(self.processes), self.processes * LIBRARIES))
        if not (parts and self.asked):
            return ""
        (first, most), *others = parts
        words = [f"{readable_bytes(most)} are for {first}"]
        return ", ".join(
            words + [f"{readable_bytes(bytes_)} for {name}" for name, bytes_ in others]
        )

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Refusals within, which know no libraries, say what these take of what was allowed."""
        try:
            yield
        except TooLargeError as error:
            if isinstance(error, RoomError) or not self.processes:
                raise
            allowed = readable_bytes(self.allowed)
            raise TooLargeError(f"{error} Of the {allowed} allowed, {self._taken({})}.") from error


# Bytes, a size such as "2GB", or a command's room; None is what the machine has free.
Memory: TypeAlias = int | str | Room | None
