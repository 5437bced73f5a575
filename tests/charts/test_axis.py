import pytest

from gnomon.charts.axis import AxisScale, tick_text, ticks


def test_a_scale_takes_its_ends_to_its_ends():
    y = AxisScale(0.0, 10.0, 300.0, 100.0)
    assert (y(0), y(5), y(10)) == (300.0, 200.0, 100.0)


def test_a_scale_without_a_span_puts_everything_in_the_middle():
    assert AxisScale(2.0, 2.0, 0.0, 10.0)(2.0) == 5.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-3, 4.2, [-2, 0, 2, 4]),
        (0, 0.037, [0, 0.01, 0.02, 0.03]),
    ],
)
def test_ticks_are_round_and_within(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [1e-200, 1e-7, 1.0, 1e9, 1e200])
def test_ticks_are_few_at_any_scale(scale):
    found = ticks(-1.3 * scale, 2.9 * scale)
    assert 3 <= len(found) <= 8
    assert all(-1.3 * scale <= tick <= 2.9 * scale for tick in found)


def test_ticks_of_nothing_are_one():
    assert ticks(1.0, 1.0) == [1.0]


def test_tick_text_has_the_decimals_of_its_step():
    assert [tick_text(v, 0.25) for v in (-0.5, 0.0, 0.25)] == ["−0.5", "0", "0.2"]
    assert [tick_text(v, 0.05) for v in (0.1, 0.15)] == ["0.10", "0.15"]
    assert tick_text(12000, 2000) == "12,000"
