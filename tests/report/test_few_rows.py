"""Pages of tables too small for what a page would say of larger ones."""

import re
from dataclasses import replace

import numpy as np
import pytest
from report.pages import fitted, groups_of_rows

from gnomon import PCA, TSNE, report, samples, stability
from gnomon.charts.text import clean
from gnomon.pipeline.flow import run
from gnomon.report.content import gather
from gnomon.report.section import Figures
from gnomon.report.sections import SECTIONS
from gnomon.report.sections.counting import counting
from gnomon.report.sections.lost_variance import lost_variance
from gnomon.report.sections.map_picture import map_section
from gnomon.report.sections.meaning import components
from gnomon.report.sections.overview import overview
from gnomon.report.sections.refits import refits as stability_section
from gnomon.report.sections.reproduce import reproduce
from gnomon.report.sections.trust import trust

WINE = samples.load("wine")


def said(section):
    return [clean(text, 2000) for text in section.lead]


def content_of(n, *, tsne=True, labels=None, d=13, seed=0, **more):
    """A page's content of `n` bottles of wine, standardised."""
    rows = np.sort(np.random.default_rng(seed).choice(len(WINE.X), n, replace=False))
    X = WINE.X[rows][:, :d]
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    named = [] if labels is None else [("kind", np.array(labels, dtype=object))]
    model = TSNE(perplexity=max(1.0, (n - 1) / 3), max_iter=250).fit(X) if tsne else None
    return gather(
        X,
        pca=PCA(0.95).fit(X),
        tsne=model,
        names=WINE.columns[:d],
        source="wine.csv",
        labels=named,
        **more,
    )


def every_sentence(content):
    """All that the page says of its numbers: sentences, captions of charts, notes, bullets."""
    found = []
    for make in SECTIONS:
        section = make(content)
        if section is None:
            continue
        found += section.lead
        for block in section.blocks:
            if isinstance(block, Figures):
                found += [chart.description for chart in block.charts]
                found += () if block.beside is None else block.beside.items
            found += [getattr(block, "text", ""), getattr(block, "note", "")]
    return [clean(text, 3000) for text in found]


@pytest.mark.parametrize("n", [3, 5, 15])
def test_the_first_sentence_says_that_rows_are_too_few(n):
    first = said(overview(content_of(n)))[0]
    assert first == (
        f"wine.csv has only {n} rows, too few to tell structure from chance: a map takes 16 rows "
        "or more."
    )
    first = said(overview(content_of(n, tsne=False)))[0]
    assert first == f"wine.csv has only {n} rows, too few to tell structure from chance."


def test_sixteen_rows_are_enough_to_be_spoken_of_without_it():
    first = said(overview(content_of(16)))[0]
    assert first == "wine.csv has 16 rows and 13 columns of numbers."


def test_a_map_of_a_few_of_many_rows_says_so():
    X, _ = groups_of_rows()
    pca, tsne = fitted(X[:10], perplexity=3)
    content = gather(
        X,
        pca=pca,
        tsne=tsne,
        Y=np.repeat(tsne.embedding_, 9, axis=0),
        names="abcde",
        source="trees.csv",
    )
    assert said(overview(content))[0].startswith(
        "The map of trees.csv was made of only 10 rows, too few to tell structure from chance"
    )


def test_a_run_of_few_rows_warns_once_and_the_page_says_it_once():
    found = run(replace(WINE, X=WINE.X[:5], labels=WINE.labels[:5]))
    assert found.warnings == (
        "5 rows are too few to tell structure from chance; a map takes 16 rows or more.",
    )
    page = report(WINE.X[:5], tsne=found.tsne).content
    told = replace(page, warnings=found.warnings)
    assert overview(told).warnings == ()
    assert overview(replace(told, warnings=("Other.",))).warnings == ("Other.",)


@pytest.mark.parametrize("n", [3, 5, 16, 30])
def test_trust_is_never_1_by_construction(n):
    """Of all other rows as neighbours any map keeps every one; of half of them, half by chance."""
    content = content_of(n)
    k = (n - 1) // 2
    found = []
    for seed in range(8):
        unrelated = np.random.default_rng(seed).normal(size=(n, 2))
        found.append(
            gather(
                content.prepared,
                pca=content.pca,
                tsne=content.tsne,
                Y=unrelated,
                names=content.names,
            ).trust.mean()
        )
    # the standard error of the mean of 8 maps of 3 rows, of which chance keeps a half, is 0.1
    assert np.mean(found) == pytest.approx(k / (n - 1), abs=0.3 if n == 3 else 0.15)
    told = " ".join(said(overview(content)))
    if k == 1:
        assert re.search(
            r"The map keeps the nearest row of [\d.]+ % of the rows, where chance", told
        )
    else:
        assert f"of each row's {k} nearest rows, where chance would keep" in told
    for text in every_sentence(content):
        assert "15 nearest" not in text


def test_distances_of_few_rows_are_not_spoken_of():
    for text in every_sentence(content_of(5)):
        assert "rank correlation" not in text
        assert "can be read" not in text
    assert any("rank correlation" in text for text in every_sentence(content_of(32)))


