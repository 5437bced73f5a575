"""A browser for the tests of the page: an installed one, Debian's package, or Playwright's own.

Run as a script it installs one where none is found; `make test` does so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
DEBIAN = ["chromium", "fonts-liberation"]

# Software WebGL, so that every machine draws; and a browser that minds its own business.
ARGUMENTS = [
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
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


def main():
    if find() is None:
        install()
    path = find()
    if path:
        print(f"The page is tested in {path}.")
    else:
        print("No Chromium or Chrome was found or could be installed.", file=sys.stderr)
    # Elsewhere than in CI the tests that need it are skipped by name.
    return 1 if path is None and os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
