import re

import numpy as np
import pytest

from gnomon.charts import correlation_circle
from gnomon.charts.correlation_circle import MOST_ARROWS, RADIUS
from gnomon.errors import ParameterError, ParameterTypeError


def tips_of_arrows(drawing):
    """Where each arrow ends, in units of the circle, by its column's name."""
    ends = {}
    for path in drawing.all("path", "arrow"):
        x0, y0, x, y = map(
            float, re.match(r"M(\S+) (\S+)L([\d.]+) ([\d.]+)", path.get("d")).groups()
        )
        name = path[0].text.partition(":")[0]
        ends[name] = (x - x0) / RADIUS, (y0 - y) / RADIUS
    return ends


@pytest.mark.parametrize("axes", [(0, 1), (2, 0)])
def test_arrows_end_at_the_correlations(fit, table, read, axes):
    X, names = table
    model = fit(X, names)
    ends = tips_of_arrows(read(correlation_circle(model, axes)))
    for d, name in enumerate(names):
        # Coordinates carry one decimal: half a tenth at either end.
        np.testing.assert_allclose(
            ends[name], model.correlations()[d, list(axes)], atol=0.11 / RADIUS
        )


def test_the_subtitle_counts_the_columns_held_well(fit, table):
    model = fit(*table)
    well = int(((model.correlations()[:, :2] ** 2).sum(axis=1) >= 0.5).sum())
    assert correlation_circle(model).description.startswith(
        f"PC1 and PC2 hold at least half the variance of {well} of 6 columns."
    )


def test_a_constant_column_is_left_out_and_told(fit, table, read):
    X, names = table
    X = np.column_stack([X, np.ones(len(X))])
    drawing = read(correlation_circle(fit(X, [*names, "constant"])))
    assert "constant" not in tips_of_arrows(drawing)
    assert any("1 column without correlation" in text for text in drawing.texts("tick"))


def test_beyond_a_few_arrows_columns_are_dots(fit, read):
    X = np.random.default_rng(0).normal(size=(80, 40))
    drawing = read(correlation_circle(fit(X)))
    assert len(drawing.all("path", "arrow")) == MOST_ARROWS
    assert len(drawing.all("circle", "ring")) == 40 - MOST_ARROWS


def test_names_do_not_overlap(fit, read):
    from gnomon.charts.label_placement import Spot
    from gnomon.charts.text import width
    from gnomon.charts.theme import SIZES

    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 1)) + 0.2 * rng.normal(size=(50, 30))
    texts = read(correlation_circle(fit(X, [f"sensor {i}" for i in range(30)]))).all(
        "text", "ink halo"
    )
    size = SIZES["label"]
    boxes = [
        Spot(float(t.get("x")), float(t.get("y")), t.get("text-anchor", "start")).box(
            # Half a unit less than measured, because coordinates are rounded.
            width(t.text, size) - 0.5,
            size - 0.5,
        )
        for t in texts
    ]
    assert len(boxes) > 3
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_two_components_are_needed(fit, table):
    with pytest.raises(ParameterError, match=r"the model has one.*n_components=2"):
        correlation_circle(fit(*table, n_components=1))


@pytest.mark.parametrize(
    ("axes", "error"),
    [
        ((0, 0), ParameterError),
        ((0, 6), ParameterError),
        ((-1, 0), ParameterError),
        ((0,), ParameterTypeError),
        ("01", ParameterTypeError),
        ((0.0, 1.0), ParameterTypeError),
    ],
)
def test_axes_must_be_two_components(fit, table, axes, error):
    with pytest.raises(error, match="`axes` must be"):
        correlation_circle(fit(*table), axes)
