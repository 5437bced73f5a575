"""What can go wrong, as one tree.

::

    GnomonError
    ├── ParameterError      (ValueError)  a parameter's value is outside its range
    ├── ParameterTypeError  (TypeError)   a parameter is of a kind that is never allowed
    ├── DataError           (ValueError)  the data cannot be used as they are
    │   ├── MissingValueError             NaN, None or masked cells where none are allowed
    │   ├── ChangedSourceError            a table read in blocks is not what it was before
    │   └── ModelFileError                a file is no model, is damaged, or is not to be trusted
    ├── DataTypeError       (TypeError)   the data are not numbers
    ├── PartitionError      (RuntimeError) a part of a table could not be read or worked on
    ├── ClusterError        (RuntimeError) a Dask cluster is not there, or is lost
    ├── ConditionError                    a condition of `--fail-if` holds
    ├── Interrupted                       a callback ended a pass over data
    ├── UnavailableError    (ValueError)  this model cannot answer that; the message says which can
    ├── TooLargeError       (MemoryError) the work does not fit into the memory allowed
    ├── ExistingFileError   (FileExistsError) a file is there already and was not to be replaced
    └── WriteError          (OSError)     a file could not be written; the old one is whole

    GnomonWarning           (UserWarning)
    ├── DataWarning         a property of the data that the reader of the result should know
    └── NotConvergedWarning an iteration stopped before it reached the accuracy asked for

Every message names the argument, the limit, the value, and the way out, in that order:
"`perplexity` must be below n_samples = 20; got 30. Lower it or add rows."

Errors and warnings carry what their message is made of: a text with named fields, the values of
these fields, and the ways out. ``str(error)`` words them for Python. The command line words the
same fields with a `Wording` of its own, which writes options in place of parameters. A caller that
knows more, such as what the file calls a column, changes a field by `Message.replace`.

Errors cross the borders of processes, so all of them, here and elsewhere, survive pickling with
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
_INSIDE = ("gnomon.", "sklearn.", "contextlib")  # modules that stand between


class Parameter(str):
    """The name of a parameter, as the value of a field: a command writes its option instead."""

    __slots__ = ()


class Remedy(Enum):
    """Ways out that take other words outside of Python; fields of the error may stand in them."""

    LOWER_PERPLEXITY = "perplexity must be less than n_samples: lower it or add rows."
    STANDARDIZE = "Standardise the columns (`PCA(standardize=True)`) or use other units."
    SEE_CERTIFICATE = (
        "`certificate_` says how far each component can be off; `solver='covariance'` or 'gram' "
        "is exact."
    )
    FILL_GAPS = "Drop those rows, fill them in, or use `missing='em'` where the estimator has it."
    FEWER_COMPONENTS = "Use fewer components with `solver='krylov'`."
    START_AGAIN = "Start it again, or work without {parameter}."
    LEAVE_OUT = "Leave it out of the option {parameter}."
    EXACT_SOLVER = "Use `solver='{solver}'`, which is exact too and copies nothing."


# A way out is a parameter and its value, a remedy, or a sentence that suits everybody.
Way: TypeAlias = tuple[str, str] | Remedy | str


class Wording:
    """How messages are written in Python."""

    def parameter(self, name: str) -> str:
        """A parameter in a sentence."""
        return f"`{name}`"

    def setting(self, name: str, value: str) -> str | None:
        """A parameter with a value that helps; None where it cannot be set."""
        return f"{name}={quoted(value)}"

    def remedy(self, remedy: Remedy) -> str:
        """The sentence of a remedy; names of fields stand in braces."""
        return str(remedy.value)


PYTHON = Wording()


class Message(Exception):  # noqa: N818 (warnings have one too)
    """What an error or a warning says, and the fields that the sentence is made of.

    Parameters
    ----------
    text : str
        What is wrong: a sentence with its full stop. Where there are fields, their names stand in
        it in braces, as `str.format` takes them, and nothing else does.
    *ways : Way
        What the user can do, in the order in which it is said: settings first, then sentences.
    **fields
        What the sentence is about, by name: ``table``, ``column``, ``row``, ``parameter``, ….
    """

    text: str
    ways: tuple[Way, ...]
    fields: dict[str, Any]

    def __init__(self, *args: Any, **fields: Any) -> None:
        if args and isinstance(args[0], str):
            self.text, self.ways, self.fields = args[0], args[1:], fields
            super().__init__(self.worded(PYTHON))
        else:  # nothing, or an errno and its meaning
            super().__init__(*args)
            self.text, self.ways, self.fields = str(self), (), fields

    def worded(self, wording: Wording) -> str:
        """The message in the words of Python, or of a command."""
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
        """Copy the message with other values of its fields, or with other ways out."""
        values = {name: fields.get(name, value) for name, value in self.fields.items()}
        ways = self.ways if ways is None else ways
        if (values, ways) == (self.fields, self.ways):
            return self
        other = type(self)(self.text, *ways, **values)
        vars(other).update({k: v for k, v in vars(self).items() if k not in vars(other)})
        return other


def worded(error: BaseException | str, wording: Wording) -> str:
    """What `error` says in the words of `wording`; those of other libraries have only their own."""
    return error.worded(wording) if isinstance(error, Message) else str(error)


def quoted(text: object, longest: int = LONGEST_QUOTE) -> str:
    """`text` in quotes on one line: cut where it is long, escaped where it cannot be seen."""
    whole = str(text)
    cut = whole if len(whole) <= longest else whole[: longest - 1] + "…"
    seen = "".join(
        "\\" + c if c in '"\\' else c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in cut
    )
    return f'"{seen}"'


class GnomonError(Message):
    """Base of all errors raised by Gnomon on purpose."""


class ParameterError(GnomonError, ValueError):
    """A parameter's value is outside its range."""


