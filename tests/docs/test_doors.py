"""Every line of "Pick your door" and of "You asked" works; single cells: tests/single_cell."""

import contextlib
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from docs.doors import CODE, doors, lines_of, names, run, table, write_tables

ROOT = Path(__file__).parents[2]
README, SITE, ASKED = ROOT / "README.md", ROOT / "docs" / "index.md", ROOT / "docs" / "asked.md"
OF_CELLS = ("cells.h5ad", "anndata")
DOORS = [code for door in doors(README) for code in door]
ANSWERS = [code for row in lines_of(ASKED) for code in CODE.findall(row[1])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    there = tmp_path_factory.mktemp("doors")
    write_tables(there)
    return there


@pytest.fixture(scope="module")
def known():
    X, _ = table()
    return {**names(X), "df": pd.DataFrame(X, columns=[f"gene{j}" for j in range(8)])}


def follow(lines, folder, known):
    former = None
    with contextlib.chdir(folder):
        for line in lines:
            if line.startswith(("gnomon ", "--")):
                run(line, folder, former)
                former = line if line.startswith("gnomon ") else former
            else:
                assert eval(line, dict(known)) is not None


def test_there_are_six_doors_and_their_lines_work(folder, known):
    assert len(doors(README)) == 6
    here = [line for line in DOORS if not any(word in line for word in OF_CELLS)]
    assert len(here) == len(DOORS) - 2
    follow(here, folder, known)
    for file in ("cells_map/report.html", "docs_map/report.html", "umap_audit/report.html"):
        assert (folder / file).stat().st_size > 1000
    shown = pq.read_table(folder / "docs_map" / "map.parquet")
    assert "Document 7" in shown["title"].to_pylist()


def test_a_gate_that_holds_is_exit_code_five(folder):
    with pytest.raises(AssertionError, match="neighbours"):
        run(
            '--fail-if "neighbours > 0.8"',
            folder,
            "gnomon compare january.parquet february.parquet",
        )


def test_the_site_has_the_doors_of_the_readme():
    site = SITE.read_text("utf-8")
    cards = site[site.index("## Pick your door") : site.index("## In Python")]
    assert [code for code in CODE.findall(cards) if code != "obs"] == DOORS


def test_every_question_has_its_link_and_a_line_that_works(folder, known):
    for question, _ in lines_of(ASKED):
        assert "](https://github.com/" in question
    assert len(lines_of(ASKED)) >= 20
    follow(ANSWERS, folder, known)


def test_the_answers_are_right(folder, known):
    (same,) = [line for line in ANSWERS if line.startswith("np.array_equal")]
    assert eval(same, dict(known))
    (scale,) = [line for line in ANSWERS if line.endswith(".scale_")]
    assert eval(scale, dict(known)) == pytest.approx(2)
    (far,) = [line for line in ANSWERS if "100_001" in line]
    assert abs(eval(far, dict(known)).components_[0]) == pytest.approx([0.5**0.5] * 2, abs=0.3)
    (up,) = [line for line in ANSWERS if line.startswith("TSNE(3)")]
    assert eval(up, dict(known)).embedding_.shape == (60, 3)
