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


def from_2(document: Document) -> Document:
    """Certificates of PCA said less; maps knew one limit; descents had gains.

    Limits of residuals are not known of former maps: they go on by distances alone; nor is KL over
    all pairs. A run that was
    among its 250 exaggerated iterations goes on with exaggeration that falls from here on; momentum
    is what suits any kernel.
    """
    today = _with_steps(_with_novelty(_with_fuller_certificates(document)))
    return {**today, "version": 3}


def _with_novelty(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_novelty(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_novelty(item) for key, item in value.items()}
    if "_typical" in found and "_ratio_limit" in found:
        limit = found.pop("_ratio_limit")
        found["_novelty"] = {"distance_limit": limit, "residual_limit": None,
                             "residual_unit": 1.0, "auxiliary": None}  # fmt: skip
    return found


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


def _with_steps(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_steps(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_steps(item) for key, item in value.items()}
    state, schedule = found.get("_state"), found.get("_schedule")
    if not (isinstance(state, dict) and isinstance(schedule, dict) and "gains" in state):
        return found
    done, early = state.get("iteration"), schedule.get("early_iter")
    if not (isinstance(done, int) and isinstance(early, int)):
        return found  # refused when it is unpacked
    never = {"$float": "inf"}
    kept = {key: item for key, item in state.items() if key not in ("gains", "best_kl")}
    found["_state"] = {
        **kept, "lowered": 0, "rested": 0, "objective": never, "best_objective": never,
        "best_iteration": 0, "ended": None,
    }  # fmt: skip
    found["_schedule"] = {
        **schedule, "early_iter": min(done, early), "anneal_iter": 100 if done < early else 0,
        "momentum": 0.95, "tolerance": 0.02, "usual_iter": 70,
    }  # fmt: skip
    found["_truncation"] = None
    if isinstance(certificate := found.get("certificate_"), dict):
        certificate |= {"exact_kl": None, "exact_kl_error": 0.0, "exact_kl_rows": 0}
    return found


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
