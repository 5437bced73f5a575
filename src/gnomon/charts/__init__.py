"""Charts of a fitted PCA or of a map as SVG: displayed in notebooks and saved to files.

Each public function takes a fitted model, or its results, and returns a `Chart`. One
chart is one file; shared parts are split by idea: `canvas` (marks), `theme` and `colours`,
`scale`, `labels` (without collisions), `text` (escaped and measured), `words` (numbers in
sentences), `fitted` (the model that a chart needs), `view` (projected positions).
"""

from gnomon.charts.biplot import biplot
from gnomon.charts.chart import Chart
from gnomon.charts.column_errors import column_errors
from gnomon.charts.correlation_circle import correlation_circle
from gnomon.charts.cumulative import cumulative
from gnomon.charts.distance_ranks import distance_ranks
from gnomon.charts.histogram import histogram
from gnomon.charts.images import images
from gnomon.charts.loadings import loadings
from gnomon.charts.maps import maps
from gnomon.charts.neighborhoods import neighborhoods
from gnomon.charts.overlay import overlay
from gnomon.charts.reconstruction import reconstruction
from gnomon.charts.scatter import scatter
from gnomon.charts.scree import scree

__all__ = [
    "Chart",
    "biplot",
    "column_errors",
    "correlation_circle",
    "cumulative",
    "distance_ranks",
    "histogram",
    "images",
    "loadings",
    "maps",
    "neighborhoods",
    "overlay",
    "reconstruction",
    "scatter",
    "scree",
]
