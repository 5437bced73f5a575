"""Processes of their own that need not import NumPy, SciPy, scikit-learn and Numba first.

Two seconds of processor go by before `gnomon` has imported what others wrote; a few hundred tests
that start it would take ten minutes. So one process imports those libraries, nothing of Gnomon, and
waits at a socket. For each request it forks; the child takes over the arguments, environment,
folder and standard streams of the caller (closed ones stay closed), imports Gnomon as any new
process does, and ends as Python ends. Its exit status goes back through the socket.

`children.py` asks from Python. ``python prefork.py --to SOCKET ARGUMENTS`` asks from a shell, with
the shell's own streams and folder. What is about the libraries themselves (their environment
variables, address space, being imported late or not at all) needs a new interpreter.
"""

import array
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import types
import warnings

LIBRARIES = (
    "numpy",
    "scipy.stats",
    "scipy.sparse.linalg",
    "pandas",
    "sklearn.base",
    "numba",
    "pyarrow.parquet",
    "pyarrow.csv",
    "pyarrow.feather",
    "jinja2",
    "rich.progress",
)
STREAMS = (0, 1, 2)


def ask(address, arguments, environment, *, code=None, folder=".", streams=STREAMS):
    """Ask for a process; the connection that will say its number and its exit code."""
    there = [is_open(stream) for stream in streams]  # before a new file takes a number of theirs
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # "." is there even if it was removed
    asked = {"arguments": arguments, "environment": environment, "code": code, "streams": there}
    files = [at, *(stream for stream, given in zip(streams, there, strict=True) if given)]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(address)
    content = json.dumps(asked).encode()
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
    connection.sendmsg([len(content).to_bytes(4, "big")], [rights])
    connection.sendall(content)
    os.close(at)
    return connection


def is_open(stream):
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True


def number(connection):
    """The next number that the server says; None if it is gone."""
    content = connection.recv(4, socket.MSG_WAITALL)
    return int.from_bytes(content, "big", signed=True) if len(content) == 4 else None


def _request(connection):
    head, files, _, _ = socket.recv_fds(connection, 4, 4)
    content = b""
    while len(content) < int.from_bytes(head, "big"):
        content += connection.recv(65536)
    return json.loads(content), files


def serve(listening):
    """Fork for every request; returns in the children, with what they are asked to be."""
    awake, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with who started it
    waiting = {}
    while True:
        ready, _, _ = select.select([listening, awake, 0], [], [])
        if 0 in ready:  # the process that started this is gone
            os._exit(0)
        if awake in ready:
            awake.recv(4096)
            _tell_the_ended(waiting)
        if listening in ready:
            connection, _ = listening.accept()
            asked, files = _request(connection)
            with warnings.catch_warnings():  # that NumPy has threads, which wait for work
                warnings.simplefilter("ignore", DeprecationWarning)
                child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                for each in (listening, awake, wakes, connection, *waiting.values()):
                    each.close()
                return asked, files
            for file in files:
                os.close(file)
            waiting[child] = connection
            with contextlib.suppress(OSError):  # who asked is gone
                connection.sendall(child.to_bytes(4, "big"))


def _tell_the_ended(waiting):
    with contextlib.suppress(ChildProcessError):  # none is left
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            code = os.waitstatus_to_exitcode(ended[1])
            with contextlib.suppress(OSError), waiting.pop(ended[0]) as connection:
                connection.sendall(code.to_bytes(4, "big", signed=True))


def take_over(asked, files):
    """Be the process that was asked for: its folder, streams, environment and arguments."""
    at, *given = files
    os.fchdir(at)
    for stream, there in enumerate(asked["streams"]):
        if there:
            os.dup2(given.pop(0), stream)
        else:
            os.close(stream)
    for file in files:
        os.close(file)
    for stream, name in enumerate(("stdin", "stdout", "stderr")):
        made = _opened(stream, getattr(sys, name)) if asked["streams"][stream] else None
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    os.environ.clear()
    os.environ.update(asked["environment"])
    tempfile.tempdir = None  # as it was before a library asked for it
    sys.argv = asked["arguments"]
    sys.path[0] = "" if asked["code"] else os.path.dirname(sys.executable)
    sys.modules["__main__"] = types.ModuleType("__main__")


def _opened(stream, like):
    """A standard stream as Python opens it, with the encoding of the one there was."""
    by_line = stream == 2 or os.isatty(stream)
    return open(
        stream,
        "w" if stream else "r",
        1 if by_line else -1,
        like.encoding,
        like.errors,
        closefd=False,
    )


def main():
    for library in LIBRARIES:
        importlib.import_module(library)
    sys.modules["numba"].njit(lambda x: x)(0)  # whatever Numba imports and registers at first
    gc.collect()
    gc.freeze()  # children share what is imported with each other
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(sys.argv[1])
    listening.listen(64)
    print("ready", flush=True)
    asked, files = serve(listening)
    take_over(asked, files)
    if asked["code"]:
        exec(compile(asked["code"], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        from gnomon.cli import main as command

        command()


def from_a_shell(address, arguments):
    """Have a command run with this process's streams, folder and environment; its exit code."""
    connection = ask(address, ["gnomon", *arguments], dict(os.environ))
    return number(connection) and number(connection)


if __name__ == "__main__":
    if sys.argv[1] == "--to":
        code = from_a_shell(sys.argv[2], sys.argv[3:])
        os._exit(code if code >= 0 else 128 - code)  # as a shell says it of a signal
    main()
