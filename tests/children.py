"""Processes of their own, forked by `prefork.py`: a command, or a piece of code."""

import atexit
import functools
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from prefork import ask, number

SERVER = Path(__file__).with_name("prefork.py")


@functools.cache
def address():
    """Where this process's server listens; it is started when it is first needed."""
    folder = tempfile.mkdtemp(prefix="prefork")
    path = f"{folder}/socket"
    server = subprocess.Popen(
        [sys.executable, SERVER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout.readline() == "ready\n"

    def end():
        server.stdin.close()
        server.wait(10)
        server.stdout.close()
        os.unlink(path)
        os.rmdir(folder)

    atexit.register(end)
    return path


def shell_command():
    """The command as a line of a shell says it."""
    return f"{sys.executable} -I -S {SERVER} --to {address()}"


class Child:
    """A process that was started, as `subprocess.Popen` has it."""

    def __init__(self, arguments, environment, *, folder=".", code=None, streams=(0, 1, 2)):
        code = None if code is None else textwrap.dedent(code)
        self.connection = ask(
            address(),
            [*map(str, arguments)],
            environment,
            code=code,
            folder=folder,
            streams=streams,
        )
        self.pid = number(self.connection)
        self.returncode = None

    def wait(self, timeout=300):
        if self.returncode is None:
            self.connection.settimeout(timeout)
            try:
                self.returncode = number(self.connection)
            except TimeoutError:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout) from None
            self.connection.close()
        return self.returncode

    def poll(self):
        if self.returncode is None:
            try:
                self.connection.setblocking(False)
                self.returncode = number(self.connection)
                self.connection.close()
            except BlockingIOError:
                pass
        return self.returncode

    def send_signal(self, which):
        if self.poll() is None:
            os.kill(self.pid, which)


def run(arguments, environment=None, *, folder=".", code=None, stdin=None, timeout=300):
    """Run it to its end; its exit code, and what it wrote to its streams."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write((stdin or "").encode())
        given.seek(0)
        files = (given, out, err)
        child = Child(
            arguments,
            dict(environment or os.environ),
            folder=folder,
            code=code,
            streams=[file.fileno() for file in files],
        )
        try:
            code = child.wait(timeout)
        finally:
            child.send_signal(9)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(arguments, code, *said)
