"""What went wrong: one sentence in the words of the command line, and an exit code."""

import errno
import os
import re
from collections.abc import Container

from gnomon.data.refusals import option
from gnomon.errors import (
    ConditionError,
    DataError,
    DataTypeError,
    GnomonError,
    PartitionError,
    Remedy,
    Wording,
    WriteError,
    worded,
)

__all__ = ["CommandWording", "exit_code", "sentence"]

# Parameters whose options have other names.
OPTIONS = {
    "n_components": "k",
    "n_jobs": "threads",
    "random_state": "seed",
    "n_neighbors": "neighbors",
    "n_permutations": "permutations",
    "page_budget": "page-budget",
}
SHORT = ("k", "o", "m")

# What a command offers where the library offers something of Python.
REMEDIES = {
    Remedy.LOWER_PERPLEXITY: "Lower it or add rows.",
    Remedy.STANDARDIZE: "Use --scale standard or use other units.",
    Remedy.SEE_CERTIFICATE: "run.json says how far each component can be off.",
    Remedy.FILL_GAPS: "Drop those rows, or fill them in beforehand.",
    Remedy.FEWER_COMPONENTS: "Ask for fewer components, such as -k 10.",
    Remedy.EXACT_SOLVER: "Take fewer rows or columns.",
}


class CommandWording(Wording):
    """How messages are written for a command that has the options `known`; None: has all."""

    def __init__(self, known: Container[str] | None = ()) -> None:
        self.known = known

    def parameter(self, name: str) -> str:
        """The option for a parameter, if the command has one."""
        name_here = OPTIONS.get(name, name)
        if self.known is not None and name_here not in self.known:
            return super().parameter(name)
        return f"-{name_here}" if name_here in SHORT else f"--{name_here}"

    def setting(self, name: str, value: str) -> str | None:
        """The option and its value, if the command has it."""
        if self.known is not None and name not in self.known:
            return None
        return option(name, value, command=True)

    def remedy(self, remedy: Remedy) -> str:
        """What the command line offers."""
        return REMEDIES.get(remedy) or super().remedy(remedy)


# How Python, pyarrow and the loader of libraries say that the system gave them no memory.
REFUSED = re.compile(
    r"can't start new thread|Failed to launch worker thread|"
    r"failed to map segment|[Cc]annot allocate memory"
)


def exit_code(error: Exception) -> int:
    """2 wrong usage, 3 bad data, 4 too little memory, 5 a condition holds, 1 anything else."""
    if _lacks_memory(error):
        return 4
    if isinstance(error, (DataError, DataTypeError)):
        return 3
    if isinstance(error, ConditionError):
        return 5
    if isinstance(error, (WriteError, PartitionError)):  # disks and machines, not their user
        return 1
    return 2 if isinstance(error, GnomonError) else 1


def sentence(error: Exception, known: Container[str] | None = None) -> str:
    """What `error` says to the user of a command that has the options `known`; None: has all."""
    text = worded(error, CommandWording(known))
    if isinstance(error, GnomonError):
        return text
    text = " ".join(text.split())  # other libraries write paragraphs
    if isinstance(error, OSError) and error.errno:
        text = os.strerror(error.errno)  # without its number
    if _lacks_memory(error):
        return f"There is not enough memory ({text or 'it is full'}). Take fewer rows or columns."
    if isinstance(error, OSError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {text}."
    return f"{text or type(error).__name__} (--debug shows where)"


def _lacks_memory(error: Exception) -> bool:
    """Whether the system refused memory, or a thread, which needs some."""
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (not isinstance(error, GnomonError) and REFUSED.search(str(error)) is not None)
    )
