"""The check that ends `make docs`: a page that loads from elsewhere is found."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "offline.py"


@pytest.fixture(scope="module")
def offline():
    spec = importlib.util.spec_from_file_location("offline", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "site.css").write_text("p{color:red}", encoding="utf-8")
    (tmp_path / "guide").mkdir()
    return tmp_path


def write(site, html, name="index.html"):
    (site / name).write_text(f"<!doctype html><html><body>{html}</body></html>", encoding="utf-8")


def test_a_site_that_has_all_it_loads_passes(offline, site):
    write(site, "")
    write(
        site,
        '<link rel="stylesheet" href="../_static/site.css?digest=1">'
        '<a href="https://example.org">a link is not loaded</a><h1 id="top">Top</h1>'
        '<a href="../index.html">back</a><a href="#row-7">a row of a map</a>'
        '<link rel="canonical" href="https://example.org/page">'
        '<img src="data:image/png;base64,AAAA"><a href="#top">up</a>',
        "guide/page.html",
    )
    assert offline.main(site) == 0


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example.org/x.js"></script>',
        '<script src="//cdn.example.org/x.js"></script>',
        '<link rel="stylesheet" href="http://example.org/x.css">',
        '<link rel="preload" as="font" href="https://example.org/f.woff2">',
        '<img src="https://example.org/x.png">',
        '<img srcset="a.png 1x, https://example.org/x.png 2x" src="_static/site.css">',
        "<style>@import url(https://example.org/x.css);</style>",
        '<p style="background:url(https://example.org/x.png)">',
        '<svg><image href="https://example.org/x.png"/></svg>',
        '<iframe src="https://example.org"></iframe>',
    ],
)
def test_whatever_is_loaded_from_another_host_is_found(offline, site, html, capsys):
    write(site, html)
    assert offline.main(site) == 1
    said = capsys.readouterr().err
    assert "index.html loads" in said
    assert "on another host" in said


def test_what_the_site_lacks_is_found(offline, site, capsys):
    write(site, '<script src="_static/not_there.js"></script>')
    assert offline.main(site) == 1
    assert "_static/not_there.js, which is not there" in capsys.readouterr().err


@pytest.mark.parametrize("link", ["#bottom", "gone.html", "guide/page.html#bottom"])
def test_a_link_that_leads_nowhere_is_found(offline, site, link, capsys):
    write(site, '<h1 id="top">Top</h1>', "guide/page.html")
    write(site, f'<h1 id="top">Top</h1><a href="#top"></a><a href="{link}">there</a>')
    assert offline.main(site) == 1
    assert capsys.readouterr().err == f"index.html links to {link}, which is not there.\n"


def test_style_sheets_are_read_too(offline, site):
    write(site, "")
    (site / "_static" / "site.css").write_text("@import 'https://example.org/x.css';", "utf-8")
    assert offline.main(site) == 1


def test_a_folder_without_a_site_is_no_pass(offline, tmp_path, capsys):
    assert offline.main(tmp_path) == 2
    assert "no index.html" in capsys.readouterr().err
