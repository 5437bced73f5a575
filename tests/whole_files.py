"""A folder of `gnomon map` as somebody finds it after a crash: what is whole, and of which run."""

import base64
import json
import re
import zlib
from xml.etree import ElementTree

import pyarrow.parquet as pq
from report.pages import Page

from gnomon import load
from gnomon.cli.map import OUTPUTS

TORN = "torn"
DATA = re.compile(r'<script type="application/json" id="gnomon-data">(.*?)</script>', re.DOTALL)
SECTIONS = ["map", "overview", "counting", "components", "reconstruction", "trust", "reproduce"]
PARTS = {"settings", "table", "preparation", "pca", "tsne", "trust", "seconds", "versions"}


def runs_in(folder):
    """For each result that is there, the rows of the run that it is of, or `TORN`.

    Runs are told apart by their numbers of rows. Every byte is read that a reader of the file would
    look at: the numbers of the table, the checksums of the model, the page to its last tag and all
    of its data.
    """
    found = {}
    for name, rows_of in READERS.items():
        path = folder / name
        if path.exists():
            try:
                found[name] = rows_of(path)
            except Exception:  # whatever a reader stumbles over
                found[name] = TORN
    return found


def whole_run(rows):
    """What `runs_in` finds of a whole run of so many rows; charts do not say of how many."""
    return {name: None if name.endswith(".svg") else rows for name in READERS}


def strangers_in(folder):
    """What is in the folder that is no result."""
    return {path.name for path in folder.iterdir()} - {*OUTPUTS}


def leftovers_of(folder):
    """What a run that was killed left beside its folder."""
    hidden = folder.with_name(f".{folder.name}.gnomon")
    return [*hidden.rglob("*")] if hidden.exists() else []


def rows_of_map(path):
    table = pq.read_table(path, use_threads=False)
    assert not any(column.null_count for column in table.columns)
    return table.num_rows


def rows_of_model(path):
    return len(load(path).tsne.embedding_)  # which holds every checksum against its bytes


def rows_of_record(path):
    record = json.loads(path.read_text("utf-8"))
    assert record.keys() >= PARTS
    return record["table"]["rows"]


def rows_of_page(path):
    text = path.read_text("utf-8")
    assert text.endswith("</html>")
    page = Page(text)
    assert [section["id"] for section in page.all("section")] == SECTIONS
    (block,) = DATA.findall(text)
    data = json.loads(block)
    assert _decoded(data) > 5
    (rows,) = {one[axis]["length"] for one in data["maps"] for axis in "xy"}
    assert rows == data["rows"]
    return rows


def _decoded(part):
    """How many packed columns there are in a page's data, each unpacked to its full length."""
    if isinstance(part, list):
        return sum(map(_decoded, part))
    if not isinstance(part, dict):
        return 0
    if not {"data", "length"} <= part.keys():
        return sum(map(_decoded, part.values()))
    content = zlib.decompress(base64.b64decode(part["data"], validate=True))
    length = len(content) // part["bytes"] if "bytes" in part else len(json.loads(content))
    assert length == part["length"]
    return 1


def rows_of_chart(path):
    """Charts do not say how many rows they are of; whole is what can be read to its end."""
    ElementTree.fromstring(path.read_text("utf-8"))


READERS = {
    "map.parquet": rows_of_map,
    "model.gnomon": rows_of_model,
    "run.json": rows_of_record,
    "report.html": rows_of_page,
    "map.svg": rows_of_chart,
    "scree.svg": rows_of_chart,
}