class ParameterTypeError(GnomonError, TypeError):
    """A parameter is of a kind that is never allowed."""


class DataError(GnomonError, ValueError):
    """The data cannot be used as they are."""


class MissingValueError(DataError):
    """There are missing values where none are allowed."""


class ChangedSourceError(DataError):
    """A table that is read in blocks is not what it was when it was first read."""


class ModelFileError(DataError):
    """A file is no model, is damaged, or is not to be trusted."""


class DataTypeError(GnomonError, TypeError):
    """The data are not numbers."""


class PartitionError(GnomonError, RuntimeError):
    """A part of a table could not be read or worked on, three times running."""


class ClusterError(GnomonError, RuntimeError):
    """A Dask cluster is not there, is lost, or cannot do the work."""


class ConditionError(GnomonError):
    """A result meets a condition on which the user wants to fail."""


class Interrupted(GnomonError):  # noqa: N818 (there is an InterruptedError in Python)
    """A callback ended a pass over data."""


class UnavailableError(GnomonError, ValueError):
    """The model at hand cannot answer that."""


class TooLargeError(GnomonError, MemoryError):
    """The work does not fit into the memory allowed."""

    def __reduce__(self) -> tuple[Any, ...]:
        """By a call: Dask's way, ``__new__``, fails where MemoryError is not the first base."""
        return type(self), self.args, self.__dict__


class ExistingFileError(GnomonError, FileExistsError):
    """A file is there already and was not to be replaced."""


class WriteError(GnomonError, OSError):
    """A file could not be written; what was there before is whole."""


class GnomonWarning(Message, UserWarning):
    """Base of all warnings."""


class DataWarning(GnomonWarning):
    """A property of the data that the reader of the result should know."""


class NotConvergedWarning(GnomonWarning):
    """An iteration stopped before it reached the accuracy asked for."""


def warn_caller(warning: Warning) -> None:
    """Warn, pointing at the line outside Gnomon and scikit-learn that the work was called from."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)


def refuse(name: str, must: str, got: Any, way_out: Way = "", *, kind: bool = False) -> NoReturn:
    """Raise the one sentence that every parameter error is.

    Parameters
    ----------
    name : str
        The parameter.
    must : str
        What it must be, with its bound: ``"be an integer from 1 to 64"``.
    got : object
        The value given.
    way_out : Way
        What the user can do about it.
    kind : bool
        True when the value is of a kind that is never allowed (raises a TypeError).
    """
    error = ParameterTypeError if kind else ParameterError
    raise error(
        "{parameter} must {must}; got {got}.",
        *((way_out,) if way_out else ()),
        parameter=Parameter(name),
        must=must,
        got=repr(got),
    )
