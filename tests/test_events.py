"""One event, one callback: what it is called with, and what its answer does."""

import numpy as np
import pytest

import gnomon
from gnomon import PCA, TSNE, run
from gnomon.errors import GnomonError, Interrupted
from gnomon.events import Event, Finished, Iteration, report_rows
from gnomon.progress import Watch


def numbers(n=120, d=5):
    return np.random.default_rng(0).normal(size=(n, d)) * np.arange(1, d + 1)


def test_rows_are_reported_until_the_callback_says_stop():
    heard = []
    report_rows(None, 3, 9)
    report_rows(heard.append, 3, 9)
    assert heard == [Event("rows", 3, 9)]
    with pytest.raises(Interrupted, match="after 1,200 of 9,000 rows") as raised:
        report_rows(lambda event: True, 1200, 9000)
    assert raised.value.fields == {"done": 1200, "total": 9000}
    assert isinstance(raised.value, GnomonError)


def test_a_pass_over_data_is_interrupted_and_leaves_no_file(tmp_path):
    X = numbers()
    model = PCA(2).fit(X)
    heard = []

    def on(event):
        heard.append(event)
        return event.done >= 60

    with pytest.raises(Interrupted):
        model.transform(gnomon.source(X, rows=30), to=tmp_path / "s.npy", on=on)
    assert heard == [Event("rows", 30, 120), Event("rows", 60, 120)]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stage", ["prepare", "pca", "place"])
def test_a_run_over_blocks_is_interrupted_where_the_callback_says_so(stage):
    def on(event):
        return event.stage == stage and not isinstance(event.detail, Finished)

    with pytest.raises(Interrupted):
        run(gnomon.source(numbers(), rows=30), sample=60, perplexity=5, on=on, n_jobs=1)


def test_the_positions_of_an_iteration_are_the_map_in_the_order_of_the_data():
    last = {}

    def on(event):
        assert isinstance(event.detail, Iteration)
        last[event.done] = event.detail.positions()
        return event.done == 25

    model = TSNE(perplexity=5, random_state=0).set_callbacks(Watch(on)).fit(numbers())
    assert list(last) == list(range(1, 26))
    assert np.array_equal(last[25], model.embedding_)
    assert not np.array_equal(last[24], last[25])


def test_the_callbacks_of_former_versions_work_and_say_what_to_write_instead():
    new, ended, steps, placed = [], [], [], []

    def progress(iteration, of, kl, seconds_left):
        steps.append((iteration, of))
        return iteration == 20

    with pytest.warns(FutureWarning, match="Use `on`") as caught:
        result = run(
            "iris",
            sample=90,
            n_jobs=1,
            on=new.append,
            progress=progress,
            told=lambda stage, seconds, what: ended.append(stage),
            placing=lambda rows, of: placed.append((rows, of)),
        )
    names = [str(each.message).split()[0] for each in caught]
    assert names == ["`told`", "`progress`", "`placing`"]
    assert all(each.filename == __file__ for each in caught)
    assert ended == [event.stage for event in new if isinstance(event.detail, Finished)]
    assert steps == [(i, 320) for i in range(1, 21)]
    assert result.tsne.n_iter_ == 20
    assert placed == [(60, 60)]


def test_the_former_progress_of_transform_works_too():
    X, rows, new = numbers(), [], []
    model = PCA(2).fit(X)
    source = gnomon.source(X, rows=50)
    with pytest.warns(FutureWarning, match=r"`progress` is deprecated.*event\.done") as caught:
        model.transform(source, on=new.append, progress=lambda *told: rows.append(told))
    assert rows == [(50, 120), (100, 120), (120, 120)] == [(e.done, e.total) for e in new]
    assert caught[0].filename == __file__
