"""The data inside a page, read back as its script reads them."""

import base64
import json
import zlib
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from report.pages import fitted, groups_of_rows

from gnomon import PCA
from gnomon.report import encode
from gnomon.report.content import gather, in_map_order
from gnomon.report.encode import morton_part
from gnomon.report.payload import NOTES, TO_FIT, payload
from gnomon.report.sections.map_picture import map_section


def unpacked(part):
    return zlib.decompress(base64.b64decode(part["data"]))


def numbers(part):
    size, length = part["bytes"], part["length"]
    planes = np.frombuffer(unpacked(part), np.uint8).reshape(size, length)
    return sum(planes[i].astype(np.int64) << 8 * i for i in range(size))


def texts(part):
    return json.loads(unpacked(part))


def values(field):
    codes = numbers(field["codes"])
    if "levels" in field:
        return np.array([*field["levels"], np.nan])[codes]
    low, high = field["low"], field["high"]
    read = low + codes / field["steps"] * (high - low)
    return np.where(codes > field["steps"], np.nan, read)


@pytest.fixture(scope="module")
def content():
    X, labels = groups_of_rows(300, 6)
    pca, tsne = fitted(X)
    rng = np.random.default_rng(0)
    gaps = rng.normal(size=300)
    gaps[::7] = np.nan
    named = labels.copy()
    named[3] = None
    columns = [("tree", named), ("height", gaps), ("year", np.arange(300.0) % 4)]
    ids = ("plant", np.array([f"p{i}" for i in range(300)], object))
    return gather(X, pca=pca, tsne=tsne, names=[f"c{j}" for j in range(6)], labels=columns, ids=ids)


def test_everything_that_fits_is_in_the_page(content):
    made = payload(content)
    data = json.loads(made.text)
    assert made.notes == ()
    n = content.n
    for part, positions in zip(data["maps"], [content.Y, content.pca_map], strict=True):
        read = (
            np.column_stack([numbers(part["x"]), numbers(part["y"])]) * part["step"] + part["low"]
        )
        longer = np.ptp(positions, axis=0).max()
        assert np.abs(read - positions).max() <= 0.51 * longer / 65_535
    tree, height, year = data["labels"]
    names = [*texts(tree["names"]), None]
    assert [names[code] for code in numbers(tree["codes"])] == content.labels[0][1].tolist()
    gaps = content.labels[1][1]
    assert np.array_equal(np.isnan(values(height)), np.isnan(gaps))
    assert np.nanmax(np.abs(values(height) - gaps)) <= 0.51 * np.ptp(gaps[~np.isnan(gaps)]) / 65_534
    assert texts(year["names"]) == ["0", "1", "2", "3"]
    assert np.array_equal(values(data["trust"]), content.trust)
    assert texts(data["ids"]["texts"]) == content.ids[1].tolist()
    near = np.column_stack([numbers(rank) for rank in data["neighbors"]])
    assert np.array_equal(near, content.neighbors)
    assert texts(data["columns"]["names"]) == list(content.names)
    for part in data["columns"]["held"]:
        column = content.X[:, part["column"]]
        assert np.abs(values(part) - column).max() <= 0.51 * np.ptp(column) / 65_534
    for c, part in enumerate(data["components"]):
        scores = part["low"] + part["step"] * numbers(part["scores"])
        assert np.abs(scores - content.scores[:, c]).max() <= 0.51 * part["step"]
        read = numbers(part["correlations"]) / 127 - 1
        assert np.abs(read - content.pca.correlations()[:, c]).max() <= 0.51 / 127
    assert len(data["columns"]["held"]) == 6
    assert len(numbers(data["maps"][0]["x"])) == n


def test_a_correlation_of_nothing_is_exactly_nothing():
    part = encode.whole_numbers(np.array([127], np.uint8))
    assert numbers(part)[0] / 127 - 1 == 0


def kept(content, budget):
    """How much of each kind a page of this size holds, what is left out first at the end."""
    data = json.loads(payload(content, budget=budget).text)
    return (
        len(data["maps"]),
        data["ids"] is not None,
        len(data["labels"]),
        len(data["neighbors"]),
        len(data["components"]),
        len(data["columns"]["held"]),
    )


