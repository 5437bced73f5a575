"""How files of former formats become files of today's.

A change of the format raises `VERSION` and adds one function here, from the document (`model.json`
as it was read) of the version before to the next. Each has an example file in `tests/references`.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["MIGRATIONS", "VERSION"]

VERSION = 1

Document = dict[str, Any]


def from_0(document: Document) -> Document:
    """Drafts before 0.1.0 held one model, its class and state side by side with the rest."""
    content = {
        "$model": document.pop("class", None),
        "state": {
            "parameters": document.pop("parameters", None),
            "attributes": document.pop("attributes", None),
        },
    }
    return {**document, "version": 1, "content": content}


MIGRATIONS: dict[int, Callable[[Document], Document]] = {0: from_0}
