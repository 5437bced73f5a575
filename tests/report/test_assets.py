"""The page's script and style, and their source."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

WEB = Path(__file__).parents[2] / "web"
ASSETS = files("gnomon.report") / "assets"
SOURCES = sorted(WEB.glob("src/*.ts"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_writes_markup_or_runs_text(path):
    written = re.findall(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
        r"|DOMParser|\beval\b|new Function|setAttribute\(.on|fetch\(|XMLHttpRequest",
        path.read_text(),
    )
    assert written == []


def test_there_are_sources_to_look_at():
    assert len(SOURCES) > 15


@pytest.mark.parametrize("name", ["page.js", "page.css"])
def test_what_stands_in_a_page_ends_no_script_and_names_no_place_to_fetch_from(name):
    text = (ASSETS / name).read_text()
    assert text.isascii()
    assert not re.search(r"</script|</style|<!--|@import|sourceMappingURL", text, re.IGNORECASE)
    addresses = set(re.findall(r"https?://[\w./-]+", text))
    # The name of a language and a line of help inside of regl: neither is ever asked for.
    assert addresses <= {"http://www.w3.org/2000/svg", "http://get.webgl.org"}


def test_the_lock_file_names_no_registry_and_every_package_is_checked_by_its_hash():
    lock = json.loads((WEB / "package-lock.json").read_text())
    packages = {name: about for name, about in lock["packages"].items() if name}
    assert not any("resolved" in about for about in packages.values())
    assert all(about["integrity"].startswith("sha512-") for about in packages.values())


def test_the_licence_of_every_package_in_the_script_is_kept():
    lock = json.loads((WEB / "package-lock.json").read_text())
    notice = (ASSETS / "NOTICE.txt").read_text()
    shipped = [name for name, about in lock["packages"].items() if name and not about.get("dev")]
    assert len(shipped) >= 3
    for name in shipped:
        package = name.rpartition("node_modules/")[2]
        assert f"{package} {lock['packages'][name]['version']}" in notice
    assert notice.count("Permission is hereby granted") >= 3
