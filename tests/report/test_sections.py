"""What each section says, from numbers that are known beforehand."""

import json
import sys
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from report.pages import fitted, groups_of_rows

from gnomon import PCA, TSNE, component_panel, stability
from gnomon.charts.text import clean
from gnomon.pca.rank import ComponentPanel, PanelRow
from gnomon.report.content import gather
from gnomon.report.payload import payload
from gnomon.report.section import Figures, Grid, RowLink, Words
from gnomon.report.sections.counting import counting
from gnomon.report.sections.lost_variance import lost_variance
from gnomon.report.sections.meaning import components
from gnomon.report.sections.overview import overview
from gnomon.report.sections.refits import refits as stability_section
from gnomon.report.sections.reproduce import REFERENCES, reproduce
from gnomon.report.sections.trust import trust
from gnomon.scores.distances import RankCorrelation


def said(section):
    """The sentences, with plain spaces."""
    return [clean(text, 2000) for text in section.lead]


def grid(section, caption):
    (found,) = [b for b in section.blocks if isinstance(b, Grid) and caption in b.caption]
    return found


def figures(section):
    return [c for b in section.blocks if isinstance(b, Figures) for c in b.charts]


@pytest.fixture(scope="module")
def content():
    X, groups = groups_of_rows()
    pca, tsne = fitted(X)
    return gather(
        X,
        pca=pca,
        tsne=tsne,
        names=tuple("abcde"),
        labels=[("tree", groups)],
        source="trees.csv",
        command="gnomon map trees.csv",
    )


@pytest.fixture
def plane():
    """Twenty rows that differ along a and, half as much, along b; c is constant."""
    angle = np.linspace(0, 2 * np.pi, 20, endpoint=False)
    X = np.column_stack([2 * np.cos(angle), np.sin(angle), np.full(20, 7.0)])
    return X, ("a", "b", "c")


def test_the_overview_names_table_rows_columns_and_colours(content):
    first = said(overview(content))[0]
    assert (
        first == "trees.csv has 90 rows and 5 columns of numbers; points are coloured by tree "
        "(3 groups)."
    )
    plain = replace(content, labels=())
    assert said(overview(plain))[0] == "trees.csv has 90 rows and 5 columns of numbers."


@pytest.mark.parametrize(
    ("rho", "says"),
    [
        (
            0.9,
            "It keeps most of the order of distances (rank correlation 0.90).",
        ),
        (0.6, "It keeps the order of distances only in part (rank correlation 0.60)."),
        (0.2, "It does not keep far distances (rank correlation 0.20): do not read them."),
    ],
)
def test_the_overview_says_what_may_be_read_from_the_map(content, rho, says):
    scored = replace(content.quality, distances=RankCorrelation(rho, 0.0, 100, 100))
    told = replace(content, trust=np.full(90, 0.6), quality=scored)
    second = said(overview(told))[1]
    assert second.startswith(
        "The map keeps 60 % of each row's 15 nearest rows, where chance would keep 16.9 %. "
    )
    assert second.endswith(says)


def test_the_overview_warns_of_a_map_that_is_hardly_one(content):
    told = replace(content, trust=np.full(90, 0.19))
    assert "which is little: look at it with care" in said(overview(told))[1]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (16, "7 nearest rows, where chance would keep 46.7 %."),
        (31, "where chance would keep 50 %."),
    ],
)
def test_few_rows_are_not_called_a_bad_map(content, rows, says):
    few = copy(content.tsne)
    few.embedding_ = few.embedding_[:rows]  # so many were mapped
    told = replace(content, tsne=few, trust=np.full(90, 0.8))
    assert told.mapped == rows
    second = said(overview(told))[1]
    assert says in second
    assert "little" not in second


def test_numbers_that_are_left_out_are_not_said_not_to_be_there(content):
    some = replace(content, roles=(("features", "5 numeric columns"), ("ignored", "year (few)")))
    assert said(overview(some))[0].startswith(
        "trees.csv has 90 rows; 5 columns of numbers are in use; points are coloured by tree"
    )


def test_the_overview_speaks_of_no_parameters(content):
    facts = dict(next(block.pairs for block in overview(content).blocks if block.kind == "facts"))
    assert "300 iterations, KL" in facts["t-SNE"]
    told = replace(content, notes=("One is a sentence.", "two"), seconds={"place": 1.0})
    facts = dict(next(block.pairs for block in overview(told).blocks if block.kind == "facts"))
    assert facts["notes"] == "One is a sentence; two."
    assert facts["time"] == "1.0 s (placing 1.0)"


def test_a_run_that_was_cut_short_is_told(content):
    short = replace(content, trust=None, quality=None, pairs=None)
    assert said(overview(short))[1].endswith("the run was interrupted.")
    section = trust(short)
    assert said(section)[0] == "The map was not scored: the run was interrupted."
    assert figures(section) == []


