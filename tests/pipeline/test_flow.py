import dask.array as dask_array
import numpy as np
import pytest

from gnomon import PCA, TSNE, run, samples, source
from gnomon.data.table import Table, table_of_sample
from gnomon.engine import LocalEngine
from gnomon.errors import DataError, ParameterError, TooLargeError
from gnomon.events import Event, Finished, Iteration
from gnomon.neighbors.search import NeighborSearch
from gnomon.report.report import build_report
from gnomon.report.run_page import gather_run


def ended(stages):
    """A callback that notes the stages that have ended."""

    def on(event):
        if isinstance(event.detail, Finished):
            stages.append(event.stage)

    return on


def in_memory(X):
    names = tuple(f"column {j + 1}" for j in range(X.shape[1]))
    return Table("data", X, names, n_columns=X.shape[1])


def test_a_sample_goes_through_every_stage():
    stages = []
    result = run("iris", on=ended(stages), n_jobs=1)
    assert stages == ["read", "prepare", "pca", "tsne", "trust"]
    X = samples.load("iris").X
    assert np.array_equal(result.components, PCA(0.95, random_state=0).fit_transform(X))
    expected = TSNE(random_state=0, perplexity=30).fit_transform(X, ids=None)
    assert np.array_equal(result.tsne.embedding_, expected)
    assert result.trust.shape == (150,)
    assert 0.3 < result.trust.mean() <= 1
    at = list(result.quality.n_neighbors).index(15)
    # Iris has many equal distances, which the two searches may order differently.
    assert result.quality.recall.mean[at] == pytest.approx(result.trust.mean(), abs=0.01)
    assert not result.interrupted


def test_a_file_a_sample_and_a_table_give_the_same(tmp_path):
    sample = samples.load("iris")
    lines = [",".join([*sample.columns, "species"])]
    lines += [
        ",".join([*map(repr, map(float, row)), label])
        for row, label in zip(sample.X, sample.labels, strict=True)
    ]
    file = tmp_path / "flowers.csv"
    file.write_text("\n".join(lines))
    by_file = run(file, label="species", n_jobs=1)
    by_table = run(table_of_sample(sample), n_jobs=1)
    assert np.array_equal(by_file.tsne.embedding_, by_table.tsne.embedding_)
    assert by_file.prepared.table.labels.tolist() == sample.labels.tolist()


def test_few_rows_lower_the_perplexity_and_none_at_all_makes_no_map():
    sample = samples.load("house-prices")
    result = run(sample, dimensions=None)
    assert result.tsne is None
    assert result.trust is None
    small = table_of_sample(samples.load("iris")).take(np.arange(0, 150, 10))
    assert run(small, n_jobs=1).tsne.perplexity == pytest.approx(14 / 3)


def test_progress_is_told_and_can_end_the_map():
    told = []

    def on(event):
        if isinstance(event.detail, Iteration):
            told.append((event.stage, event.done, event.total))
            return event.done == 20
        return False

    result = run("iris", on=on, n_jobs=1)
    assert told == [("tsne", i, 320) for i in range(1, 21)]
    assert result.tsne.n_iter_ == 20
    assert result.trust is not None  # asked to stop is not interrupted


def test_ctrl_c_during_the_map_keeps_it_and_stops_what_would_follow():
    def on(event):
        if event.done == 30:
            raise KeyboardInterrupt

    result = run("iris", on=on, n_jobs=1)
    assert result.interrupted
    assert result.tsne.n_iter_ == 30
    assert result.trust is None


def test_warnings_are_kept_for_the_record():
    table = table_of_sample(samples.load("iris"))
    X = table.X.copy()
    X[:, 1] *= 1e9
    result = run(table.with_numbers(X, table.columns), scale="none", dimensions=None)
    assert any("varies" in text for text in result.warnings)


def test_what_would_not_fit_is_refused_before_it_begins(monkeypatch):
    stages = []
    with pytest.raises(TooLargeError, match=r"iris: PCA of 150 × 4 numbers .* 5\.0 MB that are al"):
        run("iris", memory="5MB", on=ended(stages))
    assert stages == ["read", "prepare"]
    result = run("iris", memory=2**30, dimensions=None)
    assert result.pca.n_components_ == 2
    # A map of a million neighbours needs more than PCA does, however small the sample.
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    table = table_of_sample(samples.load("iris")).with_numbers(X, ("a", "b", "c"))
    with pytest.raises(
        TooLargeError, match="iris: a map of 1,000 rows needs about 100 MB of memory, more"
    ):
        run(table, memory="100MB", perplexity=1000)
    with pytest.raises(TooLargeError, match=r"iris: a map of 9,000 rows needs about"):
        run(table, memory="100MB", perplexity=50, sample=9000)
    monkeypatch.setattr("gnomon.budget.available_bytes", lambda: 1_000_000)
    with pytest.raises(TooLargeError, match=r"1\.0 MB that are free\. Take fewer"):
        run("iris")


