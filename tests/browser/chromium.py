"""A browser for the tests of the page: an installed one, Debian's package, or Playwright's own.

Run as a script it installs one where none is found, and makes the empty file that it is given as a
sign that one is there; `make test` does so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DEBIAN = ["chromium", "fonts-liberation"]

# Software WebGL, so that every machine draws; the page itself by the processor at once, not by a
# graphics card that the processor plays; and a browser that minds its own business.
ARGUMENTS = [
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-rasterization",
    "--disable-gpu-compositing",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def is_root():
    return hasattr(os, "geteuid") and os.geteuid() == 0


def arguments():
    # Chromium refuses to run as root within its sandbox.
    return [*ARGUMENTS, "--no-sandbox"] if is_root() else ARGUMENTS


def find():
    """Where a browser is, or None."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    with sync_playwright() as play:
        path = play.chromium.executable_path
    return path if Path(path).exists() else None


def install():
    """Debian's package where that is possible, otherwise Playwright's download."""
    if is_root() and shutil.which("apt-get"):
        quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, "check": False}
        subprocess.run(["apt-get", "-q", "update"], **quiet)
        get = ["apt-get", "-q", "install", "-y", "--no-install-recommends"]
        subprocess.run([*get, *DEBIAN], **quiet)
    if find() is None:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)


def in_ci():
    return os.environ.get("CI") == "true"


def required():
    """Where a browser is; without one the tests fail in CI, and are skipped by name elsewhere."""
    import pytest  # not there where the page is only measured

    path = find()
    if path is None and in_ci():
        pytest.fail("CI has no Chromium or Chrome: run tests/browser/chromium.py")
    if path is None:
        pytest.skip("no Chromium or Chrome is installed; tests/browser/chromium.py installs one")
    return path


def main(ready=None):
    if find() is None:
        install()
    path = find()
    if path is None:
        print("No Chromium or Chrome was found or could be installed.", file=sys.stderr)
        return 1 if in_ci() else 0
    print(f"The page is tested in {path}.")
    if ready is not None:
        Path(ready).touch()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
