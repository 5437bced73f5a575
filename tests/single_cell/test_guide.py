"""The guide's page for biologists: its code runs and prints what the page says."""

import warnings

from contract.test_documents import OF_SINGLE_CELLS, run_page


def test_the_code_of_the_page_runs_and_prints_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():  # the page turns warnings of scanpy's imports off
        run_page(OF_SINGLE_CELLS)
