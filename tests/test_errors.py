"""Errors and warnings of every module: what they say survives a trip to another process."""

import ast
import importlib
import io
import pickle
import pkgutil
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tblib.pickling_support import pickle_exception

import gnomon
from gnomon.cli.failures import OPTIONS, CommandWording, sentence
from gnomon.data.formats.csv_stream import OtherEncodingError
from gnomon.data.lines import BrokenRecordError
from gnomon.data.refusals import FileError
from gnomon.errors import (
    DataError,
    DataWarning,
    GnomonError,
    Message,
    MissingValueError,
    Parameter,
    ParameterError,
    Remedy,
    Wording,
    quoted,
    refuse,
    worded,
)
from gnomon.models.fields import UnfitError
from gnomon.procrustes import Procrustes
from gnomon.scores import trustworthiness

# Without anndata its room cannot be imported: `make test` runs this file where it can, too.
ELSEWHERE = () if find_spec("anndata") else ("gnomon.anndata",)


def kinds():
    """Every exception and warning that a module of the package defines."""
    found = {}
    for module in pkgutil.walk_packages(gnomon.__path__, "gnomon."):
        if module.name.startswith(ELSEWHERE):
            continue
        names = vars(importlib.import_module(module.name)).values()
        found |= {
            kind: None
            for kind in names
            if isinstance(kind, type) and issubclass(kind, Exception)
            if kind.__module__.startswith("gnomon.")
        }
    return list(found)


KINDS = kinds()


def example(kind):
    """One of them, with whatever it is made from."""
    if issubclass(kind, Message):
        text = "{table} has {many:,} gaps, by {parameter}."
        ways = ("na", "x"), Remedy.EXACT_SOLVER, "Or mend it."
        fields = {"many": 2000, "parameter": Parameter("n_jobs"), "solver": "gram"}
        return kind(text, *ways, table="{X}", **fields)
    if issubclass(kind, BrokenRecordError):
        return kind(12, "a field without end")
    if issubclass(kind, OtherEncodingError):
        return kind(12, 0xE9)
    if issubclass(kind, UnfitError):
        return kind("it is no model", "Save it again.")
    return kind("Bad.")


def carried(error, *, dask):
    """The error as another process gets it: from plain pickle, or in Dask's own way."""
    packed = io.BytesIO()
    pickler = pickle.Pickler(packed)
    pickler.dispatch_table = {type(error): pickle_exception} if dask else {}
    pickler.dump(error)
    return pickle.loads(packed.getvalue())


def test_all_modules_are_looked_into():
    assert {BrokenRecordError, FileError, UnfitError, GnomonError} < set(KINDS)
    assert len(KINDS) > 20


