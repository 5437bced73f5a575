"""The benchmark of audits: its tables, and when it is content."""

import numpy as np

from benchmarks import audit
from benchmarks.audit import TABLES, complaints, report, span
from benchmarks.environment import Settings


def test_tables_are_new_for_each_seed_and_of_one_size():
    for make in TABLES.values():
        first, again, other = make(0), make(0), make(1)
        assert len(first) == audit.ROWS
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)


def test_noise_that_passes_and_clusters_that_do_not_are_complained_of():
    def said(table, unsupported, misplaced=0.0):
        return complaints(table, {"unsupported": unsupported, "misplaced": [misplaced]})

    assert said("noise", [1.0, 0.96]) == []
    assert said("noise", [1.0, 0.9]) == ["90.0% of a table of noise unsupported"]
    assert said("10 clusters", [0.0, 0.1]) == []
    assert said("10 clusters", [0.0, 0.2]) == ["20.0% unsupported"]
    assert said("10 clusters", [0.0, 0.2], 0.1) == ["20.0% unsupported", "10.0% misplaced"]
    assert said("digits", [0.5]) == []


def test_measured_rows_become_lines_of_the_tables(monkeypatch):
    monkeypatch.setattr(audit, "SEEDS", 1)
    monkeypatch.setattr(audit, "ROWS", 120)
    found = list(audit.rows(Settings(only="10 clusters")))
    assert [section for section, _ in found] == ["maps", "moved", "moved", "moved"]
    raw = {"maps": [found[0][1]], "moved": [row for _, row in found[1:]]}
    text = "\n".join(table.to_markdown() for table in report(raw).tables)
    assert "| 10 clusters, our t-SNE" in text
    assert "| 10 clusters, 5% moved" in text


def test_a_withheld_test_is_said():
    assert span([float("nan")] * 2) == "withheld"
    assert span([0.5, float("nan")]) == "50.0% (50.0% to 50.0%, withheld 1 times)"
