"""Quality of a map: how well it preserves neighbours, distances and classes.

``score_map(X, Y)`` computes all scores, overall and point by point; ``audit(X, Y)`` tests each
row against chance; the other functions compute one number each. `X` holds the data and `Y` the
map, row by row the same points.
"""

from gnomon.scores.audit import Audit as Audit
from gnomon.scores.audit import audit as audit
from gnomon.scores.classes import class_accuracy as class_accuracy
from gnomon.scores.distances import RankCorrelation as RankCorrelation
from gnomon.scores.distances import rank_correlation as rank_correlation
from gnomon.scores.neighbourhoods import continuity as continuity
from gnomon.scores.neighbourhoods import recall as recall
from gnomon.scores.neighbourhoods import trustworthiness as trustworthiness
from gnomon.scores.sample import PointScores as PointScores
from gnomon.scores.summary import MapScores as MapScores
from gnomon.scores.summary import score_map as score_map

__all__ = [
    "Audit",
    "MapScores",
    "PointScores",
    "RankCorrelation",
    "audit",
    "class_accuracy",
    "continuity",
    "rank_correlation",
    "recall",
    "score_map",
    "trustworthiness",
]
