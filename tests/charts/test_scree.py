import re
from types import SimpleNamespace

import numpy as np
import pytest

from gnomon.charts import scree
from gnomon.charts.scree import MOST_BARS, USUAL_BARS
from gnomon.charts.words import percent
from gnomon.errors import ParameterTypeError


def bars(drawing):
    return [rect for rect in drawing.all("rect") if len(list(rect))]


def test_bars_are_as_high_as_the_shares(fit, table, read):
    X, names = table
    model = fit(X, names)
    heights = np.array([float(bar.get("height")) for bar in bars(read(scree(model)))])
    # Coordinates carry one decimal.
    np.testing.assert_allclose(
        heights / heights[0],
        model.explained_variance_ratio_ / model.explained_variance_ratio_[0],
        atol=0.1 / heights[0],
    )


def test_shares_are_written_on_the_bars_and_in_the_description(fit, table, read):
    model = fit(*table)
    chart = scree(model)
    said = [percent(share).replace("\u00a0", " ") for share in model.explained_variance_ratio_]
    assert read(chart).texts("label halo") == said
    assert "; ".join(f"PC{i + 1} {share}" for i, share in enumerate(said)) in chart.description
    for i, bar in enumerate(bars(read(chart))):
        assert bar[0].text.startswith(f"PC{i + 1}: {said[i]}, variance ")


def test_the_subtitle_says_how_many_hold_95_per_cent(fit, table):
    model = fit(*table)
    needed = int(np.searchsorted(np.cumsum(model.explained_variance_ratio_), 0.95)) + 1
    first = percent(model.explained_variance_ratio_[0]).replace("\u00a0", " ")
    assert scree(model).description.startswith(
        f"The first component holds {first} of the variance; "
        f"{needed} components together hold 95 %."
    )


def test_components_not_kept_are_quiet(fit, table, read):
    drawing = read(scree(fit(*table, n_components=2)))
    styles = [bar.get("class") for bar in bars(drawing)]
    assert styles == ["gn-accent"] * 2 + ["gn-quiet"] * 4
    assert any("the 2 components the model keeps" in text for text in drawing.texts("tick"))


def test_a_partly_known_spectrum_is_told(fit, table):
    description = scree(fit(*table, n_components=2, whole=False)).description
    assert "the 2 known together hold" in description


@pytest.mark.parametrize("wrap", [dict, lambda counts: SimpleNamespace(counts=counts)])
def test_rules_are_marked_after_their_last_component(fit, table, read, wrap):
    panel = wrap({"Kaiser": 2, "broken stick": 2, "parallel": 4, "mle": None, "99 %": 5})
    chart = scree(fit(*table), panel=panel)
    drawing = read(chart)
    assert "Kaiser and broken stick: 2" in drawing.texts()
    assert "parallel: 4" in drawing.texts()
    assert "The rules marked say to keep 2 to 4 components." in chart.description
    assert not [text for text in drawing.texts() if "mle" in text or "99" in text]
    left = [float(bar.get("x")) for bar in bars(drawing)]
    right = [float(bar.get("x")) + float(bar.get("width")) for bar in bars(drawing)]
    marks = [
        float(re.match(r"M([\d.]+)", path.get("d"))[1]) for path in drawing.all("path", "dash")
    ]
    assert right[1] < marks[0] < left[2]
    assert right[3] < marks[1] < left[4]


def test_a_rule_beyond_the_chart_points_there(fit, read):
    X = np.random.default_rng(0).normal(size=(120, 100))
    drawing = read(scree(fit(X, n_components=3), panel={"generous": 99}))
    assert "generous: 99 →" in drawing.texts()
    assert len(bars(drawing)) == MOST_BARS


def test_a_long_tail_is_left_out_and_told(fit, read):
    X = np.random.default_rng(0).normal(size=(120, 100))
    drawing = read(scree(fit(X, n_components=3)))
    assert len(bars(drawing)) == USUAL_BARS
    assert "The first 20 of 100 components are drawn." in " ".join(drawing.texts("tick"))


def test_a_panel_must_map_rules_to_numbers(fit, table):
    with pytest.raises(ParameterTypeError, match="`panel` must map rules"):
        scree(fit(*table), panel=3)


def test_names_of_rules_may_be_cut_but_not_how_many_they_keep(fit, table, read):
    names = [f"a rule with a rather long name {i}" for i in range(4)]
    chart = scree(fit(*table), panel=dict.fromkeys(names, 1))
    (mark,) = [text for text in read(chart).texts("label halo") if "rule" in text]
    assert mark.startswith("a rule with a rather long name 0, ")
    assert mark.endswith("…: 1")