def test_as_many_components_as_rows_allow_are_not_called_a_finding():
    last = said(overview(content_of(3)))[-1]
    assert last == (
        "2 of 2 components hold 95 % of the variance; 3 rows differ along 2 directions at most, "
        "whatever their columns hold."
    )
    assert "5 rows differ along 4 directions at most" in said(overview(content_of(5)))[-1]
    note = counting(content_of(5)).blocks[1].note
    assert clean(note).startswith("5 rows have 4 components at most, whatever their columns hold")
    assert counting(content_of(32)).blocks[1].note == ""
    first = said(lost_variance(content_of(3)))[0]
    assert first == "From 2 components every value is reconstructed exactly, as 2 hold any 3 rows."
    for text in every_sentence(content_of(3)):
        assert not re.search(r"components? of 3\b|of 3 components", text)


def test_columns_are_compared_on_the_rows_there_are():
    last = said(overview(content_of(32)))[-1]
    assert re.fullmatch(
        r"\d+ of 13 components hold 95 % of the variance: the 13 columns tell these 32 rows apart "
        r"about as well as \d+ unrelated ones would\.",
        last,
    )


def test_correlations_that_few_rows_have_by_chance_are_not_named():
    three = components(content_of(3))
    assert said(three) == ["Any correlation of 3 rows may be chance, those drawn here too."]
    assert three.blocks[0].beside is None
    five = said(components(content_of(5)))
    assert five[0] == "Of 5 rows, correlations below 0.89 may be chance and are not named."
    for sentence in five[1:]:
        for value in re.findall(r"\(?(?:correlation )?(−?\d\.\d\d)\)", sentence):
            assert abs(float(value.replace("−", "-"))) >= 0.89
    assert "may be chance" not in " ".join(said(components(content_of(32))))


def test_unrelated_columns_are_seldom_named():
    """What the limit is about: with 6 rows of noise few correlations pass it."""
    rng = np.random.default_rng(0)
    r = [abs(np.corrcoef(rng.normal(size=(2, 6)))[0, 1]) for _ in range(400)]
    assert np.mean(np.array(r) > 2 / np.sqrt(6)) < 0.08
    assert np.mean(np.array(r) > 0.3) > 0.4


def test_correlation_is_the_one_measure_and_is_named():
    """A loading of a column in its own units is no correlation; the page has one of them."""
    X, _ = groups_of_rows()
    X = X * [100.0, 1.0, 1.0, 1.0, 0.01]
    pca = PCA(2).fit(X)
    content = gather(X, pca=pca, names=tuple("abcde"))
    section = components(content)
    r = pca.correlations()[0, 0]
    assert f"rises with a (correlation {r:.2f})" in said(section)[0]
    heat = section.blocks[0].charts[0]
    assert heat.description.startswith(f"PC1 is led by a (correlation {r:.2f})")
    assert "oading" not in heat.svg
    assert not any("oading" in text for text in every_sentence(content))


def test_groups_are_compared_with_chance():
    told = [("kind", np.array(list("abcdef") * 2, dtype=object))]
    named = 0
    for seed in range(20):  # six groups of two: 45 % of any variance lies between them by chance
        X = np.random.default_rng(seed).normal(size=(12, 4))
        content = gather(X, pca=PCA(2).fit(X), names="abcd", labels=told)
        named += sum("between the groups" in text for text in said(components(content)))
    assert named / 40 < 0.25  # 9 % of such tables by the F distribution; without chance 40 %
    nearest = said(map_section(content))[1]
    # each row has one of its own kind among eleven others
    assert "% by chance)" in nearest
    assert "(9.1 % by chance)" in nearest


def test_what_neighbours_guess_is_compared_with_the_largest_group():
    labels = ["a"] * 27 + ["b"] * 5
    told = " ".join(said(trust(content_of(32, labels=labels))))
    assert "the most frequent one is right for 84.4 % of them" in told


def test_rows_that_keep_a_third_are_not_praised_where_chance_keeps_half():
    few = said(trust(content_of(32)))
    assert few[0].startswith("Close pairs: ")
    assert "at least a third" not in " ".join(few)
    X, _ = groups_of_rows()
    pca, tsne = fitted(X)
    many = gather(X, pca=pca, tsne=tsne, names="abcde")
    many = replace(many, trust=np.full(90, 0.8))
    assert "Every row keeps at least a third." in said(trust(many))[1]


def test_stability_of_few_rows_is_about_few_neighbours_and_says_what_moved():
    content = content_of(5)
    found = stability(content.tsne, content.prepared, runs=3)
    assert found.n_neighbors == 2
    section = stability_section(replace(content, stability=found))
    assert said(section)[0].startswith("Of only 5 points, ")
    still = replace(found, spread=np.full(5, 0.1))
    assert said(stability_section(replace(content, stability=still)))[1] == (
        "No point moves farther than its neighbours are away."
    )


def test_the_methods_name_the_neighbours_that_were_counted():
    methods = next(b.text for b in reproduce(content_of(3)).blocks if b.kind == "words")
    methods = clean(methods, 5000)
    assert "% of the rows (by chance 50 %)" in methods
    assert "for 1 neighbour." in methods
    methods = next(b.text for b in reproduce(content_of(32)).blocks if b.kind == "words")
    assert "of each row's 15 nearest rows (by chance 48.4 %)" in clean(methods, 5000)