def test_less_room_leaves_out_columns_first_then_scores_neighbours_labels_and_ids(content):
    whole = len(payload(content).text) + NOTES
    sizes = range(whole + 100, 0, -400)
    steps = [kept(content, budget) for budget in sizes]
    assert steps[0] == (2, True, 3, 5, 3, 6)
    assert steps == sorted(steps, reverse=True)
    for before, after in pairwise(steps):
        # What stands further back is gone before something in front of it goes.
        first = next((i for i in range(6) if before[i] != after[i]), 6)
        assert first < 3 or not any(after[first + 1 :])
    assert steps[-1][0] == 1  # the map itself, its first colour and the trust are always there
    assert steps[-1][2] == 1


def test_what_is_put_in_stays_within_the_budget_and_what_is_left_out_is_said(content):
    budget = len(payload(content).text) + NOTES - 2_500
    made = payload(content, budget=budget)
    assert len(made.text) <= budget - NOTES
    assert len(made.notes) == 1
    assert "of 6\xa0columns, those with the largest contributions" in made.notes[0]
    tight = payload(content, budget=2_500)
    said = " ".join(tight.notes)
    for what in ("PCA map", "ids in plant", "height, year", "no neighbours"):
        assert what in said
    # Whole sentences, as a person reads them.
    assert "The page holds no neighbours of the rows" + TO_FIT in tight.notes
    assert "The PCA map was left out" + TO_FIT in tight.notes


def test_sentences_about_what_is_in_part_left_out_count_it(content):
    notes = set()
    for budget in range(len(payload(content).text) + NOTES, 0, -100):
        notes |= set(payload(content, budget=budget).notes)
    assert "The page holds 1 of the 5 neighbours of each row" + TO_FIT in notes
    assert "The page holds the scores of 1\xa0component" + TO_FIT in notes
    assert "The page holds no scores of components" + TO_FIT in notes
    assert all(note.endswith(".") for note in notes)


def test_the_largest_contributions_are_kept_longest(content):
    budget = len(payload(content).text) + NOTES - 2_500
    data = json.loads(payload(content, budget=budget).text)
    held = [part["column"] for part in data["columns"]["held"]]
    assert 0 < len(held) < 6
    weight = content.pca.contributions() @ content.pca.explained_variance_
    assert set(held) == set(np.argsort(-weight)[: len(held)].tolist())


def test_a_map_of_one_dimension_is_shown_in_two_and_said_to_be(content):
    Y = np.random.default_rng(0).normal(size=(content.n, 1))
    made = payload(replace(content, Y=Y))
    part = json.loads(made.text)["maps"][0]
    read = numbers(part["x"]) * part["step"] + part["low"][0]
    assert np.abs(read - Y[:, 0]).max() < 1e-3
    assert "one dimension" in made.notes[0]


def test_a_map_of_three_dimensions_is_shown_from_its_three_sides(content):
    Y = np.random.default_rng(0).normal(size=(content.n, 3))
    maps = json.loads(payload(replace(content, Y=Y)).text)["maps"]
    assert [part["name"] for part in maps] == ["t-SNE 1·2", "1·3", "2·3", "PCA"]
    for part, axes in zip(maps, ((0, 1), (0, 2), (1, 2)), strict=False):
        read = [
            numbers(part[way]) * part["step"] + low
            for way, low in zip("xy", part["low"], strict=True)
        ]
        assert np.abs(np.column_stack(read) - Y[:, axes]).max() < 1e-3
    assert "three dimensions" in map_section(replace(content, Y=Y)).lead[1]


def test_without_the_table_columns_are_known_by_scores_alone(content):
    made = payload(replace(content, X=None, prepared=None))
    data = json.loads(made.text)
    assert data["columns"]["held"] == []
    assert len(data["components"]) == 3
    assert "without the table" in made.notes[0]


def test_no_text_can_end_the_block_or_begin_another(content):
    hostile = "</script><!--&\u2028\u2029\ud800"
    made = payload(replace(content, title=hostile, labels=((hostile, content.labels[0][1]),)))
    assert not set("<>&\u2028\u2029") & set(made.text)
    assert made.text.isascii()
    assert json.loads(made.text)["title"] == hostile