def test_the_overview_puts_warnings_first_and_says_what_columns_were_used_for(content):
    told = replace(
        content,
        warnings=("Column a is huge.",),
        roles=(("features", "5 numeric columns (a … e)"), ("ignored", "sex (text), year (few)")),
        preparation=(("scale", "standard: spreads differ"),),
        seconds={"read": 0.25, "pca": 1.0},
    )
    section = overview(told)
    assert section.warnings == ("Column a is huge.",)
    facts = dict(section.blocks[0].pairs)
    assert facts["features"] == "5 numeric columns (a … e)"
    assert facts["ignored"] == "sex (text), year (few)"
    assert facts["scale"] == "standard: spreads differ"
    assert facts["time"] == "1.2 s (reading 0.2, PCA 1.0)"
    facts = dict(overview(content).blocks[0].pairs)
    assert facts["features"] == "5 (a, b, c, d and 1 more)"


def test_the_pca_sentence_counts_what_the_columns_are_worth(plane):
    X, names = plane
    content = gather(X, pca=PCA().fit(X), names=names)
    assert said(overview(content))[-1] == (
        "2 of 3 components hold 95 % of the variance: the 3 columns tell these 20 rows apart about "
        "as well as 2 unrelated ones would."
    )


@pytest.mark.parametrize(
    ("chance", "says"),
    [
        (0, "None stands out from what unrelated columns would show."),
        (
            1,
            "Only the first (83.6 %) stands out from what unrelated columns would show; the others "
            "refine the picture or are noise.",
        ),
        (2, "; the other refines the picture or is noise."),
        (3, "As many stand out from what unrelated columns would show."),
        (4, "so there is structure that this model leaves out."),
        (None, "of the variance."),
    ],
)
def test_counting_compares_with_unrelated_columns(content, monkeypatch, chance, says):
    panel = ComponentPanel((PanelRow("parallel", chance, "more than chance"),), 90, 5)
    module = sys.modules[counting.__module__]  # which its function hides in the package
    monkeypatch.setattr(module, "component_panel", lambda pca: panel)
    section = counting(content)
    sentence = said(section)[0]
    assert sentence.startswith("This model keeps 3 components, which hold 98.4 % of the variance.")
    assert sentence.endswith(says)
    (row,) = grid(section, "rule").rows
    assert row[:2] == ("parallel analysis (Horn)", "–" if chance is None else str(chance))


def test_every_rule_has_its_line(content):
    rows = {row[0]: row for row in grid(counting(content), "rule").rows}
    panel = component_panel(content.pca).counts
    assert rows["broken stick"][1] == str(panel["broken-stick"])
    assert rows["95\u00a0% of the variance"][1] == str(panel["95 %"])
    assert len(rows) == len(panel)


def test_components_are_told_by_the_columns_that_go_with_them(plane):
    X, names = plane
    rng = np.random.default_rng(0)
    X = np.column_stack([X, -X[:, 0] + rng.normal(size=20)])
    section = components(gather(X, pca=PCA(2).fit(X), names=(*names, "d")))
    assert said(section)[0].endswith(
        "% of the variance) rises with a (correlation 0.96) and falls with d (−0.94)."
    )
    assert "rises with b (" in said(section)[1]
    assert not any(" c (" in text for text in said(section))


