"""Two months of an embedding with known changes: the gate, its JSON and its page find them."""

import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from commands import gnomon
from procrustes.sets import orthogonal
from report.pages import decoded_numbers, read_data

from gnomon.charts.words import percent

N, D, NEW, GONE = 960, 20, 30, 24
TOPICS = np.array(
    ["sport", "politics", "travel", "cooking", "music", "science", "finance", "health"], object
)
ORDER = ("compare", "may.csv", "june.parquet", "--id", "document", "--permutations", "99")


def two_months(seed=0):
    """May, June, and what is true of them: `moved` ids, and `kept` rows of May that June has.

    Sport splits into two halves, cooking joins music, science moves as a whole, 4 % of the rows
    move to another group, rows come and go; then all is turned, scaled, shifted and shuffled.
    """
    rng = np.random.default_rng(seed)
    centres = 12 * orthogonal(D, seed)[: len(TOPICS)]
    group = np.arange(N) % len(TOPICS)
    X = centres[group] + rng.normal(size=(N, D))
    # Rows that move from cooking to music, or back, stay with the rows that they were with.
    movers = rng.choice(np.flatnonzero((group != 3) & (group != 4)), N // 25, replace=False)
    there = group.copy()
    there[movers] = (group[movers] + rng.integers(1, len(TOPICS), len(movers))) % len(TOPICS)
    half, shift = 12 * orthogonal(D, seed + 1)[:2]
    places = centres.copy()
    places[3] = places[4]
    places[5] += shift
    Y = X + (places[there] - centres[group]) + 0.1 * rng.normal(size=X.shape)
    Y[(there == 0) & (np.arange(N) // len(TOPICS) % 2 == 0)] += half
    kept = np.sort(rng.choice(N, N - GONE, replace=False))
    more = places[np.arange(NEW) % len(TOPICS)] + rng.normal(size=(NEW, D))
    later = 2.5 * np.vstack([Y[kept], more]) @ orthogonal(D, seed + 2) + 7
    order = rng.permutation(len(later))
    ids = np.array([f"doc-{i:03d}" for i in range(N + NEW)], object)
    may = {"document": ids[:N], "topic": TOPICS[group]}
    june = {"document": np.concatenate([ids[kept], ids[N:]])[order]}
    tables = [
        pa.table(named | {f"e{j}": Z[:, j] for j in range(D)})
        for named, Z in ((may, X), (june, later[order]))
    ]
    return *tables, ids[np.intersect1d(movers, kept)], kept


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("months")
    may, june, moved, kept = two_months()
    pc.write_csv(may, folder / "may.csv")
    pq.write_table(june, folder / "june.parquet")
    gates = ("neighbours < 0.8", "changed > 0.02", "only_a >= 25", "only_b > 29")
    conditions = [word for gate in gates for word in ("--fail-if", gate)]
    done = gnomon(*ORDER, "--page", "-o", "drift.json", "--json", *conditions, folder=folder)
    page = (folder / "drift.html").read_text(encoding="utf-8")
    return folder, done, page, set(moved.tolist()), kept


def test_the_known_movers_are_found_by_the_gate_and_on_the_page(here):
    _, done, page, moved, kept = here
    found = json.loads(done.stdout)
    shown = [f"doc-{kept[row]:03d}" for row in decoded_numbers(read_data(page)["pair"]["changed"])]
    assert set(shown) == {row["id"] for row in found["changed_rows"]}
    right = len(moved & set(shown))
    assert right / len(shown) >= 0.95
    assert right / len(moved) >= 0.95
    assert (found["n_only_a"], found["n_only_b"]) == (GONE, NEW)


def test_what_fails_the_gate_is_said_by_the_error_the_json_and_the_page(here):
    _, done, page, *_ = here
    assert done.returncode == 5, done.stderr
    failed = [each["condition"] for each in json.loads(done.stdout)["failed"]]
    assert failed == ["neighbours < 0.8", "changed > 0.02", "only_b > 29"]
    said = done.stderr.splitlines()[-1].removeprefix("error: ")
    assert said.startswith("A condition of --fail-if holds: neighbours is 0.")
    assert f"<p>{said}</p>" in page
    folder = here[0]
    passed = gnomon(*ORDER, "-o", "ok.html", "--fail-if", "p > 0.5", folder=folder)
    assert passed.returncode == 0, passed.stderr
    html = (folder / "ok.html").read_text(encoding="utf-8")
    assert "No condition of --fail-if holds: p 0.01 (fails if &gt; 0.5)." in html


def test_rows_without_a_partner_are_counted_on_the_page(here):
    said = (
        f"Not compared: {GONE}\u00a0rows only in may.csv and {NEW}\u00a0rows only in june.parquet."
    )
    assert said in here[2]


def test_numbers_in_the_sentences_are_those_of_the_json(here):
    _, done, page, *_ = here
    found = json.loads(done.stdout)
    assert f"{percent(found['neighbor_overlap'])} are the same in both" in page
    assert f"{found['n_changed']} rows ({percent(found['changed'])}) changed" in page
    assert f"{percent(found['disparity'])} of the shape is unexplained" in page
    for name in ("neighbor_overlap", "disparity", "rv", "unbiased_cka", "changed"):
        assert f">{found[name]:.3f}</td>" in page


def test_the_split_the_merger_and_the_group_that_moved_are_named_and_no_other(here):
    section = here[2].partition('id="groups"')[2].partition("</ul>")[0].replace("\u00a0", " ")
    split, merged, *moved = [part.partition("</li>")[0] for part in section.split("<li>")[1:]]
    assert split.startswith("sport (")
    assert ") split into sport, part 1 (" in split
    assert " merged into " in merged
    assert {"music", "cooking"} <= set(merged.partition(" merged")[0].split())
    assert sorted(each.split()[0] for each in moved) == ["cooking", "science"]
    for sentence, whole in ((split, 0), (merged, -2)):  # the parts add up to the whole
        sizes = [int(word.strip("();")) for word in sentence.split() if word.strip("();").isdigit()]
        sizes = [size for size in sizes if size > 2]  # "part 1", "part 2"
        assert sum(sizes) == 2 * sizes.pop(whole)


def test_the_pipeline_step_of_the_guide_stops_and_keeps_what_it_uploads(here, tmp_path):
    guide = Path(__file__).parents[2] / "docs" / "guide" / "command-line.md"
    step = re.search(r"  run: >\n((?:    .*\n)+)", guide.read_text(encoding="utf-8"))[1]
    pq.write_table(pc.read_csv(here[0] / "may.csv"), tmp_path / "last.parquet")
    shutil.copy(here[0] / "june.parquet", tmp_path / "today.parquet")
    program, *order = shlex.split(step)
    assert program == "gnomon"
    done = gnomon(*order, folder=tmp_path)
    assert done.returncode == 5, done.stderr
    assert "neighbours is" in done.stderr.splitlines()[-1]
    assert {each.name for each in tmp_path.glob("drift.*")} == {"drift.json", "drift.html"}
