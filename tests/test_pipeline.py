import numpy as np
import pytest

from gnomon import PCA, TSNE, run, samples
from gnomon.data.table import table_of_sample


def test_a_sample_goes_through_every_stage():
    stages = []
    result = run("iris", told=lambda stage, seconds, what: stages.append(stage), n_jobs=1)
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

    def progress(iteration, of, kl, seconds_left):
        told.append((iteration, of))
        return iteration == 20

    result = run("iris", progress=progress, n_jobs=1)
    assert told == [(i, 750) for i in range(1, 21)]
    assert result.tsne.n_iter_ == 20
    assert result.trust is not None  # asked to stop is not interrupted


def test_ctrl_c_during_the_map_keeps_it_and_stops_what_would_follow():
    def progress(iteration, of, kl, seconds_left):
        if iteration == 30:
            raise KeyboardInterrupt
        return False

    result = run("iris", progress=progress, n_jobs=1)
    assert result.interrupted
    assert result.tsne.n_iter_ == 30
    assert result.trust is None


def test_warnings_are_kept_for_the_record():
    table = table_of_sample(samples.load("iris"))
    X = table.X.copy()
    X[:, 1] *= 1e9
    result = run(table.with_numbers(X, table.columns), scale="none", dimensions=None)
    assert any("varies" in text for text in result.warnings)
