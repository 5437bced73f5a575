import numpy as np
import pytest

from gnomon.charts import colours


@pytest.mark.parametrize("palette", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_text_can_be_read(palette):
    # 4.5 is WCAG's AA for text; the ramp's text is the better of two and may be just below.
    assert colours.contrast(palette["ink"], palette["surface"]) > 12
    assert colours.contrast(palette["soft"], palette["surface"]) > 4.5
    for i in range(colours.DIVERGING):
        assert colours.contrast(palette[f"t{i}"], palette[f"d{i}"]) > 4.4


@pytest.mark.parametrize("palette", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_categories_differ_in_lightness_or_hue_from_the_surface_and_each_other(palette):
    lab = np.array([colours._to_oklab(palette[f"c{i}"]) for i in range(colours.CATEGORIES)])
    surface = colours._to_oklab(palette["surface"])
    assert (np.linalg.norm(lab - surface, axis=1) > 0.25).all()
    distances = np.linalg.norm(lab[:, None] - lab[None], axis=2)
    assert distances[np.triu_indices(len(lab), 1)].min() > 0.1


def test_both_schemes_have_the_same_names():
    assert colours.LIGHT.keys() == colours.DARK.keys()


def test_the_ramps_begin_and_end_at_their_stops():
    stops = ["#bcdbe6", "#3d8fb8", "#142b5f"]
    steps = colours.ramp(stops, 5)
    assert [steps[0], steps[2], steps[4]] == stops


@pytest.mark.parametrize("palette", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_more_is_further_from_the_background(palette):
    lightness = [colours._to_oklab(palette[f"v{i}"])[0] for i in range(colours.SEQUENTIAL)]
    away = -1 if palette is colours.LIGHT else 1
    assert (np.diff(lightness) * away > 0).all()


def test_steps_are_symmetric_and_stay_on_the_ramp():
    steps = [colours.diverging(value, 2.0) for value in (-9, -2, -1, 0, 1, 2, 9)]
    assert steps == [0, 0, 4, 8, 12, 16, 16]
    assert colours.diverging(0.0, 0.0) == 8
    assert [colours.sequential(value, 0, 1) for value in (-1, 0, 0.5, 1, 2)] == [0, 0, 4, 8, 8]
