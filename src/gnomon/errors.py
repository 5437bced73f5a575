"""Errors and warnings, as one tree.

::

    GnomonError
    ├── ParameterError      (ValueError)  a parameter's value is outside its range
    ├── ParameterTypeError  (TypeError)   a parameter has a type that is never allowed
    ├── DataError           (ValueError)  the data cannot be used as given
    │   ├── MissingValueError             NaN, None or masked cells where none are allowed
    │   ├── ChangedSourceError            a table read in blocks changed between two reads
    │   └── ModelFileError                a file is not a model, is damaged, or is not trusted
    ├── DataTypeError       (TypeError)   the data are not numbers
    ├── PartitionError      (RuntimeError) a part of a table could not be read or processed
    ├── ClusterError        (RuntimeError) a Dask cluster is missing or lost
    ├── ConditionError                    a condition of `--fail-if` holds
    ├── Interrupted                       a callback ended a pass over data
    ├── UnavailableError    (ValueError)  this model cannot compute that; the message names one
    ├── TooLargeError       (MemoryError) the work does not fit into the memory allowed
    ├── ExistingFileError   (FileExistsError) a file exists and may not be replaced
    └── WriteError          (OSError)     a file could not be written; the old one is intact

    GnomonWarning           (UserWarning)
    ├── DataWarning         a property of the data that the reader of the result should know
    └── NotConvergedWarning an iteration stopped before it reached the requested accuracy

Every message names the argument, the limit, the value, and the way out, in that order:
"`perplexity` must be below n_samples = 20; got 30. Lower it or add rows."

Errors and warnings carry the parts of their message: a text with named fields, the values of
these fields, and the ways out. ``str(error)`` formats them for Python. The command line formats the
same fields with its own `Wording`, which writes options instead of parameters. A caller that
knows more, such as the name of a column in the file, changes a field by `Message.replace`.

Errors cross process boundaries, so all of them, here and elsewhere, survive pickling with
their message, fields and attributes.
"""

import sys
import warnings
from enum import Enum
from typing import Any, NoReturn, Self, TypeAlias

__all__ = [
    "ChangedSourceError",
    "ClusterError",
    "ConditionError",
    "DataError",
    "DataTypeError",
    "DataWarning",
    "ExistingFileError",
    "GnomonError",
    "GnomonWarning",
    "Interrupted",
    "Message",
    "MissingValueError",
    "ModelFileError",
    "NotConvergedWarning",
    "Parameter",
    "ParameterError",
    "ParameterTypeError",
    "PartitionError",
    "Remedy",
    "TooLargeError",
    "UnavailableError",
    "Way",
    "Wording",
    "WriteError",
    "quoted",
    "refuse",
    "warn_caller",
    "worded",
]

LONGEST_QUOTE = 60  # characters
_INSIDE = ("gnomon.", "sklearn.", "contextlib")  # modules that are skipped to find the caller


class Parameter(str):
    """Name of a parameter, as the value of a field: a command writes its option instead."""

    __slots__ = ()


class Remedy(Enum):
    """Ways out that are worded differently outside Python; they may contain fields of the error."""

    LOWER_PERPLEXITY = "perplexity must be less than n_samples: lower it or add rows."
    STANDARDIZE = "Standardise the columns (`PCA(standardize=True)`) or use other units."
    SEE_CERTIFICATE = (
        "`certificate_` says how far each component can be off; `solver='covariance'` or 'gram' "
        "is exact."
    )
    FILL_GAPS = "Drop those rows, fill them in, or use `missing='em'` where the estimator has it."
    FEWER_COMPONENTS = "Use fewer components with `solver='krylov'`."
    START_AGAIN = "Start it again, or run without {parameter}."
    LEAVE_OUT = "Leave it out of the option {parameter}."
    EXACT_SOLVER = "Use `solver='{solver}'`, which is exact too and copies nothing."


# A way out is a parameter and its value, a remedy, or a sentence for Python and the command line.
Way: TypeAlias = tuple[str, str] | Remedy | str


class Wording:
    """Formats messages for Python."""

    def parameter(self, name: str) -> str:
        """Format the name of a parameter."""
        return f"`{name}`"

    def setting(self, name: str, value: str) -> str | None:
        """Format a parameter with a value that helps; None if it cannot be set."""
        return f"{name}={quoted(value)}"

    def remedy(self, remedy: Remedy) -> str:
        """Sentence of a remedy, with names of fields in braces."""
        return str(remedy.value)


PYTHON = Wording()


