"""Verdict on a map in words: what its close pairs and its far distances are worth.

Close pairs by trustworthiness for 15 neighbours: maps of real tables by four programs have 0.92 to
0.996 (benchmarks/results/map_quality.md), maps of noise 0.69 to 0.71 (benchmarks/results/audit.md),
random maps about 0.5. Far distances by the rank correlation of distances.
"""

import math

from gnomon.scores.few_rows import FEW_ROWS, TRUSTED
from gnomon.scores.summary import MapScores

GOOD, FAIR = 0.9, 0.8  # trustworthiness
FAR_IN_ORDER, FAR_IN_PART = 0.8, 0.5  # rank correlations of distances

__all__ = ["FAR_IN_ORDER", "FAR_IN_PART", "verdict"]


def verdict(scores: MapScores) -> str:
    """One sentence on a map; empty for a map of few rows."""
    if scores.n < FEW_ROWS:
        return ""
    at = min(range(len(scores.n_neighbors)), key=lambda i: abs(scores.n_neighbors[i] - TRUSTED))
    near = float(scores.trustworthiness.mean[at])
    said = f"{_near(near)} (trustworthiness {near:.2f})"
    far = float(scores.distances.value)
    return f"{said}." if math.isnan(far) else f"{said}; {_far(far)} ({far:.2f})."


def _near(trustworthiness: float) -> str:
    if trustworthiness >= GOOD:
        return "Close pairs: good, rows that lie close are mostly alike"
    if trustworthiness >= FAIR:
        return "Close pairs: fair, many rows lie beside strangers"
    return "Close pairs: poor, about as in a map of noise"


def _far(correlation: float) -> str:
    if correlation >= FAR_IN_ORDER:
        return "far distances: mostly in order"
    if correlation >= FAR_IN_PART:
        return "far distances: in order only in part"
    return "far distances: do not read them"