def test_the_table_counts_to_what_is_allowed_but_not_to_what_is_free(monkeypatch):
    X = np.random.default_rng(0).normal(size=(20_000, 50))  # 8 MB
    table = table_of_sample(samples.load("iris")).with_numbers(X, tuple(map(str, range(50))))
    needed = PCA(0.95).plan(X).peak_bytes
    with pytest.raises(TooLargeError):
        run(table, memory=needed + X.nbytes // 2, dimensions=None)
    assert run(table, memory=needed + 3 * X.nbytes, dimensions=None).tsne is None
    monkeypatch.setattr("gnomon.budget.available_bytes", lambda: needed)
    assert run(table, dimensions=None).tsne is None


@pytest.mark.parametrize(
    ("rows", "options", "error", "says"),
    [
        (2, {}, DataError, "iris: 2 rows, but a map needs 3 or more"),
        (1, {"dimensions": None}, DataError, "iris: 1 row, but PCA needs 2 or more"),
        (20, {"perplexity": 20}, ParameterError, "`perplexity` must be a number from 1 to 19"),
    ],
)
def test_what_there_is_no_map_of_is_refused_before_any_work(rows, options, error, says):
    stages = []
    table = table_of_sample(samples.load("iris")).take(np.arange(rows))
    with pytest.raises(error, match=says):
        run(table, on=ended(stages), **options)
    assert stages == ["read", "prepare"]


def test_rows_that_are_all_the_same_have_no_map_but_a_reduction():
    table = table_of_sample(samples.load("iris")).take(np.zeros(150, np.int64))
    with pytest.raises(DataError, match="all rows are the same in the columns in use"):
        run(table)
    result = run(table, dimensions=None)
    assert any("All rows are the same" in text for text in result.warnings)


def test_warnings_say_what_the_file_calls_columns_and_rows(tmp_path):
    rows = [f"{i}.5,{i % 7}.25" for i in range(30)]
    path = tmp_path / "wild.csv"
    path.write_text("\n".join(["a,b", *rows, "1.5,1e12"]) + "\n")
    said = " ".join(run(path, scale="none", n_jobs=1, perplexity=5).warnings)
    assert 'Column "b" varies' in said
    assert "Line 32 is so far" in said
    assert "Column 1" not in said
    assert "Row 30" not in said


def test_a_sample_is_mapped_and_every_other_row_placed_on_it():
    stages = []
    result = run("iris", sample=90, seed=3, n_jobs=1, on=ended(stages))
    assert stages == ["read", "prepare", "pca", "sample", "tsne", "trust", "place"]
    X = samples.load("iris").X
    rows = np.sort(np.random.default_rng(3).choice(150, 90, replace=False))
    assert np.array_equal(result.sampling.rows, rows)
    tsne = TSNE(random_state=3, perplexity=89 / 3, n_jobs=1).fit(X[rows])
    assert np.array_equal(result.tsne.embedding_, tsne.embedding_)
    assert np.array_equal(result.positions[rows], tsne.embedding_)
    others = np.setdiff1d(np.arange(150), rows)
    assert np.array_equal(result.positions[others], tsne.transform(X[others]))
    assert result.rows.placed.sum() == 60
    assert result.trust.shape == (150,)
    assert not np.isnan(result.trust).any()
    assert result.components.shape[0] == 150  # PCA is that of all rows
    assert not result.interrupted
    page = result.of_the_map()
    assert np.array_equal(page.prepared.X, X[rows])
    assert np.array_equal(page.positions, tsne.embedding_)
    assert page.trust.shape == (90,)
    assert page.prepared.table.labels.shape == (90,)
    assert page.table.notes[-1] == (
        "Shown are 90 of 150 rows: 90 rows drawn at random are mapped, the other 60 placed "
        "among them."
    )
    whole = run("iris", dimensions=None)
    assert whole.positions is None
    assert whole.of_the_map() is whole


def test_more_rows_than_memory_has_room_for_are_placed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 4)) + 9 * rng.integers(3, size=(1500, 1))
    table = Table("cells", X, tuple("abcd"), n_columns=4)
    # Beside the table and the meshes, there is room for 1,100 rows of 30 neighbours each.
    memory = X.nbytes + 20_000_000 + 80 * 1100 * 30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gnomon.pipeline.map_budget.RunBudget.check", lambda *_: None)
        result = run(table, perplexity=10, memory=memory, n_jobs=1, scale="none")
    assert result.sampling.rows.size == 1100
    assert result.sampling.why.startswith("a map of all would take about 23.6 MB of memory")
    assert run(table, perplexity=10, memory="1GB", n_jobs=1, scale="none").sampling is None


