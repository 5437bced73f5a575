"""Gnomon: see, shrink and compare high-dimensional data.

Public names are resolved on first use (PEP 562), so that ``import gnomon`` is instant and has no
effects; the table below is the whole public interface.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gnomon import charts as charts
    from gnomon.data import samples as samples
    from gnomon.moments import CrossMoments as CrossMoments
    from gnomon.moments import Moments as Moments
    from gnomon.pca import PCA as PCA
    from gnomon.pca import component_panel as component_panel
    from gnomon.pipeline import run as run

__version__ = "0.1.0"

_HOME = {
    "PCA": "gnomon.pca",
    "Moments": "gnomon.moments",
    "CrossMoments": "gnomon.moments",
    "component_panel": "gnomon.pca",
    "charts": "gnomon.charts",
    "samples": "gnomon.data.samples",
    "run": "gnomon.pipeline",
}

__all__ = [*_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'gnomon' has no attribute {name!r}")
    module = import_module(_HOME[name])
    value = module if _HOME[name].rpartition(".")[2] == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
