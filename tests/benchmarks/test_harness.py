import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks import __main__ as command
from benchmarks import environment, memory, pca, startup, timing
from benchmarks.data import decaying
from benchmarks.quality import reference
from benchmarks.record import Record
from benchmarks.table import Report, Table

ENVIRONMENT = {
    "commit": "abc+dirty",
    "measured": "today",
    "cpu": "abacus",
    "cpus": 2,
    "threads": 2,
    "load_average": 0.0,
    "system": "Linux",
    "versions": {"numpy": "2"},
}


class Machine:
    """A clock that only moves when a run takes its time, so that tests know every second."""

    def __init__(self, product_seconds: Iterable[float] = (1.0,)) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self.product_seconds: Iterator[float] = cycle(product_seconds)
        self.products = 0

    def run(self, name: str, *seconds: float) -> Callable[[], None]:
        turns = cycle(seconds)

        def work() -> None:
            self.log.append(name)
            self.now += next(turns)

        return work

    def product(self) -> None:
        if self.products % 3 == 0:  # the harness takes the best of three
            self.seconds = next(self.product_seconds)
        self.products += 1
        self.now += self.seconds

    def time(self, ours: Any, peers: Any, pairs: int | None = None) -> timing.Timing:
        return timing.time_pairs(
            ("ours", ours),
            peers,
            pairs=pairs,
            product=self.product,
            clock=lambda: self.now,
            sleep=lambda seconds: None,
        )


def test_the_ratio_is_the_median_of_pairwise_ratios() -> None:
    machine = Machine()
    ours = machine.run("ours", 1, 2, 8)
    found = machine.time(ours, {"peer": machine.run("peer", 5, 4, 8)}, pairs=3)
    assert found.ratios == pytest.approx([5, 2, 1])
    assert found.ratio == pytest.approx(2)  # the ratio of the medians would be 5/2
    assert found.quartiles == pytest.approx((1.5, 3.5))


def test_the_faster_peer_of_each_pair_counts() -> None:
    machine = Machine()
    peers = {"a": machine.run("a", 3, 6), "b": machine.run("b", 9, 2)}
    found = machine.time(machine.run("ours", 1), peers, pairs=2)
    assert found.ratios == pytest.approx([3, 2])
    assert found.fastest_peer == "a"  # median 4.5 against 5.5


def test_who_goes_first_alternates() -> None:
    machine = Machine()
    machine.time(machine.run("ours", 1), {"peer": machine.run("peer", 1)}, pairs=3)
    assert machine.log == ["ours", "peer", "peer", "ours", "ours", "peer"]


def test_noisy_pairs_are_discarded_counted_and_repeated() -> None:
    # Before and after each of four pairs: the second moves 1.6-fold up, the third 1.6-fold down.
    machine = Machine([1, 1.4, 1, 1.6, 1.6, 1, 1, 1])
    ours = machine.run("ours", 1, 10, 10, 1)
    found = machine.time(ours, {"peer": machine.run("peer", 2)}, pairs=2)
    assert found.discarded == 2
    assert found.ratios == pytest.approx([2, 2])
    assert len(found.products) == 4


def test_a_machine_that_is_never_quiet_gives_no_ratio_after_bounded_attempts() -> None:
    machine = Machine([1, 2])
    found = machine.time(machine.run("ours", 1), {"peer": machine.run("peer", 1)})
    assert found.discarded == timing.ATTEMPTS * timing.PAIRS
    assert math.isnan(found.ratio)


@pytest.mark.parametrize(("seconds", "pairs"), [(29, 7), (31, 3)])
def test_runs_of_more_than_half_a_minute_need_three_pairs(seconds: float, pairs: int) -> None:
    machine = Machine()
    found = machine.time(machine.run("ours", 1), {"peer": machine.run("peer", seconds)})
    assert len(found.ratios) == found.wanted == pairs


def test_without_a_peer_there_is_nothing_to_time() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Machine().time(lambda: None, {})


