import numpy as np
import pytest

from gnomon.data import samples
from gnomon.data.prepare import FOLD, choose_scale

rng = np.random.default_rng(0)
NOISE = rng.standard_normal((200, 4))


@pytest.mark.parametrize("asked", [True, False])
def test_what_was_asked_for_is_done(asked):
    for table in (NOISE, NOISE * [1, 1, 1, 1e6]):
        chosen = choose_scale(table, asked)
        assert chosen.standardize is asked
        assert chosen.why == "as asked"


def test_columns_of_like_spread_are_left_alone():
    chosen = choose_scale(NOISE * [1, 2, 4, 8])
    assert not chosen.standardize
    assert chosen.why == "the columns' spreads are within 10-fold of each other"


def test_columns_of_unlike_spread_are_standardised_and_the_fold_is_told():
    columns = NOISE / NOISE.std(axis=0) * [1, 1, 1, 250]
    chosen = choose_scale(columns)
    assert chosen.standardize
    assert chosen.why == "the columns' spreads differ 250-fold"


def test_the_line_is_drawn_at_ten_fold():
    even = NOISE / NOISE.std(axis=0)
    assert not choose_scale(even * [1, 1, 1, 0.999 * FOLD]).standardize
    assert choose_scale(even * [1, 1, 1, 1.001 * FOLD]).standardize


def test_where_the_columns_stand_does_not_matter():
    assert not choose_scale(NOISE + np.array([0, 1e3, -1e6, 1e8])).standardize


def test_pixels_share_a_unit_although_some_hardly_vary():
    pixels = rng.integers(0, 17, (300, 6)).astype(float)
    pixels[0] = 16
    pixels[:, 5] = 0
    pixels[3, 5] = 1
    chosen = choose_scale(pixels)
    assert not chosen.standardize
    assert chosen.why == "all columns are whole numbers from 0 to 16"


def test_whole_numbers_on_different_scales_do_not_share_a_unit():
    counts = np.column_stack([rng.integers(0, 5, 300), rng.integers(0, 90, 300),
                              rng.integers(0, 2000, 300)]).astype(float)  # fmt: skip
    assert choose_scale(counts).standardize


def test_fractions_do_not_share_a_unit_because_their_largest_values_do():
    table = rng.uniform(0, 1, (30_000, 4))
    table[0] = 1.0
    table[1:, 3] *= 1e-3
    assert choose_scale(table).standardize


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_constant_columns_have_no_say(value):
    table = np.column_stack([NOISE, np.full(200, value)])
    assert not choose_scale(table).standardize
    assert not choose_scale(np.full((5, 3), value)).standardize


@pytest.mark.parametrize(
    ("name", "standardize"),
    [("digits", False), ("iris", False), ("house-prices", False), ("wine", True),
     ("breast-cancer", True)],
)  # fmt: skip
def test_every_sample_gets_the_scale_a_reader_would_choose(name, standardize):
    assert choose_scale(samples.load(name).X).standardize is standardize


def test_units_are_undone_but_not_invented():
    # The same table in other units has the same spreads after standardising.
    table = NOISE * [1, 1, 1, 50]
    assert choose_scale(table).standardize
    assert not choose_scale(table / table.std(axis=0)).standardize