def test_wide_rows_are_placed_by_the_components_of_all_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 120)) + rng.normal(size=(80, 120))
    table = Table("genes", X, tuple(f"g{j}" for j in range(120)), n_columns=120)
    result = run(table, sample=60, n_jobs=1, scale="none")
    reduced = PCA(50, random_state=0).fit(X)
    assert np.array_equal(result.tsne.pca_.components_, reduced.components_)


def test_rows_that_are_placed_are_told_of():
    told = []
    run("iris", sample=90, n_jobs=1, on=told.append)
    assert told[-2] == Event("place", 60, 60)  # one block of rows


def test_an_interrupted_map_of_a_sample_leaves_the_others_without_a_place():
    def on(event):
        if event.done == 30:
            raise KeyboardInterrupt

    result = run("iris", sample=90, on=on, n_jobs=1)
    assert result.interrupted
    assert np.isnan(result.positions).any(axis=1).sum() == 60


def test_a_sample_too_small_for_the_perplexity_is_refused_before_any_work():
    with pytest.raises(ValueError, match="`perplexity` must be a number from 1 to 49; got 60"):
        run("iris", sample=50, perplexity=60)
    with pytest.raises(ValueError, match="`sample` must be an integer ≥ 3; got 2"):
        run("iris", sample=2, perplexity=1)


def test_a_source_is_run_in_blocks():
    X = np.random.default_rng(0).standard_normal((300, 5)) + 6 * np.eye(5)[np.arange(300) % 5]
    table = source(X, rows=70)
    found = run(table, n_components=2, sample=100, perplexity=20, seed=3)
    expected = run(in_memory(X), n_components=2, sample=100, perplexity=20, seed=3)
    assert found.table.in_blocks
    assert np.array_equal(found.sampling.rows, expected.sampling.rows)
    assert np.array_equal(found.positions, expected.positions)
    assert np.array_equal(found.trust, expected.trust)
    # float32, and sums of 300 numbers in other groups
    np.testing.assert_allclose(found.components, expected.components, atol=1e-5)
    reduced = run(dask_array.from_array(X, chunks=(70, 5)), dimensions=None, engine=LocalEngine(1))
    assert reduced.tsne is None
    assert np.array_equal(reduced.pca.components_, run(table, dimensions=None).pca.components_)


def test_what_is_for_files_is_refused_for_sources_and_the_reverse():
    table = source(np.zeros((10, 3)))
    with pytest.raises(ParameterError, match=r"`label` is for files\. Give it to gnomon\.source\."):
        run(table, label="a")
    with pytest.raises(ParameterError, match="`engine` works through blocks"):
        run("wine", engine=LocalEngine(1))
    with pytest.raises(TypeError, match=r"gnomon\.source makes a source, which is read in blocks"):
        run(np.zeros((10, 3)), engine=LocalEngine(1))


def test_the_tables_neighbours_are_searched_once(monkeypatch):
    """By the map; trust and page ask for those again."""
    searched, search = [], NeighborSearch._search_all

    def count(self, *how):
        searched.append(self.Z.shape[1])
        return search(self, *how)

    monkeypatch.setattr(NeighborSearch, "_search_all", count)
    result = run("iris")
    assert searched == [4, 2]  # columns: the table's, and the map's own for trust
    build_report(
        gather_run(
            result.table,
            result.prepared,
            result.pca,
            result.tsne,
            trust=result.trust,
            quality=result.quality,
            neighbor_labels=result.neighbor_labels,
        )
    )
    assert searched == [4, 2]


def test_a_printed_result_is_a_summary_that_names_the_columns_it_took():
    result = run("wine", dimensions=None)
    lines = str(result).splitlines()
    assert repr(result) == str(result)
    assert len(lines) <= 15
    assert lines[0] == "Result for wine: 178 rows × 14 columns"
    assert "13 numeric columns (alcohol … proline)" in lines[1]


def test_rows_of_a_result_are_numbered_as_in_the_table_given():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[[4, 9], 1] = np.nan
    result = run(X, missing="drop", dimensions=None)
    assert result.row_numbers.tolist() == [i for i in range(60) if i not in (4, 9)]
    assert result.prepared.dropped.rows.tolist() == [4, 9]
    assert str(result.prepared.dropped) == "row 4, row 9"
    assert run(X[:4], dimensions=None).row_numbers.tolist() == [0, 1, 2, 3]


def test_a_parameter_that_is_none_is_refused_with_the_one_that_is_alike():
    with pytest.raises(TypeError, match=r"gnomon.run has no parameter `labels`. Did you mean"):
        run("iris", labels="species")
    with pytest.raises(TypeError, match=r"has no parameter `colour`. It has label, id"):
        run("iris", colour="species")
