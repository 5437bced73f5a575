"""The whole job for tables that are read in blocks."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import gnomon.pipeline.map_budget
from gnomon import PCA, TSNE, report, run, source
from gnomon.data.preparation import prepare
from gnomon.data.table import Table
from gnomon.engine import LocalEngine
from gnomon.errors import ChangedSourceError, MissingValueError, ParameterError, TooLargeError
from gnomon.events import Event, Finished
from gnomon.pipeline.enough_rows import usual_perplexity


def table(rows=600, columns=5, seed=0):
    rng = np.random.default_rng(seed)
    return 6 * rng.integers(3, size=(rows, 1)) + rng.standard_normal((rows, columns))


def in_memory(X):
    names = tuple(f"column {j + 1}" for j in range(X.shape[1]))
    return Table("data", X, names, n_columns=X.shape[1])


def test_scores_are_those_of_the_table_in_memory(tmp_path):
    X = table()
    told = []
    found = run(
        source(X, rows=47),
        n_components=3,
        dimensions=None,
        scores=tmp_path / "s.parquet",
        on=told.append,
    )
    ends = [event.stage for event in told if isinstance(event.detail, Finished)]
    assert ends == ["read", "prepare", "pca", "scores"]
    rows = {event.stage: event for event in told if event.detail is None}
    assert rows == {stage: Event(stage, 600, 600) for stage in ("prepare", "pca", "scores")}
    written = pq.read_table(tmp_path / "s.parquet")
    assert written.column_names == ["pc1", "pc2", "pc3"]
    scores = np.column_stack([written[name].to_numpy() for name in written.column_names])
    # Sums in other groups: the last digits differ.
    np.testing.assert_allclose(scores, PCA(3).fit_transform(X), atol=1e-9)
    assert found.pca.n_components_ == 3
    assert found.tsne is None
    assert not found.interrupted
    assert str(found.table) == (
        "data: 600 rows × 5 columns\n"
        "  features  5 numeric columns (column 1, column 2, column 3, column 4, column 5)\n"
        "  blocks    read in 13 blocks; rows keep their order"
    )


@pytest.mark.parametrize("scale", ["auto", "none", "standard"])
def test_columns_are_scaled_as_those_of_a_table_in_memory(scale):
    X = table() * [1, 1, 200, 1, 1]
    X[:, 4] = 7.0  # constant
    found = run(source(X, rows=47), scale=scale, dimensions=None)
    expected = prepare(in_memory(X), scale=scale).preparation
    assert found.preparation.to_dict() == expected.to_dict()
    if scale != "none":
        np.testing.assert_allclose(found.preparation.mean, expected.mean, rtol=1e-12)
        np.testing.assert_allclose(found.preparation.std, expected.std, rtol=1e-12)
    whole = run(in_memory(X), scale=scale, dimensions=None).pca
    np.testing.assert_allclose(found.pca.components_, whole.components_, atol=1e-9)


@pytest.mark.parametrize("stage", ["prepare", "pca"])
def test_a_file_that_is_rewritten_after_the_spread_was_measured_is_named(tmp_path, stage):
    X = table() * [1, 1, 200, 1, 1]
    np.save(tmp_path / "a.npy", X)

    def rewrite(event):
        if event.stage == stage and isinstance(event.detail, Finished):
            np.save(tmp_path / "a.npy", X[::-1])  # of the same size, and the same spread

    with pytest.raises(ChangedSourceError, match=r"a\.npy, rows .* not those of the first time"):
        run(
            source(tmp_path / "a.npy", rows=47),
            dimensions=None,
            scores=tmp_path / "s.npy",
            on=rewrite,
        )
    assert not (tmp_path / "s.npy").exists()


def test_gaps_are_refused_with_their_place(tmp_path):
    X = table()
    X[333, 2] = np.nan
    np.save(tmp_path / "x.npy", X)
    for scale in ("auto", "none"):
        with pytest.raises(MissingValueError, match=r"x\.npy.*row 333"):
            run(source(tmp_path / "x.npy", rows=100), scale=scale, dimensions=None)


def test_rows_that_are_placed_are_told_of():
    X, told = table(rows=300), []
    run(
        source(X, rows=70),
        dimensions=2,
        sample=100,
        scale="none",
        n_jobs=1,
        on=lambda event: event.stage == "place" and told.append((event.done, event.total)),
    )
    told.pop()  # the end of the stage
    assert len(told) == 5  # one block after the other
    assert told[-1] == (200, 200)
    assert [rows for rows, _ in told] == sorted({rows for rows, _ in told})


def test_a_sample_of_blocks_is_mapped_and_the_others_placed():
    X = table()
    found = run(source(X, rows=47), dimensions=2, sample=200, scale="none", seed=1, n_jobs=1)
    rows = found.sampling.rows
    tsne = TSNE(random_state=1, perplexity=30, n_jobs=1).fit(X[rows])
    assert np.array_equal(found.tsne.embedding_, tsne.embedding_)
    others = np.setdiff1d(np.arange(600), rows)
    assert np.array_equal(found.positions[others], tsne.transform(X[others]))
    assert not np.isnan(found.trust).any()
    assert found.components.shape == (600, found.pca.n_components_)
    assert not found.interrupted


def test_the_perplexity_is_that_of_the_rows_that_are_mapped():
    found = run(source(table(rows=120), rows=47), dimensions=2, sample=20, scale="none")
    assert found.tsne.perplexity == usual_perplexity(20)


def test_all_rows_of_blocks_are_mapped_where_there_is_room():
    X = table(rows=120)
    found = run(source(X, rows=47), dimensions=2, scale="none", n_jobs=1)
    assert found.sampling is None
    assert np.array_equal(found.positions, TSNE(random_state=0, n_jobs=1).fit_transform(X))
    many = source(table(rows=1500), rows=500)
    with pytest.raises(TooLargeError, match=r"a map of 1,000 rows needs about 92\.2 MB"):
        run(many, dimensions=2, memory="80MB", perplexity=300, scale="none")
    with pytest.raises(
        TooLargeError, match=r"a map of 1,200 rows needs about 107 MB.*the 80\.0 MB"
    ):
        run(many, dimensions=2, memory="80MB", perplexity=300, sample=1200, scale="none")


def test_a_map_of_all_rows_that_is_cut_short_says_so():
    def stop(event):
        if event.stage == "tsne" and event.done == 60:
            raise KeyboardInterrupt

    found = run(source(table(rows=120), rows=47), dimensions=2, scale="none", n_jobs=1, on=stop)
    assert found.sampling is None
    assert found.tsne.stop_reason_ == "interrupted"
    assert found.interrupted


def test_what_reduces_a_wide_table_for_its_map_keeps_to_the_memory_allowed():
    wide = source(np.random.default_rng(0).standard_normal((400, 1200)), rows=100)
    how = {"n_components": 2, "dimensions": 2, "sample": 50, "perplexity": 5, "scale": "none"}
    plan = run(wide, memory="120MB", n_jobs=1, **how).tsne.pca.plan_
    assert plan.solver == "gram"  # d × d sums would take 170 MB
    assert plan.peak_bytes <= 120e6
    with pytest.raises(TooLargeError, match=r"needs .* beyond the table"):
        run(wide, memory="60MB", n_jobs=1, **how)


def test_what_is_kept_of_every_row_is_counted_in_the_memory_allowed(monkeypatch):
    """Up to ten scores, its place, its trust, its dot on a chart: less is left for the map."""
    mapped = []

    def ends(_, rows, __):
        mapped.append(rows.size)
        raise KeyboardInterrupt

    monkeypatch.setattr("gnomon.pipeline.flow.rows_of_source", ends)
    for rows in (20_000, 120_000):
        with pytest.raises(KeyboardInterrupt):
            run(
                source(table(rows=rows, columns=12), rows=5000),
                n_components=12,
                dimensions=2,
                memory="80MB",
                scale="none",
            )
    each = 7_200 + 8 * 12  # bytes of a mapped row
    assert mapped[0] - mapped[1] == pytest.approx(100_000 * (40 + 70) / each, abs=2)


class Shared(LocalEngine):
    """Threads that say of themselves that they are worker processes of this machine."""

    processes = 0

    def __init__(self, processes):
        super().__init__(1)
        self.processes = processes


def test_every_worker_of_this_machine_holds_the_map_that_it_places_rows_on(monkeypatch):
    """So there is room for fewer rows, the more of them there are."""
    mapped = []

    def ends(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gnomon.pipeline.flow.rows_of_source", ends)
    sample_within = gnomon.pipeline.map_budget.sample_within

    def watched(*given, **how):
        found = sample_within(*given, **how)
        mapped.append((found.rows.size, found.why))
        return found

    monkeypatch.setattr("gnomon.pipeline.map_budget.sample_within", watched)
    many = source(table(rows=20_000, columns=50), rows=5000)
    for processes in (0, 3):
        engine = Shared(processes)
        with pytest.raises(KeyboardInterrupt):
            run(many, dimensions=2, memory="110MB", scale="none", engine=engine)
    (alone, why), (shared, _) = mapped
    # 7,200 bytes a row of map, 400 of the table, and twice as many in each worker.
    assert alone / shared == pytest.approx((7600 + 3 * 800) / 7600, rel=1e-3)
    assert why.endswith(
        " may be used of the 110 MB allowed: 800 kB are for the scores, 1.4 MB for the places"
    )


def test_the_rows_of_the_map_are_a_result_of_their_own():
    found = run(
        source(table(rows=300), rows=47), dimensions=2, sample=100, perplexity=10, n_components=2
    )
    assert len(found.positions) == 300
    page = found.of_the_map()
    assert page.positions.shape == (100, 2)
    assert page.components.shape == (100, 2)
    assert page.table.notes[-1].startswith("Shown are 100 of 300 rows")
    whole = run(source(table(rows=60), rows=47), dimensions=2, n_components=2)
    assert whole.of_the_map() is whole


@pytest.mark.parametrize("kind", [np.int32, np.uint8, np.float32, bool])
def test_whole_numbers_are_scaled_as_numbers(kind):
    X = np.random.default_rng(0).integers(0, 2 if kind is bool else 9, (300, 5)).astype(kind)
    found = run(source(X, rows=70), scale="standard", n_components=3, dimensions=None)
    numbers = X.astype(np.float64)
    wanted = PCA(3).fit((numbers - numbers.mean(0)) / numbers.std(0, ddof=1))
    assert np.allclose(found.pca.explained_variance_, wanted.explained_variance_, rtol=1e-5)


def test_a_path_that_does_not_fit_is_opened_in_blocks_and_has_a_page(tmp_path, monkeypatch):
    rows = [f"r{i},{'xy'[i % 2]},{a},{b}" for i, (a, b) in enumerate(table(90, 2))]
    (tmp_path / "t.csv").write_text("\n".join(["name,kind,a,b", *rows]) + "\n")
    held = run(tmp_path / "t.csv", n_jobs=1)
    monkeypatch.setattr("gnomon.data.open.SMALL_BYTES", 0)
    found = run(tmp_path / "t.csv", memory="200MB", n_jobs=1)
    assert not found.table.in_blocks
    monkeypatch.setattr("gnomon.data.open.HELD_SHARE", 1e-9)
    found = run(tmp_path / "t.csv", n_jobs=1)
    assert found.table.in_blocks
    assert np.array_equal(found.positions, held.positions)
    page = report(found)
    assert page.content.ids[1].tolist() == [f"r{i}" for i in range(90)]
    assert page.content.labels[0][0] == "kind"
    without = run(tmp_path / "t.csv", dimensions=None)
    with pytest.raises(ParameterError, match="no components for a page"):
        report(without)


def test_the_map_of_a_table_in_blocks_is_made_again_like_that_of_the_array():
    X = table(120)
    pages = [
        report(run(given, n_components=3, seed=0, n_jobs=1), stability=2)
        for given in (source(X), in_memory(X))
    ]
    blocks, array = (page.content.stability for page in pages)
    assert blocks.mean.tobytes() == array.mean.tobytes()
    assert blocks.spread.tobytes() == array.spread.tobytes()
    assert "were aligned by generalised" in pages[0].html


def test_the_map_of_a_sparse_table_is_made_again():
    X = table(120)
    X[np.abs(X) < 1] = 0
    found = run(in_memory(csr_array(X)), n_components=3, n_jobs=1)
    assert report(found, stability=2).content.stability.mean.shape == (120, 2)


def test_only_a_map_of_all_rows_is_made_again():
    found = run(source(table(120)), n_components=3, sample=60, n_jobs=1)
    with pytest.raises(ParameterError, match="`stability` must be None without a map of all rows"):
        report(found, stability=2)
    reduced = run(in_memory(table(120)), n_components=3, dimensions=None, n_jobs=1)
    with pytest.raises(ParameterError, match="`stability` must be None without a map"):
        report(reduced, stability=2)
