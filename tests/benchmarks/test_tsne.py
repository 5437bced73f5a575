import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    data,
    map_quality,
    timing,
    tsne,
    tsne_course,
    tsne_crossover,
    tsne_force,
    tsne_maps,
    tsne_programs,
    tsne_quality,
    tsne_section,
    tsne_sets,
    tsne_size,
    tsne_space,
    tsne_tables,
    tsne_transform,
)
from benchmarks.environment import OURS, BenchmarkError, MissingPeerError, Settings
from benchmarks.tsne_section import Section

ROWS = 120
SECTIONS = (*tsne.SECTIONS, *map_quality.SECTIONS)


def few(folder: Path | None, rows: int = ROWS) -> tsne_programs.Points:
    return tsne_programs.images(None, rows)


def first_columns(X: Any, k: int) -> Any:
    """A map that costs nothing."""
    return SimpleNamespace(embedding_=X[:, :k], timings_={"descent": 1.0}, n_iter_=1)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(timing, "NOISE", float("inf"))  # tests may run on a busy machine
    monkeypatch.setattr(tsne_maps, "STARTS", 1)
    for module in (tsne_maps, tsne_space):
        monkeypatch.setattr(module, "peak_megabytes", lambda fit, table, k: 1.0)
    for module in (tsne_course, tsne_sets, tsne_size, tsne_space):
        monkeypatch.setattr(module, "warm_up", lambda k=2: None)


def only(text: str) -> dict[str, list[str]]:
    """Rows that --only TEXT measures, by section."""
    found = {section.name: section.wanted(Settings(only=text)) for section in SECTIONS}
    return {name: rows for name, rows in found.items() if rows}


def test_every_section_and_every_row_can_be_asked_for() -> None:
    for section in SECTIONS:
        everything = [row for row in section.rows if row not in section.on_request]
        assert only(section.name) == {section.name: everything}
        for row in section.rows:
            assert row in only(f"{section.name} {row}")[section.name]
    assert only("maps digits") == {"maps": ["digits"]}


def test_the_million_is_measured_only_when_it_is_named() -> None:
    assert "million" not in tsne_size.SECTION.wanted(Settings())
    assert "million" not in tsne_size.SECTION.wanted(Settings(only="size"))
    assert only("million") == {"size": ["million"]}


def test_a_row_that_does_not_exist_is_refused_with_the_names_of_those_that_do() -> None:
    with pytest.raises(BenchmarkError, match="maps digits"):
        next(tsne.rows(Settings(only="no such row")))


def test_a_missing_peer_stops_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ("no_such_library", "TSNE", "no-such-library")
    monkeypatch.setattr(tsne_section, "PEERS", {**tsne_programs.PEERS, "openTSNE": missing})
    with pytest.raises(MissingPeerError):
        next(tsne.rows(Settings(only="force error digits")))


def section_of(measure: Any) -> Section:
    return replace(tsne_maps.SECTION, rows={"tiny": measure})


def test_a_row_that_fails_stays_in_its_table_with_its_message() -> None:
    def fail(settings: Settings) -> dict[str, Any]:
        raise RuntimeError("cannot | map\nat all")

    section = section_of(fail)
    result = section.measure("tiny", Settings())
    line = section.table([result]).to_markdown().splitlines()[-1]
    assert line.startswith("| tiny")
    assert "**failed**: RuntimeError: cannot \\| map at all" in line


def case(**changes: Any) -> tsne_maps.Case:
    fits = dict.fromkeys(tsne_programs.FITS, first_columns)
    usual = tsne_maps.Case(few, 2, {"intelex": 0, "openTSNE": 0}, 0.1, fits=fits)
    return replace(usual, **changes)


def mapped(tiny: tsne_maps.Case) -> tuple[dict[str, Any], str]:
    section = section_of(partial(tsne_maps.measure, tiny))
    result = section.measure("tiny", Settings())
    assert "error" not in result
    return result, section.table([result]).to_markdown().splitlines()[-1]


@pytest.mark.usefixtures("quick")
def test_the_same_map_has_the_same_kl_whoever_made_it() -> None:
    result, line = mapped(case())
    assert len(set(result["kl"].values())) == 1
    assert set(result["kl"]) == set(tsne_programs.FITS)
    assert "reached" in line
    assert result["target_kl"] is None  # which belongs to MNIST, not to generated rows


@pytest.mark.usefixtures("quick")
def test_a_map_that_is_too_slow_is_a_miss_with_the_ratio_in_words() -> None:
    result, line = mapped(case(ratios={"intelex": 1e9, "openTSNE": 0}))
    assert len(result["ratios"]["intelex"]["pairs"]) == 2
    assert "**missed**" in line
    assert "× intelex below 1000000000.0" in line
    assert "× openTSNE below" not in line


