import json

import numpy as np
import pytest

from gnomon.data import samples
from gnomon.data.table import ColumnRoles, LeftOut, Places, Table, table_of_sample


def test_a_sample_is_a_table_like_any_other():
    sample = samples.load("iris")
    table = table_of_sample(sample)
    assert table.X is sample.X
    assert list(table.labels) == list(sample.labels)
    assert str(table) == (
        "iris: 150 rows × 5 columns\n"
        "  features  4 numeric columns (sepal length (cm), sepal width (cm), petal length (cm), "
        "petal width (cm))\n"
        "  label     species"
    )
    assert list(table_of_sample(samples.load("house-prices")).ids) == list("abcde")


def test_a_table_cannot_be_changed():
    table = table_of_sample(samples.load("iris"))
    with pytest.raises(AttributeError):
        table.name = "mine"


def test_a_table_is_plain_json_without_its_cells():
    roles = ColumnRoles(("a",), kept_for_colour=(LeftOut("b", "text"),))
    table = Table("t.csv", np.zeros((2, 1)), ("a",), roles=roles, n_columns=2)
    assert json.loads(json.dumps(table.to_dict())) == {
        "name": "t.csv",
        "rows": 2,
        "n_columns": 2,
        "features": ["a"],
        "label": None,
        "id": None,
        "kept_for_colour": [
            {"column": "b", "why": "text", "can_be_kept": False, "can_name_rows": False}
        ],
        "ignored": [],
        "notes": [],
    }


def test_many_columns_that_are_ignored_are_counted():
    left = tuple(LeftOut(f"c{i}", "text") for i in range(15))
    roles = ColumnRoles(("a", "b"), ignored=left)
    table = Table("t", np.zeros((1, 2)), ("a", "b"), roles=roles, n_columns=17)
    assert dict(table.lines()) == {
        "features": "2 numeric columns (a, b)",
        "ignored": ", ".join(f"c{i}" for i in range(12)) + " and 3 more (text)",
    }


def test_columns_with_one_reason_name_the_option_once():
    kept = tuple(LeftOut(name, "beside others", can_be_kept=True) for name in ("n_umi", "year"))
    one = (LeftOut("zip", "codes", can_be_kept=True), LeftOut("film", "text", can_name_rows=True))
    roles = ColumnRoles(("a",), kept_for_colour=kept, ignored=one)
    said = dict(roles.words(command=True))
    assert (
        said["colour"]
        == "kept for colour: n_umi, year (beside others: --keep NAME to use one as a feature)"
    )
    assert said["ignored"] == (
        "zip (codes: --keep zip to use it as a feature), "
        "film (text: --id film to name the rows by it)"
    )
    assert dict(roles.final().words(command=True))["ignored"] == "zip (codes), film (text)"


def test_places_follow_rows_that_were_taken():
    lines = Places(lines=np.array([2, 5, 9]))
    assert lines.take(np.array([2, 0])).of(0) == "line 9"
    assert Places(first=2).take(np.array([4, 7])).take(np.array([1])).of(0) == "line 9"
    assert Places().take(np.array([3])).of(0) == "row 3 (rows count from 0)"
