"""The guide's page about the command line: its commands run, and say what the page says."""

import contextlib
import re
import shlex
from pathlib import Path

import pytest
from commands import gnomon

from gnomon.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guide" / "command-line.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d.,e+-]*")


def run_line(line, folder):
    """One line of a shell, with a file piped in by cat and standard output kept in a file."""
    words = shlex.split(line)
    stdin = out = None
    if words[0] == "cat":
        stdin, words = (folder / words[1]).read_text(), words[3:]
    if ">" in words:
        out, words = folder / words[-1], words[:-2]
    done = gnomon(*words[1:], folder=folder, stdin=stdin)
    if out is not None:
        out.write_text(done.stdout)
    return done


def without_numbers(text):
    """Lines without what differs between machines and versions: numbers, and spaces beside them."""
    return [re.sub(r"\s+", " ", NUMBER.sub("#", line)) for line in text.strip().splitlines()]


def test_its_commands_run_and_say_what_it_says(tmp_path):
    done = None
    with contextlib.chdir(tmp_path):
        for kind, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
            if kind == "python" and "wines.csv" in text:
                exec(compile(text, "command-line.md", "exec"), {})
            for line in text.splitlines() if kind == "sh" else []:
                if line.startswith(("gnomon", "cat")):
                    done = run_line(line, tmp_path)
                    assert done.returncode == (3 if line.endswith("inspect wines.csv") else 0), line
            if kind == "text":
                assert without_numbers(done.stderr) == without_numbers(text)
    for name in ("placed.csv", "aligned.csv", "back.csv", "components.csv", "what-was-done.json"):
        assert (tmp_path / name).stat().st_size > 100


@pytest.mark.parametrize("page", [PAGE, ROOT / "README.md"], ids=lambda page: page.name)
def test_commands_and_options_it_names_exist(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    helps = {name: gnomon(name, "--help", folder=tmp_path).stdout for name in COMMANDS}
    shell = "\n".join(block for kind, block in FENCE.findall(text) if kind == "sh")
    named = set(re.findall(r"(?:^|`|\| )gnomon ([a-z]+)", text, re.MULTILINE))
    assert {"map", "place"} <= named <= set(COMMANDS)
    for line in shell.splitlines():
        for name in re.findall(r"gnomon ([a-z]+)", line):
            assert all(option in helps[name] for option in re.findall(r" (--?[a-z]+)", line))
    known = set(re.findall(r"--[a-z]+", "".join(helps.values())))
    assert set(re.findall(r"`(--[a-z]+)", text)) <= known
