"""Where there is no browser CI fails, others are told, and `make` looks for one again."""

import pytest
from browser import chromium


@pytest.fixture
def nowhere(monkeypatch):
    """A machine that has no browser and cannot get one; returns how often it was tried."""
    tried = []
    monkeypatch.setattr(chromium, "find", lambda: None)
    monkeypatch.setattr(chromium, "install", lambda: tried.append(1))
    monkeypatch.delenv("CI", raising=False)
    return tried


def test_without_a_browser_tests_are_skipped_by_name(nowhere):
    with pytest.raises(pytest.skip.Exception, match="no Chromium or Chrome is installed"):
        chromium.required()


def test_without_a_browser_ci_fails(nowhere, monkeypatch):
    monkeypatch.setenv("CI", "true")
    # Skipped tests are told as such and do not fail, so that a skip must not get out of this one.
    with pytest.raises((pytest.fail.Exception, pytest.skip.Exception)) as told:
        chromium.required()
    assert told.type is pytest.fail.Exception
    assert "CI has no Chromium or Chrome" in str(told.value)


def test_a_browser_that_is_there_is_taken(monkeypatch):
    monkeypatch.setattr(chromium, "find", lambda: "somewhere")
    assert chromium.required() == "somewhere"


def test_make_is_told_of_a_browser_only_where_there_is_one(nowhere, tmp_path, monkeypatch, capsys):
    ready = tmp_path / "ready"
    assert chromium.main(ready) == 0  # the tests that need none can run
    assert (len(nowhere), ready.exists()) == (1, False)
    assert "No Chromium or Chrome" in capsys.readouterr().err
    assert chromium.main(ready) == 0
    assert len(nowhere) == 2  # tried again the next time
    monkeypatch.setenv("CI", "true")
    assert chromium.main(ready) == 1
    assert not ready.exists()


def test_a_browser_that_is_there_is_not_installed_again(nowhere, tmp_path, monkeypatch):
    monkeypatch.setattr(chromium, "find", lambda: "somewhere")
    assert chromium.main(tmp_path / "ready") == 0
    assert ((tmp_path / "ready").exists(), nowhere) == (True, [])