def test_numbers_of_any_size_and_none_survive():
    huge = np.array([-1.7e308, 1.7e308, 0.0, np.nan, np.inf] + [float(i) for i in range(300)])
    field = encode.number_field("x", huge)
    codes = numbers(field["codes"])
    assert codes[0] == 0
    assert codes[1] == field["steps"]
    assert (codes[3:5] == field["steps"] + 1).all()
    empty = encode.number_field("x", np.full(4, np.nan))
    assert empty["levels"] == []
    assert encode.category_field("x", np.full(3, None))["codes"]["length"] == 3


def test_groups_stand_in_the_order_people_count():
    field = encode.category_field("x", np.array(["c10", "c9", "c1"], object))
    assert texts(field["names"]) == ["c1", "c9", "c10"]


def test_very_many_rows_stand_along_a_curve_and_their_positions_are_gaps():
    """Read back as web/src/table.ts reads them: even bits are x, odd bits are y."""
    X, _ = groups_of_rows(90)
    pca, tsne = fitted(X)
    content = gather(X, pca=pca, names=list("abcde"), tsne=tsne, labels=[])
    ordered = in_map_order(content)
    rows = ordered.row_numbers
    assert sorted(rows) == list(range(90))
    assert np.array_equal(ordered.Y, content.Y[rows])
    assert np.array_equal(ordered.X, X[rows])
    assert np.array_equal(rows[ordered.neighbors], content.neighbors[rows])
    data = json.loads(payload(ordered).text)
    part = data["maps"][0]
    codes = np.cumsum(numbers(part["gaps"]).astype(np.int64))
    bits = (codes[:, None] >> np.arange(28)) & 1
    at = np.stack([(bits[:, axis::2] << np.arange(14)).sum(axis=1) for axis in (0, 1)], axis=1)
    positions = np.array(part["low"]) + part["step"] * at
    assert np.abs(positions - ordered.Y).max() <= 0.51 * part["step"]
    assert part["step"] == pytest.approx(np.ptp(content.Y, axis=0).max() / 16_383)
    assert np.array_equal(numbers(data["row_numbers"]), rows)
    assert "1/16,383 of the map" in payload(ordered).notes[0]
    assert encode.map_bits(200_001) == 12


def test_rows_out_of_the_order_of_the_curve_are_refused():
    with pytest.raises(ValueError, match="order of the curve"):
        morton_part("t-SNE", np.array([[0.0, 0], [1, 1], [0.5, 0.5]]))


def test_a_replay_is_differences_that_add_up_to_the_frames():
    X, _ = groups_of_rows(90)
    pca, tsne = fitted(X)
    rng = np.random.default_rng(0)
    frames = [(0, rng.normal(size=(90, 2))), (7, rng.normal(size=(90, 2))), (9, tsne.embedding_)]
    content = gather(X, pca=pca, names=list("abcde"), tsne=tsne, replay=tuple(frames))
    part = json.loads(payload(content).text)["replay"]
    assert part["iterations"] == [0, 7, 9]
    at = np.zeros((90, 2), np.uint16)
    for (_, places), frame in zip(frames, part["frames"], strict=True):
        at = at + np.stack([numbers(frame[axis]) for axis in "xy"], axis=1).astype(np.uint16)
        read = np.array(part["low"]) + part["step"] * at
        assert np.abs(read - places).max() <= 0.51 * part["step"]


def test_density_is_the_share_of_rows_in_sparser_places():
    X = np.concatenate([np.linspace(0, 1, 40), np.linspace(10, 200, 40)])[:, None]
    content = gather(X, pca=PCA(1).fit(X), names=["a"])
    assert content.density[:40].min() > content.density[40:].max()
    assert content.density.min() >= 0
    assert content.density.max() < 1


def test_texts_are_shortened_before_they_are_left_out():
    X, _ = groups_of_rows(90)
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgh "), 2_000)) for _ in range(90)]
    texts = ("said", np.array(words, object))
    content = gather(X, pca=PCA(2).fit(X), names=list("abcde"), texts=texts)
    whole = payload(content)
    assert len(json.loads(whole.text)["texts"]["texts"]["data"]) > 60_000
    less = payload(content, budget=40_000)
    assert "Texts in said are shortened to 160 letters." in less.notes
    assert len(less.text) <= 40_000
    none = payload(content, budget=8_000)
    assert any(note.startswith("The texts in said were left out") for note in none.notes)
