"""Columns that the page shows: `--text`, `--image`, `--link`, `--pixels`, `--replay`."""

import base64
import io
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
        "a": rng.normal(size=N),
        "b": rng.normal(size=N),
        "c": rng.normal(size=N),
    }
    pq.write_table(pa.table(table), folder / "docs.parquet")
    done = gnomon(
        "map",
        "docs.parquet",
        "--text",
        "abstract",
        "--link",
        "url",
        "--image",
        "thumb",
        "--image-root",
        "thumbs",
        "--replay",
        folder=folder,
    )
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


def test_a_folder_of_hugging_face_parquet_shows_its_pictures(tmp_path):
    """Shards as `datasets` writes them: pictures are structs of bytes and a path."""
    rng = np.random.default_rng(0)
    (tmp_path / "train").mkdir()
    for shard in range(2):
        pictures = []
        for i in range(N // 2):
            data = io.BytesIO()
            Image.new("RGB", (12, 12), (10 * i, 0, 120 * shard)).save(data, "png")
            pictures.append({"bytes": data.getvalue(), "path": f"{i}.png"})
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        table = pa.table(
            {
                "image": pa.array(pictures, kind),
                "text": [f"caption {i}" for i in range(N // 2)],
                "embedding": rng.normal(size=(N // 2, 8)).tolist(),
            }
        )
        features = {"image": {"_type": "Image"}, "text": {"dtype": "string", "_type": "Value"}}
        table = table.replace_schema_metadata(
            {"huggingface": json.dumps({"info": {"features": features}})}
        )
        name = f"train-{shard:05d}-of-00002.parquet"
        pq.write_table(table, tmp_path / "train" / name)
    done = gnomon("map", "train", "--image", "image", "--text", "text", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    data = data_of((tmp_path / "train_map" / "report.html").read_text())
    assert sum(len(sheet["data"]) for sheet in data["pictures"]["sheets"]) > 0
    said = gnomon("inspect", "train", folder=tmp_path).stderr
    assert '"image" holds pictures: --image image shows them' in said
