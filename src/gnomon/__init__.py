"""Gnomon: see, shrink and compare high-dimensional data.

Public names are resolved on first use (PEP 562), so that ``import gnomon`` is instant and has no
side effects; the table below is the whole public interface.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnomon import charts as charts
    from gnomon import scores as scores
    from gnomon.data import samples as samples
    from gnomon.data.sources import source as source
    from gnomon.models import load as load
    from gnomon.models import save as save
    from gnomon.numeric.moments import Moments as Moments
    from gnomon.pca import PCA as PCA
    from gnomon.pca import component_panel as component_panel
    from gnomon.pipeline.flow import run as run
    from gnomon.procrustes import Procrustes as Procrustes
    from gnomon.procrustes import align as align
    from gnomon.procrustes import align_subspaces as align_subspaces
    from gnomon.procrustes import compare as compare
    from gnomon.procrustes import consensus as consensus
    from gnomon.procrustes import permutation_test as permutation_test
    from gnomon.procrustes import principal_angles as principal_angles
    from gnomon.procrustes import stability as stability
    from gnomon.procrustes.cross_moments import CrossMoments as CrossMoments

    # mypy reads the package of the same name before.
    from gnomon.report import report as report  # type: ignore[no-redef]
    from gnomon.report import show as show
    from gnomon.scores import audit as audit
    from gnomon.tsne import TSNE as TSNE

__version__ = "0.2.0.dev0"

_HOME = {
    "PCA": "gnomon.pca",
    "TSNE": "gnomon.tsne",
    "Procrustes": "gnomon.procrustes",
    "align": "gnomon.procrustes",
    "compare": "gnomon.procrustes",
    "permutation_test": "gnomon.procrustes",
    "consensus": "gnomon.procrustes",
    "stability": "gnomon.procrustes",
    "principal_angles": "gnomon.procrustes",
    "align_subspaces": "gnomon.procrustes",
    "Moments": "gnomon.numeric.moments",
    "CrossMoments": "gnomon.procrustes.cross_moments",
    "component_panel": "gnomon.pca",
    "charts": "gnomon.charts",
    "scores": "gnomon.scores",
    "audit": "gnomon.scores",
    "samples": "gnomon.data.samples",
    "source": "gnomon.data.sources",
    "run": "gnomon.pipeline.flow",
    "report": "gnomon.report",
    "show": "gnomon.report",
    "save": "gnomon.models",
    "load": "gnomon.models",
}

__all__ = [*_HOME]


# Packages that need an extra (``pip install 'gnomon[anndata]'``), imported on first use.
_EXTRAS = {"anndata": "gnomon.anndata", "plot": "gnomon.plot"}


def __getattr__(name: str) -> object:
    if name in _EXTRAS:
        return import_module(_EXTRAS[name])
    if name not in _HOME:
        raise AttributeError(f"module 'gnomon' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if _HOME[name].rpartition(".")[2] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
