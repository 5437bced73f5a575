"""The installed command `gnomon`, in a process of its own, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

COMMAND = Path(sys.executable).parent / "gnomon"


def environment(**changes):
    """The surroundings of a command that writes to a pipe and is told nothing about colour."""
    told = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    return {**{k: v for k, v in os.environ.items() if k not in told}, **changes}


def gnomon(*arguments, folder, stdin=None, **changes):
    """Run it in `folder`; its exit code, stdout and stderr."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)], capture_output=True, text=True, encoding="utf-8",
        cwd=folder, env=environment(**changes), input=stdin, timeout=300,
    )  # fmt: skip


def first_words(done):
    """With what each line of its words begins."""
    return [line[:9].strip() for line in done.stderr.splitlines()]


def refused(done, code, *says):
    """Whether it ended with one sentence that says all of `says`, and wrote no data."""
    last = done.stderr.splitlines()[-1]
    assert done.returncode == code, done.stderr
    assert last.startswith("error: "), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for text in says:
        assert text in last
    return True
