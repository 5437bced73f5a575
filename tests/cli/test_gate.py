"""`gnomon compare --fail-if`: conditions that are parsed, judged, and end with exit code 5."""

import dataclasses
import json

import click
import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from commands import gnomon, refused

from gnomon.cli.gate import FIGURES, Condition, ConditionType
from gnomon.procrustes.compare import Comparison


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A table, the table after noise, and one row that only the second has."""
    folder = tmp_path_factory.mktemp("gate")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = np.vstack([X + rng.normal(size=X.shape) / 4, [[1.5, 2, 3]]])
    for name, Z in (("a.csv", X), ("b.csv", Y)):
        ids = {"id": [f"r{i}" for i in range(len(Z))]}
        pc.write_csv(pa.table(ids | {f"v{j}": Z[:, j] for j in range(3)}), folder / name)
    return folder


def compare(here, *conditions, more=("--json",)):
    given = [word for text in conditions for word in ("--fail-if", text)]
    tables = ("a.csv", "b.csv", "--id", "id", "--permutations", "99")
    return gnomon("compare", *tables, *given, *more, folder=here)


@pytest.mark.parametrize(
    "text",
    [
        "neighbours < 0.99",
        "neighbors<=.99",
        "neighbor_overlap < 99 %",
        "neighbours<99%",
        "p >= 1e-2",
        "p_value >= 1%",
        "only_b>0",
        "n_only_b > 0",
    ],
)
def test_a_condition_that_holds_ends_with_5_and_a_sentence_and_json_says_which(here, text):
    done = compare(here, "rows < 5", text)
    assert done.returncode == 5, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: A condition of --fail-if holds: ")
    assert "rows" not in last
    (failed,) = json.loads(done.stdout)["failed"]
    assert failed["holds"]
    assert failed["condition"].split()[0] == text.split("<")[0].split(">")[0].strip()


def test_several_that_hold_are_named_with_their_values(here):
    done = compare(here, "rows >= 60", "only_b > 0", "neighbours < 0")
    assert done.stderr.splitlines()[-1] == (
        "error: A condition of --fail-if holds: rows is 60, 60 or more; only_b is 1, above 0."
    )
    assert [each["value"] for each in json.loads(done.stdout)["failed"]] == [60, 1]


def test_conditions_that_do_not_hold_pass_and_say_so(here):
    done = compare(here, "neighbours < 0.1", "only_b > 1", more=("--json",))
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["failed"] == []
    assert found["conditions"][1] == {
        "condition": "only_b > 1",
        "name": "only_b",
        "value": 1,
        "limit": 1.0,
        "holds": False,
    }
    assert "only_b 1 (fails if > 1)" in done.stderr.splitlines()[-1]


def test_what_was_found_is_written_before_the_command_fails(here):
    done = compare(here, "rows > 1", more=("-o", "found.csv", "--force"))
    assert done.returncode == 5
    (row,) = pc.read_csv(here / "found.csv").to_pylist()
    assert (row["n"], row["failed"]) == (60, 1)


def test_every_figure_of_a_comparison_has_a_name_and_every_name_a_figure(here):
    done = compare(here, *(f"{name} > 1e9" for name in FIGURES))
    assert done.returncode == 0, done.stderr
    settings = {"n_neighbors", "overlap_rows", "metric", "changes", "tables", "ids"}
    figures = {field.name for field in dataclasses.fields(Comparison)} - settings
    assert figures <= set(FIGURES.values()) <= set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no condition"),
        ("neighbours", "is no condition"),
        ("neighbours == 0.8", "is no condition"),
        ("neighbours < 0.8 or 1", "is no condition"),
        ("neighbours < __import__('os')", "is no condition"),
        ("neighbours < nan", "is no condition"),
        ("neighbours < inf", "is no condition"),
        ("neighbours < ٣", "is no condition"),
        ("neighbours < 1e999", "too large"),
        ("neighbour < 0.8", "Did you mean 'neighbours'?"),
        ("__class__ < 1", "There is no figure '__class__'"),
    ],
)
def test_anything_else_is_wrong_usage_before_any_work(here, text, says):
    assert refused(compare(here, text), 2, says)
    with pytest.raises(click.BadParameter):
        ConditionType().convert(text, None, None)


def test_a_figure_that_is_unknown_is_judged_by_no_condition(here, tmp_path):
    pc.write_csv(
        pa.table({"id": list("abc"), "x": [0.5, 1, 0], "y": [0.1, 0, 2.5]}), tmp_path / "a.csv"
    )
    done = gnomon(
        "compare", "a.csv", "a.csv", "--id", "id", "--fail-if", "cka < 0.5", folder=tmp_path
    )
    assert refused(done, 3, "'cka < 0.5' cannot be judged", "3 rows")


@pytest.mark.parametrize("value", [0.79999999, 0.8, 0.80000001])
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_the_value_is_shown_on_its_side_of_the_limit(value, sign):
    said = Condition("rv", sign, 0.8).sentence(value)
    shown = float(said.replace(",", "").split()[2 if " is " in said else 1])
    assert Condition("rv", sign, 0.8).holds(shown) == (" is " in said)
