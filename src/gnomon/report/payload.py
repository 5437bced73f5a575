"""The data in a page, for its map, search and comparisons, within a budget of bytes.

The most valuable data are added first. When room runs out, columns are left out first (those with
the smallest contributions before the others), then scores of the components (the last before the
first), neighbours (the farthest before the nearest), further columns to colour by, links, texts
(shortened first), pictures (fewer first), ids, and last the PCA map. Room that is too small for one
item may still be used for a later one. The map, its first colour and the trust of each row are
always included.

Very many rows are in Morton order over the map (`content.in_map_order`), and their
positions are differences along the curve. Rows without ids have their numbers in the table, if
there is room.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gnomon.charts.projection import seen
from gnomon.charts.words import count
from gnomon.report.content import SUGGESTED, PageContent
from gnomon.report.encode import (
    Part,
    category_field,
    label_field,
    map_bits,
    map_part,
    morton_part,
    number_field,
    row_numbers,
    texts,
    whole_numbers,
)
from gnomon.report.pictures import pack_pictures

__all__ = ["PAGE_BUDGET", "Payload", "payload", "script_text"]

PAGE_BUDGET = 3_000_000  # bytes
DENSITY_STEPS = 250  # distinguishable shades, in one byte
# Shares of the remaining room that pictures, texts and the replay may take.
OF_PIXELS, OF_PICTURES, OF_TEXTS, OF_REPLAY = 0.8, 0.6, 0.6, 0.6
TEXT_LENGTHS = (4_000, 1_000, 400, 160, 80)  # characters of a text: the longest that fits is used
LINK_LENGTH = 2_000
MEANING = "Neighbours are alike; gaps and axes mean little."
REPLAY_STEPS = 4_095  # positions along the longer side of a frame

# More components than these say little about a group of rows, and more columns make a list too long
# to read; the budget is not spent on them.
MOST_COMPONENTS = 16
MOST_COLUMNS = 500
NOTES = 2_000  # bytes reserved for the notes about what was left out
LEVELS = 254  # levels of a score or a correlation in one byte; even, so none is exactly 0


@dataclass(frozen=True)
class Payload:
    """The data of a page.

    Attributes
    ----------
    text : str
        JSON that is safe in a ``<script type="application/json">``.
    notes : tuple of str
        Sentences about what was rounded or left out.
    """

    text: str = field(repr=False)
    notes: tuple[str, ...]


def payload(
    content: PageContent, *, budget: int = PAGE_BUDGET, says: Sequence[str] = ()
) -> Payload:
    """Encode the data of the page that shows `content`.

    Parameters
    ----------
    content : PageContent
    budget : int
        Bytes for the data: the budget of the page less its other parts.
        Data that cannot be left out are added even if they exceed it.
    says : sequence of str
        Sentences beside the map.
    """
    room = _Room(budget - NOTES)
    notes: list[str] = []
    data: Part = {
        "title": content.title,
        "source": content.source,
        "caption": _caption(content),
        "says": list(says),
        "rows": content.n,
        "space": content.space,
        "maps": _maps(content, room, notes),
    }
    data["labels"] = [label_field(name, values) for name, values in content.labels[:1]]
    if content.suggested is not None:
        suggested = category_field(SUGGESTED, content.suggested)
        data["labels"].append(suggested | {"suggested": True, "none": "in no group"})
    data["trust"] = data["density"] = None
    if content.trust is not None:
        near = "nearest row" if content.trusted == 1 else f"{content.trusted} nearest rows"
        about = f"share of a row's {near} in the data that the map keeps near"
        data["trust"] = number_field("trust", content.trust) | {"about": about}
    if content.density is not None:
        about = f"share of rows that lie in sparser parts of the data; {_unseen(content)}"
        shades = np.rint(DENSITY_STEPS * content.density) / DENSITY_STEPS
        data["density"] = number_field("density in the data", shades) | {"about": about}
    room.take(data)
    _put_ids(data, content, room, notes)
    _put_pictures(data, content, room, notes)
    _put_texts(data, content, room, notes)
    _put_labels(data, content, room, notes)
    _put_neighbors(data, content, room, notes)
    _put_replay(data, content, room, notes)
    _put_components(data, content, room, notes)
    _put_columns(data, content, room, notes)
    data["digest"] = hashlib.sha256(script_text(data).encode()).hexdigest()[:16]
    return Payload(script_text(data), tuple(notes))


def _caption(content: PageContent) -> str:
    """Caption of a figure of the map."""
    table = f"{count(content.n, 'row')}, {count(content.d, 'column')}"
    if content.Y is None:
        return f"{table}, placed by their scores on the first two principal components."
    said = f"A given map of {table}."
    if content.tsne is not None:
        shape = np.atleast_1d(np.asarray(content.tsne.perplexity, float))
        scale = " and ".join(f"{value:.3g}" for value in shape)
        said = f"t-SNE of {table} (perplexity {scale}). {MEANING}"
    if content.trust is None:
        return said
    kept = f"{100 * float(content.trust.mean()):.0f}\u00a0%"
    return f"{said} The map keeps {kept} of each row's {content.trusted} nearest rows."


def _unseen(content: PageContent) -> str:
    return "a map may not show it" if content.made_elsewhere else "t-SNE does not show it"


class _Room:
    """Remaining bytes."""

    def __init__(self, budget: int) -> None:
        self.left = budget

    def take(self, part: Any) -> None:
        self.left -= len(script_text(part)) + 1

    def takes(self, part: Any) -> bool:
        """Whether `part` still fits; if so, its bytes are subtracted."""
        size = len(script_text(part)) + 1
        if size > self.left:
            return False
        self.left -= size
        return True


def _maps(content: PageContent, room: _Room, notes: list[str]) -> list[Part]:
    """Encode the map shown first, and if there is room its other sides and the PCA map."""
    first_part = map_part if content.row_numbers is None else morton_part
    if content.row_numbers is not None:
        steps = 2 ** map_bits(content.n) - 1
        notes.append(f"Positions are rounded to 1/{steps:,} of the map's longer side.")
    if content.Y is None:
        return [first_part("PCA", content.pca_map)]
    seen_first, *others = _views(content.Y, content.map_name)
    maps = [first_part(*seen_first)]
    if content.Y.shape[1] == 1:
        notes.append("The map has one dimension; its height is only for points to be seen.")
    for name, positions in (*others, ("PCA", content.pca_map)):
        other = map_part(name, positions)
        # Half of the room: the rest is for data about the map.
        if len(script_text([*maps[1:], other])) <= room.left / 2:
            maps.append(other)
        else:
            notes.append(f"The {name} map was left out" + TO_FIT)
    return maps


TO_FIT = ", to stay within the page's budget (--page-budget)."


def _views(Y: NDArray[Any], name: str) -> list[tuple[str, NDArray[np.float64]]]:
    """A map in the plane; a 3-D map from its three sides, each in two dimensions."""
    if Y.shape[1] == 1:
        return [(name, seen(Y, (0.0, 0.0))[0])]
    Y = np.asarray(Y, np.float64)
    if Y.shape[1] == 2:
        return [(name, Y)]
    sides = {f"{name} 1·2": [0, 1], "1·3": [0, 2], "2·3": [1, 2]}
    return [(side, Y[:, axes]) for side, axes in sides.items()]


def _put_ids(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    """Add names of rows, and their numbers in the table if these do not count on from 0.

    Numbers of rows in map order take many bytes, and are left out if the rows have ids.
    """
    data["ids"] = data["row_numbers"] = None
    data["renumbered"] = content.numbers is not None
    if content.ids is not None:
        name, values = content.ids
        part = {"name": name, "texts": texts([str(value) for value in values.tolist()])}
        if room.takes(part):
            data["ids"] = part
            if content.row_numbers is not None:
                return
        else:
            notes.append(f"The ids in {name} were left out and rows have numbers instead" + TO_FIT)
    if content.numbers is not None:
        numbers = row_numbers(content.numbers, int(content.numbers.max()) + 1)
        if room.takes(numbers):
            data["row_numbers"] = numbers
        elif data["ids"] is None:
            notes.append("Rows are numbered along the map and not as in the table" + TO_FIT)


def _put_pictures(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    data["pictures"] = None
    if content.pictures is None:
        return
    share = OF_PIXELS if content.pixels is not None else OF_PICTURES
    positions = content.pca_map if content.Y is None else content.Y[:, :2]
    part, said = pack_pictures(content.pictures, positions, int(share * max(0, room.left)))
    notes += said
    if part is not None and room.takes(part):
        data["pictures"] = part


def _put_texts(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    """Add texts of rows, whole or shortened to fit, and links."""
    data["texts"] = data["links"] = None
    if content.texts is not None:
        name, values = content.texts
        longest = max((len(str(value)) for value in values.tolist()), default=0)
        most = OF_TEXTS * room.left
        for length in TEXT_LENGTHS:
            part = {"name": name, "texts": texts([str(v)[:length] for v in values.tolist()])}
            if len(script_text(part)) <= most and room.takes(part):
                data["texts"] = part
                if longest > length:
                    notes.append(f"Texts in {name} are shortened to {length:,} letters.")
                break
        else:
            notes.append(f"The texts in {name} were left out" + TO_FIT)
    if content.links is not None:
        name, values = content.links
        links = {"name": name, "texts": texts([str(v)[:LINK_LENGTH] for v in values.tolist()])}
        if room.takes(links):
            data["links"] = links
        else:
            notes.append(f"The links in {name} were left out" + TO_FIT)


def _put_replay(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    """Add frames of the descent, each as the differences from the one before."""
    data["replay"] = None
    if not content.replay:
        return
    frames = np.stack([places[:, :2] for _, places in content.replay]).astype(np.float64)
    low = frames.min(axis=(0, 1))
    step = float((frames.max(axis=(0, 1)) - low).max()) / REPLAY_STEPS or 1.0
    codes = np.rint((frames - low) / step).astype(np.uint16)
    changes = np.diff(codes, axis=0, prepend=np.zeros_like(codes[:1]))  # wraps around at 65,536
    part = {
        "iterations": [int(iteration) for iteration, _ in content.replay],
        "low": low.tolist(),
        "step": step,
        "frames": [{"x": whole_numbers(c[:, 0]), "y": whole_numbers(c[:, 1])} for c in changes],
    }
    if len(script_text(part)) <= OF_REPLAY * room.left and room.takes(part):
        data["replay"] = part
    else:
        notes.append("The replay was left out" + TO_FIT)


def _put_labels(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    fields = [label_field(name, values) for name, values in content.labels[1:]]
    # What a test said of rows all over the map is no name of a place on it.
    fields += [label_field(name, values) | {"scattered": True} for name, values in content.tested]
    gone = []
    for part in fields:
        if room.takes(part):
            data["labels"].append(part)
        else:
            gone.append(part["name"])
    if gone:
        notes.append(f"Left out of the colours: {', '.join(gone)}" + TO_FIT)


def _put_neighbors(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    data["neighbors"] = []
    for rank in content.neighbors.T:
        part = row_numbers(rank, content.n)
        if not room.takes(part):
            break
        data["neighbors"].append(part)
    held, known = len(data["neighbors"]), content.neighbors.shape[1]
    if held < known:
        kept = (
            f"{held} of the {known} neighbours of each row" if held else "no neighbours of the rows"
        )
        notes.append(f"The page holds {kept}" + TO_FIT)


def _put_components(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    """Add scores in 256 steps, and the correlations of all columns (`PCA.correlations`)."""
    data["components"] = []
    # If single columns have no meaning, rows are not compared by them.
    data["columns"] = {"names": None, "held": [], "numbered": content.numbered}
    names = texts(list(content.names))
    if not room.takes(names):
        notes.append("The names of the columns were left out" + TO_FIT)
        return
    data["columns"]["names"] = names
    shares = np.nan_to_num(content.pca.explained_variance_ratio_)
    if content.of_components:  # shares of what these hold, not of the variance of the data
        shares = np.zeros_like(shares)
    correlations = content.pca.correlations()
    most = min(MOST_COMPONENTS, content.scores.shape[1])
    for c in range(most):
        part = _component(content.scores[:, c], float(shares[c]), correlations[:, c])
        if not room.takes(part):
            kept = f"the scores of {count(c, 'component')}" if c else "no scores of components"
            notes.append(f"The page holds {kept}" + TO_FIT)
            break
        data["components"].append(part)


def _component(scores: NDArray[Any], share: float, correlations: NDArray[Any]) -> Part:
    low, high = float(scores.min()), float(scores.max())
    step = (high - low) / LEVELS or 1.0
    return {
        "share": share,
        "low": low,
        "step": step,
        "scores": whole_numbers(np.rint((scores - low) / step).astype(np.uint8)),
        "correlations": whole_numbers(np.rint((correlations + 1) / 2 * LEVELS).astype(np.uint8)),
    }


def _put_columns(data: Part, content: PageContent, room: _Room, notes: list[str]) -> None:
    """Add columns in their own units, the largest contributions first."""
    X, held = content.X, data["columns"]["held"]
    if data["columns"]["names"] is None:
        return
    if X is None:
        notes.append("The page was built without the table: columns are estimated from the scores.")
        return
    for j in _by_contribution(content)[:MOST_COLUMNS]:
        part = number_field("", X[:, j]) | {"column": int(j)}
        if not room.takes(part):
            break
        held.append(part)
    held.sort(key=lambda part: int(part["column"]))
    # If single columns have no meaning, rows are not compared by them, and none is missing.
    if len(held) < content.d and content.numbered is None:
        some = (
            f"the values of {len(held):,} of {count(content.d, 'column')}"
            if held
            else ("no values of the columns")
        )
        those = ", those with the largest contributions" if held else ""
        which = "the others" if held else "they"
        notes.append(
            f"The page holds {some}{those}. How {which} differ is estimated from the components."
        )


def _by_contribution(content: PageContent) -> NDArray[np.intp]:
    """Columns by their contribution to the kept components, the largest first."""
    variances = np.asarray(content.pca.explained_variance_, dtype=np.float64)
    held = content.pca.contributions() @ variances
    return np.argsort(-held, kind="stable")


def script_text(value: Any) -> str:
    """JSON that cannot end a script or begin a comment, in ASCII."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")
