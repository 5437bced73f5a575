"""The page of a comparison: its sentences, tables and data come from the numbers."""

import json
import re

import numpy as np
import pytest
from procrustes.test_changes import drift
from report.pages import decoded_numbers, read_data

from gnomon import PCA, compare, samples
from gnomon.charts.words import percent
from gnomon.procrustes.movement import lay_on
from gnomon.report.compared.group_changes import find_groups, find_islands
from gnomon.report.compared.pair_maps import draw_maps
from gnomon.report.compared.pair_sections import compared_sections

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def made():
    X, Y, movers = drift(2, 12, 0.1, 0.05, n=400)
    ids = [f"{HOSTILE}-{i}" for i in range(400)]
    found = compare(X, Y)
    page = found.report(names=("old", HOSTILE), ids=ids, n_permutations=99)
    return page, found, movers, X


def test_the_known_movers_are_in_the_data_and_in_the_table(made):
    page, found, movers, _ = made
    data = read_data(page.html)
    changed = decoded_numbers(data["pair"]["changed"])
    assert sorted(changed) == sorted(found.changes.changed.tolist())
    right = len(set(changed) & set(movers.tolist()))
    assert right >= 0.95 * max(len(changed), len(movers))
    linked = [int(row) for row in re.findall(r'href="#row-(\d+)"', page.html)]
    assert set(linked[: min(20, len(movers))]) <= set(movers.tolist())


def test_both_maps_are_in_the_frame_of_the_first(made):
    page, _, movers, X = made
    first, second = page.content.maps
    assert (first == X).all()
    stayed = np.setdiff1d(np.arange(400), movers)
    # Noise of 0.1 in each of two directions; the frame itself is found to much less.
    assert np.linalg.norm(second - first, axis=1)[stayed].mean() < 0.2


def test_names_and_ids_are_text(made):
    page = made[0]
    assert HOSTILE not in page.html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.html
    assert page.html.count("<script") == 2


def test_neighbours_of_both_tables_are_in_the_data(made):
    page, found, *_ = made
    data = read_data(page.html)
    for parts, near in (
        (data["neighbors"], found.changes.near_x),
        (data["pair"]["neighbors"], found.changes.near_y),
    ):
        for rank, part in enumerate(parts):
            assert decoded_numbers(part) == near[:, rank].tolist()


def test_wide_tables_are_judged_by_their_own_neighbours_and_get_maps(made):
    X, Y, _ = drift(10, 12, 0.3, 0.05, n=300)
    found = compare(X, Y)
    page = found.report(n_permutations=9)
    assert "not on these maps" in page.html
    assert page.content.kept.tolist() == found.changes.kept.tolist()
    assert page.content.maps[0].shape == (300, 2)


def test_many_rows_of_wide_tables_are_shown_by_their_components(monkeypatch):
    monkeypatch.setattr("gnomon.report.compared.pair_maps.MOST_MAPPED", 99)
    X, Y, _ = drift(10, 12, 0.3, 0.05, n=100)
    first, _, said = draw_maps(X, Y)
    assert "principal components" in said
    assert first == pytest.approx(PCA(2, random_state=0).fit_transform(X))


def test_rows_that_kept_company_have_no_name_and_no_group_has_a_place(made):
    page, found, *_ = made
    company = next(each for each in read_data(page.html)["labels"] if each["name"] == "company")
    assert (company["none"], company["scattered"]) == ("kept company", True)
    named = np.array(decoded_numbers(company["codes"])) == 0  # the only name, "changed company"
    assert np.flatnonzero(named).tolist() == sorted(found.changes.changed.tolist())


def test_shares_of_neighbours_have_one_bar_each(made):
    drawn = compared_sections(made[0].content)[1].blocks[1].charts[0]
    bars = re.findall(r"<title>([^<]*: [^<]*rows?)</title>", drawn.svg)
    assert 0 < len(bars) == len(set(made[0].content.kept.tolist()))


