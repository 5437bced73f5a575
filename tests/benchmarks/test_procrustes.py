from dataclasses import replace

import numpy as np
import pytest

from benchmarks import procrustes, procrustes_words
from benchmarks.environment import OURS, BenchmarkError, Settings
from benchmarks.procrustes import ROWS, SCIPY, complaints, make_pair, measure, report
from gnomon.procrustes import row_pairs as pairs


def small(row):
    return replace(row, shape=(200, *row.shape[1:]) if len(row.shape) == 2 else (5, 20, 2))


@pytest.mark.parametrize("row", [row for row in ROWS if row.same_answer], ids=lambda row: row.name)
def test_both_sides_of_a_row_give_the_same_answer(row):
    X, Y = make_pair(small(row).shape)
    assert row.ours(X, Y) == pytest.approx(row.theirs(X, Y), abs=1e-12)


def test_the_rows_are_those_of_the_design():
    targets = {row.name: (row.shape, row.ratio) for row in ROWS}
    assert targets["plane"] == ((1_000_000, 2), 3.0)
    assert targets["wide"] == ((100_000, 300), 1.0)
    assert targets["many"] == ((5_000, 50, 2), 30.0)


def test_a_measured_row_becomes_a_line_of_the_table(monkeypatch):
    monkeypatch.setattr("benchmarks.timing.SETTLE_SECONDS", 0.0)
    result = measure(small(ROWS[0]), 1)
    text = report({"rows": [result]}).tables[0].to_markdown()
    assert "| plane" in text
    assert "200 × 2" in text


def test_a_failed_row_stays_in_the_table():
    def broken(X, Y):
        raise RuntimeError("no luck")

    result = measure(replace(small(ROWS[0]), ours=broken), 1)
    assert "RuntimeError: no luck" in report({"rows": [result]}).tables[0].to_markdown()


def test_slow_rows_and_other_answers_are_complained_of():
    result = {"timing": {"ratio": 2.0}, "answers": {OURS: 0.5, SCIPY: 0.4}}
    found = complaints(result, ROWS[0])
    assert found[0] == "ratio 2.00 below 3"
    assert "is not SciPy's" in found[1]
    assert not complaints({"timing": {"ratio": 3.1}, "answers": {OURS: 0.5, SCIPY: 0.5}}, ROWS[0])


def test_both_ways_of_adding_up_are_timed_and_the_limit_is_put_back():
    before = pairs.WIDEST
    result = procrustes.measure_width(3, n=500)
    assert before == pairs.WIDEST
    assert set(result["seconds"]) == {"loops", "BLAS"}
    assert "Moments of 500 pairs" in report({"widths": [result]}).tables[0].to_markdown()


def test_words_are_found_where_their_vectors_are():
    random = np.random.default_rng(0)
    targets = random.normal(size=(50, 6))
    rows = np.arange(10)
    assert procrustes_words.found_at(targets[rows], targets, rows) == (1.0, 1.0)
    assert procrustes_words.found_at(-targets[rows], targets, rows) == (0.0, 0.0)
    known = np.arange(20)
    Q = np.linalg.qr(random.normal(size=(6, 6)))[0]
    for fit in (procrustes_words.by_rotation, procrustes_words.by_rotation_of_components):
        moved, there = fit(targets @ Q, targets, known)
        assert procrustes_words.found_at(moved, there, np.arange(50))[0] == 1.0


def test_real_vectors_are_left_out_without_data_and_their_names_are_known():
    assert procrustes_words.cases(Settings()) == []
    with pytest.raises(BenchmarkError, match="--only must be part of a row's name; got nothing"):
        list(procrustes.rows(Settings(only="nothing")))