def fit_exactly(X: Any, k: int) -> Any:
    values, vectors = np.linalg.eigh(np.cov(X, rowvar=False))
    return SimpleNamespace(
        components_=vectors[:, ::-1][:, :k].T, explained_variance_=values[::-1][:k]
    )


def fit_wrongly(X: Any, k: int) -> Any:
    return SimpleNamespace(components_=np.eye(k, X.shape[1]), explained_variance_=np.ones(k))


def fit_not(X: Any, k: int) -> Any:
    raise RuntimeError("cannot | fit\nat all")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(pca, "peak_megabytes", lambda fit, table, k: 1.0)
    monkeypatch.setattr(timing, "NOISE", math.inf)  # tests may run on a busy machine


def measured(ours: Any, peer: Any, ratio: float) -> tuple[dict[str, Any], str]:
    row = pca.Row(
        "tiny", {environment.OURS: ours, "scikit-learn": peer}, lambda _: decaying(60, 9), 3, ratio
    )
    result = pca.measure(row, environment.Settings(pairs=1))
    return result, pca.speed_table([result]).to_markdown().splitlines()[-1]


@pytest.mark.usefixtures("quick")
def test_a_reached_target_says_so() -> None:
    result, line = measured(fit_exactly, fit_exactly, 0.0)
    assert result["complaints"] == []
    assert "reached" in line
    assert "missed" not in line


@pytest.mark.usefixtures("quick")
def test_a_missed_ratio_stays_in_the_table_and_is_marked() -> None:
    result, line = measured(fit_exactly, fit_exactly, 1e9)
    assert line.startswith("| tiny")
    assert "**missed**: ratio" in line
    assert result["timing"]["ratio"] < 1e9


@pytest.mark.usefixtures("quick")
def test_speed_at_a_larger_residual_is_a_miss() -> None:
    result, line = measured(fit_wrongly, fit_exactly, 0.0)
    assert result["quality"][environment.OURS]["residual"] > 0.1
    assert "**missed**: residual" in line


@pytest.mark.usefixtures("quick")
def test_a_fit_that_fails_stays_in_the_table_with_its_message() -> None:
    _, line = measured(fit_not, fit_exactly, 1.0)
    assert line.startswith("| tiny")
    assert "**failed**: RuntimeError: cannot \\| fit at all" in line


def test_memory_above_what_is_allowed_is_a_miss() -> None:
    result = {
        "timing": {"ratio": 2.0},
        "quality": {environment.OURS: {"residual": 0.0}, "peer": {"residual": 0.0}},
        "fastest_peer": "peer",
        "peak_megabytes": {environment.OURS: 65.0},
        "peak_megabytes_allowed": 64.0,
    }
    row = pca.Row("tiny", {}, lambda _: None, 3, 1.0)
    assert pca.complaints(result, row) == ["peak memory 65 MB above 64"]


def test_tall_wide_and_sparse_references_agree() -> None:
    X = sparse.random_array((40, 25), density=0.4, rng=np.random.default_rng(0), format="csr")
    for table in (X, X.T.tocsr()):
        by_iteration, by_matrix = reference(table, 3), reference(table.toarray(), 3)
        np.testing.assert_allclose(by_iteration.variances, by_matrix.variances, rtol=1e-12)
        assert abs(by_iteration.first @ by_matrix.first) == pytest.approx(1)


def test_a_component_found_twice_shows_in_the_deficit_though_its_residual_is_small() -> None:
    X = decaying(200, 8, np.float64)
    truth, model = reference(X, 2), fit_exactly(X, 2)
    assert truth.judge(model).deficit < 1e-12
    model.components_[1] = model.components_[0]
    model.explained_variance_[1] = model.explained_variance_[0]
    assert truth.judge(model).residual < 1e-12
    assert truth.judge(model).deficit > 1e-3


@pytest.mark.skipif(not memory.STATUS.exists(), reason="only Linux keeps the mark that is read")
def test_peak_memory_is_what_the_fit_takes_above_its_input(tmp_path: Path) -> None:
    table = memory.save_table(np.ones((1_000, 1_000)), tmp_path)
    # numpy.repeat(X, k) is a fit of known memory: k tables of 8 MB.
    peak = memory.peak_megabytes(np.repeat, table, 5)
    assert peak == pytest.approx(40, abs=4)  # a few pages of the interpreter's own


