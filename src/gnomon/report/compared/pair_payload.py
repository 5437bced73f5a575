"""The data in the page of a comparison, in the format of `web/src/pair.ts`."""

import hashlib

import numpy as np

from gnomon.charts.words import count
from gnomon.report.compared.pair_content import KEPT, ComparedContent
from gnomon.report.encode import (
    Part,
    category_field,
    label_field,
    map_part,
    number_field,
    row_numbers,
    texts,
)
from gnomon.report.payload import Payload, script_text

__all__ = ["compared_payload"]

NEIGHBORS = 5  # neighbours of each row that are drawn
MOST_LABELS = 8


def compared_payload(content: ComparedContent, says: tuple[str, ...]) -> Payload:
    """Encode maps, neighbours in both tables, and the changes of each row."""
    k = content.found.n_neighbors
    first, second = (
        [row_numbers(rank, content.n) for rank in near[:, :NEIGHBORS].T] for near in content.near
    )
    fields = [label_field(name, values) for name, values in content.labels[:MOST_LABELS]]
    fields += [
        category_field("company", content.company) | {"none": KEPT, "scattered": True},
        number_field("moved against neighbours", content.moved)
        | {"about": "movement of a row less that of its neighbours, in their mean distance"},
    ]
    about = f"share of a row's {k} nearest rows that it has in both tables"
    data: Part = {
        "title": content.title,
        "source": content.title,
        "caption": f"{content.names[0]} and {content.names[1]}: {count(content.n, 'row')}.",
        "says": list(says),
        "rows": content.n,
        "space": content.names[0],
        "maps": [map_part(name, Y) for name, Y in zip(content.names, content.maps, strict=True)],
        "labels": fields,
        "trust": number_field("neighbours kept", content.kept) | {"about": about},
        "density": None,
        "ids": _ids(content),
        "texts": None,
        "links": None,
        "pictures": None,
        "replay": None,
        "neighbors": first,
        "components": [],
        "columns": {"names": None, "held": [], "numbered": None},
        "pair": {
            "neighbors": second,
            "changed": row_numbers(np.flatnonzero(content.changed), content.n),
        },
    }
    data["digest"] = hashlib.sha256(script_text(data).encode()).hexdigest()[:16]
    return Payload(script_text(data), content.notes)


def _ids(content: ComparedContent) -> Part | None:
    if content.ids is not None:
        return {"name": content.ids[0], "texts": texts([str(v) for v in content.ids[1].tolist()])}
    if content.n == content.found.n:
        return None
    return {"name": "row", "numbers": row_numbers(content.rows, int(content.rows.max()) + 1)}
