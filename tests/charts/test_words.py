import pytest

from gnomon.charts import words
from gnomon.tsne.descent import Stop


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.36199, "36.2 %"),
        (0.95, "95 %"),
        (0.1402, "14.0 %"),
        (0.99999, "> 99.9 %"),
        (1.0, "100 %"),
        (1.0 - 1e-15, "100 %"),
        (0.00001, "< 0.1 %"),
        (0.0, "0 %"),
    ],
)
def test_per_cents_are_never_rounded_to_all_or_nothing(share, said):
    assert words.percent(share).replace("\u00a0", " ") == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(-0.91234, "−0.912"), (12345.6, "12,300"), (0.0, "0"), (5, "5"), (0.0001234, "0.000123")],
)
def test_numbers_have_three_digits_and_a_true_minus(value, said):
    assert words.number(value) == said


def test_counts_agree_with_their_nouns():
    assert words.count(1, "row") == "1\u00a0row"
    assert words.count(1797, "row") == "1,797\u00a0rows"
    assert (words.hold(1), words.hold(2)) == ("holds", "hold")


def test_lists_end_with_and():
    assert words.listing(["a"]) == "a"
    assert words.listing(["a", "b"]) == "a and b"
    assert words.listing(["a", "b", "c"]) == "a, b and c"


def test_no_end_of_a_map_is_told_by_the_name_of_a_parameter():
    assert set(words.STOPS) < {stop.value for stop in Stop}
    for stop in Stop:
        assert "_" not in words.stopped(stop.value)
    assert words.stopped(Stop.MAX_ITER.value) == ""
    assert words.stopped(Stop.INTERRUPTED.value) == "interrupted"
