import pytest

from benchmarks import map_cost
from benchmarks.environment import BenchmarkError, Settings


def test_what_a_map_takes_stands_beside_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    case = map_cost.Case(120)
    monkeypatch.setattr(map_cost, "CASES", (case, map_cost.Case(70_000, 784, real=True)))
    monkeypatch.setattr(map_cost, "RUNS", 1)
    found = list(map_cost.rows(Settings()))
    assert [row["name"] for _, row in found] == [case.name]  # real tables need --data
    row = found[0][1]
    assert min(row["seconds"], row["trust"], row["expected_seconds"], row["expected_trust"]) > 0
    assert "| 120 × 50 |" in map_cost.report({"rows": [row]}).tables[0].to_markdown()


def test_an_estimate_beyond_a_factor_of_two_is_named() -> None:
    row = {"seconds": 1.0, "expected_seconds": 1.9, "trust": 4.1, "expected_trust": 2.0}
    assert map_cost.complaints(row) == ["trust are 2.05 times what is expected"]


def test_a_row_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BenchmarkError, match="300x50"):
        next(map_cost.rows(Settings(only="no such row")))
