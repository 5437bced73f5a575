"""The map in a real JupyterLab, in Chromium: lasso and Python agree; saved, it stands alone.

Runs in an environment of its own, which has JupyterLab (`make soak`).
"""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
import pytest
from browser.chromium import arguments, required
from browser.hands import inside, lasso, on_screen, until
from browser.webgl import WITHOUT_WEBGL
from playwright.sync_api import sync_playwright

TOKEN = "gnomon"
CELLS = [
    "import gnomon, numpy as np\nresult = gnomon.run('wine', seed=0)\n"
    "view = gnomon.show(result)\nother = gnomon.show(result.pca, result.prepared.X)\nview",
    "print('ROWS', view.selection.tolist(), other.selection.tolist())\n"
    "print('NAMES', sorted(set(view.selected['cultivar'])))",
    "view.selection = result.prepared.table.labels == 'class_1'\nlen(view.selection)",
    "result",
    "result.pca",
    "result.tsne",
    "gnomon.compare(result.components[:, :2], result.positions)",
]


@pytest.fixture
def lab(tmp_path):
    """A server on this machine alone, with one notebook."""
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), tmp_path / "map.ipynb")
    own = {name: str(tmp_path / name.lower()) for name in
           ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR",
            "IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")}  # fmt: skip
    write_settings(Path(own["JUPYTERLAB_SETTINGS_DIR"]))
    with (tmp_path / "log.txt").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--port=0",
             "--allow-root", f"--IdentityProvider.token={TOKEN}", f"--notebook-dir={tmp_path}",
             "--LabApp.news_url=", "--LabApp.check_for_updates_class="
             "jupyterlab.NeverCheckForUpdate"],
            stdout=log, stderr=log, env=os.environ | own,
        )  # fmt: skip
    try:
        yield wait_for(tmp_path / "log.txt", server), tmp_path
    finally:
        server.terminate()
        server.wait(20)


def write_settings(folder):
    """Keep every cell in the page: by default JupyterLab detaches those out of view."""
    path = folder / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"windowingMode": "none"}))


def wait_for(log, server):
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/lab", log.read_text())
        if found:
            address = f"http://127.0.0.1:{found[1]}"
            with urllib.request.urlopen(f"{address}/api/status?token={TOKEN}") as answer:
                assert json.load(answer)
            return address
        time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture
def page():
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=required(), args=arguments())
        page = browser.new_context(viewport={"width": 1400, "height": 1100}).new_page()
        page.add_init_script(WITHOUT_WEBGL)
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def run_cell(page, number):
    """Run a cell, and wait until it has its number."""
    cell = page.locator(".jp-CodeCell").nth(number)
    prompt = cell.locator(".jp-InputPrompt")
    end = time.monotonic() + 120  # the first cell compiles the kernels
    while not re.search(r"\[\d+\]", prompt.inner_text()):
        assert time.monotonic() < end, cell.inner_text()
        if "*" not in prompt.inner_text():  # shortcuts are loaded some time after the notebook
            cell.locator(".cm-content").click()
            page.keyboard.press("Control+Enter")  # adds no cell after the last
        page.wait_for_timeout(1000)
    return cell


def printed(cell, name):
    text = cell.locator(".jp-OutputArea").first.inner_text()
    return re.search(rf"{name} (.*)", text)[1]


@pytest.mark.rounds(test=0, soak=1, long=3)
def test_the_lasso_and_python_agree_in_jupyterlab(lab, page):
    address, folder = lab
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/lab/tree/map.ipynb?token={TOKEN}")
    page.wait_for_selector(".jp-Notebook .jp-CodeCell")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")
    run_cell(page, 0)
    page.wait_for_selector(".widget[data-state=ready]")
    page.locator("#map-stage").scroll_into_view_if_needed()

    # From the map to Python.
    import gnomon

    result = gnomon.run("wine", seed=0)  # the same bits as in the kernel
    at = on_screen(page, result.positions)
    middle, reach = np.median(at, axis=0), 60
    corners = middle + reach * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
    wanted, clear = inside(corners, at)
    assert wanted.any()
    assert clear > 0.05, "a row lies on the lasso's line"
    lasso(page, corners)
    until(page, lambda: page.get_attribute("#map-stage", "data-selected") == str(wanted.sum()))
    page.screenshot(path=folder / "widget.png")
    cell = run_cell(page, 1)
    until(page, lambda: "NAMES [" in cell.inner_text())
    assert printed(cell, "ROWS") == f"{np.flatnonzero(wanted).tolist()} []"
    labels = result.prepared.table.labels
    assert printed(cell, "NAMES") == str(sorted(set(labels[wanted])))

    # From Python to the map.
    run_cell(page, 2)
    many = int((labels == "class_1").sum())
    until(page, lambda: page.get_attribute("#map-stage", "data-selected") == str(many))
    assert page.locator("#map-selection h3").inner_text() == f"{many}\u00a0rows selected"

    # What is typed into the search is no command of the notebook: "dd" would delete a cell.
    page.locator("#map-search").click()
    page.keyboard.type("dd")
    assert page.locator(".jp-CodeCell").count() == len(CELLS)
    assert page.input_value("#map-search") == "dd"

    for number in range(3, len(CELLS)):
        run_cell(page, number)
    until(page, lambda: page.locator(".widget[data-state=ready]").count() == 2)
    show_all(page, folder, "light")
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    page.wait_for_timeout(500)
    show_all(page, folder, "dark")
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+s")
    path = folder / "map.ipynb"
    until(page, lambda: "widget-view+json" in path.read_text())
    assert all(url.startswith((address, address.replace("http", "ws"), "data:", "blob:"))
               for url in asked)  # fmt: skip
    check_saved(path, page)


def show_all(page, folder, name):
    """Pictures of all outputs, to be looked at."""
    for i, output in enumerate(page.locator(".jp-OutputArea").all()):
        output.scroll_into_view_if_needed()
        output.screenshot(path=folder / f"{name}-{i}.png")


def check_saved(path: Path, page):
    """Export the saved notebook without a kernel: pictures stand where the widgets were."""
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", str(path)], capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page.goto(path.with_suffix(".html").as_uri())
    assert page.locator("svg.gn-chart").count() >= 5
    assert page.locator("svg.gn-chart").first.is_visible()