@pytest.mark.usefixtures("quick")
def test_a_peer_that_is_slow_is_timed_once_and_outside_the_pairs() -> None:
    calls = []

    def slow(X: Any, k: int) -> Any:
        calls.append(len(X))
        return first_columns(X, k)

    fits = {**case().fits, "scikit-learn": slow}
    result, _ = mapped(case(fits=fits, once=("scikit-learn",)))
    assert calls == [ROWS, ROWS]  # the warm-up, and the one run
    assert len(result["seconds"]["scikit-learn"]) == 1
    assert len(result["seconds"]["openTSNE"]) == 2


@pytest.mark.usefixtures("quick")
def test_kl_above_its_target_and_memory_above_its_limit_are_misses() -> None:
    points = replace(few(None), source="real")
    result, line = mapped(case(load=lambda folder: points, megabytes=1.0))
    assert result["target_kl"] == 0.1
    assert "above 0.1; peak memory 1 MB, not below 1" in line


def test_kl_of_a_map_does_not_depend_on_who_computes_it() -> None:
    from gnomon import TSNE

    X = few(None).X
    model = TSNE(recall=1.0, max_iter=300, random_state=0).fit(X)
    P = tsne_programs.exact_affinities(X)
    # The descent's own KL is in float32.
    assert tsne_programs.exact_kl(P, model) == pytest.approx(model.kl_divergence_, rel=1e-5)


def test_other_starts_are_the_default_start_but_for_a_hundred_thousandth() -> None:
    X = few(None).X
    one, two = (tsne_programs.other_start(X, seed) for seed in (1, 2))
    assert not np.array_equal(one, two)
    np.testing.assert_allclose(one, two, rtol=1e-4)


def test_clusters_are_the_same_every_time() -> None:
    X, labels = data.clusters(300, 20, kinds=4)
    assert X.shape == (300, 20)
    assert X.dtype == np.float32
    assert set(labels) == set(range(4))
    np.testing.assert_array_equal(X, data.clusters(300, 20, kinds=4)[0])


@pytest.mark.usefixtures("quick")
def test_a_set_is_compared_with_the_first_editions_median(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tsne_sets.GENERATED, "line", lambda: tsne_tables.line(200))
    monkeypatch.setitem(tsne_sets.FIRST_EDITION, "line", (9.0, 9.0))
    result = tsne_sets.SECTION.measure("line", Settings())
    assert len(result["runs"]) == 2
    assert result["runs"][0]["kl"] == pytest.approx(result["runs"][0]["own_kl"], abs=1e-4)
    lengths = [run["n_iter"] for run in result["qualities"].values()]
    assert lengths == sorted(lengths)
    assert "reached" in tsne_sets.SECTION.table([result]).to_markdown()
    result["kl_first_edition"] = result["kl"] / 1.004
    assert tsne_sets.complaints(result) == [
        f"KL {result['kl']:.4f} is +0.4 % of the first edition's"
    ]
    result.update(kl_first_edition=result["kl"] / 1.002, target=0.9 * result["kl"])
    assert tsne_sets.complaints(result) == [f"KL {result['kl']:.4f} above {result['target']}"]


def test_real_sets_need_their_folder_and_say_so() -> None:
    result = tsne_sets.SECTION.measure("faces", Settings())
    assert "needs --data" in tsne_sets.SECTION.table([result]).to_markdown()
    assert set(tsne_sets.FIRST_EDITION) == {*tsne_tables.REAL, *tsne_tables.GENERATED}


def test_an_exact_force_has_no_error_and_half_of_it_has_one_of_a_half() -> None:
    from gnomon.tsne.reference import field

    Y = np.random.default_rng(0).standard_normal((200, 2)) * 5
    phi, push = field(Y)
    truth = tsne_force.Truth(Y, sampled=50)
    right = truth.errors(push, float(phi.sum()))
    # A point's own term is added as zero, in another order: rounding.
    assert right == pytest.approx({"force_error": 0.0, "z_error": 0.0}, abs=1e-12)
    half = truth.errors(push / 2, float(phi.sum()) * 1.01)
    assert half == pytest.approx({"force_error": 0.5, "z_error": 0.01})


def test_our_force_is_compared_with_the_exact_one_of_the_same_points() -> None:
    measure = partial(tsne_force.measure, few, peers={"zero": lambda Y: (np.zeros_like(Y), 1.0)})
    section = replace(tsne_force.SECTION, rows={"tiny": measure})
    result = section.measure("tiny", Settings())
    errors = {name: found["force_error"] for name, found in result["programs"].items()}
    assert errors[OURS] < 1e-4  # few points: all pairs, in float32
    assert errors["zero"] == 1.0
    lines = section.table([result]).to_markdown().splitlines()[-2:]
    assert OURS in lines[0]
    assert "reached" in lines[0]
    assert "100.00%" in lines[1]