def report() -> Report:
    table = Table("A table.", ["row", "ratio"], [["a", "1.0"], ["b", "**missed**"]])
    raw = {"nan": math.nan, "inf": np.inf, "number": np.float32(0.5), "list": (np.arange(2),)}
    return Report("Title", [table], ["A note."], raw)


def test_json_is_valid_and_holds_the_environment(tmp_path: Path) -> None:
    report().write(tmp_path, "x", ENVIRONMENT)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    found = json.loads((tmp_path / "x.json").read_text("utf-8"), parse_constant=refuse)
    assert found["environment"] == ENVIRONMENT
    assert found["nan"] is found["inf"] is None
    assert (found["number"], found["list"]) == (0.5, [[0, 1]])


def test_markdown_names_commit_machine_and_versions() -> None:
    text = report().to_markdown(ENVIRONMENT)
    for part in ("abc+dirty", "abacus", "numpy 2", "**missed**", "A note."):
        assert part in text


def test_the_description_of_this_machine_fits_into_json() -> None:
    found = json.loads(json.dumps(environment.describe()))
    assert found["versions"]["numpy"] == np.__version__
    assert found["cpu"]


def test_a_missing_peer_is_an_error_that_says_what_sets_it_up() -> None:
    with pytest.raises(environment.MissingPeerError, match="`make bench` sets up"):
        environment.peer("no_such_library", "PCA", "no-such-library")


def test_the_commit_says_when_the_tree_has_changes(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *identity, *arguments], check=True)

    git("init", "-q")
    assert environment.commit(tmp_path) == "no commit"
    git("commit", "-q", "--allow-empty", "-m", "first")
    clean = environment.commit(tmp_path)
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    (tmp_path / "benchmarks" / "results" / "pca.md").write_text("measured")
    assert environment.commit(tmp_path) == clean
    (tmp_path / "change").write_text("")
    assert environment.commit(tmp_path) == f"{clean}+dirty"


@pytest.fixture
def fake_question(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One quick question; this process keeps its threads; results go to a folder of the test."""
    module = ModuleType("fake_question")
    module.run = lambda settings: report()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fake_question", module)
    monkeypatch.setattr(command, "QUESTIONS", {"fake": "fake_question"})
    monkeypatch.setattr(command, "hold_threads", lambda: None)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    return tmp_path


def test_the_command_prints_and_writes_the_table(
    fake_question: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 0
    assert (fake_question / "fake.md").read_text("utf-8") in capsys.readouterr().out
    assert (fake_question / "fake.json").exists()


@pytest.mark.parametrize("option", ["--only", "--pairs"])
def test_a_quick_look_does_not_replace_the_results(fake_question: Path, option: str) -> None:
    assert command.main([option, "1"]) == 0
    assert list(fake_question.iterdir()) == []


def table_of(raw: Any) -> Report:
    rows = [[row["name"], str(row["value"])] for row in raw.get("rows", ())]
    return Report("Rows", [Table("A table.", ["row", "value"], rows)])


@pytest.fixture
def row_question(fake_question: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A question of three rows whose values a test can change; "c" can be made to fail."""
    module = ModuleType("row_question")
    state: dict[str, Any] = {"value": 1, "stop": None, "seen": []}

    def rows(settings: environment.Settings) -> Iterator[tuple[str, dict[str, Any]]]:
        for name in "abc":
            if settings.wants(name):
                if name == state["stop"]:
                    raise KeyboardInterrupt
                yield "rows", {"name": name, "value": state["value"]}
                found = fake_question / "rows.json"
                state["seen"].append(found.exists() and stored(fake_question))

    module.rows, module.report = rows, table_of  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "row_question", module)
    monkeypatch.setattr(command, "QUESTIONS", {"rows": "row_question"})
    monkeypatch.setattr(command, "describe", lambda: {**ENVIRONMENT, "commit": "abc"})
    return state