def test_components_that_separate_groups_say_so(content):
    first = said(components(content))[0]
    assert first.partition("The groups of tree explain")[2].endswith("% of its variance.")
    mixed = replace(content, labels=(("tree", content.labels[0][1][np.arange(90) // 30]),))
    assert "explain" not in said(components(mixed))[0]


def test_a_map_of_principal_components_has_no_sections_about_a_pca_of_these(content):
    pcs = replace(content, names=tuple(f"pca_{j + 1}" for j in range(5)))
    assert counting(pcs) is components(pcs) is lost_variance(pcs) is None
    assert None not in (counting(content), components(content), lost_variance(content))
    lead = " ".join(said(overview(pcs)))
    assert "90 rows and 5 principal components; points are coloured" in lead
    assert "of the variance:" not in lead
    (methods,) = [clean(b.text, 2000) for b in reproduce(pcs).blocks if isinstance(b, Words)]
    assert "The 5 principal components [Hotelling 1933] of 90 rows (trees.csv) were" in methods
    assert "were computed before and used as they are" in methods
    assert "were kept" not in methods
    assert components(replace(pcs, Y=None)) is not None  # a PCA of them was asked for
    shares = [each["share"] for each in json.loads(payload(pcs).text)["components"]]
    assert shares
    assert not any(shares)  # of the variance of the data, which is not known
    assert all(each["share"] for each in json.loads(payload(content).text)["components"])


def test_reconstruction_tells_the_error_and_the_column_that_loses_most(plane):
    X, names = plane
    section = lost_variance(gather(X, pca=PCA(1).fit(X), names=names))
    # The second of variances 4 : 1 is left out: √(1/5) of the spread.
    assert said(section)[0].startswith(
        "Values reconstructed from 1 component are off by 44.7 % of the"
    )
    assert said(section)[1] == "The column with the largest error, b, loses 100 % of its variance."
    table = grid(section, "largest")
    assert {table.rows[0][0].row, table.rows[1][0].row} == {5, 15}  # sin is ±1 there
    assert [row[2] for row in table.rows] == ["b"] * 10
    assert table.rows[0][3:] in (("1", "0"), ("−1", "0"))


def test_reconstructed_cells_are_in_the_units_of_the_file(plane):
    X, names = plane
    Z = (X - X.mean(axis=0)) / np.array([0.5, 4.0, 1.0])
    told = gather(Z, X=X + np.array([0, 40, 0]), pca=PCA(1).fit(Z), names=names)
    assert grid(lost_variance(told), "largest").rows[0][3:] in (("41", "40"), ("39", "40"))


def test_columns_that_hardly_vary_are_not_made_a_worry_of():
    rng = np.random.default_rng(0)
    X = np.column_stack([10 * rng.normal(size=(50, 2)), 0.01 * rng.normal(size=(50, 8))])
    sentence = said(lost_variance(gather(X, pca=PCA(2).fit(X), names=tuple("abcdefghij"))))[1]
    assert "8 of 10 columns lose more than half, but together they hold only < 0.1 %" in sentence


def test_a_single_column_that_is_lost_is_named_however_little_it_varies():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [9, 8, 0.5]
    sentence = said(lost_variance(gather(X, pca=PCA(2).fit(X), names=("rain", "high", "wind"))))[1]
    assert sentence.startswith("The column with the largest error, wind, loses ")
    assert "It holds 0.1 % of all variance." in sentence


def test_nothing_lost_is_said_and_no_row_is_blamed(plane):
    X, names = plane
    section = lost_variance(gather(X, pca=PCA(2).fit(X), names=names))
    assert said(section) == [
        "From 2 components every value is reconstructed exactly: nothing is lost."
    ]
    assert not [block for block in section.blocks if isinstance(block, Grid)]


def test_without_the_table_the_page_says_what_it_cannot_know(content):
    bare = gather(
        None,
        pca=content.pca,
        scores=content.scores,
        names=content.names,
        tsne=content.tsne,
        neighbors=content.neighbors,
        score=False,
    )
    words = [b.text for b in lost_variance(bare).blocks if hasattr(b, "text")]
    assert words == [
        "Without the table, the rows with the largest reconstruction error are not known."
    ]


def test_trust_counts_neighbours_kept_and_rows_that_keep_few(content):
    kept = np.full(90, 0.8)
    kept[:9] = 0.2
    section = trust(replace(content, trust=kept))
    assert said(section)[1] == (
        "Of a row's 15 nearest rows in the data, 74 % are among its 15 nearest on the map; by "
        "chance it would be 16.9 %. 9 rows keep fewer than a third (10 % of all)."
    )
    least = grid(section, "lowest trust")
    assert [row[0] for row in least.rows] == [RowLink(i, f"row {i}") for i in range(8)]
    assert [row[1] for row in least.rows] == ["20\u00a0%"] * 8
    assert least.rows[0][2].row == content.neighbors[0, 0]
    assert least.note == "8 of the 9 rows whose trust is below a third."
    assert len(figures(section)) == 3


def test_a_quantity_is_no_group_that_neighbours_could_guess(content):
    told = replace(content, labels=(("height", np.linspace(0, 1, 90)),))
    assert content.quality.class_accuracy is not None
    assert any("would guess the right tree for" in text for text in said(trust(content)))
    assert not any("would guess" in text for text in said(trust(told)))


def test_trust_by_group_has_the_least_first(content):
    groups = content.labels[0][1]
    kept = np.where(groups == "birch", 0.25, np.where(groups == "ash", 0.5, 1.0))
    table = grid(trust(replace(content, trust=kept)), "Trust by tree")
    assert [row[:3] for row in table.rows] == [
        ("birch", "30", "25\u00a0%"),
        ("ash", "30", "50\u00a0%"),
        ("cedar", "30", "100\u00a0%"),
    ]
    assert [row[3] for row in table.rows] == ["100\u00a0%", "0\u00a0%", "0\u00a0%"]


def test_what_not_to_read_is_always_said(content):
    titles = [b.beside.title for b in trust(content).blocks if getattr(b, "beside", None)]
    assert titles == ["What not to read from it"]


def test_stability_says_how_many_points_stay_and_how_the_others_move(content):
    assert stability_section(content) is None
    found = stability(PCA(2), content.X, runs=3)
    n = len(content.X)
    told = replace(
        found,
        score=(n - 2) / n,
        moved_with=np.full(n, 0.1),
        moved_alone=np.full(n, 0.4),
        spread=np.r_[1.7, 1.0, found.spread[2:].clip(max=0.9)],
        runs=np.full(3, 0.05),
    )
    section = stability_section(replace(content, stability=told))
    assert said(section)[0] == (
        "Stable: groups stay in place, and so do points; points move by 5 % of the map's size "
        "(median)."
    )
    assert said(section)[1] == (
        "97.8 % of the points stay among their neighbours when the map is computed 3 times, with "
        "other rows left out each time."
    )
    assert said(section)[2] == (
        "The other 2 points move, mostly alone: the data do not determine their places."
    )
    together = replace(told, moved_with=np.full(n, 0.9), score=0.5)
    section = stability_section(replace(content, stability=together))
    assert said(section)[0].startswith("Stable as a whole, not in detail: groups stay in place")
    assert said(section)[2].endswith("with their neighbours: patches shift a little as a whole.")
    told = replace(together, runs=np.full(3, 0.4))
    section = stability_section(replace(content, stability=told))
    assert said(section)[0].startswith("Not stable: points move by 40 % of the map's size")
    assert said(section)[2].endswith("with their neighbours: whole groups change places.")
    assert grid(section, "move most").rows[0][0].row == 0


def test_reproduce_holds_lines_that_run(content, tmp_path, monkeypatch):
    section = reproduce(content)
    command, python = [block.text for block in section.blocks if block.kind == "code"]
    assert command == "gnomon map trees.csv"
    monkeypatch.chdir(tmp_path)
    exec(python, {"X": content.X, "labels": content.labels[0][1]})
    assert (tmp_path / "report.html").stat().st_size > 100_000


def test_standardised_tables_are_standardised_in_the_lines(plane):
    X, names = plane
    Z = (X - X.mean(axis=0)) / np.array([2.0, 5.0, 1.0])
    told = gather(Z, X=X, pca=PCA(1).fit(Z), names=names, preparation=(("scale", "standard: x"),))
    python = next(block.text for block in reproduce(told).blocks if block.kind == "code")
    assert "X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)" in python
    methods = next(block.text for block in reproduce(told).blocks if block.kind == "words")
    assert "its columns were divided by their standard deviations" in methods


def test_what_was_filled_in_and_repeated_is_told_with_the_methods(content):
    found = stability(PCA(2), content.X, runs=2)
    missing = "4 missing values (0.5 %) filled in from 2 components; converged after 9 iterations"
    told = replace(content, stability=found, preparation=(("missing", missing),))
    python = [block.text for block in reproduce(told).blocks if block.kind == "code"][-1]
    assert f"\n# {missing}\n" in python
    assert "labels=labels, stability=2)" in python
    methods = next(block.text for block in reproduce(told).blocks if block.kind == "words")
    methods = clean(methods, 5000)
    assert methods.startswith(f"{missing}. The table of 90 rows")
    assert "with perplexity 10, " in methods


def test_every_key_of_the_methods_is_in_the_list_and_no_other(content):
    blocks = reproduce(content).blocks
    methods = next(block.text for block in blocks if block.kind == "words")
    listed = next(block.items for block in blocks if block.kind == "bullets")
    cited = {key for key in REFERENCES if f"[{key}]" in methods}
    assert {"Hotelling 1933", "van der Maaten & Hinton 2008", "Venna & Kaski 2001"} <= cited
    assert listed == tuple(f"[{key}] {REFERENCES[key]}" for key in REFERENCES if key in cited)
    assert methods.count("[") == sum(methods.count(f"[{key}]") for key in cited)


def test_the_references_are_those_of_the_documentation():
    from contract.test_documents import read

    documented = " ".join(read("docs/references.md").replace("*", "").split())
    for key, text in REFERENCES.items():
        plain = text.replace("“", '"').replace("”", '"')
        assert f"[{key}] {plain}" in documented


def test_the_page_names_the_metric_that_rows_were_compared_by():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    tsne = TSNE(metric="cosine", perplexity=10, max_iter=20, random_state=0).fit(X)
    told = gather(X, pca=PCA(2).fit(X), tsne=tsne, names=tuple("abcde"))
    assert told.space == "all 5 columns by cosine distance"  # also in the card of a row
    assert dict(overview(told).blocks[0].pairs)["t-SNE"].startswith("cosine distance, perplexity")
    methods = next(block.text for block in reproduce(told).blocks if block.kind == "words")
    assert "was made of all 5 columns by cosine distance by t-SNE" in clean(methods, 5000)
