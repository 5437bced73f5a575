"""Errors and warnings of every module: what they say survives a trip to another process."""

import importlib
import io
import pickle
import pkgutil

import pytest
from tblib.pickling_support import pickle_exception

import gnomon
from gnomon.data.lines import BrokenRecordError
from gnomon.data.refusals import RoomError, TwoWordingsError
from gnomon.errors import GnomonError, refuse
from gnomon.models.fields import UnfitError


def kinds():
    """Every exception and warning that a module of the package defines."""
    found = {}
    for module in pkgutil.walk_packages(gnomon.__path__, "gnomon."):
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
    if issubclass(kind, RoomError):
        return kind("It", 2e9, 1e6, asked=True, processes=3)
    if issubclass(kind, TwoWordingsError):
        return kind("Bad.", ("na", "x"), "Or mend it.")
    if issubclass(kind, BrokenRecordError):
        return kind(12, "a field without end")
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
    assert {BrokenRecordError, RoomError, UnfitError, GnomonError} < set(KINDS)
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
    if isinstance(error, TwoWordingsError):
        assert found.command_line() == error.command_line()


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
