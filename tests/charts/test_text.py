import pytest

from gnomon.charts import text


@pytest.mark.parametrize(
    ("hostile", "safe"),
    [
        ("plain", "plain"),
        ("", "(no name)"),
        (" \n ", "(no name)"),
        ("a\u2028b\r\nc", "a b c"),
        ("\u202eabc\u2066", "abc"),
        ("a\x00b\x1bc\ud800", "abc"),
        (3.5, "3.5"),
    ],
)
def test_names_become_one_printable_line(hostile, safe):
    assert text.clean(hostile) == safe


def test_markup_is_escaped_between_tags_and_in_attributes():
    assert text.escape("<a b=\"c\" d='e'>&") == "&lt;a b=&quot;c&quot; d=&#x27;e&#x27;&gt;&amp;"


def test_long_names_are_cut():
    assert text.clean("y" * 10_000) == "y" * (text.LONGEST - 1) + "…"


def test_wide_letters_take_more_room_than_narrow_ones():
    narrow, middle, wide = (text.width(word, 10) for word in ("iiii", "nnnn", "WWWW"))
    assert narrow < middle < wide
    assert text.width("日本", 10) > text.width("ab", 10)
    assert text.width("nnnn", 10, bold=True) > middle
    assert text.width("nnnn", 20) == pytest.approx(2 * middle)


def test_shortened_text_fits_and_says_so():
    whole = "a rather long column name"
    assert text.shorten(whole, 1000, 12) == whole
    short = text.shorten(whole, 80, 12)
    assert short.endswith("…")
    assert whole.startswith(short[:-1])
    assert text.width(short, 12) <= 80


def test_lines_fit_and_lose_no_word():
    sentence = "4 components hold 95\u00a0% of the variance and the first alone holds half of it."
    lines = text.wrap(sentence, 150, 12)
    assert len(lines) > 2
    assert " ".join(lines) == sentence
    assert all(text.width(line, 12) <= 150 for line in lines)
    assert any("95\u00a0%" in line for line in lines)


def test_a_word_longer_than_the_line_is_shortened():
    assert all(
        text.width(line, 12) <= 100 for line in text.wrap("see " + "x" * 99 + " there", 100, 12)
    )


def test_names_that_begin_alike_are_told_apart_by_their_ends():
    names = [
        "CD8+ a kind of cells with a long name, naive",
        "CD8+ a kind of cells with a long name, memory",
    ]
    short = text.shorten_apart([*names, "CD34+"], 130, 12)
    assert short[0].endswith("naive")
    assert short[1].endswith("memory")
    assert short[2] == "CD34+"
    assert all("…" in name and text.width(name, 12) <= 130 for name in short[:2])