def test_reruns_stand_beside_the_figures():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    near, far = X + rng.normal(size=X.shape) / 100, X + rng.normal(size=X.shape)
    page = compare(X, far).report(reruns=[near, near[:, ::-1]], n_permutations=9)
    assert "once in 3 times, so make more to be sure" in page.html
    page = compare(X, far).report(reruns=[near] * 19, n_permutations=9)
    assert "something besides chance changed" in page.html
    page = compare(X, near).report(reruns=[far], n_permutations=9)
    assert "chance alone may explain it" in page.html
    changed = percent(compare(X, far).changed)
    share = f"In reruns, {changed} of the rows change company by chance alone; in b, 0\u00a0%."
    assert share in page.html
    assert "compare it with reruns" in compare(X, near).report(n_permutations=9).html


def test_groups_that_split_and_merge_are_named():
    rng = np.random.default_rng(0)
    group = np.arange(600) % 4
    places = np.array([[0, 0], [30, 0], [60, 0], [90, 0]])
    X = places[np.array([0, 0, 1, 2])[group]] + rng.normal(size=(600, 2))  # 0 and 1 are one
    Y = places[np.array([0, 1, 2, 2])[group]] + rng.normal(size=(600, 2))  # 2 and 3 become one
    labels = np.array(["ash", "ash", "cedar", "oak"], object)[group]
    found = compare(X, Y)
    groups = find_groups(
        (X, Y), ("tree", labels), found.changes.kept, np.zeros(600, bool), (X, Y - X)
    )
    said = " ".join(groups.sentences)
    said = said.replace("\u00a0", " ")
    assert "ash (300 rows) split into ash, part 1 (150 rows) and ash, part 2 (150 rows)." in said
    assert re.search(r"(cedar|oak) \(150 rows\) and (cedar|oak) \(150 rows\) merged into", said)
    assert "cedar + oak (300 rows)." in said
    assert len(groups.sentences) == 2 + said.count("moved as a whole")
    assert {each.name for each in groups.groups} == {"ash", "cedar", "oak"}


def test_groups_of_many_rows_are_as_few_as_those_of_a_sample():
    """In 20,000 rows without gaps, clumps of a few hundred rows would count as groups."""
    rng = np.random.default_rng(0)
    group = np.arange(20_000) % 3
    X = np.array([[0, 0], [30, 0], [60, 0]])[group] + rng.uniform(-8, 8, size=(20_000, 2))
    islands = find_islands(X)
    assert islands.max() == 2
    for each in range(3):
        assert len(set(islands[group == each])) == 1


