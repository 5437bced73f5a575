"""Whether the map of a table fits into memory, and of how many rows it is made if not of all."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gnomon.budget import Budget, Memory
from gnomon.data.preparation import Prepared
from gnomon.data.table import Table
from gnomon.estimate import map_bytes
from gnomon.pca import PCA
from gnomon.tsne.sampled import LEAST_SAMPLE, Sampling, choose_sample

__all__ = ["MapBudget", "check_fit", "sample_rows", "sample_within"]

# Of a row: its place, how far to trust it (twice), unusual or not, mapped or not: 30; and what a
# chart of all places takes for a moment: 40.
PLACE_BYTES = 70


def check_fit(
    table: Table,
    prepared: Prepared,
    pca: PCA,
    perplexity: float | None,
    memory: Memory = None,
    mapped: int | None = None,
) -> None:
    """Refuse a run that would not fit into the memory that the table leaves.

    `perplexity` is that of the map, None if there is none; `mapped` are the rows it is made of, if
    not all.
    """
    X, budget = prepared.X, Budget.from_memory(memory)
    n, d = X.shape
    needs = {"PCA": (n, pca.plan(X).peak_bytes)}
    if perplexity is not None:
        rows = n if mapped is None else mapped
        needs["a map"] = rows, map_bytes(rows, d, perplexity)
    what = max(needs, key=lambda name: needs[name][1])
    rows, needed = needs[what]
    size = f"{rows:,} × {d:,}"
    budget.check(f"{table.name}: {what} of {size} numbers", _held(table, prepared, budget) + needed)


def sample_rows(
    table: Table,
    prepared: Prepared,
    perplexity: float,
    sample: int | None = None,
    memory: Memory = None,
    seed: int = 0,
) -> Sampling | None:
    """Which rows are mapped while the others are placed; None if all fit."""
    n, d = prepared.X.shape
    if sample is None and n <= LEAST_SAMPLE:  # then it is all or nothing, which `check_fit` says
        return None
    budget = Budget.from_memory(memory)
    return sample_within(
        budget,
        table.name,
        n,
        asked=sample,
        needed=lambda rows: map_bytes(rows, d, perplexity),
        seed=seed,
        table=_held(table, prepared, budget),
    )


def sample_within(
    budget: Budget,
    name: str,
    n: int,
    *,
    asked: int | None,
    needed: Callable[[int], float],
    seed: int,
    **held: int,
) -> Sampling | None:
    """`choose_sample`, with what the user allowed in its refusal and in its reason.

    `held` are bytes that are taken of the budget already, by what takes them.
    """
    taken = sum(held.values())
    if asked is None:
        least = min(LEAST_SAMPLE, n)
        budget.check(f"{name}: a map of {least:,} rows", taken + needed(least))
    chosen = choose_sample(n, asked=asked, budget=budget.bytes - taken, needed=needed, seed=seed)
    if chosen is None or asked is not None:
        return chosen
    return replace(chosen, why=chosen.why + budget.rest(**held))


def _held(table: Table, prepared: Prepared, budget: Budget) -> int:
    """What the tables take of the budget.

    What the user allows is for all; of what the machine has free, the tables are taken already.
    """
    parts = (table.X, prepared.table.X, prepared.X)
    held = {id(part): part.nbytes for part in parts if not isinstance(part, np.memmap)}
    return sum(held.values()) if budget.asked else 0


@dataclass(frozen=True)
class MapBudget:
    """Memory for a map of some rows of a source, beside what is kept of all of them.

    Attributes
    ----------
    budget : Budget
    name : str
        Of the table, for messages.
    shape : tuple of int
    perplexity : float
    scores : int
        Bytes of the scores that are kept.
    processes : int
        Workers that place rows.
    """

    budget: Budget
    name: str
    shape: tuple[int, int]
    perplexity: float
    scores: int
    processes: int = 0

    def choose(self, asked: int | None = None, seed: int = 0) -> Sampling:
        """Which rows are mapped: as many as asked for, otherwise as many as fit.

        A map of every row is a map of a sample that holds all rows.
        """
        n = self.shape[0]
        return sample_within(
            self.budget, self.name, n, asked=asked, seed=seed, needed=self._needed, **self._held
        ) or Sampling(np.arange(n), n, seed, "there is memory for all")

    def check(self, sampling: Sampling) -> None:
        """Refuse more rows than fit: they may have been asked for."""
        m = sampling.rows.size
        map_ = map_bytes(m, self.shape[1], self.perplexity)
        self.budget.check(f"{self.name}: a map of {m:,} rows", map_ + self.beside(m))

    def beside(self, mapped: int) -> int:
        """Bytes that are kept beside the map itself, of all rows and of those mapped."""
        return sum(self._held.values()) + self._rows(mapped)

    @property
    def _held(self) -> dict[str, int]:
        return {"scores": self.scores, "places": PLACE_BYTES * self.shape[0]}

    def _rows(self, mapped: int) -> int:
        # They are here, and with what finds them in every worker that places others.
        return (1 + 2 * self.processes) * 8 * mapped * self.shape[1]

    def _needed(self, mapped: int) -> float:
        return map_bytes(mapped, self.shape[1], self.perplexity) + self._rows(mapped)
