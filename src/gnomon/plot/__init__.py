"""Charts drawn by matplotlib, for papers and for figures of your own.

Each function draws into axes and returns them: ``plot.map(tsne, color=labels, ax=ax)``. Numbers,
order, colours and words are those of the SVG charts of the same name (`gnomon.charts`); PDF comes
from ``ax.figure.savefig("map.pdf")``. Takes ``pip install 'gnomon[plot]'``.
"""

from gnomon.plot.component_plots import biplot as biplot
from gnomon.plot.component_plots import loadings as loadings
from gnomon.plot.component_plots import scree as scree
from gnomon.plot.points import map as map
from gnomon.plot.points import overlay as overlay

__all__ = ["biplot", "loadings", "map", "overlay", "scree"]
