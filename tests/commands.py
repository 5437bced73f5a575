"""The command `gnomon` as a user runs it: in this process, or in one of its own."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import children

COMMAND = Path(sys.executable).parent / "gnomon"


def environment(**changes):
    """The environment of a command that writes to a pipe and is told nothing about colour."""
    told = ("NO_COLOR", "FORCE_COLOR", "COLUMNS")
    return {**{k: v for k, v in os.environ.items() if k not in told}, **changes}


def gnomon(*arguments, folder, stdin=None, **changes):
    """Run it in `folder`; its exit code, stdout and stderr.

    It runs in this process, which spares a second or two of imports: its arguments, streams, folder
    and environment are those of a process of its own, and so is all that it says. Warnings are
    errors here, so what is not caught and said is found.
    """
    from gnomon.cli import main

    streams = {
        name: io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for name in ("stdout", "stderr")
    }
    streams["stdin"] = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), "utf-8", newline="")
    argv = ["gnomon", *map(str, arguments)]
    code = 0
    with (
        contextlib.chdir(folder),
        mock.patch.multiple(sys, argv=argv, **streams),
        mock.patch.dict(os.environ, environment(**changes), clear=True),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    said = []
    for name in ("stdout", "stderr"):
        streams[name].flush()
        said.append(streams[name].buffer.getvalue().decode("utf-8"))
    return subprocess.CompletedProcess(argv, code, *said)


def process(*arguments, folder, stdin=None, **changes):
    """The same, of the installed command in a process of its own."""
    return subprocess.run(
        [COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env=environment(**changes),
        input=stdin,
        timeout=300,
    )


def forked(*arguments, folder, stdin=None, **changes):
    """The same, of a process whose libraries are imported already."""
    asked = ["gnomon", *map(str, arguments)]
    return children.run(asked, environment(**changes), folder=folder, stdin=stdin)


def shell(line, folder, stdin=None):
    """A line of the shell, in which $GNOMON is the command, in such processes."""
    return subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment(GNOMON=children.shell_command()),
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


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
