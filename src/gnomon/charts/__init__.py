"""Charts of a fitted PCA or of a map as SVG: they show themselves in notebooks and save to files.

Each public function takes a fitted model and returns a `Chart`. One chart is one file; what they
share is split by idea: `canvas` (marks), `theme` and `colours`, `scale`, `labels` (that do not
collide), `text` (made safe and measured), `words` (numbers in sentences), `fitted` (what a chart
asks of a model).
"""

from gnomon.charts.biplot import biplot
from gnomon.charts.chart import Chart
from gnomon.charts.correlation_circle import correlation_circle
from gnomon.charts.cumulative import cumulative
from gnomon.charts.loadings import loadings
from gnomon.charts.scatter import scatter
from gnomon.charts.scree import scree

__all__ = [
    "Chart",
    "biplot",
    "correlation_circle",
    "cumulative",
    "loadings",
    "scatter",
    "scree",
]
