"""Columns that the page shows: `--text`, `--image`, `--link`, `--pixels`, `--replay`."""

import base64
import json
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import gnomon
from PIL import Image

N = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("showing")
    (folder / "thumbs").mkdir()
    for i in range(3):
        Image.new("RGB", (16, 16), (80 * i, 0, 255)).save(folder / "thumbs" / f"{i}.png")
    rng = np.random.default_rng(0)
    table = {
        "abstract": [f"Title {i}, with words" for i in range(N)],
        "url": [f"https://example.invalid/{i}" for i in range(N)],
        "thumb": [f"{i % 3}.png" for i in range(N)],
        "a": rng.normal(size=N), "b": rng.normal(size=N), "c": rng.normal(size=N),
    }  # fmt: skip
    pq.write_table(pa.table(table), folder / "docs.parquet")
    done = gnomon(
        "map", "docs.parquet", "--text", "abstract", "--link", "url", "--image", "thumb",
        "--image-root", "thumbs", "--replay", folder=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done


def data_of(page):
    block = page.split('id="gnomon-data">')[1].split("</script>")[0]
    return json.loads(block)


def texts(part):
    return json.loads(zlib.decompress(base64.b64decode(part["data"])))


def test_the_page_and_the_map_hold_what_was_named(folder):
    folder, done = folder
    out = folder / "docs_map"
    assert "Text     abstract" in done.stderr
    data = data_of((out / "report.html").read_text())
    assert texts(data["texts"]["texts"])[7] == "Title 7, with words"
    assert texts(data["links"]["texts"])[7] == "https://example.invalid/7"
    assert data["pictures"]["tiles"] == N
    assert len(data["replay"]["frames"]) >= 20
    stored = pq.read_table(out / "map.parquet")
    assert stored["abstract"].to_pylist()[3] == "Title 3, with words"
    told = json.loads((out / "run.json").read_text())["table"]
    assert told["features"] == ["a", "b", "c"]
    assert (told["text"], told["link"], told["image"]) == ("abstract", "url", "thumb")
    assert not told["ignored"]


def test_the_page_built_again_shows_the_same(folder):
    folder, _ = folder
    done = gnomon("report", "docs_map", "-o", "again.html", folder=folder)
    assert done.returncode == 0, done.stderr
    data = data_of((folder / "again.html").read_text())
    assert texts(data["texts"]["texts"])[39] == "Title 39, with words"
    assert data["pictures"]["tiles"] == N


def test_nothing_is_shown_that_was_not_asked_for(folder):
    folder, _ = folder
    done = gnomon("reduce", "docs.parquet", "-o", "plain", folder=folder)
    assert done.returncode == 0, done.stderr
    page = (folder / "plain" / "report.html").read_text()
    data = data_of(page)
    assert (data["texts"], data["links"], data["pictures"]) == (None, None, None)
    assert "with words" not in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--text", "abstrakt"], 'Did you mean "abstract"?'),
        (["--text", "abstract", "--label", "abstract"], "named by both text and label"),
        (["--pixels", "4x4"], "fit the 3 columns"),
    ],
)
def test_what_does_not_fit_is_refused(folder, options, words):
    folder, _ = folder
    done = gnomon("map", "docs.parquet", "-o", "refused", *options, folder=folder)
    assert done.returncode in (2, 3)
    assert words in done.stderr
