"""Migrations of files in older formats to the current one.

A change of the format raises `VERSION` and adds one function here, from the document (the parsed
`model.json`) of the previous version to the next. Each has an example file in `tests/references`.
"""

import math
from collections.abc import Callable
from typing import Any

__all__ = ["MIGRATIONS", "VERSION"]

VERSION = 4

Document = dict[str, Any]


def from_0(document: Document) -> Document:
    """Wrap the single model of drafts before 0.1.0, whose class and state were at the top level."""
    content = {
        "$model": document.pop("class", None),
        "state": {
            "parameters": document.pop("parameters", None),
            "attributes": document.pop("attributes", None),
        },
    }
    return {**document, "version": 1, "content": content}


def from_1(document: Document) -> Document:
    """Drop the flag of searches for rows that float32 cannot separate, now decided row by row.

    The results never depended on it.
    """
    return {**_without_too_near(document), "version": 2}


def from_2(document: Document) -> Document:
    """Add certificate fields of PCA and novelty limits of maps; replace gains of descents.

    Older maps have no residual limits, so they use distances only, and no KL over all pairs. A run
    that was among its 250 exaggerated iterations continues with decreasing exaggeration; momentum
    is the value that suits any kernel.
    """
    today = _with_steps(_with_novelty(_with_fuller_certificates(document)))
    return {**today, "version": 3}


def from_3(document: Document) -> Document:
    """Rows compared for KL over all pairs had a regressor; descents had no stages of the user's."""
    return {**_with_stages(_without_regressor(document)), "version": 4}


def _with_stages(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_stages(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_stages(item) for key, item in value.items()}
    if {"anneal_iter", "early_exaggeration", "usual_iter"} <= value.keys():
        found |= {"exaggeration_stages": None, "momentum_stages": None}
    return found


def _without_regressor(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_regressor(item) for item in value]
    if not isinstance(value, dict):
        return value
    compared = {"rows", "entropy", "change", "last", "share"} == value.keys()
    return {
        key: _without_regressor(item)
        for key, item in value.items()
        if not (compared and key == "last")
    }


def _with_novelty(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_novelty(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_novelty(item) for key, item in value.items()}
    if "_typical" in found and "_ratio_limit" in found:
        limit = found.pop("_ratio_limit")
        found["_novelty"] = {
            "distance_limit": limit,
            "residual_limit": None,
            "residual_unit": 1.0,
            "auxiliary": None,
        }
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
        return found  # refused by `unpack`
    never = {"$float": "inf"}
    kept = {key: item for key, item in state.items() if key not in ("gains", "best_kl")}
    found["_state"] = {
        **kept,
        "lowered": 0,
        "rested": 0,
        "objective": never,
        "best_objective": never,
        "best_iteration": 0,
        "ended": None,
    }
    found["_schedule"] = {
        **schedule,
        "early_iter": min(done, early),
        "anneal_iter": 100 if done < early else 0,
        "momentum": 0.95,
        "tolerance": 0.02,
        "usual_iter": 70,
    }
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


MIGRATIONS: dict[int, Callable[[Document], Document]] = {0: from_0, 1: from_1, 2: from_2, 3: from_3}
