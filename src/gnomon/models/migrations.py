"""How files of former formats become files of today's.

A change of the format raises `VERSION` and adds one function here, from the document (`model.json`
as it was read) of the version before to the next. Each has an example file in `tests/references`.
"""

import math
from collections.abc import Callable
from typing import Any

__all__ = ["MIGRATIONS", "VERSION"]

VERSION = 3

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


def from_1(document: Document) -> Document:
    """Searches said whether float32 could tell their rows apart; now they find that out row by row.

    Nothing of the answer depended on it.
    """
    return {**_without_too_near(document), "version": 2}


def _without_too_near(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_too_near(item) for item in value]
    if not isinstance(value, dict):
        return value
    search = "few_probes" in value
    return {
        key: _without_too_near(item)
        for key, item in value.items()
        if not (search and key == "too_near")
    }


def from_2(document: Document) -> Document:
    """Certificates of PCA said less."""
    return {**_with_fuller_certificates(document), "version": 3}


def _with_fuller_certificates(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_fuller_certificates(item) for item in value]
    if not isinstance(value, dict):
        return value
    today = {key: _with_fuller_certificates(item) for key, item in value.items()}
    if not {"angle_bounds", "inseparable", "formation_error"} <= value.keys():
        return today
    groups = value["inseparable"]
    count = len(groups["$tuple"]) if isinstance(groups, dict) and "$tuple" in groups else 0
    any_angle = {"$tuple": [math.pi / 2] * count}
    return {**today, "space_bounds": any_angle, "missing_angles": None}


MIGRATIONS: dict[int, Callable[[Document], Document]] = {0: from_0, 1: from_1, 2: from_2}