def stored(folder: Path) -> dict[str, int]:
    found = json.loads((folder / "rows.json").read_text("utf-8"))
    return {row["name"]: row["value"] for row in found["rows"]}


def test_results_are_on_disk_after_every_row(
    fake_question: Path, row_question: dict[str, Any]
) -> None:
    assert command.main([]) == 0
    assert row_question["seen"] == [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}]
    assert "Unfinished" not in (fake_question / "rows.md").read_text("utf-8")
    assert sorted(path.name for path in fake_question.iterdir()) == ["rows.json", "rows.md"]


def test_an_interrupted_run_keeps_its_rows_and_says_that_there_should_be_more(
    fake_question: Path, row_question: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    row_question["stop"] = "c"
    assert command.main([]) == 130
    assert stored(fake_question) == {"a": 1, "b": 1}
    text = (fake_question / "rows.md").read_text("utf-8")
    assert "| b " in text
    assert "**Unfinished**" in text
    assert "finished rows are kept" in capsys.readouterr().err


def test_only_replaces_its_rows_in_results_of_the_same_commit_and_machine(
    fake_question: Path, row_question: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main([])
    row_question["value"] = 2
    assert command.main(["--only", "b"]) == 0
    assert stored(fake_question) == {"a": 1, "b": 2, "c": 1}
    text = (fake_question / "rows.md").read_text("utf-8")
    assert "Measured again later, at the same commit: b (today)." in text
    assert "Unfinished" not in text
    said = capsys.readouterr()
    assert "Wrote the rows of --only b in" in said.err
    assert text in said.out


@pytest.mark.parametrize(
    "change", [{"commit": "def"}, {"cpu": "another"}, {"versions": {"numpy": "3"}}], ids=str
)
def test_only_leaves_results_of_another_commit_or_machine_alone_and_says_so(
    fake_question: Path,
    row_question: dict[str, Any],
    change: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command.main([])
    monkeypatch.setattr(command, "describe", lambda: {**ENVIRONMENT, "commit": "abc", **change})
    row_question["value"] = 2
    assert command.main(["--only", "b"]) == 0
    assert stored(fake_question) == {"a": 1, "b": 1, "c": 1}
    key = next(iter(change))
    assert re.search(rf"printed, not written: .* measured with {key} ", capsys.readouterr().err)
    assert command.main(["--only", "b", "--out", str(fake_question)]) == 1
    assert stored(fake_question) == {"a": 1, "b": 1, "c": 1}
    assert "Use another --out" in capsys.readouterr().err


def test_results_of_a_changed_tree_are_never_mixed(
    fake_question: Path, row_question: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "describe", lambda: {**ENVIRONMENT, "commit": "abc+dirty"})
    command.main([])
    row_question["value"] = 2
    command.main(["--only", "b"])
    assert stored(fake_question) == {"a": 1, "b": 1, "c": 1}


def test_committed_pca_results_can_be_read_and_shown_again() -> None:
    folder = Path(command.__file__).parent / "results"
    former = json.loads((folder / "pca.json").read_text("utf-8"))
    record = Record("pca", pca.report, former["environment"], None, former=former)
    shown = record.report().to_markdown(former["environment"])
    assert shown == (folder / "pca.md").read_text("utf-8")


def test_kernels_compile_at_the_first_fit_of_a_fresh_process_and_not_at_the_second() -> None:
    first, second = startup._fresh_pair("pca")
    assert first > 2 * second > 0


def test_the_sum_of_compile_times_has_a_limit() -> None:
    fits = [{"name": "first-a", "first": 7.0, "second": 1.0, "compiling": 6.0}] * 2
    assert "**missed**: 12.0 s above 10 s" in startup.report({"first_fits": fits}).to_markdown(
        ENVIRONMENT
    )
    assert "reached" in startup.report({"first_fits": fits[:1]}).to_markdown(ENVIRONMENT)


@pytest.mark.usefixtures("fake_question")
def test_an_unknown_benchmark_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["speed"])
    assert "no benchmark speed" in capsys.readouterr().err
