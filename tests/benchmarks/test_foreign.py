"""The benchmark of rows unlike the data: its kinds of rows, and when it is content."""

import numpy as np
import pytest

from benchmarks import foreign
from benchmarks.environment import Settings
from benchmarks.foreign import COUNTED, KINDS, SETS, Set, complaints, report

rng = np.random.default_rng(0)
OLD, NEW = (rng.gamma(2, size=(n, 12)).astype(np.float32) for n in (300, 40))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_as_many_and_of_the_tables_type(kind):
    before = NEW.copy()
    made = KINDS[kind](np.random.default_rng(1), OLD, NEW)
    assert made.shape == NEW.shape
    assert made.dtype == NEW.dtype
    assert np.array_equal(NEW, before)


def test_shuffled_rows_keep_their_numbers_and_mixed_ones_their_columns():
    shuffled = KINDS["shuffled"](np.random.default_rng(1), OLD, NEW)
    assert np.array_equal(np.sort(shuffled, axis=1), np.sort(NEW, axis=1))
    assert not np.array_equal(shuffled, NEW)
    mixed = KINDS["mixed"](np.random.default_rng(1), OLD, NEW)
    assert np.array_equal(np.sort(mixed, axis=0), np.sort(NEW, axis=0))
    assert not np.array_equal(mixed, NEW)


def counts(new, noise, rows=10_000):
    def of(share):
        return dict(zip(COUNTED, (rows, round(share * rows), 0, 0, 0), strict=True))

    return {"new": of(new), **{kind: of(noise) for kind in KINDS if kind != "new"}}


def test_too_many_or_too_few_new_rows_and_noise_that_passes_are_complained_of():
    one = Set("MNIST", 60_000)
    assert complaints(one, counts(0.01, 1.0)) == []
    assert complaints(one, counts(0.05, 1.0)) == ["5.00% of new rows"]
    assert complaints(one, counts(0.0, 1.0)) == ["0.00% of new rows"]
    assert len(complaints(one, counts(0.01, 0.9))) == 3
    assert complaints(Set("digits", 1400, aimed=False), counts(0.01, 0.9)) == []


def test_a_measured_set_becomes_lines_of_the_tables(monkeypatch):
    small = Set("digits", 300, splits=1, pca=("auto",), aimed=False, real=False)
    monkeypatch.setattr(foreign, "SETS", (small,))
    monkeypatch.setattr(foreign, "MOST_FOREIGN", 100)
    found = list(foreign.rows(Settings(only="digits, no")))
    assert [section for section, _ in found] == ["flagged"]
    text = report({"flagged": [row for _, row in found]}).tables[0].to_markdown()
    assert "| digits, no PCA | 300 × 64" in text
    assert "100.0%" in text  # of uniform noise


def test_the_sets_are_those_of_the_issue():
    assert {"MNIST 60,000", "COIL-20"} <= {one.name for one in SETS if one.aimed}
    assert all(one.pca == ("auto", None) for one in SETS if one.aimed)
