"""Orthogonal Procrustes: align sets of points, and measure how well they fit."""

from gnomon.procrustes.align import Alignment, align
from gnomon.procrustes.compare import Comparison, compare
from gnomon.procrustes.consensus.fit import Consensus, consensus
from gnomon.procrustes.estimator import Procrustes
from gnomon.procrustes.permute import PermutationTest, permutation_test
from gnomon.procrustes.stability import Stability, stability
from gnomon.procrustes.subspaces import SubspaceAlignment, align_subspaces, principal_angles

__all__ = [
    "Alignment",
    "Comparison",
    "Consensus",
    "PermutationTest",
    "Procrustes",
    "Stability",
    "SubspaceAlignment",
    "align",
    "align_subspaces",
    "compare",
    "consensus",
    "permutation_test",
    "principal_angles",
    "stability",
]
