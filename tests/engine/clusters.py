"""Dask clusters of separate processes, to be killed, and a bound on how long a test may take."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time


@contextlib.contextmanager
def within(seconds):
    """A hang is a failure, not a wait: SIGALRM ends what takes longer."""

    def late(*_):
        raise AssertionError(f"still going after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Processes:
    """A scheduler and workers without nannies, each a process of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.started = []

    def start(self, kind, *options):
        common = ["--scheduler-file", str(self.file), "--host", "127.0.0.1", "--no-dashboard"]
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, *common]
        log = (self.folder / f"{kind}{len(self.started)}.log").open("w")
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=variables)
        log.close()
        self.started.append(process)
        return process

    def scheduler(self):
        process = self.start("scheduler", "--port", "0")
        wait_until(self.address)
        return process

    def worker(self):
        return self.start("worker", "--no-nanny", "--nthreads", "1", "--worker-port", "0")

    def address(self):
        """Where the scheduler listens; None before it has said so, and while it is saying it."""
        try:
            return json.loads(self.file.read_text())["address"]
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def end(self):
        for process in self.started:
            process.kill()
            process.wait(60)


@contextlib.contextmanager
def processes(folder):
    found = Processes(folder)
    try:
        yield found
    finally:
        found.end()


def wait_until(true, seconds=90):
    """Long enough for a slow machine to start processes."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid):
    """Whether a process is there and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def die():
    """End this process as a kernel without memory would."""
    os.kill(os.getpid(), signal.SIGKILL)
