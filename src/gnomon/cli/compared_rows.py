"""The rows of a comparison, one by one: which changed company, and neighbours lost and gained."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gnomon.cli.pairs import Pairing
    from gnomon.procrustes.compare import Comparison

__all__ = ["all_rows", "changed_ids", "changed_rows", "refuse_blocks"]


def _ids(pair: "Pairing") -> "NDArray[Any] | None":
    """Ids of the compared rows; numbers where they belong together by their order."""
    return None if pair.joined is None else pair.joined.ids_left[pair.joined.rows_left]


def changed_ids(pair: "Pairing", found: "Comparison") -> list[str]:
    """Rows that changed company, the most changed first; none of tables in blocks."""
    ids = _ids(pair)
    return [] if ids is None else ids[found.changes.changed].tolist()


def changed_rows(pair: "Pairing", found: "Comparison") -> dict[str, Any]:
    """The first rows that changed company, for JSON; nothing of tables in blocks."""
    import numpy as np

    from gnomon.cli.pairs import MOST_LISTED

    ids, changes = _ids(pair), found.changes
    if ids is None:
        return {}
    rows = []
    for row in changes.changed[:MOST_LISTED]:
        at = int(np.searchsorted(changes.rows, row))
        lost, gained = _exchanged(found, ids, at)
        rows.append(
            {
                "id": ids[row],
                "kept": float(changes.kept[at]),
                "between": float(changes.between[at]),
                "lost": lost,
                "gained": gained,
            }
        )
    return {"changed_rows": rows}


def _exchanged(found: "Comparison", ids: "NDArray[Any]", at: int) -> tuple[list[str], list[str]]:
    """Neighbours that a row lost and gained, nearest first."""
    before, after = found.changes.near_x[at].tolist(), found.changes.near_y[at].tolist()
    lost, gained = set(before) - set(after), set(after) - set(before)
    return [ids[i] for i in before if i in lost], [ids[i] for i in after if i in gained]


def refuse_blocks(pair: "Pairing") -> None:
    """Refuse --rows for tables in blocks, whose rows are not examined one by one."""
    from gnomon.errors import ParameterError

    if pair.joined is None:
        raise ParameterError("--rows needs tables that fit into memory. Leave it out.")


def all_rows(pair: "Pairing", found: "Comparison") -> dict[str, Any]:
    """Every row of both tables, as columns; of very many rows, only some were examined."""
    import numpy as np

    ids, changes = _ids(pair), found.changes
    assert ids is not None  # `refuse_blocks`
    alone = pair.alone()
    n = sum(map(len, alone))
    kept, between = (np.full(len(ids) + n, np.nan) for _ in range(2))
    kept[changes.rows], between[changes.rows] = changes.kept, changes.between
    texts = np.full((2, len(ids) + n), "", dtype=object)
    for at, row in enumerate(changes.rows.tolist()):
        texts[:, row] = ["; ".join(map(str, each)) for each in _exchanged(found, ids, at)]
    where = np.repeat(np.array(["both", "a", "b"], object), [len(ids), *map(len, alone)])
    named = np.concatenate([ids, *(np.array(each, object) for each in alone)])
    return {
        "row" if pair.by is None else pair.by: named,
        "found_in": where,
        "neighbours_kept": kept,
        "rows_between": between,
        "changed": between > changes.limit,
        "lost": texts[0],
        "gained": texts[1],
    }
