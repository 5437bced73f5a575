import numpy as np
import pytest
from charts.test_every_chart import assert_sound

from gnomon import charts

SAID = {"title": "Trust", "subtitle": "By row.", "axis": "share"}


def test_bars_count_the_rows_of_each_part(read):
    values = np.array([0.0, 0.1, 0.1, 0.6, 1.0])
    chart = charts.histogram(values, bins=4, **SAID)
    assert_sound(chart)
    assert read(chart).tips()[1:] == [
        "0 to 0.25: 3 rows",
        "0.5 to 0.75: 1 row",
        "0.75 to 1: 1 row",
    ]


def test_values_beyond_the_span_are_counted_at_its_ends(read):
    chart = charts.histogram([-3.0, 9.0, 9.0], span=(0.0, 2.0), bins=2, **SAID)
    assert read(chart).tips()[1:] == ["0 to 1: 1 row", "1 to 2: 2 rows"]


def test_hostile_words_are_escaped():
    chart = charts.histogram([0.5], title="<script>", subtitle="</svg>", axis='" onload="')
    assert_sound(chart)
    assert "<script>" not in chart.svg


@pytest.mark.parametrize("values", [[], [np.nan], [[1.0]]], ids=["none", "NaN", "table"])
def test_what_is_no_column_of_numbers_is_refused(values):
    with pytest.raises(ValueError, match="`values` must be a column of finite numbers"):
        charts.histogram(values, **SAID)