def test_a_run_followed_in_stretches_is_the_run_itself() -> None:
    X = few(None).X
    lengths = []
    for model in tsne_course.follow(X, whole=260):
        lengths.append(model.n_iter_)
    assert lengths == list(range(20, 261, 20))
    whole = tsne_programs.ours(max_iter=260).fit(X)
    np.testing.assert_array_equal(model.embedding_, whole.embedding_)


@pytest.mark.usefixtures("quick")
def test_the_run_that_is_timed_is_the_shortest_that_passes_the_rival() -> None:
    measure = partial(tsne_course.measure_to_kl, few, rival=first_columns)
    section = replace(tsne_course.TO_KL, rows={"tiny": measure})
    result = section.measure("tiny", Settings())
    assert result["kl"] < result["goal"]
    assert result["iterations"] == 240  # the first look after exaggeration has ended
    assert list(result["kl_by_iteration"]) == ["240"]
    assert "240 iterations" in section.table([result]).to_markdown()


def test_stretches_of_our_run_are_those_of_one_fit() -> None:
    course = tsne_course.stretches_gnomon(few(None).X)
    assert [stretch["until"] for stretch in course[:3]] == [20, 40, 60]
    assert sum(stretch["iterations"] for stretch in course) == course[-1]["until"] - 1
    assert all(stretch["seconds"] > 0 for stretch in course)
    assert course[-1]["span"] > course[0]["span"]


def test_openTSNEs_phases_are_joined_and_pauses_between_them_left_out() -> None:  # noqa: N802
    now = [0.0]
    watch = tsne_course.Watch(clock=lambda: now[0])
    Y = np.array([[0.0, 0.0], [3.0, 1.0]])
    for seconds in (2.0, 4.0):  # two phases of one stretch each
        now[0] += 100
        watch.optimization_about_to_start()
        now[0] += seconds
        assert not watch(50, 1.0, Y)
    assert [stretch["seconds"] for stretch in watch.found] == [2.0, 4.0]
    assert [stretch["until"] for stretch in watch.found] == [50, 100]
    assert watch.found[0]["span"] == 3.0


@pytest.mark.parametrize(("last", "result"), [(1.5, "reached"), (9.0, "**missed**: 9.0-fold")])
def test_iterations_that_slow_down_more_than_openTSNEs_are_a_miss(  # noqa: N802
    last: float, result: str
) -> None:
    def course(*seconds: float) -> Any:
        Y = np.eye(2)
        return lambda X: [
            tsne_course._stretch(50 * at, 50, taken, Y) for at, taken in enumerate(seconds, 1)
        ]

    programs = {OURS: course(1.0, last), "openTSNE": course(1.0, 2.0, 4.0)}
    measure = partial(tsne_course.measure_iterations, few, programs=programs)
    section = replace(tsne_course.ITERATIONS, rows={"tiny": measure})
    found = section.measure("tiny", Settings())
    lines = section.table([found]).to_markdown().splitlines()[4:]
    assert [line.split("|")[2].strip() for line in lines] == [
        "to 50",
        "to 100",
        "to 150",
        "slowest / quickest",
    ]
    assert result in lines[-1]


def test_the_share_among_their_own_label_counts_the_majority_of_ten() -> None:
    X = np.repeat([[0.0, 0.0], [100.0, 0.0]], 20, axis=0) + np.arange(40)[:, None] % 20 / 10
    labels = np.repeat(["a", "b"], 20)
    rows = np.array([[0.5, 0.5], [101.0, 1.0], [100.5, 0.5]])
    share = tsne_transform.majority_share(X, labels, rows, np.array(["a", "b", "a"]))
    assert share == pytest.approx(2 / 3)


class Placer:
    """A map that puts every new row at the same place."""

    def __init__(self, X: Any, k: int) -> None:
        self.embedding_ = np.ascontiguousarray(X[:, :k])

    def transform(self, X: Any) -> Any:
        return np.zeros((len(X), self.embedding_.shape[1]), np.float32)


@pytest.mark.usefixtures("quick")
def test_new_rows_in_wrong_places_are_a_miss_however_fast() -> None:
    class Right(Placer):
        def transform(self, X: Any) -> Any:
            return X[:, :2]

    fits = {OURS: Placer, "openTSNE": Right}
    measure = partial(tsne_transform.measure, partial(few, rows=600), fits=fits, new=100)
    section = replace(tsne_transform.SECTION, rows={"tiny": measure})
    result = section.measure("tiny", Settings())
    assert result["shares"][OURS] < result["shares"]["openTSNE"] <= 1
    assert result["shares"]["original"] > result["shares"]["openTSNE"]
    line = section.table([result]).to_markdown().splitlines()[-1]
    assert "among their own digit" in line.split("**missed**")[1]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("rival", "compared"), [(first_columns, True), (None, False)])