@pytest.mark.parametrize("dask", [False, True], ids=["plain", "dask"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_survives_a_trip_to_another_process(kind, dask):
    error = example(kind)
    error.noticed = ["an attribute"]
    found = carried(error, dask=dask)
    assert type(found) is kind
    assert str(found) == str(error) != ""
    assert found.args == error.args
    assert vars(found) == vars(error)
    assert found.noticed == ["an attribute"]
    if isinstance(error, Message):
        assert str(found).startswith("{X} has 2,000 gaps, by `n_jobs`. Use na=")
        assert (found.text, found.ways, found.fields) == (error.text, error.ways, error.fields)
        said = worded(found, CommandWording({"na", "threads"}))
        assert said == worded(error, CommandWording({"na", "threads"}))
        assert said == (
            "{X} has 2,000 gaps, by --threads. Use --na x. Take fewer rows or columns. Or mend it."
        )


@pytest.mark.parametrize("dask", [False, True], ids=["plain", "dask"])
def test_what_the_system_said_survives_too(dask):
    error = gnomon.errors.WriteError(28, "No space left on device", "scores.npy")
    found = carried(error, dask=dask)
    assert (found.errno, found.filename) == (28, "scores.npy")
    assert str(found) == str(error)


@pytest.mark.parametrize(("kind", "base"), [(False, ValueError), (True, TypeError)])
def test_a_refusal_is_one_sentence_with_its_way_out(kind, base):
    with pytest.raises(base) as raised:
        refuse("perplexity", "be below 20", 30, "Lower it.", kind=kind)
    assert isinstance(raised.value, GnomonError)
    assert str(raised.value) == "`perplexity` must be below 20; got 30. Lower it."
    assert raised.value.fields == {"parameter": "perplexity", "must": "be below 20", "got": "30"}
    assert sentence(raised.value, {"perplexity"}) == (
        "--perplexity must be below 20; got 30. Lower it."
    )
    assert sentence(raised.value, ()) == str(raised.value)


@pytest.mark.parametrize(("parameter", "option"), [*OPTIONS.items(), ("missing", "missing")])
def test_parameters_are_options_on_the_command_line(parameter, option):
    error = ParameterError("Change {parameter}.", parameter=Parameter(parameter))
    dashes = "-" if len(option) == 1 else "--"
    assert str(error) == f"Change `{parameter}`."
    assert sentence(error, {option}) == f"Change {dashes}{option}."


def test_a_text_without_fields_may_hold_braces():
    error = DataError("No {such} thing.", ("drop", "{a}"), "Or {not}.")
    assert str(error) == 'No {such} thing. Use drop="{a}". Or {not}.'
    assert str(error.replace(table="Y")) == str(error)  # it has no such field


def test_fields_are_changed_in_a_copy_that_keeps_all_else():
    error = MissingValueError("{table} holds {count}.", Remedy.FILL_GAPS, table="X", count=3)
    error.noticed = "before"
    other = error.replace(table="{Y}", row=9)
    assert type(other) is MissingValueError
    assert str(other) == "{Y} holds 3. " + Remedy.FILL_GAPS.value
    assert other.fields == {"table": "{Y}", "count": 3}
    assert other.noticed == "before"
    assert str(error).startswith("X holds 3.")
    assert str(error.replace(ways=("Fill it.",))) == "X holds 3. Fill it."


def test_warnings_have_fields_too():
    with pytest.warns(DataWarning) as caught:
        gnomon.PCA(1).fit(np.array([[1e12, 1.0], [2e12, 3.0], [5e12, 2.0]]))
    (warning,) = caught
    assert warning.message.fields["column"] == 0
    assert "Standardise the columns (`PCA(standardize=True)`)" in str(warning.message)
    assert "Use --scale standard" in worded(warning.message, CommandWording())


def test_a_bad_value_is_named_by_its_table_row_and_column():
    X = np.arange(12.0).reshape(6, 2) ** 2
    bad = X.copy()
    bad[4, 1] = np.nan
    for call in (lambda: Procrustes().fit(X, bad), lambda: trustworthiness(X, bad)):
        with pytest.raises(MissingValueError) as raised:
            call()
        found = raised.value.fields
        assert (found["table"], found["row"], found["column"], found["count"]) == ("Y", 4, "1", 1)


def test_every_remedy_can_be_worded_everywhere():
    fields = {"solver": "gram", "parameter": Parameter("keep")}
    for wording in (Wording(), CommandWording(None)):
        for remedy in Remedy:
            said = worded(DataError("Bad.", remedy, **fields), wording)
            assert re.fullmatch(r"Bad\. \S.*\.", said), said
    for remedy in set(Remedy) - {Remedy.LEAVE_OUT, Remedy.START_AGAIN}:
        said = worded(DataError("Bad.", remedy, **fields), CommandWording(None))
        assert "`" not in said, said  # which is Python


def test_values_stand_in_fields_where_there_are_fields():
    """A text that is formatted twice would break at the braces of a name."""
    kinds = {kind.__name__ for kind in KINDS if issubclass(kind, Message)} | {"error", "kind"}
    mixed = []
    for path in Path(gnomon.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and node.args and node.keywords):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", None))
            inside = [type(part) for part in ast.walk(node.args[0])]
            fields = {keyword.arg for keyword in node.keywords} - {"kind"}
            if name in {*kinds, "_say"} and ast.JoinedStr in inside and fields:
                mixed.append(f"{path.name}:{node.lineno}")
    assert not mixed


def test_what_cannot_be_seen_is_quoted():
    assert quoted("a\n") == '"a\\n"'
