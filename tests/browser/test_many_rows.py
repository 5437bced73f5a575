"""Pages whose rows stand in the order of the map: what a reader sees has the table's numbers."""

import numpy as np
import pandas as pd
import pytest
from browser.hands import download, on_screen, point, rows_of

from gnomon import PCA, run
from gnomon.report import report

N = 150


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr("gnomon.report.build.MANY_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(N, 4)) + 6 * (np.arange(N)[:, None] % 3)

    def made(**more):
        kinds = np.array(["a", "b", "c"], object)[np.arange(N) % 3]
        return report(X, pca=PCA(3, random_state=0).fit(X), labels={"kind": kinds}, **more)

    return made


def farthest(positions):
    """The row at the edge of the map, which no other row covers."""
    return int(np.linalg.norm(positions - positions.mean(axis=0), axis=1).argmax())


def test_rows_are_named_found_and_downloaded_by_their_numbers_in_the_table(visit, made, tmp_path):
    page = visit((whole := made()).save(tmp_path / "report.html"))
    positions = whole.content.pca_map
    row = farthest(positions)
    point(page, on_screen(page, positions)[row])
    page.wait_for_selector("#map-card:not([hidden])")
    assert page.inner_text("#map-card .map-card-head strong") == f"row {row}"
    near = page.locator("#map-card .map-near .map-name").all_inner_texts()
    told = [text for text in near if text.startswith("row ")]
    assert told == [f"row {other}" for other in whole.content.neighbors[row]]
    page.fill("#map-search", f"row {row}")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-card.pinned")
    assert page.inner_text("#map-card .map-card-head strong") == f"row {row}"
    page.fill("#map-search", "kind")
    page.fill("#map-search", "b")
    page.locator("#map-found li", has_text="kind: b").click()
    page.wait_for_selector("#map-selection h4")
    _, content = download(page, "#map-csv")
    rows = rows_of(content)
    assert sorted(int(one["row"]) for one in rows) == list(range(1, N, 3))
    assert {one["kind"] for one in rows} == {"b"}


def test_with_ids_no_number_is_shown_that_is_not_the_tables(visit, made, tmp_path):
    ids = np.array([f"plant {i}" for i in range(N)], object)
    page = visit((whole := made(ids=ids)).save(tmp_path / "report.html"))
    row = farthest(whole.content.pca_map)
    page.fill("#map-search", f"plant {row}")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-card.pinned")
    assert page.inner_text("#map-card .map-card-head strong") == f"plant {row}"
    assert "row" not in page.locator("#map-card dt").all_inner_texts()
    page.focus("#map-stage")
    page.keyboard.press("Enter")
    page.wait_for_selector("#map-selection h3")
    _, content = download(page, "#map-csv")
    rows = rows_of(content)
    near = {f"plant {other}" for other in (row, *whole.content.neighbors[row])}
    assert {one["id"] for one in rows} == near
    assert "row" not in rows[0]


@pytest.mark.parametrize("ids", [True, False])
def test_rows_have_their_numbers_although_others_were_dropped(visit, tmp_path, ids):
    X = np.random.default_rng(0).normal(size=(60, 3)) + 6 * (np.arange(60)[:, None] % 3)
    X[[0, 7], 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    if ids:
        frame = frame.set_index(pd.Index([f"plant {i}" for i in range(60)], name="id"))
    result = run(frame, missing="drop", dimensions=None)
    page = visit(report(result).save(tmp_path / "report.html"))
    number = 41
    page.fill("#map-search", f"plant {number}" if ids else f"row {number}")
    page.press("#map-search", "Enter")
    page.wait_for_selector("#map-card.pinned")
    head = page.inner_text("#map-card .map-card-head strong")
    assert head == (f"plant {number}" if ids else f"row {number}")
    if ids:
        facts = page.locator("#map-card dt").all_inner_texts()
        values = page.locator("#map-card dd").all_inner_texts()
        assert values[facts.index("row")] == str(number)
    page.focus("#map-stage")
    page.keyboard.press("Enter")
    page.wait_for_selector("#map-selection h3")
    _, content = download(page, "#map-csv")
    near = result.row_numbers[report(result).content.neighbors[number - 2]]
    assert {int(one["row"]) for one in rows_of(content)} == {number, *near.tolist()}