class Message(Exception):  # noqa: N818 (warnings have one too)
    """Text of an error or a warning, and the fields that it contains.

    Parameters
    ----------
    text : str
        What is wrong: a sentence with its full stop. Fields are in it by name in braces,
        as in `str.format`, and nothing else is.
    *ways : Way
        What the user can do, in order: settings first, then sentences.
    **fields
        Values of the fields by name: ``table``, ``column``, ``row``, ``parameter``, ….
    """

    text: str
    ways: tuple[Way, ...]
    fields: dict[str, Any]

    def __init__(self, *args: Any, **fields: Any) -> None:
        if args and isinstance(args[0], str):
            self.text, self.ways, self.fields = args[0], args[1:], fields
            super().__init__(self.worded(PYTHON))
        else:  # no arguments, or an errno and its meaning
            super().__init__(*args)
            self.text, self.ways, self.fields = str(self), (), fields

    def worded(self, wording: Wording) -> str:
        """Format the message for Python, or for a command."""
        fields = {
            name: wording.parameter(value) if isinstance(value, Parameter) else value
            for name, value in self.fields.items()
        }
        said = [self.text.format_map(fields) if fields else self.text]
        settings = [wording.setting(*way) for way in self.ways if isinstance(way, tuple)]
        if possible := [setting for setting in settings if setting is not None]:
            first, last = ", ".join(possible[:-1]), possible[-1]
            said.append(f"Use {first}{', or ' if first else ''}{last}.")
        for way in self.ways:
            if isinstance(way, Remedy):
                said.append(wording.remedy(way).format_map(fields))
            elif isinstance(way, str) and way:
                said.append(way)
        return " ".join(said)

    def replace(self, *, ways: tuple[Way, ...] | None = None, **fields: Any) -> Self:
        """Copy of the message with other values of its fields, or with other ways out."""
        values = {name: fields.get(name, value) for name, value in self.fields.items()}
        ways = self.ways if ways is None else ways
        if (values, ways) == (self.fields, self.ways):
            return self
        other = type(self)(self.text, *ways, **values)
        vars(other).update({k: v for k, v in vars(self).items() if k not in vars(other)})
        return other


def worded(error: BaseException | str, wording: Wording) -> str:
    """Format `error` by `wording`; errors of other libraries have only their own text."""
    return error.worded(wording) if isinstance(error, Message) else str(error)


def quoted(text: object, longest: int = LONGEST_QUOTE) -> str:
    """Quote `text` on one line: long text is truncated, invisible characters are escaped."""
    whole = str(text)
    cut = whole if len(whole) <= longest else whole[: longest - 1] + "…"
    seen = "".join(
        "\\" + c if c in '"\\' else c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in cut
    )
    return f'"{seen}"'


class GnomonError(Message):
    """Base of all errors that Gnomon raises on purpose."""


class ParameterError(GnomonError, ValueError):
    """A parameter's value is outside its range."""


class ParameterTypeError(GnomonError, TypeError):
    """A parameter has a type that is never allowed."""


class DataError(GnomonError, ValueError):
    """The data cannot be used as given."""


class MissingValueError(DataError):
    """Missing values where none are allowed."""


class ChangedSourceError(DataError):
    """A table that is read in blocks changed since it was first read."""


class ModelFileError(DataError):
    """A file is not a model, is damaged, or is not trusted."""


class DataTypeError(GnomonError, TypeError):
    """The data are not numbers."""


class PartitionError(GnomonError, RuntimeError):
    """A part of a table could not be read or processed in three attempts."""


class ClusterError(GnomonError, RuntimeError):
    """A Dask cluster is missing, is lost, or cannot do the work."""


class ConditionError(GnomonError):
    """A result meets a condition on which the run should fail."""


class Interrupted(GnomonError):  # noqa: N818 (there is an InterruptedError in Python)
    """A callback ended a pass over data."""


class UnavailableError(GnomonError, ValueError):
    """The model cannot compute what was requested."""


class TooLargeError(GnomonError, MemoryError):
    """The work does not fit into the memory allowed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by a call: Dask's ``__new__`` fails if MemoryError is not the first base."""
        return type(self), self.args, self.__dict__


class ExistingFileError(GnomonError, FileExistsError):
    """A file exists and may not be replaced."""


class WriteError(GnomonError, OSError):
    """A file could not be written; the old one is intact."""


class GnomonWarning(Message, UserWarning):
    """Base of all warnings."""


class DataWarning(GnomonWarning):
    """A property of the data that matters for reading the result."""


class NotConvergedWarning(GnomonWarning):
    """An iteration stopped before it reached the requested accuracy."""


def warn_caller(warning: Warning) -> None:
    """Warn, pointing at the calling line outside Gnomon and scikit-learn."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def refuse(name: str, must: str, got: Any, way_out: Way = "", *, kind: bool = False) -> NoReturn:
    """Raise a parameter error, in the one form that all of them have.

    Parameters
    ----------
    name : str
        Name of the parameter.
    must : str
        The requirement, with its bound: ``"be an integer from 1 to 64"``.
    got : object
        The given value.
    way_out : Way
        What the user can do about it.
    kind : bool
        True if the value has a type that is never allowed (raises a TypeError).
    """
    error = ParameterTypeError if kind else ParameterError
    raise error(
        "{parameter} must {must}; got {got}.",
        *((way_out,) if way_out else ()),
        parameter=Parameter(name),
        must=must,
        got=repr(got),
    )
