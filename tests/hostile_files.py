"""Damaged files handed to a child process, which is started again when one of them kills it."""

import json
import select
import subprocess
import sys
from collections import Counter
from pathlib import Path

READER = Path(__file__).with_name("mutant_reader.py")
SECONDS = 300  # that one file may take, on a machine that is busy with much else


class Reader:
    """A child that reads files; a new one whenever the last one died."""

    def __init__(self):
        self.child = None

    def ask(self, work, path):
        """What the child says of the file: a word, and a text."""
        if self.child is None:
            self.child = subprocess.Popen(
                [sys.executable, READER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        self.child.stdin.write(json.dumps([work, str(path)]) + "\n")
        self.child.stdin.flush()
        ready, _, _ = select.select([self.child.stdout], [], [], SECONDS)
        line = self.child.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.child.kill()
        code = self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()
        self.child = None
        return "crashed" if ready else "hung", f"exit code {code}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child is not None:
            self.child.stdin.close()
            self.child.stdout.close()
            self.child.wait()


def survey(works, files, folder):
    """How often each of `works` read and refused a file, and every time it did neither.

    `files` are names and contents. One that was neither read nor refused stays in `folder`.
    """
    counts, faults = Counter(), []
    with Reader() as reader:
        for number, (name, content) in enumerate(files):
            path = folder / f"{number}-{name}"
            path.write_bytes(content)
            known = len(faults)
            for work in works:
                answer, text = reader.ask(work, path)
                counts[work, answer] += 1
                if answer not in ("read", "refused"):
                    faults.append(f"{path.name} {work} {answer}: {text}")
            if len(faults) == known:
                path.unlink()
    return counts, faults