def test_a_map_in_space_has_an_error_and_a_ratio_where_somebody_else_made_one(
    rival: Any, compared: bool
) -> None:
    section = replace(tsne_space.SECTION, rows={"tiny": partial(tsne_space.measure, few, rival)})
    result = section.measure("tiny", Settings(pairs=1))
    assert result["force_error"] < 1e-4  # few points: all pairs, in float32
    assert (result["ratio"] is not None) == compared
    assert "reached" in section.table([result]).to_markdown()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("former", "verdict"), [(1e9, "reached"), (1e-9, "**missed**: 0.0 ×")])
def test_a_map_in_space_is_held_against_the_first_editions_time(
    former: float, verdict: str
) -> None:
    real = lambda folder: replace(few(folder), source=tsne_programs.REAL)  # noqa: E731
    measure = partial(tsne_space.measure, real, None, former=former)
    section = replace(tsne_space.SECTION, rows={"tiny": measure})
    result = section.measure("tiny", Settings())
    assert verdict in section.table([result]).to_markdown()


@pytest.mark.usefixtures("quick")
def test_sizes_say_where_the_seconds_go() -> None:
    section = replace(tsne_size.SECTION, rows={"tiny": partial(tsne_size.measure, ROWS)})
    result = section.measure("tiny", Settings())
    assert set(result["stages"]) >= {"neighbors", "affinities", "descent"}
    assert f"| {ROWS} × 50 generated clusters |" in section.table([result]).to_markdown()


def flat(folder: Path | None) -> tsne_programs.Points:
    """Three groups on a line in the plane: a map of them can be perfect."""
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2], ROWS // 3)
    X = rng.standard_normal((ROWS, 2)) + np.array([[0, 0], [20, 0], [60, 0]])[labels]
    return tsne_programs.Points(X, labels, "generated")


def test_a_perfect_map_has_perfect_scores_and_a_shuffled_one_has_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shuffled = lambda X, k: X[np.random.default_rng(0).permutation(len(X))]  # noqa: E731
    programs = {OURS: first_columns, "openTSNE": shuffled, "scikit-learn": first_columns}
    monkeypatch.setattr(tsne_quality, "FITS", programs)
    monkeypatch.setattr(tsne_quality, "SLOW", {"scikit-learn": ROWS - 1})
    section = replace(tsne_quality.SECTION, rows={"flat": partial(tsne_quality.measure, flat)})
    result = section.measure("flat", Settings())
    ours, theirs = (result["programs"][name] for name in (OURS, "openTSNE"))
    assert set(result["programs"]) == {OURS, "openTSNE"}  # scikit-learn would take too long
    for score in ("trustworthiness", "kept_10", "kept_30", "class", "centroids"):
        assert ours[score] == pytest.approx(1.0)
        assert theirs[score] < 0.9 or score == "centroids"  # of three groups by chance
    assert "1.000 / " in map_quality.report({"quality": [result]}).tables[0].to_markdown()


def test_constants_far_from_what_was_measured_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    constants = {"pair_ns": 0.2, "any_dof_pair_ns": 16.0, "node_ns": 9.0}
    found = {**constants, "node_ns": 30.0, "constants": constants}
    assert tsne_crossover.complaints(found) == ["NODE_NS is 9, measured 30"]
    monkeypatch.setattr(tsne_crossover, "RUNS", 1)
    result = tsne_crossover.SECTION.measure("d=2", Settings())
    assert result["pair_ns"] > 0
    assert result["nodes"][1] > result["nodes"][0]


@pytest.mark.usefixtures("quick")
def test_results_read_from_disk_show_the_same_tables() -> None:
    mapping = section_of(partial(tsne_maps.measure, case())).measure("tiny", Settings())
    raw = {"maps": [mapping], "size": [{"name": "size 1k", "error": "RuntimeError: no"}]}
    whole = replace(tsne.report(raw), raw=raw)
    stored = json.loads(whole.to_json({}))
    assert tsne.report(stored).tables == whole.tables


def test_a_report_shows_only_the_sections_that_were_measured() -> None:
    failed = {"name": "size 1k", "error": "RuntimeError: no"}
    text = [table.to_markdown() for table in tsne.report({"size": [failed]}).tables]
    assert len(text) == 1
    assert "**size**" in text[0]
    assert "| 1k " in text[0]
