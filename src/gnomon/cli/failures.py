"""What went wrong: one sentence in the words of the command line, and an exit code."""

import errno
import os
import re
from collections.abc import Container

from gnomon.errors import DataError, DataTypeError, GnomonError, PartitionError, WriteError

__all__ = ["exit_code", "in_words", "sentence"]

# Parameters whose options are called otherwise.
OPTIONS = {
    "n_components": "k",
    "n_jobs": "threads",
    "random_state": "seed",
    "n_neighbors": "neighbors",
    "n_permutations": "permutations",
    "page_budget": "page-budget",
}
SHORT = ("k", "o", "m")

# The library speaks of Python; whoever typed a command reads this instead.
PHRASES = (
    (r"from 1 to n_samples - 1 = (\S+);", r"from 1 to \1, one less than the rows;"),
    (r"perplexity must be less than n_samples: lower", "Lower"),
    (r"Standardise the columns \(`PCA\(standardize=True\)`\)", "Use --scale standard"),
    (r"`certificate_` says how far each component can be off; .*", "run.json says how far each "
     "component can be off."),
    (r"Use fewer components with `solver='krylov'`\.", "Ask for fewer components, such as -k 10."),
    (r"Drop those rows, fill them in, or use `missing='em'` where the estimator has it\.",
     "Drop those rows, or fill them in beforehand."),
    (r"Use `solver='\w+'`, which is exact too and copies nothing\.", "Take fewer rows or columns."),
)  # fmt: skip


# How Python, pyarrow and the loader of libraries say that the system gave them no memory.
REFUSED = re.compile(r"can't start new thread|Failed to launch worker thread|"
                     r"failed to map segment|[Cc]annot allocate memory")  # fmt: skip


def exit_code(error: Exception) -> int:
    """2 for wrong usage, 3 for bad data, 4 for too little memory, 1 for anything else."""
    if _lacks_memory(error):
        return 4
    if isinstance(error, (DataError, DataTypeError)):
        return 3
    if isinstance(error, (WriteError, PartitionError)):  # disks and machines, not their user
        return 1
    return 2 if isinstance(error, GnomonError) else 1


def sentence(error: Exception, known: Container[str]) -> str:
    """What `error` says to the user of a command that has the options `known`."""
    speaks = getattr(error, "command_line", None)  # errors about files have two wordings
    text = in_words(str(error) if speaks is None else speaks(known), known)
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


def in_words(text: str, known: Container[str] = ()) -> str:
    """A sentence of the library with options in place of parameters."""
    for pattern, said in PHRASES:
        text = re.sub(pattern, said, text)

    def option(found: re.Match[str]) -> str:
        name = OPTIONS.get(found[1], found[1])
        if name not in known:
            return found[0]
        return f"-{name}" if name in SHORT else f"--{name}"

    return re.sub(r"`(\w+)`", option, text)
