"""Groups that are suggested: found where there are any, and named by what sets them apart."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from gnomon import samples
from gnomon.report.clusters import describe_groups, suggest_groups


def nearest(X, k=15):
    """Neighbours by all distances."""
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k].astype(np.int32)


def test_groups_far_apart_are_found_and_numbered_by_size():
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1, 2], [40, 90, 60])
    X = rng.normal(size=(190, 4)) + 20 * np.eye(3, 4)[kind]
    groups = suggest_groups(nearest(X))
    kept = groups >= 0
    assert kept.mean() > 0.9
    # Louvain may halve a cloud, and never joins two.
    for group in np.unique(groups[kept]):
        assert len(set(kind[groups == group])) == 1
    sizes = np.bincount(groups[kept])
    assert (np.diff(sizes) <= 0).all()


def test_digits_are_found_without_their_labels():
    digits = samples.load("digits")
    groups = suggest_groups(nearest(digits.X[:600]))
    kept = groups >= 0
    assert kept.mean() > 0.6
    assert adjusted_rand_score(digits.labels[:600][kept], groups[kept]) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_noise_has_no_groups(seed):
    X = np.random.default_rng(seed).normal(size=(400, 12))
    assert suggest_groups(nearest(X)) is None


def test_few_rows_have_no_groups():
    X = np.random.default_rng(0).normal(size=(40, 3)) + 30 * (np.arange(40)[:, None] % 2)
    assert suggest_groups(nearest(X)) is None


def test_names_say_what_sets_a_group_apart():
    X = np.zeros((90, 3)) + np.random.default_rng(0).normal(size=(90, 3))
    groups = np.repeat([0, 1, -1], 30)
    X[groups == 0, 1] += 9
    X[groups == 1, 2] -= 9
    names = describe_groups(groups, X, ["a", "b", "c"])
    assert names[0].startswith("high b")
    assert names[30].startswith("low c")
    assert names[-1] is None
    assert describe_groups(groups, None, [])[[0, 30]].tolist() == ["group 1", "group 2"]
    same = describe_groups(groups, None, [], ["a parser of the https://site.invalid"] * 90)
    assert same[[0, 30]].tolist() == ["parser", "parser (2)"]
    texts = ["a fast parser"] * 30 + ["a slow network daemon"] * 30 + ["fast and slow"] * 30
    words = describe_groups(groups, None, [], texts)
    assert set(words[0].split(", ")) <= {"fast", "parser"}
    assert "parser" in words[0]
    assert {"network", "daemon"} == set(words[30].split(", "))


def test_a_name_holds_no_word_twice_and_none_that_means_nothing():
    groups = np.repeat([0, 1], 30)
    texts = ["font and fonts for the screen"] * 30 + ["a terminal"] * 30
    assert describe_groups(groups, None, [], texts)[0] == "font, screen"


def test_groups_of_single_words_are_named_after_their_typical_members():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [30.0]], 40, axis=0) + rng.normal(size=(80, 4))
    words = [f"{kind}{chr(97 + i // 26)}{chr(97 + i % 26)}" for kind in "xy" for i in range(40)]
    near = np.argsort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:11]
    groups = np.repeat([0, 1], 40)
    found = describe_groups(groups, None, [], words, words=words, near=near)
    often = np.bincount(near[:40].ravel(), minlength=80)
    first = np.argsort(-often[:40], kind="stable")[:3]
    assert found[0] == ", ".join(words[row] for row in first)
    assert found[40].startswith("y")
    codes = [f"cell-{i}" for i in range(80)]
    assert describe_groups(groups, None, [], words=codes, near=near)[0] == "group 1"
    named = describe_groups(groups, X, ["a", "b", "c", "d"], words=words, near=near)
    assert named[0].startswith("low ")
