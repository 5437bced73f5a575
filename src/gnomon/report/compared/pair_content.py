"""All contents of the page of a comparison, gathered once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts.words import count
from gnomon.procrustes.compare import Comparison, compare
from gnomon.procrustes.evidence import Evidence, find_evidence
from gnomon.procrustes.movement import find_moves, move_against_neighbors
from gnomon.procrustes.permute import PermutationTest
from gnomon.report.compared.group_changes import GroupChanges, find_groups
from gnomon.report.compared.pair_maps import draw_maps, is_map
from gnomon.report.content import versions
from gnomon.typing import Floats64

__all__ = ["CHANGED", "KEPT", "ComparedContent", "gather_comparison"]

CHANGED, KEPT = "changed company", "kept company"


@dataclass(frozen=True, eq=False)
class ComparedContent:
    """Contents of a page about two tables of the same rows.

    Attributes
    ----------
    title : str
    names : pair of str
        Names of the tables.
    widths : pair of int
        Numbers of columns of the tables.
    are_maps : bool
        Whether they are maps, rather than embeddings that were mapped.
    rows : array (n,)
        Rows that are shown, ascending: all, or a sample of very many.
    maps : pair of arrays (n, 2)
        Positions of the rows, in one frame.
    says : str
        How the maps were computed.
    found : Comparison
    evidence : Evidence
    kept, between, moved : array (n,)
        Fields of `Changes`, and movement in distances of neighbours.
    changed : array (n,) of bool
    near : pair of arrays (n, k)
        Nearest rows in both tables, as indices into the rows shown; the row itself if the
        nearest one is not shown.
    groups : GroupChanges or None
    reruns : tuple of Comparison
        The first table compared with reruns of its method.
    trust : pair of float, or None
        Share of neighbours in the data that each map preserves.
    same_data : bool
        Whether both maps are of the same numbers, so that these shares can be compared.
    command, python : str, optional
        How the page was made, and the same in Python.
    verdict : str, optional
        Whether a condition of --fail-if holds, in a sentence.
    """

    title: str
    names: tuple[str, str]
    widths: tuple[int, int]
    are_maps: bool
    rows: NDArray[np.intp]
    maps: tuple[Floats64, Floats64]
    says: str
    found: Comparison
    evidence: Evidence
    kept: Floats64
    between: Floats64
    moved: Floats64
    changed: NDArray[np.bool_]
    near: tuple[NDArray[np.int32], NDArray[np.int32]]
    groups: GroupChanges | None
    ids: tuple[str, NDArray[np.object_]] | None = None
    labels: tuple[tuple[str, NDArray[Any]], ...] = ()
    reruns: tuple[Comparison, ...] = ()
    trust: tuple[float, float] | None = None
    same_data: bool = False
    verdict: str | None = None
    command: str | None = None
    python: str | None = None
    notes: tuple[str, ...] = ()
    made: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of rows that are shown."""
        return len(self.rows)

    @property
    def company(self) -> NDArray[np.object_]:
        """The rows that changed company by name; None for all other rows."""
        company = np.full(self.n, None, dtype=object)
        company[self.changed] = CHANGED
        return company

    @property
    def size(self) -> str:
        """Rows and columns of both tables, in words."""
        a, b = (count(width, "column") for width in self.widths)
        return f"{self.found.n:,} shared rows, {a} and {b}"

    @property
    def about(self) -> str:
        """Subject of the page, in words."""
        return f"two {'maps' if self.are_maps else 'tables'} of {count(self.found.n, 'row')}"


def gather_comparison(
    found: Comparison,
    *,
    names: tuple[str, str],
    title: str | None = None,
    ids: tuple[str, NDArray[np.object_]] | None = None,
    labels: Sequence[tuple[str, NDArray[Any]]] = (),
    reruns: Sequence[Any] = (),
    test: PermutationTest | None = None,
    n_permutations: int = 999,
    random_state: Any = None,
    n_jobs: int | None = None,
    **said: Any,
) -> ComparedContent:
    """Combine the result of `compare` with everything else that the page shows.

    `ids` and `labels` are of all rows; `reruns` are other maps of the rows of the first table, in
    the same order. `said` are the other attributes of `ComparedContent`.
    """
    X, Y = (np.asarray(Z) for Z in found.tables)
    changes = found.changes
    rows = changes.rows
    first, second, how = draw_maps(X[rows], Y[rows], n_jobs)
    there, moved = find_moves(X, Y, n_jobs)
    changed = changes.between > changes.limit
    near = tuple(_among(each, rows, len(X)) for each in (changes.near_x, changes.near_y))
    labels = tuple((name, values[rows]) for name, values in labels)
    label = labels[0] if labels else None
    moves = there[rows], moved[rows]
    groups = find_groups((X[rows], Y[rows]), label, changes.kept, changed, moves, n_jobs)
    notes = list(said.pop("notes", ()))
    if len(rows) < found.n:
        notes.append(f"The page shows {len(rows):,} of {found.n:,} rows, drawn at random.")
    return ComparedContent(
        title=title or f"{names[0]} and {names[1]}",
        names=names,
        widths=(X.shape[1], Y.shape[1]),
        are_maps=is_map(X) and is_map(Y),
        rows=rows,
        maps=(first, second),
        says=how,
        found=found,
        evidence=find_evidence(
            found,
            test=test,
            n_permutations=n_permutations,
            random_state=random_state,
            n_jobs=n_jobs,
        ),
        kept=changes.kept,
        between=changes.between,
        moved=move_against_neighbors(there, moved, changes, n_jobs),
        changed=changed,
        near=(near[0], near[1]),
        groups=groups,
        ids=None if ids is None else (ids[0], ids[1][rows]),
        labels=labels,
        reruns=tuple(
            compare(X, Z, n_neighbors=found.n_neighbors, metric=found.metric, n_jobs=n_jobs)
            for Z in reruns
        ),
        notes=tuple(notes),
        made=date.today().isoformat(),
        versions=versions(),
        **said,
    )


def _among(near: NDArray[np.int32], rows: NDArray[np.intp], n: int) -> NDArray[np.int32]:
    """Convert rows `near` (m, k) to indices among `rows` (m,); the row itself if not shown."""
    if len(rows) == n:
        return near
    place = np.full(n, -1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    found = place[near]
    return np.where(found < 0, np.arange(len(rows), dtype=np.int32)[:, None], found)
