"""Whether a run fits into memory, and how many rows its map is computed from if not all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gnomon.budget import Budget
from gnomon.data.preparation import Prepared
from gnomon.data.table import SHOWN, Table
from gnomon.inputs.csr import stored_bytes
from gnomon.pca import PCA
from gnomon.pipeline.estimate import map_bytes
from gnomon.tsne.sampled import LEAST_SAMPLE, Sampling, choose_sample

__all__ = ["MOST_COMPONENTS", "RunBudget", "sample_within"]

MOST_COMPONENTS = 10  # components whose scores are kept, and written, with a map
# Bytes per row: position, trust (twice), novelty and sampling flags: 30; and the temporary memory
# of a chart of all positions: 40.
PLACE_BYTES = 70


@dataclass(frozen=True)
class RunBudget:
    """Memory for the PCA and the map of a table, beyond what is held of it.

    Attributes
    ----------
    budget : Budget
    table : Table
    prepared : Prepared
    pca : PCA
    perplexity : float or None
        Perplexity of the map; None if there is none.
    processes : int
        Number of workers of this machine that place rows.
    """

    budget: Budget
    table: Table
    prepared: Prepared
    pca: PCA
    perplexity: float | None = None
    processes: int = 0

    def choose(self, asked: int | None = None, seed: int = 0) -> Sampling | None:
        """Choose the rows of the map: `asked`, otherwise as many as fit; None for all."""
        n = self.prepared.X.shape[0]
        if asked is None and n <= LEAST_SAMPLE:  # all or nothing, which `check` decides
            return None
        return sample_within(
            self.budget,
            self.table.name,
            n,
            asked=asked,
            seed=seed,
            needed=self._map_bytes,
            **self._held,
        )

    def check(self, sampling: Sampling | None = None) -> None:
        """Refuse what does not fit before it begins: the map, and the PCA of a table in memory.

        The PCA of a table in blocks chooses a solver that fits, or refuses itself.
        """
        n, d = self.prepared.X.shape
        needs: dict[str, float] = {}
        if not self.table.in_blocks:
            needs[f"PCA of {n:,} × {d:,} numbers"] = self.pca.plan(self.prepared.X).peak_bytes
        if self.perplexity is not None:
            rows = n if sampling is None else sampling.rows.size
            needs[f"a map of {rows:,} rows"] = self._map_bytes(rows)
        if needs:
            what = max(needs, key=lambda name: needs[name])
            held = sum(self._held.values())
            self.budget.check(f"{self.table.name}: {what}", held + needs[what])

    def beside(self, mapped: int) -> int:
        """Bytes of a table in blocks that are held during its map of `mapped` rows."""
        if not self.table.in_blocks:
            return 0
        return sum(self._held.values()) + self._mapped_bytes(mapped)

    @property
    def _held(self) -> dict[str, int]:
        """Bytes of the budget in use, by what takes them."""
        if not self.table.in_blocks:
            return {"table": self._table_bytes()}
        n, d = self.prepared.X.shape
        k = self.pca.n_components  # unknown yet for a share such as 90 %
        most = min(MOST_COMPONENTS, d, k if isinstance(k, int) else d)
        return {"scores": 4 * n * most, "places": PLACE_BYTES * n, "names": names_bytes(self.table)}

    def _table_bytes(self) -> int:
        """Bytes of the tables that count towards the budget.

        A budget set by the user includes them; the free memory of the machine already excludes
        them.
        """
        parts = (self.table.X, self.prepared.table.X, self.prepared.X)
        held = {id(part): stored_bytes(part) for part in parts if not isinstance(part, np.memmap)}
        return sum(held.values()) if self.budget.asked else 0

    def _map_bytes(self, mapped: int) -> float:
        assert self.perplexity is not None
        d = self.prepared.X.shape[1]
        return map_bytes(mapped, d, self.perplexity) + self._mapped_bytes(mapped)

    def _mapped_bytes(self, mapped: int) -> int:
        """Bytes of the mapped rows of blocks: here, and with their search in every worker."""
        if not self.table.in_blocks:
            return 0
        X = self.prepared.X
        row = X.nbytes / X.shape[0] if X.is_sparse else 8 * X.shape[1]
        return int((1 + 2 * self.processes) * mapped * row)


def names_bytes(table: Table) -> int:
    """Bytes of names, colours and descriptions of the rows of a table."""
    shown = [getattr(table, role) for role in SHOWN]
    columns: list[Any] = [table.ids, table.labels, *(values for _, values in table.others)]
    columns += [pair[1] for pair in shown if pair is not None]
    return sum(int(column.nbytes) for column in columns if column is not None)


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
    """Choose a sample, with the budget of the user in its refusal and its reason.

    `held` are bytes of the budget already in use, by what takes them.
    """
    taken = sum(held.values())
    if asked is None:
        least = min(LEAST_SAMPLE, n)
        budget.check(f"{name}: a map of {least:,} rows", taken + needed(least))
    chosen = choose_sample(n, asked=asked, budget=budget.bytes - taken, needed=needed, seed=seed)
    if chosen is None or asked is not None:
        return chosen
    return replace(chosen, why=chosen.why + budget.rest(**held))
