"""The page of a run, for the commands that write one."""

import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnomon.cli.words import Words

if TYPE_CHECKING:
    from gnomon.report import Report

__all__ = ["FILE", "as_typed", "save_page"]

FILE = "report.html"

# What a setting is when nobody asked for anything, and the option that asks.
USUAL = {"missing": "error", "scale": "auto", "components": "0.95", "perplexity": None,
         "dimensions": 2, "seed": 0}  # fmt: skip


def as_typed(command: str, settings: dict[str, Any]) -> str:
    """The command that makes the same results, without what is usual."""
    parts = ["gnomon", command, str(settings.get("data", "-"))]
    for name in ("label", "id"):
        if settings.get(name) is not None:
            parts += [f"--{name}", str(settings[name])]
    for name in ("keep", "drop", "na"):
        for value in settings.get(name) or ():
            parts += [f"--{name}", str(value)]
    for name, usual in USUAL.items():
        value = settings.get(name, usual)
        if value != usual:
            parts += ["-k" if name == "components" else f"--{name}", str(value)]
    return shlex.join(parts)


def save_page(page: "Report", path: Path, *, show: bool, words: Words) -> None:
    """Write the page, and show it to whoever asked."""
    from gnomon.memory import readable_bytes

    page.save(path, force=True)
    size = readable_bytes(len(page.html.encode()))
    words.say("Page", f"{path} ({size}, opens offline)")
    if show:
        webbrowser.open(path.absolute().as_uri())
