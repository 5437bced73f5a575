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
# What differs from one machine or release to the next: times, sizes of pages, rounding errors, and
# which rows lie at the border of two groups.
UNTOLD = re.compile(
    r"\s+\d+\.\d s$|\d[\d.]* [kM]B|(?<=within )\d\.\de-\d+|(?<= name )w.*(?=: columns among)"
)
# What a last bit that is rounded otherwise can change on the way of a map, and by how much.
NEARLY = {
    re.compile(r"(?<=perplexity 30, )\d+(?= iterations)"): 150,
    re.compile(r"(?<=, KL )[\d.]+"): 0.02,
    re.compile(r"(?<=neighbours kept )[\d.]+"): 0.03,
    re.compile(r"(?<=far distances )[\d.]+"): 0.05,
    re.compile(r"(?<=trustworthiness )[\d.]+"): 0.02,
    re.compile(r"(?<=only in part \()[\d.]+"): 0.05,
    re.compile(r"(?<=Among    )\d+"): 4,
    re.compile(r"\d+(?= only on the map)"): 4,
    re.compile(r"\d+(?= in the data, too)"): 4,
}


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


def as_told(text):
    """Lines without what differs between machines; every other number stays."""
    return [UNTOLD.sub("#", line) for line in text.strip().splitlines()]


def assert_told(said, page):
    """What was said is what the page says, to the last number but those of `NEARLY`."""
    for number, most in NEARLY.items():
        found, told = ([float(each) for each in number.findall(text)] for text in (said, page))
        assert found == pytest.approx(told, abs=most)
        said, page = (number.sub("~", text) for text in (said, page))
    assert as_told(said) == as_told(page)


def test_its_commands_run_and_say_what_it_says(tmp_path):
    done, told = None, 0
    with contextlib.chdir(tmp_path):
        for kind, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
            if kind == "python" and "wines.csv" in text:
                exec(compile(text, "command-line.md", "exec"), {})
            for line in text.splitlines() if kind == "sh" else []:
                if line.startswith(("gnomon", "cat")):
                    done = run_line(line, tmp_path)
                    assert done.returncode == (3 if line.endswith("inspect wines.csv") else 0), line
            if kind == "text":
                assert_told(done.stderr, text)
                told += 1
    assert told == 2
    for name in ("placed.csv", "aligned.csv", "back.csv", "components.csv", "what-was-done.json"):
        assert (tmp_path / name).stat().st_size > 100


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("Read     wines.csv: 178 rows × 15 columns   0.0 s", "177 rows × 15"),
        ("Scale    standard: spreads differ 2,516-fold (proline)", "differ 2,517-fold"),
        ("PCA      10 of 13 components hold 96.2 % of it", "hold 96.1 %"),
        ("t-SNE    perplexity 30, 500 iterations, KL 0.361  0.3 s", "KL 0.391"),
        ("Trust    neighbours kept 0.65 · far distances 0.78", "kept 0.69"),
        ("t-SNE    perplexity 30, 500 iterations, KL 0.361  0.3 s", "perplexity 29"),
    ],
)
def test_another_number_is_noticed_but_not_another_time(told, said):
    other = re.sub(re.sub(r"[\d.,]+", r"[\\d.,]+", said), said, told)
    assert other != told
    with pytest.raises(AssertionError):
        assert_told(other, told)
    assert_told(re.sub(r"\d\.\d s$", "7.5 s", told), told)


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