def test_many_changes_of_groups_are_summed_up():
    rng = np.random.default_rng(0)
    places = 50 * np.array([[at % 5, at // 5] for at in range(24)])
    group, half = np.arange(1920) % 24, np.arange(1920) // 24 % 2
    X = places[group] + rng.normal(size=(1920, 2))
    Y = X + np.where(half[:, None] == 1, [0, 2000.0], 0)
    groups = find_groups((X, Y), None, np.zeros(1920), np.zeros(1920, bool), (X, Y - X))
    split = [said for said in groups.sentences if "split" in said]
    assert len(split) == 9
    assert split[-1] == "16\u00a0smaller groups split too."


def test_the_second_map_is_as_large_as_the_first_even_where_they_differ():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 400, 2))
    laid = lay_on(7 * Y, X)
    sizes = [np.linalg.norm(Z - Z.mean(axis=0)) for Z in (X, laid)]
    assert sizes[1] / sizes[0] == pytest.approx(1, abs=0.15)  # robust weights differ from 1


def test_a_group_that_moved_as_a_whole_is_named():
    rng = np.random.default_rng(0)
    group = np.arange(480) % 8
    places = 20 * np.array([[np.cos(angle), np.sin(angle)] for angle in np.arange(8)])
    X = places[group] + rng.normal(size=(480, 2))
    Y = X.copy()
    Y[::8] += [0, 40]
    labels = np.array(list("abcdefgh"), object)[group]
    page = compare(X, Y).report(labels=labels, n_permutations=9)
    assert "a moved as a whole" in page.html
    assert "b moved as a whole" not in page.html


def test_groups_that_all_moved_are_one_sentence():
    rng = np.random.default_rng(0)
    group = np.arange(480) % 8
    angle = np.pi / 4 * np.arange(8)
    places = 20 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = places[group] + rng.normal(size=(480, 2))
    Y = X + (places[[3, 0, 6, 1, 7, 2, 4, 5]] - places)[group]
    labels = np.array(list("abcdefgh"), object)[group]
    page = compare(X, Y).report(labels=labels, n_permutations=9)
    moved = [said for said in page.content.groups.sentences if "moved as a whole" in said]
    assert len(moved) == 1
    assert re.match("[5-8] of 8\u00a0groups moved as a whole, by up to ", moved[0])


def test_half_a_group_that_moved_is_no_group_that_moved():
    rng = np.random.default_rng(0)
    group = np.arange(800) % 8
    X = 20 * rng.normal(size=(8, 10))[group] + rng.normal(size=(800, 10))
    away = np.zeros((800, 10))
    away[(group == 0) & (rng.random(800) < 0.6), 0] = 20
    labels = np.array(list("abcdefgh"), object)[group]
    found = find_groups((X, X + away), ("", labels), np.zeros(800), np.zeros(800, bool), (X, away))
    assert max(each.moved for each in found.groups) > 1
    assert [said.partition(" (")[0] for said in found.sentences] == ["a"]  # it split


def test_groups_without_labels_have_numbers_in_the_first_table_alone():
    rng = np.random.default_rng(0)
    group = np.arange(600) % 4
    places = np.array([[0, 0], [30, 0], [60, 0], [90, 0]])
    X = places[np.array([0, 0, 1, 2])[group]] + rng.normal(size=(600, 2))
    Y = places[np.array([0, 1, 2, 2])[group]] + rng.normal(size=(600, 2))
    groups = find_groups((X, Y), None, np.zeros(600), np.zeros(600, bool), (X, np.zeros((600, 2))))
    said = [sentence.replace("\u00a0", " ") for sentence in groups.sentences]
    assert said == [
        "group 1 (300 rows) split into a group (150 rows) and a group (150 rows).",
        "group 2 (150 rows) and group 3 (150 rows) merged into a group (300 rows).",
    ]


def test_few_rows_and_one_column_have_a_page():
    wine = samples.load("wine")
    page = compare(wine.X[:6, :1], wine.X[:6, 1:2] + wine.X[:6, :1]).report(n_permutations=9)
    assert "too few rows" in page.html


def test_the_data_are_strict_json(made):
    text = re.search(r'id="gnomon-data">(.*?)</script>', made[0].html, re.DOTALL)[1]
    json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


def test_the_page_names_the_metric_and_its_code_in_python_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 40, 4))
    ids_a = ids_b = [f"w{i}" for i in range(40)]
    found = compare(a, b, ids_a, ids_b, metric="cosine", n_neighbors=5)
    content = found.report(names=("one", "two"), n_permutations=9).content
    sections = {each.id: each for each in compared_sections(content)}
    assert "by cosine distance" in sections["map"].lead[0]
    assert "divided by their lengths first" in sections["alike"].lead[-1]
    *_, code, methods = sections["reproduce"].blocks
    assert "by cosine distance; rows were divided by their lengths" in methods.text
    exec(code.text, {"a": a, "b": b, "ids_a": ids_a, "ids_b": ids_b})
    assert str(found) in capsys.readouterr().out
    assert (tmp_path / "comparison.html").is_file()


def test_reruns_are_offered_for_maps_alone():
    rng = np.random.default_rng(0)
    wide, flat = (compare(*rng.normal(size=(2, 40, d))).report(n_permutations=9) for d in (4, 2))
    assert "compare it with reruns" in flat.html
    assert "--reruns" not in wide.html
    assert "two models that you know to be alike" in wide.html


def test_all_rows_that_changed_company_are_within_reach(made):
    caption = compared_sections(made[0].content)[1].blocks[0].note
    assert "selects all that changed company" in caption
    assert "--rows rows.csv" in caption
    X = np.random.default_rng(0).normal(size=(30, 2))
    same = compare(X, X).report(n_permutations=9).content
    assert "--rows" not in compared_sections(same)[1].blocks[0].note
