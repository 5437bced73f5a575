"""The examples of the API reference run, and print what they say."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

import gnomon

PACKAGE = Path(gnomon.__file__).parent
OF_EXTRAS = ("anndata", "plot")  # their examples run where scanpy and matplotlib are
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    "gnomon." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text("utf-8") and path.relative_to(PACKAGE).parts[0] not in OF_EXTRAS
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(name), optionflags=OPTIONS)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_public_name_is_in_the_reference():
    pages = (PACKAGE.parents[1] / "docs" / "api").glob("*.md")
    texts = {page.name: page.read_text("utf-8") for page in pages}
    index, text = texts.pop("index.md"), "".join(texts.values())
    for name in gnomon.__all__:
        assert f"`{name}`" in index
        assert re.search(rf":: gnomon\.(data\.)?{name}\n", text), name


def test_most_public_names_have_an_example():
    assert len(MODULES) >= 20
    for thing in (gnomon.PCA, gnomon.TSNE, gnomon.Procrustes, gnomon.run, gnomon.audit):
        assert ">>>" in (thing.__doc__ or ""), thing
